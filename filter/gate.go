package filter

import (
	"bytes"
	"strings"
)

// gate is what is known about the place a value stands in.
type gate struct {
	class  class
	quoted bool // between quotes
	opened bool // behind one
	table  bool
	scheme bool
}

// classURL is the class of passwords in URLs.
const classURL = classExtra + 1

// maxJudged is how much of a value its judgement looks at. Names side by side
// would otherwise cost the length of a line each.
const maxJudged = 512

// passes reports whether a value is a secret rather than a reference to one, a
// placeholder or a word.
func (s *Set) passes(val []byte, g gate) bool {
	if len(val) > maxJudged {
		val = val[:maxJudged]
	}
	if len(val) < 6 || bytes.Contains(val, []byte(placeholderHead)) ||
		bytes.HasPrefix(val, []byte(placeholderHead[1:])) {
		return false
	}
	if isReference(val) || isConstant(val) || isExample(val) || isNumeric(val) || isPathOrHost(val) {
		return false
	}
	if isUUID(val) {
		return g.class == classStrong || g.class == classHeader || g.class == classCookie || g.class == classSetCookie
	}
	if isDigest(val) {
		return false
	}
	if g.opened && (val[0] == ' ' || val[0] == ',' || val[0] == ')' || val[0] == ';' || val[0] == '}') {
		return false // the quote closed a string that ends with the name
	}
	words := wordy(val)
	if bytes.IndexByte(val, ' ') >= 0 && (words || onlyWords(val)) {
		return false
	}
	switch g.class {
	case classURL:
		return !placeholderWord(val)
	case classHeader, classCookie, classSetCookie:
		return len(val) >= 8 && !words && mixed(val) && (g.quoted || !isCode(val))
	case classQuery:
		return len(val) >= 16 && unlikely(val) && !bytes.ContainsAny(val, "+(){}") && !bytes.Contains(val, []byte("%0A")) &&
			!bytes.Contains(val, []byte("%20"))
	case classWeak:
		if len(val) < 12 || words || !g.quoted && (isCode(val) || bytes.ContainsAny(val, "(){}[]<>;,")) {
			return false
		}
		digits, upper, lower := tally(val)
		return entropy(val) >= 3.0 && (digits >= 2 || upper > 0 && lower > 0)
	}
	if len(val) < 8 || words || !g.quoted && isCode(val) {
		return false
	}
	if g.table {
		return unlikely(val)
	}
	return mixed(val)
}

// mixed reports whether a value has a digit, both cases, punctuation, or reads
// like no word.
func mixed(val []byte) bool {
	digits, upper, lower := tally(val)
	return digits > 0 || upper > 0 && lower > 0 || upper+lower < len(val) || unlikely(val)
}

func tally(val []byte) (digits, upper, lower int) {
	for _, c := range val {
		switch {
		case isDigit(c):
			digits++
		case isUpper(c):
			upper++
		case isLower(c):
			lower++
		}
	}
	return
}

// isReference reports $V ${…} $(…) %V% {{…}} <…> (…) and a masked value.
func isReference(val []byte) bool {
	switch val[0] {
	case '$':
		return len(val) > 1 && (isAlpha(val[1]) || val[1] == '{' || val[1] == '(' || val[1] == '_' || val[1] == '$')
	case '%':
		return len(val) > 1 && (val[len(val)-1] == '%' || val[1] == '(' || len(val) == 2)
	case '{':
		return len(val) > 1 && (val[1] == '{' || val[1] == '%') || val[len(val)-1] == '}'
	case '<':
		return true
	case '(', '[':
		return true
	case '#':
		return len(val) > 1 && val[1] == '{'
	case '@':
		return len(val) > 1 && isAlpha(val[1])
	case '-':
		if len(val) > 2 && val[1] == '-' && isAlpha(val[2]) {
			return true // the next option
		}
	case '/':
		return len(val) > 1 && val[1] == '/'
	}
	same := true
	filler := true
	for _, c := range val {
		same = same && c == val[0]
		filler = filler && (c == '*' || c == 'x' || c == 'X' || c == '.' || c == '-' || c == '_' || c == '#')
	}
	return same || filler
}

// isConstant reports the words that stand for "no value here".
func isConstant(val []byte) bool {
	switch strings.ToLower(string(val)) {
	case "undefined", "changeme", "change-me", "change_me", "redacted", "[redacted]", "filtered", "[filtered]", "sensitive",
		"(sensitive value)", "required", "optional", "disabled", "enabled", "omitted", "placeholder", "nullptr":
		return true
	}
	return hasFold(val, "your") && len(val) > 4 && (val[4] == '_' || val[4] == '-' || isUpper(val[4]) || val[4] == ' ')
}

