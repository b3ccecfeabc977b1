package filter

import (
	"bytes"
	"strings"
)

// Here are the links of text for people: sentences, prompts, comments, logs.

// maxNear is how far a value may stand from its name when words are between.
const maxNear = 64

// linkPhrase reads what tools say in sentences: "password for user bob: value", "signing
// secret is value".
func linkPhrase(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.rule == "credential" && s.lit(" with ") { // login with user:value
		return s.userAnd(c)
	}
	c, ok = s.phrase(n)
	if ok && n.rule == "credential" { // creds for the box: user / value
		s.p = c.at
		if pair, both := s.userAnd(c); both || s.short {
			return pair, both
		}
	}
	return c, ok
}

func (s *scan) phrase(n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak && n.class != classPin || n.option(s.v) {
		return c, false
	}
	if !s.lit(" ") || !s.more() {
		return c, false
	}
	from := s.p
	if from+1 < len(s.v) {
		switch ch, next := s.v[from]|0x20, s.v[from+1]; {
		case ch == 'i' && next == 's', ch == 'w' && next == 'a', ch == 'h' && next == 'a', ch == 's' && next == 'e',
			ch == 'f' && next|0x20 == 'o', ch == 'o' && next == 'f', ch == 't' && next == 'o', ch == 'f' && next|0x20 == 'r':
		default:
			return s.sentence(c, n)
		}
	}
	c.doubt = unsure
	for _, w := range [...]string{"is ", "is: ", "was ", "has been ", "set to "} {
		s.p = from
		if !s.lit(w) {
			continue
		}
		if !s.more() {
			return c, false
		}
		if c.at = s.p; w != "is " && w != "was " && w != "has been " {
			return c, true
		}
		for s.more() && isLower(s.v[s.p]) && s.p-c.at < maxName {
			s.p++
		}
		if s.short {
			return c, false
		}
		for k, at := 0, s.p; k < len(changedTo) && at-c.at > 2; k++ { // was changed to value
			if s.lit(changedTo[k]) && s.more() && (k == 0 || !inWordList(s.v[n.start:n.end]) && !inWordList(s.v[c.at:at])) {
				c.at = s.p
				return c, s.v[s.p] > ' '
			} else if s.short {
				return c, false
			}
			s.p = at
		}
		if s.p-c.at > len("ed") && (s.lit(" for ") || isBlank(s.at()) || s.at() == ':') { // is generated for …: value
			behind, ok := s.behindPhrase(c, from)
			if ok || s.short {
				if !ok {
					behind.at = c.at // from there on all waits
				}
				return behind, ok
			}
			s.p, c.doubt = c.at, said
			s.adverbs()
			ok, c.at = s.p > c.at, s.p
			return c, ok && s.more() && s.v[s.p] > ' '
		}
		return c, !s.short
	}
	s.p = from
	if s.more() && s.v[s.p]|0x20 == 'f' && s.p+4 > len(s.v) {
		s.short = !s.eof
		return c, false
	}
	if hasFold(s.v[s.p:], "for ") {
		s.p += len("for ")
	} else if s.lit("to ") {
		if at := s.at(); at == '"' || at == '\'' { // set name to "value"
			return s.literal(c)
		} else if s.more() && !s.phraseGoesOn() {
			c.at = s.p
			return c, !s.short
		}
	} else if s.lit("from ") || !s.short && s.lit("FROM ") { // changed name from value to value
		c.at, c.list, c.bareItems = s.p, true, true
		return c, s.more()
	} else if !s.lit("of ") {
		if s.p = from; s.short {
			return c, false
		}
		return s.sentence(c, n)
	}
	return s.behindPhrase(c, from)
}

// changedTo stand between a verb and the new value; but for the first, in sentences of other languages.
var changedTo = [...]string{" to ", " in ", " auf ", " zu ", " naar ", " till ", " til ", " a ", " en ", " na "}

// copulas tie a name to its value in a sentence.
var copulas = [...]string{"is", "ist", "lautet", "est", "es", "è", "é", "är", "er", "to", "jest", "je", "it's", "now"}

