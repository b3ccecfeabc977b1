package atip

import "strings"

type sqlKind uint8

const (
	sqlWord    sqlKind = iota // an unquoted name or keyword, upper case
	sqlQuoted                 // "name", `name`, [name]
	sqlLiteral                // a string or number
	sqlPunct
)

type sqlToken struct {
	kind sqlKind
	text string
}

// splitSQL cuts a text into statements of tokens, outside literals and comments. ok
// is false if a part of it cannot be read with certainty; the statements found are
// returned all the same.
func splitSQL(text string) (statements [][]sqlToken, ok bool) {
	var current []sqlToken
	ok = true
	end := func() {
		if len(current) > 0 {
			statements = append(statements, current)
		}
		current = nil
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == ';':
			end()
			i++
		case c == '-' && strings.HasPrefix(text[i:], "--"):
			// MySQL takes "--" for a comment only before white space.
			if i+2 < len(text) && text[i+2] > ' ' {
				ok = false
			}
			i = lineEnd(text, i)
		case c == '/' && strings.HasPrefix(text[i:], "/*"):
			// MySQL runs what stands in /*! */; PostgreSQL nests comments.
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				end()
				return statements, false
			}
			body := text[i+2 : i+2+n]
			if strings.HasPrefix(body, "!") || strings.HasPrefix(body, "M!") || strings.Contains(body, "/*") {
				ok = false
			}
			i += 2 + n + 2
		case c == '\'' || c == '"' || c == '`':
			n, certain := quotedEnd(text, i)
			if n < 0 {
				end()
				return statements, false
			}
			ok = ok && certain
			kind := sqlQuoted
			if c == '\'' {
				kind = sqlLiteral
			}
			current = append(current, sqlToken{kind, "''"})
			i = n
		case c == '\\':
			// psql's own commands end with the line; \! runs a shell.
			line := text[i:lineEnd(text, i)]
			if len(current) > 0 || !describes(line) {
				ok = false
			}
			i += len(line)
		case c == '.' && len(current) == 0:
			ok = false // sqlite3's own commands: .shell, .load, .output
			i = lineEnd(text, i)
		case c == '$' || c == '#' || c == 0:
			// Dollar quotes are PostgreSQL's only, # comments MySQL's only.
			ok = false
			i++
		case isWordByte(c):
			from := i
			for i < len(text) && (isWordByte(text[i]) || text[i] == '$') {
				i++
			}
			word := text[from:i]
			if c >= '0' && c <= '9' {
				current = append(current, sqlToken{sqlLiteral, "0"})
			} else {
				current = append(current, sqlToken{sqlWord, strings.ToUpper(word)})
			}
		default:
			current = append(current, sqlToken{sqlPunct, text[i : i+1]})
			i++
		}
	}
	end()
	return statements, ok
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func lineEnd(text string, i int) int {
	if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(text)
}

// quotedEnd is the index after the quoted text that starts at i, -1 if it is open. It
// is not certain where a backslash may or may not escape the quote.
func quotedEnd(text string, i int) (end int, certain bool) {
	quote := text[i]
	certain = true
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			if quote != '`' && j+1 < len(text) && (text[j+1] == quote || text[j+1] == '\\') {
				certain = false
			}
		case quote:
			if j+1 < len(text) && text[j+1] == quote {
				j++
				continue
			}
			return j + 1, certain
		}
	}
	return -1, false
}

// describes reports psql's \d family, \l and \conninfo, which only show.
func describes(line string) bool {
	word, _, _ := strings.Cut(strings.TrimRight(line, " \t\r"), " ")
	if strings.ContainsAny(line[1:], "\\`|;") {
		return false
	}
	switch word {
	case "\\l", "\\l+", "\\conninfo", "\\q":
		return true
	}
	return strings.HasPrefix(word, "\\d") && strings.Trim(word[2:], "abcdfgimnopstuvxyDEFPRST+") == ""
}
