package filter

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// variants are the ways in which tools print a value. They are written without the code under
// test.
func variants(v string) map[string]string {
	out := map[string]string{"raw": v, "trimmed": strings.TrimSpace(v), "crlf": strings.ReplaceAll(v, "\n", "\r\n"), "indented": "  " + strings.ReplaceAll(v, "\n", "\n  "),
		"joined by spaces": strings.ReplaceAll(v, "\n", " ")}
	asJSON := func(v string, html bool) string {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if err := enc.Encode(v); err != nil {
			panic(err)
		}
		return strings.TrimSpace(b.String())
	}
	out["json"], out["json, html"] = asJSON(v, false), asJSON(v, true)
	out["json, slashes"] = strings.ReplaceAll(asJSON(v, false), "/", `\/`)
	out["json in json"], out["json in json, html"] = asJSON(asJSON(v, false), false), asJSON(asJSON(v, true), true)
	for name, format := range map[string]string{"json, \\u": `\u%04x`, "json, \\U": `\u%04X`} {
		var b strings.Builder
		for _, r := range v {
			if r < 0x80 && isAlnum(byte(r)) {
				b.WriteRune(r)
			} else if r > 0xffff {
				fmt.Fprintf(&b, format+format, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				fmt.Fprintf(&b, format, r)
			}
		}
		out[name] = `"` + b.String() + `"`
	}
	var ascii strings.Builder // as Python's json and Go's %+q: only what is not ASCII
	for _, r := range asJSON(v, false) {
		switch {
		case r > 0xffff:
			fmt.Fprintf(&ascii, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case r > 0x7e:
			fmt.Fprintf(&ascii, `\u%04x`, r)
		default:
			ascii.WriteRune(r)
		}
	}
	out["json, ascii"] = ascii.String()
	out["%q"], out["%+q"] = strconv.Quote(v), strconv.QuoteToASCII(v)
	out["shell"] = "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
	out["shell, doubled"] = "'" + strings.ReplaceAll(v, "'", `'"'"'`) + "'"
	dollar := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`)
	out["shell, $''"] = "$'" + dollar.Replace(v) + "'"
	if !strings.ContainsAny(v, "\n\r\t") {
		var b strings.Builder
		for _, r := range v {
			if r < 0x80 && !isAlnum(byte(r)) && !strings.ContainsRune("-_./,:+=@%", r) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		out["shell, printf"] = b.String()
	}
	var x strings.Builder
	if err := xml.EscapeText(&x, []byte(v)); err != nil {
		panic(err)
	}
	out["xml, numbers"] = x.String()
	out["xml, names"] = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(v)
	out["xml, text"] = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(v)
	out["html"] = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(v)
	out["html, hex"] = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(v)
	for name, keep := range map[string]string{"strict": "-_.~", "encodeURIComponent": "-_.!~*'()", "form": "-_.*", "path": "-_.~$&+=:@", "encodeURI": "-_.!~*'();/?:@&=+$,#"} {
		for hexes, format := range map[string]string{"upper": "%%%02X", "lower": "%%%02x"} {
			var b strings.Builder
			for i := range len(v) {
				switch c := v[i]; {
				case isAlnum(c) || strings.IndexByte(keep, c) >= 0:
					b.WriteByte(c)
				case c == ' ' && name == "form":
					b.WriteByte('+')
				default:
					fmt.Fprintf(&b, format, c)
				}
			}
			out["percent, "+name+", "+hexes] = b.String()
		}
	}
	out["url.QueryEscape"], out["url.PathEscape"] = url.QueryEscape(v), url.PathEscape(v)
	out["hex"], out["HEX"] = hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v)))
	for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw std": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
		for _, before := range []string{"", "u", "us", "user:", "token=", "\x00\x01"} {
			for _, after := range []string{"", "\n", "@h", ":x:"} {
				out[fmt.Sprintf("base64 %s of %q+v+%q", name, before, after)] = enc.EncodeToString([]byte(before + v + after))
			}
		}
	}
	for _, width := range []int{64, 76} {
		for before, text := range map[string]string{"": out[`base64 std of ""+v+""`], "u": out[`base64 std of "u"+v+""`], "us": out[`base64 std of "us"+v+""`]} {
			var b strings.Builder
			for len(text) > width {
				b.WriteString(text[:width] + "\n")
				text = text[width:]
			}
			out[fmt.Sprintf("base64 of %q+v in lines of %d", before, width)] = b.String() + text
		}
	}
	return out
}

// TestVariants: all values in all forms. No more than four characters in a row are left; of the
// encodings of what stands beside the value, as many as depend on that.
func TestVariants(t *testing.T) {
	rsa := tokens(t, "-----BEGIN RSA PRIVATE KEY-----\n{base64:64}\n{alnum:60}+/+a\n{base64:64}\n{base64:38}==\n-----END RSA PRIVATE KEY-----\n")
	values := map[string]string{
		"token":           tokens(t, "{alnum:24}"),
		"short":           tokens(t, "{alnum:7}!"),
		"punctuation":     "p<4>&s's\"w0\\rd/" + tokens(t, "{token:12}") + "+=?#%$`",
		"words":           "correct Horse 9 battery-" + tokens(t, "{alnum:8}"),
		"not ASCII":       "pässwörd€-" + tokens(t, "{alnum:10}") + "-😀-ende7",
		"lines":           tokens(t, "first{alnum:20}\nuser & \"{alnum:22}\" <x>\n{alnum:9}'s\nlast{alnum:11}"),
		"new line at end": tokens(t, "{alnum:30}\n"),
		"rsa":             rsa,
		"rsa, crlf":       strings.ReplaceAll(rsa, "\n", "\r\n"),
		"ec":              tokens(t, "-----BEGIN EC PRIVATE KEY-----\n{base64:64}\n{base64:64}\n{base64:9}==\n-----END EC PRIVATE KEY-----"),
		"pgp":             tokens(t, "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{base64:64}\n{base64:64}\n{base64:30}==\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----\n"),
		"service account": "{\n  \"type\": \"service_account\",\n  \"private_key\": " + strconv.Quote(rsa) + ",\n  \"client_id\": \"" + tokens(t, "{digit:21}") + "\"\n}",
		"long":            tokens(t, "{alnum:900}/+{alnum:1600}"),
	}
	n := 0
	for name, v := range values {
		set := testSet(t, Config{NoMemory: true}, "DEPLOY_TOKEN="+v)
		for form, text := range variants(v) {
			n++
			out := filterAll(t, set, "a "+text+" b\n")
			rest := tagPattern.ReplaceAllString(out, "\x00")
			left := longestShared(rest, text)
			most := 4
			switch {
			case strings.HasPrefix(form, "base64"):
				most = 12 // "user:" and its like, and "token="
			case strings.HasSuffix(v, "\n"):
				most = 14 // the last line break, escaped
			}
			if left > most {
				t.Errorf("%s as %s: %d characters in a row are left in %.300q", name, form, left, out)
			}
		}
	}
	t.Logf("%d forms of %d values", n, len(values))
}