// sentence reads the words up to a sign or a copula: neues Passwort lautet: value, the password on nas2 is value.
func (s *scan) sentence(c candidate, n *nameInfo) (candidate, bool) {
	c.doubt = said
	for from, words := s.p, 0; words < 6; words++ {
		at := s.p
		for s.more() && s.p-from < maxDistance && (isAlnum(s.v[s.p]) || s.v[s.p] >= 0x80 || s.v[s.p] == '\'' || s.v[s.p] == '-') {
			s.p++
		}
		word := s.v[at:s.p]
		colon := words+len(word) > 0 && s.lit(":")
		if s.short || !s.lit(" ") || !s.more() {
			return c, false
		}
		switch {
		case n.class == classPin && words == 0 && !colon && len(word) > len("with") && !isOneOf(word, copulas[:]):
			return c, false // of a thing
		case colon && len(word) > 0 && (endsInAny(word, otherNames) || endsInAny(word, "key keys token tokens secret secrets cookie")):
			return c, false // of something else
		case colon, isOneOf(word, copulas[:]):
			if !colon {
				s.adverbs()
			}
			if c.at = s.p; colon && words <= 1 && n.firstOnLine(s.v) { // a label: Mot de passe provisoire : value
				c.doubt = unsure
			}
			return c, s.more() && s.v[s.p] > ' '
		case len(word) == 0 && s.v[s.p-1] != ':':
			return c, false
		}
	}
	return c, false
}

// adverbs skips one or two words in front of a value: is still value, is nog steeds value. Behind a short one or a verb stands no value.
func (s *scan) adverbs() {
	at, long := s.p, true
	for range 2 {
		from := s.p
		for s.more() && isLower(s.v[s.p]) && s.p-from < maxName {
			s.p++
		}
		if s.p == from || s.short || !s.lit(" ") {
			s.p = from
			break
		}
		long = s.p-from > len("still") && s.v[s.p-2] != 'd'
	}
	if !long || s.short { // until it is known all waits
		s.p = at
	}
}

// phraseGoesOn reports whether a word of prose stands at p: "it is shown only once:".
func (s *scan) phraseGoesOn() bool {
	from := s.p
	for s.more() && isLower(s.v[s.p]) && s.p-from < maxName {
		s.p++
	}
	on := s.p > from && (s.at() == ' ' || s.at() == ',')
	s.p = from
	return on
}

// behindPhrase finds the value behind the words that say whose it is: a sign or "is" stands
// before it.
func (s *scan) behindPhrase(c candidate, from int) (candidate, bool) {
	for s.more() && s.p-from < 100 && s.v[s.p] != '\n' {
		if s.v[s.p] == ' ' && s.lit(" is ") && s.more() {
			if c.at = s.p; !s.phraseGoesOn() {
				return c, !s.short
			}
		}
		if s.short || s.p == len(s.v) {
			return c, false
		}
		if s.v[s.p] == '=' {
			s.p++
			s.blanks()
			return s.literal(c)
		}
		if s.v[s.p] == ':' && s.p+1 >= len(s.v) {
			s.short = !s.eof
			return c, false
		}
		if s.v[s.p] == ' ' { // the API key for staging -> value
			for _, arrow := range [...]string{" -> ", " => ", " → "} {
				if s.lit(arrow) && s.more() {
					c.at = s.p
					return c, s.v[s.p] > ' '
				}
			}
			if s.short || s.p == len(s.v) {
				return c, false
			}
		}
		if s.v[s.p] == ':' && s.v[s.p+1] != '/' {
			s.p++
			if s.blanks(); !s.more() {
				return c, false
			}
			if s.v[s.p] == '\n' {
				if lines := s.space(); lines > 2 || !s.more() {
					return c, false
				}
				c.doubt, c.front = onlyLine, bullet
			}
			c.at = s.p
			return c, true
		}
		s.p++
	}
	return c, false
}

// linkEnd reads the value below a sentence that ends in a colon: Copy the token below:⏎value.
func linkEnd(s *scan, n *nameInfo) (c candidate, ok bool) {
	rest := s.v[s.p:min(len(s.v), s.p+64)]
	if k := bytes.IndexByte(rest, '\n'); k == 0 || k > 0 && rest[k-1] != ':' && rest[k-1] != '\r' || k < 0 && len(rest) == 64 {
		return c, false // nearly always
	}
	if n.class != classStrong && n.class != classWeak && n.rule != mnemonicRule || n.option(s.v) || !s.lit(" ") && (s.short || !s.lit(", ")) || !s.colonEnds() {
		return c, false
	}
	c.at, c.doubt, c.front = s.p, lone, bullet
	return c, true
}

