package answer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/filter"
)

// Visible makes everything in a text seen: control characters, marks that change the
// direction or have no width, and bytes that are not UTF-8 (see CVE-2021-42574).
func Visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unicode.IsPrint(r), unicode.In(r, unicode.Mn, unicode.Me), blank(r):
			fmt.Fprintf(&b, `\u{%X}`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// blank names the letters that look like nothing.
func blank(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return false
}

// Text is a decoded JSON string, "" for anything else.
func Text(v any) string {
	s, _ := v.(string)
	return s
}

// Texts is a decoded JSON list of strings.
func Texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i := range list {
		out[i] = Text(list[i])
	}
	return out
}

// Plain shows text of others on one line, without escapes and marks that could rewrite what stands
// above it on a terminal.
func Plain(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(filter.StripControl(s))
}
