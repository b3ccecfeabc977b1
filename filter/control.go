package filter

import (
	"strings"
	"unicode/utf8"
)

// StripControl makes text of others fit for our own documents: escape sequences,
// control characters but newline and tab, bidi and zero-width marks and tag
// characters go, invalid UTF-8 becomes U+FFFD. It is not for a child's streams.
func StripControl(text string) string {
	if plainText(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		if n := sequenceLen(text[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if !hidden(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// sequenceLen returns the length of the escape sequence text begins with: CSI, a
// string such as OSC up to its terminator, or another escape. The forms with C1
// bytes as runes count too.
func sequenceLen(s string) int {
	kind, n := byte(0), 0
	switch {
	case len(s) > 1 && s[0] == esc:
		kind, n = s[1], 2
	case len(s) > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0:
		kind, n = s[1]-0x40, 2
	default:
		return 0
	}
	switch kind {
	case '[':
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x3f {
			n++
		}
		if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
			n++
		}
	case ']', 'P', '^', '_', 'X':
		for k := n; k < len(s) && k < maxSeq; k++ {
			switch {
			case s[k] == 0x07:
				return k + 1
			case s[k] == esc && k+1 < len(s) && s[k+1] == '\\':
				return k + 2
			case s[k] == 0xc2 && k+1 < len(s) && s[k+1] == 0x9c:
				return k + 2
			case s[k] == '\n':
				return n // unterminated: its text stays
			}
		}
	case '(', ')', '*', '+', '#', ' ', '%':
		n = min(n+1, len(s))
	default:
		if kind >= 0x80 || kind < 0x20 {
			return 1
		}
	}
	return n
}

// hidden reports runes that show nothing or change what others show.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	case r == 0xad || r == 0x34f || r == 0x61c || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r == 0x180e:
		return true
	case r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2028 && r <= 0x2029:
		return true
	case r >= 0x2060 && r <= 0x206f || r == 0x3164 || r >= 0xfe00 && r <= 0xfe0f || r == 0xfeff || r == 0xffa0:
		return true
	case r >= 0xfff9 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