// colonEnds skips words to a colon at the end of the line, and the white space behind it.
func (s *scan) colonEnds() bool {
	for from := s.p; s.p-from < 60; s.p++ {
		if !s.more() {
			return false
		}
		if ch := s.v[s.p]; ch == ':' {
			break
		} else if !isAlnum(ch) && ch != ' ' && ch != ',' && ch != '\'' && ch != '(' && ch != ')' {
			return false
		}
	}
	if !s.lit(":") {
		return false
	}
	s.lit("\r")
	if !s.more() || s.short || s.v[s.p] != '\n' {
		return false
	}
	lines := s.space()
	return lines <= 2 && s.more() && !s.short
}

// linkBelow reads a value on the line below a line that is nothing but the name, perhaps with the
// marks of head, a prompt or a path in front.
func linkBelow(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.option(s.v) || n.class != classStrong && n.class != classWeak && n.class != classKey || s.line < 0 {
		return c, false
	}
	left := bytes.TrimSpace(s.v[s.line:n.start])
	asked := bytes.HasSuffix(left, []byte("334")) // by a server of SMTP, in base64
	if s.at() == '.' && (!containsFold(left, "gener") && !containsFold(left, "creat") || !s.lit("...")) || s.at() == ' ' && !s.lit(" <==") || !asked && (!titled(s.v[n.start:n.end]) && unlikely(s.v[n.start:n.end]) || !headsLine(left)) {
		return c, false
	}
	if lines := s.space(); lines != 1 || !s.more() || s.short {
		return c, false
	}
	if asked {
		for _, mark := range [...]string{"-> ", "~> ", "> ", "C: "} {
			if s.lit(mark) || s.short {
				break
			}
		}
		c.at, c.doubt = s.p, likely
		return c, s.more()
	} else if from := s.p; s.v[s.p] == '-' || s.v[s.p] == '=' { // the rule below the title of a column
		for s.more() && s.v[s.p] == s.v[from] {
			s.p++
		}
		if s.p-from < 3 || s.space() != 1 || !s.more() || s.short {
			return c, false
		}
		c.front = bullet
	} else if s.v[s.p] == '$' && len(left) == 0 { // the length that Redis sends before a value
		for short := true; short; { // behind a name that is too short for a secret
			from := s.p
			s.p++
			s.word(8)
			if s.space() != 1 || !s.more() || s.short {
				return c, false
			}
			if short = s.v[from+1] < '8' && !isDigit(s.v[from+2]) && s.v[from] == '$'; short {
				if s.word(8); s.space() != 1 || !s.more() || s.short || s.v[s.p] != '$' {
					return c, false
				}
			}
		}
		c.at, c.doubt = s.p, likely
		return c, true
	}
	if s.short || !s.more() {
		return c, false
	}
	if s.v[s.p] == '\'' || s.v[s.p] == '"' {
		return s.literal(c)
	}
	c.at, c.doubt, c.front = s.p, lone, bullet
	return c, true
}

// titled reports a name of whole words: API_KEY, SecretKey.
func titled(name []byte) bool {
	for _, c := range name {
		if !isAlpha(c) && c != '_' && c != '-' && c != ' ' {
			return false
		}
	}
	return len(name) < 24
}

// bullet skips what stands in front of an item of a list: (1), 1., -, *, an emoji.
func (s *scan) bullet() bool {
	from := s.p
	if s.v[s.p] == '-' || s.v[s.p] == '*' {
		s.p++
	} else if s.v[s.p] >= 0xe2 {
		for s.more() && s.v[s.p] >= 0x80 && s.p-from < 8 {
			s.p++
		}
	} else if s.lit("("); !s.word(2) || !s.lit(")") && (s.short || !s.lit(".")) {
		s.p = from
		return false
	}
	if !s.lit(" ") {
		s.p = from
		return false
	}
	return true
}

// headsLine reports what may stand in front of a name on a line of its own.
func headsLine(left []byte) bool {
	if k := bytes.Index(left, []byte("] ")); k > 0 && left[0] == '[' { // what says it
		left = left[k+2:]
	}
	switch {
	case len(left) == 0, string(left) == "==>", string(left) == "#", bytes.HasPrefix(left, []byte("untrusted comment: ")): // of minisign and signify
		return true
	case isUpper(left[0]) && len(left) < 24 && letters(bytes.ReplaceAll(left, []byte(" "), nil)): // Bot token
		return true
	case left[0] == '#' && len(left) > 2 && isUpper(left[2]) && titled(left[2:]): // # Bot token
		return true
	case left[0] == '$' || left[0] == '#' || left[0] == '+':
		return bytes.HasSuffix(left, []byte("cat"))
	}
	return false
}

