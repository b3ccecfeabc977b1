package runfile

import "strings"

// lexis is what a language quotes and comments with: all that is needed to find the brace
// that ends a body.
type lexis struct {
	line      string // begins a comment to the end of the line
	block     [2]string
	quotes    string // each ends at itself; a backslash escapes
	triple    bool   // """ and '''
	raw       string // of quotes, those in which a backslash is plain
	heredocs  bool
	wordStart bool // a comment begins only where a word could
}

func (l Language) lexis() lexis {
	switch l {
	case Python:
		return lexis{line: "#", quotes: `'"`, triple: true}
	case Node:
		return lexis{line: "//", block: [2]string{"/*", "*/"}, quotes: "'\"`"}
	case Ruby:
		return lexis{line: "#", quotes: `'"`, wordStart: true}
	case PowerShell:
		return lexis{line: "#", block: [2]string{"<#", "#>"}, quotes: `'"`, raw: `'"`, wordStart: true}
	}
	return lexis{line: "#", quotes: "'\"", raw: "'", heredocs: true, wordStart: true}
}

// find returns the index of the first byte of code that ends something, -1 if none does:
// comments, quotes and here documents are skipped.
func (x lexis) find(text string, ends func(c byte) bool) int {
	var pending []heredoc
	for i := 0; i < len(text); {
		if n := x.skip(text, i); n > i {
			i = n
			continue
		}
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '\n' && len(pending) > 0:
			i = pastHeredocs(text, i, pending)
			if pending = nil; ends(c) {
				return i
			}
			continue
		case c == '<' && x.heredocs:
			if h, n := heredocAt(text, i); n > i {
				pending, i = append(pending, h), n
				continue
			}
		case ends(c):
			return i
		}
		i++
	}
	return -1
}

// blockEnd returns the index of the brace that closes the one before text, -1 if none
// does.
func blockEnd(text string, l Language) int {
	depth := 1
	return l.lexis().find(text, func(c byte) bool {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth == 0
	})
}

// lineEnd returns the index of the newline that ends a body without braces, or the one behind its
// here documents.
func lineEnd(text string) int {
	if i := Shell.lexis().find(text, func(c byte) bool { return c == '\n' }); i >= 0 {
		return i
	}
	return len(text)
}

// skip passes a comment or a quoted text that begins at i.
func (x lexis) skip(text string, i int) int {
	rest := text[i:]
	switch {
	case x.line != "" && strings.HasPrefix(rest, x.line) && (!x.wordStart || i == 0 || strings.IndexByte(" \t\n;&|()", text[i-1]) >= 0):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return i + n
		}
		return len(text)
	case x.block[0] != "" && strings.HasPrefix(rest, x.block[0]):
		if n := strings.Index(rest[len(x.block[0]):], x.block[1]); n >= 0 {
			return i + len(x.block[0]) + n + len(x.block[1])
		}
		return len(text)
	case strings.IndexByte(x.quotes, rest[0]) < 0:
		return i
	case x.triple && len(rest) >= 3 && rest[1] == rest[0] && rest[2] == rest[0]:
		if n := strings.Index(rest[3:], rest[:3]); n >= 0 {
			return i + 3 + n + 3
		}
		return len(text)
	}
	quote := rest[0]
	escapes := strings.IndexByte(x.raw, quote) < 0
	if x.heredocs && quote == '\'' && i > 0 && text[i-1] == '$' {
		escapes = true // $'…'
	}
	for n := 1; n < len(rest); n++ {
		switch {
		case rest[n] == '\\' && escapes:
			n++
		case x.heredocs && quote == '"' && rest[n] == '$' && n+1 < len(rest) && (rest[n+1] == '{' || rest[n+1] == '('):
			n = x.expansion(rest, n+1) - 1
		case rest[n] == quote:
			return i + n + 1
		}
	}
	return len(text)
}

// expansion passes ${…} or $(…) within double quotes, where quotes begin anew; i is the
// index of the bracket.
func (x lexis) expansion(text string, i int) int {
	open := text[i]
	end := byte('}')
	if open == '(' {
		end = ')'
	}
	depth := 0
	for i < len(text) {
		if text[i] == '"' || text[i] == '\'' && open == '(' {
			if n := x.skip(text, i); n > i {
				i = n
				continue
			}
		}
		switch text[i] {
		case '\\':
			i++
		case open:
			depth++
		case end:
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(text)
}

// heredoc is a here-document whose text begins on the next line.
type heredoc struct {
	word string
	tabs bool // <<-
}

// heredocAt reads `<<WORD` at i; it returns i if there is none.
func heredocAt(text string, i int) (heredoc, int) {
	rest := text[i:]
	if !strings.HasPrefix(rest, "<<") || strings.HasPrefix(rest, "<<<") || i > 0 && text[i-1] == '<' {
		return heredoc{}, i
	}
	n := 2
	var h heredoc
	if n < len(rest) && rest[n] == '-' {
		h.tabs = true
		n++
	}
	for n < len(rest) && (rest[n] == ' ' || rest[n] == '\t') {
		n++
	}
	for ; n < len(rest); n++ {
		c := rest[n]
		if c == '\'' || c == '"' || c == '\\' {
			continue
		}
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' && h.word != "") {
			break
		}
		h.word += string(c)
	}
	if h.word == "" {
		return heredoc{}, i // a shift, as in $((1<<2))
	}
	return h, i + n
}

// pastHeredocs returns the index behind the texts that begin at the newline i. Where the
// word that ends one is missing there was none: `a<<b` can be a shift.
func pastHeredocs(text string, i int, pending []heredoc) int {
	start := i + 1
	at := start
	for _, h := range pending {
		from := at
		for {
			if from >= len(text) {
				return start
			}
			line, next := text[from:], len(text)
			if n := strings.IndexByte(line, '\n'); n >= 0 {
				line, next = line[:n], from+n+1
			}
			from = next
			if h.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == h.word {
				break
			}
		}
		at = from
	}
	return at
}
