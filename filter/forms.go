package filter

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
)

// minKnown is the length under which a known value is not looked for.
const minKnown = 8

// forms calls add with each way in which tools print a value. Duplicates are the
// caller's to drop. The flag marks base64 cores: the rest of the run belongs to
// the value too.
func forms(value string, add func(text string, base64 bool)) {
	put := func(s string) {
		if len(s) >= minKnown {
			add(s, false)
		}
	}
	v := strings.TrimSpace(value)
	if len(v) < minKnown {
		return
	}
	armour := strings.Contains(v, "-----BEGIN ")
	if !armour {
		put(v)
	}
	encoded := func(v string) {
		plain := true
		for i := range len(v) {
			if !isAlnum(v[i]) && v[i] != '-' && v[i] != '_' && v[i] != '.' {
				plain = false
				break
			}
		}
		if !plain {
			textForms(v, put)
		}
		put(hex.EncodeToString([]byte(v)))
		put(strings.ToUpper(hex.EncodeToString([]byte(v))))
		for k := range 3 {
			base64Core(v, k, base64.StdEncoding, add)
			base64Core(v, k, base64.URLEncoding, add)
		}
	}
	if strings.Contains(v, "\n") {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && len(line) >= 2*minKnown {
				put(line)
				if armour && strings.ContainsAny(line, "+/=") {
					textForms(line, put) // percent-encoded, JSON that escapes slashes
				}
			}
		}
	}
	if !armour {
		encoded(v)
		return
	}
	// A key in armour: as it is, with CRLF, and without its last line break or with it.
	put(hex.EncodeToString([]byte(v)))
	put(strings.ToUpper(hex.EncodeToString([]byte(v))))
	crlf := strings.ReplaceAll(strings.ReplaceAll(v, "\r\n", "\n"), "\n", "\r\n")
	for k := range 3 {
		base64Core(v, k, base64.StdEncoding, add)
		base64Core(v, k, base64.URLEncoding, add)
	}
	base64Core(crlf, 0, base64.StdEncoding, add)
}

// textForms adds the quotings and escapings of a value with punctuation.
func textForms(v string, put func(string)) {
	if b, err := json.Marshal(v); err == nil { // with \u003c for <
		safe := string(b[1 : len(b)-1])
		put(safe)
		put(strings.ReplaceAll(strings.ReplaceAll(safe, `\`, `\\`), `"`, `\"`)) // JSON in JSON
	}
	var j strings.Builder
	enc := json.NewEncoder(&j)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) == nil {
		plain := strings.TrimSpace(j.String())
		plain = plain[1 : len(plain)-1]
		put(plain)
		put(strings.ReplaceAll(plain, "/", `\/`)) // as PHP writes it
		if b, err := json.Marshal(plain); err == nil {
			put(string(b[1 : len(b)-1])) // JSON in JSON
		}
	}
	q := strconv.QuoteToASCII(v)
	put(q[1 : len(q)-1])
	put(unicodeEscapes(v))
	put(strings.ReplaceAll(v, "'", `'\''`))
	put(shellEscape(v))
	put(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(v))
	put(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(v))
	put(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(v))
	for _, keep := range [...]string{"-_.~", "-_.!~*'()", "-_.*+", "-_.~/", "-_.~$&+=:@", "-_.~:/?#[]@!$&'()*+,;="} {
		put(percent(v, keep, "0123456789ABCDEF"))
		put(percent(v, keep, "0123456789abcdef"))
	}
}

// percent encodes all but letters, digits and keep; a + in keep means the form
// encoding, in which a space becomes one.
func percent(v, keep, digits string) string {
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		switch {
		case c == ' ' && keep == "-_.*+":
			b.WriteByte('+')
		case isAlnum(c) || c != '+' && strings.IndexByte(keep, c) >= 0 || c == '+' && len(keep) > 9:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// shellEscape puts a backslash before what a shell would read, as printf %q does.
func shellEscape(v string) string {
	var b strings.Builder
	for i := range len(v) {
		if c := v[i]; c < 0x80 && !isAlnum(c) && strings.IndexByte("-_./,:+=@%", c) < 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// unicodeEscapes writes all but letters and digits as \uXXXX.
func unicodeEscapes(v string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, r := range v {
		if r < 0x80 && isAlnum(byte(r)) || r > 0xffff {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[r>>shift&15])
		}
	}
	return b.String()
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