// linkAnswer reads what a command prints whose line, behind a prompt, names a secret: it is alone
// on the next line.
func linkAnswer(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak && n.class != classKey && n.class != classPin || s.line < 0 || s.headers > 2 {
		return c, false
	}
	if hasFoldSuffix(s.v[n.start:n.end], "totp") {
		c.class, c.rule, c.noTag = classPin, pinRule, true
	}
	if s.lead.op == opAssign && s.lead.at == s.lead.tight && !s.lead.short {
		return c, false // it has its value: docker run -e NAME=value image⏎id
	}
	if n.option(s.v) && s.lit(" ") && s.more() && isAlnum(s.v[s.p]) {
		return c, false // so has this: --key name
	}
	for s.more() && s.v[s.p] != '\n' {
		if s.p-n.end > maxCommand || s.v[s.p] < ' ' && s.v[s.p] != '\r' {
			return c, false
		}
		s.p++
	}
	line := s.v[s.line:s.p]
	if !s.lit("\n") || !s.more() {
		return c, false
	}
	if bytes.Contains(line, []byte("git ")) && !bytes.Contains(line, []byte(" config ")) || bytes.Contains(line, []byte("sum ")) {
		return c, false // which print digests
	}
	if s.v[s.p] == '\n' { // some leave a line empty
		if s.p++; !s.more() {
			return c, false
		}
	}
	c.at, c.doubt, c.front = s.p, lone, echo
	if word := bytes.TrimLeft(s.v[n.end:s.p], " "); n.rule == "secret" && isOneOf(word[:max(bytes.IndexByte(word, ' '), 0)], reads[:]) {
		c.rule = "password" // as people choose them
	}
	return c, s.v[s.p] > ' '
}

// linkFile finds the accounts in a file whose name says that it holds secrets: a line for each.
func linkFile(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak || s.line < 0 || !bytes.HasSuffix(s.v[s.line:n.start], []byte("cat ")) || !s.lit("\n") || !s.more() {
		return c, false
	}
	c.at, c.form, c.doubt, c.row.kind = s.p, formRow, lone, byAccount
	return c, true
}

// reads are what commands call it to print a secret.
var reads = [...]string{"show", "get", "access", "read", "reveal"}

// echoes skips what interpreters and debuggers print in front of a value: => of Ruby, Out[1]: of
// Python, $1 = of gdb, [1] of R, (String) $R0 = of lldb.
func (s *scan) echoes() {
	from := s.p
	switch s.v[s.p] {
	case '=':
		if s.lit("=> ") {
			s.lit("[") // of several
			return
		} else if s.short {
			return
		}
	case 'O', '$', '[', '(':
		for s.more() && s.p-from < 24 && s.v[s.p] > ' ' {
			s.p++
		}
		if s.short {
			return
		}
		switch last := s.v[s.p-1]; {
		case s.v[from] == '(' && s.lit(" $"), s.v[from] == '$': // a name of the result
			s.word(8)
			if s.lit(" = ") {
				if from := s.p; s.lit("0x") && (!s.word(16) || !s.lit(" ")) {
					s.p = from
				}
				return
			} else if s.short {
				return
			}
		case last == ']' && isDigit(s.v[s.p-2]), last == ':':
			if s.lit(" ") || s.short {
				return
			}
		}
	default:
		return
	}
	s.p = from
}