func placeholderWord(val []byte) bool {
	if isConstant(val) {
		return true
	}
	switch strings.ToLower(string(val)) {
	case "password", "passwd", "passwort", "secret", "username", "user_password", "yourpassword", "mypassword", "foobar",
		"pass_word", "postgres":
		return true
	}
	return false
}

// isNumeric reports numbers, dates, durations and versions.
func isNumeric(val []byte) bool {
	digits, letters, dots := 0, 0, 0
	for i, c := range val {
		switch {
		case isDigit(c):
			digits++
		case c == '.':
			dots++
		case c == '-' || c == ':' || c == ',' || c == '+' || c == '/' || c == '_':
		case c == 'T' || c == 'Z' || c == 'e' || c == 'E' || c == 'v' && i == 0:
			letters++
		case c == 'x' && i == 1 && val[0] == '0':
			letters++
		case c == 'h' || c == 'm' || c == 's' || c == 'u' || c == 'n' || c == 'k' || c == 'M' || c == 'G' || c == 'B' || c == 'i':
			letters++
		default:
			return false
		}
	}
	return letters <= 1 || letters <= 3 && dots+digits >= len(val)-4
}

// isPathOrHost reports paths of words, hosts and URLs; a URL with a password is
// judged at its "://".
func isPathOrHost(val []byte) bool {
	if bytes.Contains(val, []byte("://")) {
		return true
	}
	path := val[0] == '/' || val[0] == '~' || bytes.HasPrefix(val, []byte("./")) || bytes.HasPrefix(val, []byte("../")) ||
		len(val) > 3 && isAlpha(val[0]) && val[1] == ':' && (val[2] == '\\' || val[2] == '/')
	slash := bytes.IndexByte(val, '/') >= 0
	if path && slash || slash {
		for _, part := range bytes.FieldsFunc(val, func(r rune) bool { return r == '/' || r == '.' || r == '\\' }) {
			if len(part) >= 8 && unlikely(part) && !isVersioned(part) {
				return false
			}
		}
		if path {
			return true
		}
		digits, upper, lower := tally(val)
		return digits == 0 || upper == 0 || lower == 0
	}
	host, port, hasPort := bytes.Cut(val, []byte(":"))
	for _, c := range port {
		if !isDigit(c) {
			return false
		}
	}
	labels := bytes.Split(host, []byte("."))
	if len(labels) < 2 && !hasPort {
		return false
	}
	for _, l := range labels {
		if len(l) == 0 || len(l) >= 8 && unlikely(l) {
			return false
		}
		for _, c := range l {
			if !isLower(c) && !isDigit(c) && c != '-' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return len(last) >= 2 && isLower(last[0]) || hasPort
}

// isVersioned reports words joined with a number, as directories are.
func isVersioned(part []byte) bool {
	for _, w := range bytes.FieldsFunc(part, func(r rune) bool { return r == '-' || r == '_' || r >= '0' && r <= '9' }) {
		if len(w) >= 5 && unlikely(w) {
			return false
		}
	}
	digits, _, _ := tally(part)
	return digits*2 < len(part)
}

func isUUID(val []byte) bool {
	if len(val) != 36 {
		return false
	}
	for i, c := range val {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && c != '-' || !dash && !sets[setXDigit].has(c) {
			return false
		}
	}
	return true
}

// isDigest reports sha256-… and sha256:… and their like.
func isDigest(val []byte) bool {
	for _, p := range [...]string{"sha1", "sha256", "sha384", "sha512", "md5", "blake2b", "blake3"} {
		if hasFold(val, p) && len(val) > len(p) {
			switch val[len(p)] {
			case '-', ':', '=', '~', '/':
				return true
			}
		}
	}
	return false
}

// isCode reports an unquoted identifier, call, index or selector.
func isCode(val []byte) bool {
	digits, upper, lower := tally(val)
	for i, c := range val {
		switch c {
		case '(', '[':
			return i > 0 && (isAlnum(val[i-1]) || val[i-1] == '_')
		case '{':
			return i > 0 && isIdent(val[i-1])
		}
	}
	if bytes.Contains(val, []byte("->")) || bytes.Contains(val, []byte("::")) || bytes.Contains(val, []byte("&&")) ||
		bytes.Contains(val, []byte("),")) {
		return true
	}
	if !isAlpha(val[0]) && val[0] != '_' && val[0] != '&' && val[0] != '*' && val[0] != '!' {
		return false
	}
	joints := 0
	for _, c := range val {
		if strings.IndexByte("_.-:=?&|!,;", c) >= 0 {
			joints++
		}
	}
	if (digits == 0 || bytes.IndexByte(val, '.') > 0 && digits*8 <= len(val)) && digits+upper+lower+joints >= len(val)-1 {
		return !unlikely(val) || bytes.IndexByte(val, '.') > 0 && !unlikely(val[bytes.LastIndexByte(val, '.')+1:])
	}
	return false
}
