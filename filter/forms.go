package filter

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf16"
)

// minKnown is the length under which a known value is not looked for.
const minKnown = 8

// forms calls add with the texts by which a value is found: the value, its lines, and what hex
// and base64 make of it. Quoted and escaped they are found as they are (see needle.matchAny).
// Duplicates are the caller's to drop. The flag marks base64 cores: the rest of the run
// belongs to the value too.
func forms(value string, add func(text string, base64 bool)) {
	v := strings.TrimSpace(value)
	if len(v) < minKnown {
		return
	}
	add(v, false)
	if strings.IndexFunc(v, func(r rune) bool { return r >= 0x80 }) >= 0 {
		add(unitsOf(v, false), false)
		add(unitsOf(v, true), false)
	}
	encodings := func(v string) {
		add(hex.EncodeToString([]byte(v)), false)
		add(strings.ToUpper(hex.EncodeToString([]byte(v))), false)
		for k := range 3 {
			base64Core(v, k, base64.StdEncoding, add)
			base64Core(v, k, base64.URLEncoding, add)
		}
	}
	encodings(v)
	if !strings.Contains(v, "\n") {
		return
	}
	// As other systems break lines.
	unix := strings.ReplaceAll(v, "\r\n", "\n")
	for _, other := range [...]string{unix, strings.ReplaceAll(unix, "\n", "\r\n")} {
		if other != v {
			encodings(other)
		}
	}
	for line := range strings.Lines(v) {
		if line = strings.TrimSpace(line); len(line) >= minKnown && !strings.HasPrefix(line, "-----") && notSecret(line) == "" {
			add(line, false)
		}
	}
}

// unitsOf is what the view shows of a text in UTF-16: its units without their zero bytes.
func unitsOf(v string, big bool) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(v)) {
		low, high := byte(u), byte(u>>8)
		switch {
		case high == 0:
			out = append(out, low)
		case big:
			out = append(out, high, low)
		default:
			out = append(out, low, high)
		}
	}
	return string(out)
}

// base64Core adds the characters of the encoding of k unknown bytes and v that
// depend on v alone. So a value is found behind "user:", before a newline, and
// whatever the padding.
func base64Core(v string, k int, enc *base64.Encoding, add func(string, bool)) {
	n := len(v)
	buf := make([]byte, k+n+3)
	copy(buf[k:], v)
	text := enc.EncodeToString(buf)
	from := [...]int{0, 2, 3}[k]
	to := 8 * (k + n) / 6 // characters whose bits lie inside
	if core := text[from:to]; len(core) >= minKnown {
		add(core, true)
	}
}