// isPrompt reports a prompt at the beginning of a line: of shells ($, #, >, anna@web:~$), of
// interpreters and clients (>>>, iex(1)>, mysql>, shop=#), of debuggers ((gdb)), and what set -x
// prints.
func isPrompt(line []byte) bool {
	line = line[:min(len(line), maxName)]
	k := bytes.IndexByte(line, ' ')
	if k <= 0 {
		return false
	}
	word := line[:k]
	switch word[k-1] {
	case '$', '%', '>', '+':
		return k == 1 || word[k-1] == '+' || word[k-1] != '%' && (bytes.IndexByte(word, '@') > 0 || bytes.IndexByte(word, ':') > 0 || promptWord(word[:k-1]))
	case '#':
		return k > 1 && (bytes.IndexByte(word, '@') > 0 || word[k-2] == '=')
	case ')':
		return word[0] == '(' && k < 10 && letters(word[1:k-1])
	case '~', '/': // anna@web ~ $, / #
		return k+2 < len(line) && strings.IndexByte("$#>%", line[k+1]) >= 0 && line[k+2] == ' ' || bytes.Contains(line, []byte(" \xe2\x9d\xaf "))
	case 0xaf, 0x9c, 0xbb: // ❯ ➜ λ
		return k == 3 && word[0] == 0xe2 || k == 2 && word[0] == 0xce
	}
	switch {
	case word[0] == '[': // [anna@web ~]$
		end := bytes.IndexByte(line, ']')
		return len(word) > 1 && isDigit(word[1]) && bytes.Contains(line, []byte("> ")) || // [2] pry(main)>
			end > 0 && bytes.IndexByte(word, '@') > 0 && end+2 < len(line) && (line[end+1] == '$' || line[end+1] == '#') && line[end+2] == ' '
	case string(word) == "PS": // PS C:\>
		return bytes.Contains(line, []byte("> "))
	case string(word) == "In": // In [1]:
		return k+1 < len(line) && line[k+1] == '[' && bytes.Contains(line, []byte("]: "))
	}
	return word[0] == '~' && bytes.Contains(line, []byte(" \xe2\x9d\xaf ")) // ~/app ❯
}

// promptWord reports what stands before the sign of a prompt: a name, perhaps with a number in
// brackets, or more signs.
func promptWord(word []byte) bool {
	for _, c := range word {
		if !isAlnum(c) && strings.IndexByte("-._()>", c) < 0 {
			return false
		}
	}
	return word[0] == '>' || isLower(word[0]) && len(word) < 24
}

// linkSession reads the command PASS of FTP, POP3 and IRC, behind the line with the user.
func linkSession(s *scan, n *nameInfo) (c candidate, ok bool) {
	if string(s.v[n.start:n.end]) != "PASS" || s.line < 0 || !s.lit(" ") || !s.more() {
		return c, false
	}
	left := bytes.TrimRight(s.v[s.line:n.start], " ->:")
	before := s.v[max(0, n.start-200):n.start]
	c.at, c.class, c.rule, c.doubt = s.p, classStrong, "password", onlyLine
	if bytes.HasSuffix(left, []byte(`\n`)) || bytes.HasSuffix(left, []byte(`"`)) { // what a trace shows to be sent
		if c.doubt = piped; bytes.Contains(before, []byte("USER ")) || bytes.Contains(before, []byte("AUTH ")) {
			c.doubt = likely
		}
		return c, true
	}
	if len(left) > 1 || len(left) == 1 && left[0] != 'C' { // C: PASS, ---> PASS
		return c, false
	}
	if bytes.LastIndex(before, []byte("USER ")) < 0 && bytes.LastIndex(before, []byte("NICK ")) < 0 {
		c.doubt = lone
	}
	return c, true
}

// linkChange reads the second value of a change: name = "old" -> "new".
func linkChange(s *scan, n *nameInfo) (c candidate, ok bool) {
	if !s.led() {
		return c, false
	}
	if s.short || !s.more() {
		return c, false
	}
	from := s.p
	if s.lit("[-") { // a diff by words: [-old-]{+new+}
		for s.more() && s.p-from < maxSibling && s.v[s.p] != '\n' && s.v[s.p] != ']' {
			s.p++
		}
		if !s.lit("]") || !s.more() || s.v[s.p] != '{' {
			return c, false
		}
		c.at, c.doubt = s.p, likely
		return c, true
	}
	if s.quote() {
		for s.more() && s.p-from < maxSibling && s.v[s.p] != '\n' && s.v[s.p] != '"' && s.v[s.p] != '\'' {
			s.p++
		}
		if !s.quote() {
			return c, false
		}
	} else {
		for s.more() && s.p-from < maxName && s.v[s.p] > ' ' {
			s.p++
		}
	}
	s.blanks()
	if s.short || s.p-from > maxSibling || !s.lit("->") && !s.lit("=>") && !s.lit("→") {
		return c, false
	}
	s.blanks()
	if !s.more() || s.v[s.p] == '\n' {
		return c, false
	}
	c.at, c.doubt = s.p, likely
	return c, true
}
