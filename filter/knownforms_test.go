package filter_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/atip-dev/atip-exec/filter"
)

// knownForm is a way in which tools print a value. Promised are those of filter.md §5; the others
// are measured only.
type knownForm struct {
	Name     string
	Promised bool
	Encode   func(string) string
}

// knownForms are the ways in which a value that is known before the run is looked for.
var knownForms = [...]knownForm{
	{"as it is", true, func(v string) string { return v }},
	{"in a sentence", true, func(v string) string { return "the key is " + v + ", keep it" }},
	{"in double quotes", true, func(v string) string { return `"` + v + `"` }},
	{"between letters", true, func(v string) string { return "x" + v + "y" }},
	{"JSON", true, marshal},
	{"JSON in JSON", true, func(v string) string { return marshal(marshal(v)) }},
	{"JSON in JSON in JSON", false, func(v string) string { return marshal(marshal(marshal(v))) }},
	{"JSON without HTML escapes", true, func(v string) string { return plainJSON(v) }},
	{"JSON with escaped slashes", false, func(v string) string { return strings.ReplaceAll(plainJSON(v), "/", `\/`) }},
	{"JSON in ASCII", true, func(v string) string { return ascii(v, false) }},
	{"JSON, all escaped", true, func(v string) string { return ascii(v, true) }},
	{"Go %q", true, strconv.Quote},
	{"Go %+q", true, strconv.QuoteToASCII},
	{"Python repr", false, func(v string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`).Replace(v) + "'"
	}},
	{"hexadecimal escapes", false, func(v string) string { return each(v, `\x%02x`) }},
	{"octal escapes", false, func(v string) string { return each(v, `\%03o`) }},
	{"shell, single quotes", true, func(v string) string { return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'" }},
	{"shell, double quotes", false, func(v string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(v) + `"`
	}},
	{"shell, $'…'", false, func(v string) string {
		return "$'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(v) + "'"
	}},
	{"shell, backslashes", false, func(v string) string { return escaped(v, ` "'$&|;<>()*?[]#~!{}%=^`+"`\\", `\`) }},
	{"cmd, carets", false, func(v string) string { return escaped(v, `&|<>^%!()"`, "^") }},
	{"regular expression", false, func(v string) string { return escaped(v, `.+*?()[]{}|^$\/-#&~`, `\`) }},
	{"properties file", false, func(v string) string { return escaped(v, `\:=#! `, `\`) }},
	{"SQL", false, func(v string) string { return "'" + strings.ReplaceAll(v, "'", "''") + "'" }},
	{"CSV", false, func(v string) string { return `"` + strings.ReplaceAll(v, `"`, `""`) + `"` }},
	{"XML text", true, func(v string) string {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, []byte(v)) // a buffer takes all
		return b.String()
	}},
	{"HTML", true, html.EscapeString},
	{"HTML, named entities", true, func(v string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(v)
	}},
	{"HTML, decimal references", false, func(v string) string { return each(v, "&#%d;") }},
	{"query", true, url.QueryEscape},
	{"query, twice", false, func(v string) string { return url.QueryEscape(url.QueryEscape(v)) }},
	{"path", true, url.PathEscape},
	{"percent, strict", true, func(v string) string { return percent(v, "%%%02X") }},
	{"percent, lower case", true, func(v string) string { return percent(v, "%%%02x") }},
	{"percent, every byte", false, func(v string) string { return each(v, "%%%02X") }},
	{"form", true, func(v string) string { return "a=1&b=" + url.QueryEscape(v) + "&c=2" }},
	{"hex", true, func(v string) string { return hex.EncodeToString([]byte(v)) }},
	{"hex, upper case", true, func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) }},
	{"hex behind 0x", true, func(v string) string { return "0x" + hex.EncodeToString([]byte(v)) }},
	{"base64", true, func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }},
	{"base64 without padding", true, func(v string) string { return base64.RawStdEncoding.EncodeToString([]byte(v)) }},
	{"base64url", true, func(v string) string { return base64.URLEncoding.EncodeToString([]byte(v)) }},
	{"base64url without padding", true, func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }},
	{"base64 behind one byte", true, func(v string) string { return base64.StdEncoding.EncodeToString([]byte(":" + v)) }},
	{"base64 behind two bytes", true, func(v string) string { return base64.StdEncoding.EncodeToString([]byte("a:" + v)) }},
	{"base64 behind a user", true, func(v string) string { return base64.StdEncoding.EncodeToString([]byte("bob:" + v)) }},
	{"base64 with a line end", true, func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v + "\n")) }},
	{"base64 in JSON in base64", false, func(v string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"auth":"` + base64.StdEncoding.EncodeToString([]byte("u:"+v)) + `"}`))
	}},
	{"base64 of JSON", false, func(v string) string { return base64.StdEncoding.EncodeToString([]byte(`{"k":` + plainJSON(v) + `}`)) }},
	{"base64 in lines", false, func(v string) string {
		return lines(base64.StdEncoding.EncodeToString([]byte("user:"+v)), 64, "\n")
	}},
	{"URL userinfo", true, func(v string) string { return "https://u:" + url.QueryEscape(v) + "@h.example/p" }},
	{"CRLF", true, func(v string) string { return strings.ReplaceAll(v, "\n", "\r\n") }},
	{"indented", true, func(v string) string { return "    " + strings.ReplaceAll(v, "\n", "\n    ") }},
	{"on one line", true, func(v string) string { return strings.ReplaceAll(v, "\n", " ") }},
	{"broken at 80", true, func(v string) string { return broken(v, "\n") }},
	{"line editor at 80", true, func(v string) string { return broken(v, " \r") }},
	{"coloured in the middle", true, func(v string) string { return v[:5] + "\x1b[1;31m" + v[5:9] + "\x1b[0m" + v[9:] }},
	{utf16Form, true, func(v string) string { return v }}, // the whole text is widened
}

const utf16Form = "UTF-16"

// notSecret are values of variables with secret names that have to stay where they are printed.
var notSecret = [...]string{
	"true", "none", "disabled", "12345678", "31536000", "eu-central-1", "us-east-1a", "v1.24.3", "production", "development", "default", "localhost",
	"/run/secrets/token", "~/src/shop/build", "usr/share/doc", "application-name", "password", "changeme", "postgres",
	"aaaaaaaaaaaa", "0000000000", "2025-05-02", "username12",
}

// knownScore is what the filter did to values that are known before the run.
type knownScore struct {
	Promised, PromisedFound int
	Others, OthersFound     int
	Words, WordsTaken       int
	Missed                  []string // for the one who works on the filter
	Broken                  []string // the promised forms with a miss, and the words that were taken
}

// scoreKnown prints known values in each form, and values that are no secrets, through the filter.
func scoreKnown(seed uint64) (*knownScore, error) {
	templates := [...]string{
		"{alnum:24}",
		"{alnum:6}/{alnum:5}+{alnum:7}==",
		`{alnum:5}"&<{alnum:4}'{alnum:4}\{alnum:3} {alnum:4}%{alnum:3}$`,
		"{alnum:5}é{alnum:6}漢{alnum:6}",
		"-----BEGIN EC PRIVATE KEY-----\n{base64:64}\n{base64:64}\n{base64:32}==\n-----END EC PRIVATE KEY-----\n",
		"q{token:1500}",
	}
	score := &knownScore{}
	for i, template := range &templates {
		v, err := filter.ExpandTemplate(template, seed)
		if err != nil {
			return nil, err
		}
		set, err := knowing("DEPLOY_TOKEN=" + v)
		if err != nil {
			return nil, err
		}
		value := strings.TrimSpace(v)
		for _, f := range &knownForms {
			text := f.Encode(value)
			whole := "a line before\n" + text + "\nand one after\n"
			if f.Name == utf16Form {
				whole, text = wide(whole), wide(text)
			}
			out, err := through(set, whole)
			if err != nil {
				return nil, err
			}
			found := !shares(out, text, value)
			switch {
			case f.Promised:
				score.Promised++
				score.PromisedFound += one(found)
				if !found && !slices.Contains(score.Broken, f.Name) {
					score.Broken = append(score.Broken, f.Name)
				}
			default:
				score.Others++
				score.OthersFound += one(found)
			}
			if !found {
				score.Missed = append(score.Missed, fmt.Sprintf("value %d, %s (promised %v): %.200q", i, f.Name, f.Promised, out))
			}
		}
	}
	for _, v := range &notSecret {
		set, err := knowing("DEPLOY_TOKEN=" + v)
		if err != nil {
			return nil, err
		}
		text := "before " + v + " after\n"
		out, err := through(set, text)
		if err != nil {
			return nil, err
		}
		score.Words++
		if out != text {
			score.WordsTaken++
			score.Missed = append(score.Missed, fmt.Sprintf("%q is taken", v))
			score.Broken = append(score.Broken, v)
		}
	}
	return score, nil
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func knowing(variable string) (*filter.Set, error) {
	known, err := filter.Collect(filter.Sources{Env: []string{variable}})
	if err != nil {
		return nil, err
	}
	return filter.NewSet(filter.Config{}, known, filter.TagKey{})
}

