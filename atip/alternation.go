package atip

import "strings"

// alternation matches the expressions that tell verbs apart, such as
// ^(delete|remove)(-.*)?$, without compiling them: that costs more than the rest of a
// look-up, and tools with hundreds of verbs have several of them.
type alternation struct {
	ci    bool
	from  origin // where a word may begin
	sep   byte   // for afterSep
	words string // separated by |
	tail  string
}

type origin uint8

const (
	atStart  origin = iota
	afterSep        // at the start, and after each sep
	anywhere
)

// alternationOf reads an expression of that form; ok is false for any other.
func alternationOf(expr string) (a alternation, ok bool) {
	if rest, found := strings.CutPrefix(expr, "(?i)"); found {
		expr, a.ci = rest, true
	}
	switch {
	case strings.HasPrefix(expr, "^("):
		expr = expr[len("^("):]
	case strings.HasPrefix(expr, "(^|-)("), strings.HasPrefix(expr, "(^|:)("):
		a.from, a.sep = afterSep, expr[3]
		expr = expr[len("(^|-)("):]
	case strings.HasPrefix(expr, "("):
		a.from = anywhere
		expr = expr[1:]
	default:
		return a, false
	}
	a.words, a.tail, ok = strings.Cut(expr, ")")
	if !ok || a.words == "" || a.words[0] == '|' || a.words[len(a.words)-1] == '|' || strings.Contains(a.words, "||") {
		return a, false
	}
	for i := range len(a.words) {
		switch c := a.words[i]; {
		case c < 0x80 && isWordByte(c), c == '|', c == '-', c == ':':
		case c == '?' && i > 1 && isWordByte(a.words[i-1]) && isWordByte(a.words[i-2]) && (i+1 == len(a.words) || a.words[i+1] == '|'):
			// The last letter of a word may be missing.
		case c == '.' && i > 0 && isWordByte(a.words[i-1]) && strings.HasPrefix(a.words[i:], ".*") && (i+2 == len(a.words) || a.words[i+2] == '|') && a.tail == "$":
		case c == '*' && a.words[i-1] == '.':
		default:
			return a, false
		}
	}
	switch a.tail {
	case "", "-", ":", "$", "(-.*)?$", "(-|$)", "(:|$)":
		return a, true
	}
	return a, false
}

// matches reports whether the expression matches s. known is false where case folding
// reaches beyond ASCII.
func (a *alternation) matches(s string) (match, known bool) {
	if a.ci {
		for i := range len(s) {
			if s[i] >= 0x80 {
				return false, false
			}
		}
	}
	for at := 0; ; at++ {
		if a.begin(s[at:]) {
			return true, true
		}
		switch a.from {
		case atStart:
			return false, true
		case afterSep:
			next := strings.IndexByte(s[at:], a.sep)
			if next < 0 {
				return false, true
			}
			at += next
		case anywhere:
			if at == len(s) {
				return false, true
			}
		}
	}
}

// begin reports whether s begins with one of the words and the tail.
func (a *alternation) begin(s string) bool {
	for rest := a.words; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, "|")
		if stem, ok := strings.CutSuffix(word, "?"); ok {
			if word = stem; a.one(s, word[:len(word)-1]) {
				return true
			}
		}
		if stem, ok := strings.CutSuffix(word, ".*"); ok { // only before $
			if a.prefixed(s, stem) && strings.IndexByte(s[len(stem):], '\n') < 0 {
				return true
			}
			continue
		}
		if a.one(s, word) {
			return true
		}
	}
	return false
}

func (a *alternation) prefixed(s, word string) bool {
	return len(s) >= len(word) && (s[:len(word)] == word || a.ci && equalASCII(s[:len(word)], word))
}

func (a *alternation) one(s, word string) bool {
	if !a.prefixed(s, word) {
		return false
	}
	after := s[len(word):]
	switch a.tail {
	case "":
		return true
	case "-", ":":
		return after != "" && after[0] == a.tail[0]
	case "$":
		return after == ""
	case "(-.*)?$":
		return after == "" || after[0] == '-' && strings.IndexByte(after, '\n') < 0
	}
	return after == "" || after[0] == a.tail[1] // (-|$) or (:|$)
}

// equalASCII compares strings of equal length and ASCII bytes without regard to case.
func equalASCII(a, b string) bool {
	for i := range len(a) {
		x, y := a[i], b[i]
		if x >= 'A' && x <= 'Z' {
			x += 'a' - 'A'
		}
		if y >= 'A' && y <= 'Z' {
			y += 'a' - 'A'
		}
		if x != y {
			return false
		}
	}
	return true
}
