package filter

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// composer makes texts out of what streams hold: secrets of every kind, escapes, control bytes,
// heads of binary formats and ordinary text. Each byte of a program stands for one of them.
type composer struct {
	env   []string // with known values
	known []string // these values
	atoms []string
}

func newComposer(t testing.TB) *composer {
	pem := tokens(t, "-----BEGIN RSA PRIVATE KEY-----\n{base64:64}\n{alnum:63}+\n/{alnum:63}\n{base64:38}==\n-----END RSA PRIVATE KEY-----")
	short, second := tokens(t, "{alnum:24}"), "p4ss w0rd/"+tokens(t, "{token:16}")+"&\"'\n<"+tokens(t, "x{base64:9}")
	long, longer := tokens(t, "q{token:600}"), tokens(t, "z{alnum:2500}")
	c := &composer{
		env:   []string{"A_TOKEN=" + short, "B_SECRET=" + second, "C_KEY=" + pem, "D_SECRET=" + long, "E_TOKEN=" + longer},
		known: []string{short, second, pem, long, longer},
	}
	b64 := base64.StdEncoding.EncodeToString
	quoted, _ := json.Marshal(second)
	body := tokens(t, "{base64:64}")
	c.atoms = []string{
		short, second, pem, long, longer, short[:4], short[:11], short[11:], short[:11] + "\x1b[1m" + short[11:], long[:300], longer[:1500],
		b64([]byte("a" + short)), hex.EncodeToString([]byte(second)), string(quoted), url.QueryEscape(second), strconv.Quote(pem), b64([]byte(pem)), hex.EncodeToString([]byte(pem)),
		strings.ReplaceAll(pem, "\n", "\r\n"), strings.ReplaceAll(pem, "\n", "\n+"), strings.ReplaceAll(pem, "\n", "\\n"), pem[:200],
		armourHead, "-----BEGIN RSA PRIVATE KEY-----", armourHead + "PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n", "-----END RSA PRIVATE KEY-----", "-----END PGP PRIVATE KEY BLOCK-----\n", "-----END",
		sshHead + "SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"x\"\n", "---- END SSH2 ENCRYPTED PRIVATE KEY ----", puttyHead + "14\n",
		body, body + "\n", body[:40] + "==\n", body[:20] + "\n", body[:30], "=aB3d\n", "Proc-Type: 4,ENCRYPTED\n", "+" + body + "\n", "> " + body + "\n", body + " ", body + `\n`, body + `\r\n`,
		tokens(t, "ghp_{alnum:36}"), "ghp_", tokens(t, "glpat-{alnum:20}"), tokens(t, "AKIA{base32:16}"), tokens(t, "sk-ant-api03-{token:93}AA"), tokens(t, "eyJhbGciOiJIUzI1NiJ9.eyJ{token:40}.{token:43}"), "eyJhbGciOi",
		"API_KEY=", "password: ", "\"password\":\"", "'token' => '", "https://bob:", "@host/", "Authorization: Bearer ", "Cookie: a=b; sid=", "secret", " -p ", "curl -u a:", "name,password\n", "apiVersion: v1\ndata:\n  k: ",
		tokens(t, "{alnum:18}"), tokens(t, "{alnum:9}!x"), "hunter2!Aq", "[REDACTED:x:abcdef]", "[REDACTED:", "*****",
		"\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[K", "\x1b[2", "\x1b", "\x1b]8;;http://h/", "\x1b]0;t", "\a", "\x1b\\", "\x1b(B", "\x0e", "\x0f", "a\ba", "\b", "\x1b[1;2H", "\u009b", "\x1b[38;5;1m",
		"\x00", "\x00\x00", "\x00\x00\x00", "\x01\x02\x03\x04\x05\x06", "\x16\x16\x16\x16", "\x7fELF\x02\x01\x01\x00\x00\x00\x00", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "%PDF-", "PK\x03\x04", "MZ\x90\x00", "GIF89a", "\x1f\x8b\x08", "\xff\xd8\xff\xe0\x00\x10JFIF\x00",
		"\xff\xfe", "\xfe\xff", "\xef\xbb\xbf", "a\x00b\x00c\x00d\x00e\x00f\x00g\x00h\x00", "\xe9", "ä€😀", "\x80\x81\xfe",
		"\nsome line of text behind a picture, longer than sixty-four bytes of it\n", "\nand one more\nand another\n", strings.Repeat("plain words of a log ", 12), strings.Repeat("x", 70), strings.Repeat("\x03\x9a", 40),
		" ", "\n", "\r\n", "\r", "\t", "\"", "'", "`", "\\", "\\\"", "=", ":", ": ", ",", ";", "|", "&", "<", ">", "(", ")", "{", "}", "[", "]", "$", "%20", "&quot;", "-", ".", "/", "a", "aB3", "x y", "0",
	}
	if len(c.atoms) > 255 {
		t.Fatalf("%d pieces", len(c.atoms))
	}
	return c
}

// What the first byte of a program chooses: text, text with a sequence behind each byte, UTF-16.
const (
	firstEscaped = 0xe8
	firstWide    = 0xf0
)

// program makes a program.
func (c *composer) program(rng *rand.Rand) []byte {
	out := make([]byte, 2+rng.Intn(30))
	for k := range out {
		if out[k] = byte(rng.Intn(len(c.atoms))); rng.Intn(20) == 0 {
			out[k] = byte(rng.Intn(256))
		}
	}
	switch out[0] = 0; rng.Intn(12) {
	case 0:
		out[0] = byte(firstEscaped + rng.Intn(8))
	case 1:
		out[0] = byte(firstWide + rng.Intn(16))
	}
	return out
}

// text is what a program stands for, and whether it is UTF-16. The first byte chooses how it is encoded.
func (c *composer) text(program []byte) (string, bool) {
	if len(program) == 0 {
		return "", false
	}
	var b strings.Builder
	for _, k := range program[1:] {
		if int(k) < len(c.atoms) {
			b.WriteString(c.atoms[k])
		} else {
			b.WriteByte(k)
		}
		if b.Len() > 8<<10 || program[0] >= firstEscaped && b.Len() > 2<<10 {
			break
		}
	}
	mark, big := program[0]&1 != 0, program[0]&2 != 0
	switch {
	case program[0] < firstEscaped:
		text := b.String()
		// Read as UTF-16, in which NUL ends no sequence and no word. What is found can end that.
		return text, strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") || strings.Contains(text, "a\x00b\x00c\x00d\x00")
	case program[0] < firstWide: // a sequence behind each byte
		gap := []string{"\x1b[0m", "\x1b[38;2;255;100;50m", "\x1b[K", "\x1b[" + strings.Repeat("1;", 30) + "m"}[program[0]&3]
		return strings.Join(strings.Split(b.String(), ""), gap), false
	}
	text := b.String()
	if mark {
		text = "\ufeff" + text
	}
	var wide []byte
	for _, u := range utf16.Encode([]rune(text)) {
		if big {
			wide = append(wide, byte(u>>8), byte(u))
		} else {
			wide = append(wide, byte(u), byte(u>>8))
		}
	}
	return string(wide), true
}