func through(set *filter.Set, text string) (string, error) {
	var out bytes.Buffer
	w := set.Writer(&out, filter.Stdout)
	if _, err := w.Write([]byte(text)); err != nil {
		return "", err
	}
	err := w.Close()
	return out.String(), err
}

// frames is what may stay: what a form puts around a value, and the lines that frame a key.
var frames = strings.Fields("key keep line before and after https h.example BEGIN EGIN END PRIV VATE KEY ----- EC+ EC%")

// shares says whether 12 bytes in a row of what stands for the value are left.
func shares(out, text, value string) bool {
	const window = 12
	for i := 0; i+window <= len(text); i++ {
		part := text[i : i+window]
		if strings.Contains(out, part) && !slices.ContainsFunc(frames, func(f string) bool { return strings.Contains(part, f) }) {
			return true
		}
	}
	return len(text) < window && strings.Contains(out, value)
}

func marshal(v string) string {
	out, _ := json.Marshal(v) // of a string there is no error
	return string(out)
}

func plainJSON(v string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // of a string there is no error
	return strings.TrimSuffix(b.String(), "\n")
}

// ascii is a JSON string in ASCII, or with each unit escaped.
func ascii(v string, all bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(v)) {
		switch {
		case !all && u == '"', !all && u == '\\':
			b.WriteString(`\` + string(rune(u)))
		case !all && u >= ' ' && u < 0x7f:
			b.WriteByte(byte(u))
		default:
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return `"` + b.String() + `"`
}

func each(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
}

func percent(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func escaped(v, chars, mark string) string {
	var b strings.Builder
	for i := range len(v) {
		if strings.IndexByte(chars, v[i]) >= 0 {
			b.WriteString(mark)
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// broken breaks each line at 80 bytes, as a terminal does.
func broken(v, end string) string {
	var out []string
	for line := range strings.SplitSeq(v, "\n") {
		out = append(out, lines(line, 80, end))
	}
	return strings.Join(out, "\n")
}

func lines(v string, width int, end string) string {
	var out []string
	for len(v) > width {
		out = append(out, v[:width])
		v = v[width:]
	}
	return strings.Join(append(out, v), end)
}

func wide(v string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(v)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

// TestShares: what a form puts around a value may stay, twelve bytes of the value may not.
func TestShares(t *testing.T) {
	for _, c := range [...]struct {
		out, text string
		left      bool
	}{
		{"x [REDACTED:a] y", "abcdefghijklmnop", false},
		{"x abcdefghijkl y", "abcdefghijklmnop", true},
		{"x abcdefghijk y", "abcdefghijklmnop", false},
		{"-----BEGIN EC PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----", false},
	} {
		if got := shares(c.out, c.text, c.text); got != c.left {
			t.Errorf("%q of %q: %v", c.out, c.text, got)
		}
	}
}
