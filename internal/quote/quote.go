// Package quote writes and reads words as shells spell them.
package quote

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words writes words as a shell line would show them. What does not print is
// escaped, so that a terminal shows what was meant.
func Words(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,~") == "":
			b.WriteString(w)
		case utf8.ValidString(w) && !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }):
			b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
		default:
			ascii := strconv.QuoteToASCII(w)
			b.WriteString("$'" + strings.ReplaceAll(ascii[1:len(ascii)-1], "'", `\'`) + "'")
		}
	}
	return b.String()
}

// Literal writes one word as a shell reads it back, with no care for how it looks.
func Literal(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
