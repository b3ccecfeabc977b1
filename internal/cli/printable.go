package cli

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable shows what a terminal would obey: control characters and marks that turn
// the direction of a line (CVE-2021-42574). Names of files and messages of others
// stand in our reports, and an agent can choose them. Lines and tabs stay.
func Printable(s string) string {
	if !strings.ContainsFunc(s, obeyed) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		case r == unicode.ReplacementChar:
			b.WriteByte(s[i]) // a byte that is not UTF-8, or the first one of the mark itself
			if strings.HasPrefix(s[i:], string(unicode.ReplacementChar)) {
				b.WriteString(s[i+1 : i+3])
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
