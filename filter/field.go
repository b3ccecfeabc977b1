package filter

import (
	"bytes"
	"strings"
)

// Here are the links of structured text: fields, attributes, elements, lists, calls.

// valueFields are the keys of the field that holds the value of a name beside it.
var valueFields = [...]string{"value", "string", "parametervalue", "content", "contents", "val", "data", "secret", "defaultvalue", "current_value",
	"secretvalue", "secret_value", "plaintext", "stringvalue", "default", "result", "new"}

// textFields are those in which prose may stand too.
var textFields = [...]string{"v", "text", "body", "example", "message", "details"}

// linkSibling reads a value in a field of its own, beside or below the field that holds the
// name: JSON and YAML objects, attributes, elements of XML and of property lists.
func linkSibling(s *scan, n *nameInfo) (c candidate, ok bool) {
	quoted := s.quote()
	if s.short {
		return c, false
	}
	limit := n.end + maxSibling
	open := byte(0)
	object := false
	if n.start > 0 {
		open = s.v[n.start-1]
	}
	switch {
	case open == '<' && s.lit(">"): // <NAME>⏎<value>, <NAME><value>
		if !s.more() || s.v[s.p] != '\n' && s.v[s.p] != '\r' && s.v[s.p] != '<' {
			return c, false
		}
	case s.lit("</"): // <name>NAME</name>
		for s.more() && s.p < limit && s.v[s.p] != '>' {
			s.p++
		}
		if !s.lit(">") {
			return c, false
		}
	case quoted:
		// "NAME": {…, and "NAME", … or name="NAME" value=
		s.blanks()
		if from := s.p; s.lit("\"") && s.word(maxName) && s.lit("\"") { // resource "NAME" "name" {
			s.blanks()
		} else if !s.short {
			s.p = from
		}
		if s.lit("{") { // variable "NAME" {
			object = true
			limit += maxSibling
		} else if s.lit(":") {
			s.blanks()
			if object = s.lit("{"); !object {
				return c, false
			}
		} else if s.p < len(s.v) && s.v[s.p] == '>' && n.attribute(s.v) {
			// <string name="NAME">value<
			s.p++
			c.at, c.form, c.doubt = s.p, formXML, likely
			return c, s.more() && s.v[s.p] != '<' && s.v[s.p] != '\n'
		}
	case (open == '=' || open == ' ') && s.at() == ',' && s.p+1 < len(s.v) && isAlpha(s.v[s.p+1]): // ParameterKey=NAME,ParameterValue=value
	case open == ' ' && n.start > 1 && s.v[n.start-2] == ':' && s.more() && (s.v[s.p] == '\n' || s.v[s.p] == '\r'):
		// name: NAME⏎
	default:
		return c, false
	}
	if s.short {
		return c, false
	}
	old := false // in a diff the new value follows
	for fields := 0; fields < 6 || object && fields < 12; fields++ {
		if s.p >= limit || s.space() > 2 {
			return c, false
		}
		if old = s.diffMark() == '-'; s.short {
			return c, false
		}
		if s.v[max(0, s.p-1)] == '"' && s.at() == '}' && s.lit("},") { // the name has an object of its own
			s.space()
			if s.at() != '"' {
				return c, false
			}
		}
		for s.more() && (s.v[s.p] == ',' || s.v[s.p] == '<' || s.v[s.p] == '>' && n.attribute(s.v)) {
			tag := s.v[s.p] == '>'
			if s.p++; s.v[s.p-1] == '<' && s.more() && s.v[s.p] == '/' {
				return c, false
			}
			if tag && s.more() && s.v[s.p] > ' ' && s.v[s.p] != '<' { // <field name="NAME" type="string">value<
				c.at, c.form, c.doubt = s.p, formXML, likely
				return c, true
			}
			s.space()
		}
		if s.short || !s.more() {
			return c, false
		}
		key, sign := s.field()
		if sign == 0 {
			return c, false
		}
		text := isOneOf(key, textFields[:])
		if text || hasFoldSuffix(key, "value") || isOneOf(key, valueFields[:]) {
			if sign == '>' {
				c.form = formXML
			}
			s.blanks()
			if sign == '>' && s.p+1 == len(s.v) && s.v[s.p] == '<' && !s.eof {
				s.short = true
				return c, false
			}
			if sign == '>' && s.p+1 < len(s.v) && s.v[s.p] == '<' && isAlpha(s.v[s.p+1]) { // <value><string>
				for s.more() && s.p < limit && s.v[s.p] != '>' {
					s.p++
				}
				s.lit(">")
			}
			if !s.more() || s.v[s.p] == '\n' || s.v[s.p] == '{' || s.v[s.p] == '[' || sign == '>' && s.v[s.p] == '<' {
				return c, false
			}
			if c.at, c.list = s.p, old; text {
				c.doubt = likely
			}
			return c, true
		}
		if sign == '>' {
			return c, false
		}
		// Another field: skip its scalar, or its empty list.
		s.blanks()
		if s.lit("{}") || s.lit("[]") || s.lit("(sensitive value)") {
			continue
		}
		if !s.scalar(limit) {
			return c, false
		}
	}
	return c, false
}

// diffMark skips the sign and the indent of a line of a diff that was changed.
func (s *scan) diffMark() byte {
	mark := s.at()
	if s.p == 0 || s.v[s.p-1] != '\n' || mark != '-' && mark != '+' {
		return 0
	}
	from := s.p
	if s.p++; s.blanks() < 2 && !s.short {
		s.p = from
		return 0
	}
	return mark
}

// field reads the key of a field and its sign: "key": key= :key=> <key>. No sign is no field.
func (s *scan) field() (key []byte, sign byte) {
	s.lit(":") // a symbol of Ruby
	s.quote()
	from := s.p
	for s.more() && s.p-from < 32 && (isAlnum(s.v[s.p]) || s.v[s.p] == '_' || s.v[s.p] == '-') {
		s.p++
	}
	if s.short || s.p == from {
		return nil, 0
	}
	key = s.v[from:s.p]
	s.quote()
	s.blanks()
	if s.short || !s.more() {
		return nil, 0
	}
	if sign = s.v[s.p]; sign != ':' && sign != '=' && sign != '>' {
		return nil, 0
	}
	if s.p++; sign == '=' {
		s.lit(">")
	}
	if s.short {
		return nil, 0
	}
	return key, sign
}

// scalar passes over the value of a field, a word or what is quoted. It reports whether it came to
// its end.
func (s *scan) scalar(limit int) bool {
	if s.quote() {
		for s.more() && s.p < limit && s.v[s.p] != '"' && s.v[s.p] != '\'' && s.v[s.p] != '\n' && s.v[s.p] != '\\' {
			s.p++
		}
		return s.quote()
	}
	for s.more() && s.p < limit && strings.IndexByte(" ,\n{}[]<>\"", s.v[s.p]) < 0 {
		s.p++
	}
	return !s.short && s.p < len(s.v) && strings.IndexByte("{}[]<>\"", s.v[s.p]) < 0
}

// linkParent finds the object or list that a name announces, whose pairs hold the values:
// api_keys:⏎  - key: value, api_tokens = { a = "value" }.
func linkParent(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak && n.class != classKey || n.option(s.v) {
		return c, false
	}
	if s.lead.op == opNone && s.lead.tight < s.lead.at && !s.lead.short { // NAME {⏎  value = "value"
		if s.p = s.lead.at; !s.lit("{\n") && (s.short || !s.lit("{ ")) {
			return c, false
		}
		c.at, c.form, c.doubt, c.row = s.p-2, formPairs, literal, column{kind: byKey, sep: '{'}
		if n.plural(s.v) {
			c.row.kind = anyKey
		}
		return c, true
	}
	if !s.led() || !s.more() {
		return c, false
	}
	c.at, c.form, c.doubt, c.row.kind = s.p, formPairs, likely, byKey
	if n.plural(s.v) && n.class != classKey || string(s.v[n.start:n.end]) == "chpasswd" {
		c.row.kind = anyKey
	}
	if ch := s.v[s.p]; ch == '\n' || ch == '\r' {
		if s.line >= 0 {
			left := s.v[s.line:n.start]
			c.row.at = uint16(len(left) - len(bytes.TrimLeft(left, " -")))
		}
		return c, true
	} else if ch != '{' && ch != '[' {
		return c, false
	}
	c.row.sep = s.v[s.p]
	return c, n.class != classHeader
}

// plural reports a name of several: tokens, and not pass.
func (n *nameInfo) plural(v []byte) bool {
	return v[n.end-1]|0x20 == 's' && v[n.end-2]|0x20 != 's'
}

// linkElement reads the next element of a list, argument of a call or line of a list:
// ("name", "value"), ["--name", "value"], 1) "name"⏎2) "value".
func linkElement(s *scan, n *nameInfo) (c candidate, ok bool) {
	if !s.quote() || s.short {
		return c, false
	}
	option := n.option(s.v)
	opened := bytes.TrimRight(s.v[max(0, n.start-4):max(0, n.start-1)], " ")
	if k := len(opened) - 1; k > 0 && (opened[k] == 'b' || opened[k] == 'u') { // b'…', u'…'
		opened = opened[:k]
	}
	first := len(opened) > 0 && strings.IndexByte("([{", opened[len(opened)-1]) >= 0 || n.start > 1 && s.v[n.start-1] == '#'
	path := s.lit("]")                                                                          // ["db", "name"] "value"
	command := path || n.rule == "password" || n.end-n.start == len("AUTH") && n.rule == "auth" // words of a command, each in quotes
	comma := s.more() && s.v[s.p] == ','
	if comma {
		s.p++
	}
	lines := s.space()
	if !s.more() || s.short {
		return c, false
	}
	numbered := false
	for lines == 1 && s.more() && isDigit(s.v[s.p]) { // 4) 1) "value", of a list in a list
		for s.more() && isDigit(s.v[s.p]) {
			s.p++
		}
		if numbered = s.lit(") "); !numbered {
			return c, false
		}
	}
	if title := titleFrom(s.v, n.start); lines == 0 && title > 0 && s.v[title-1] == '"' && firstOnLine(s.v, title-1) {
		command, first = true, true // "name"  "value", a line of a file of settings
	}
	pair := comma && n.rule == "password" && n.start > 1 && s.v[n.start-2] == ',' // call('Name', 'x', 'Password', 'value')
	if pair && !first {
		if c, ok = s.literal(c); ok {
			c.doubt = piped
		}
		return c, ok
	}
	if !numbered && !(comma && (first || option || n.class == classHeader)) && !((option || command) && lines == 0 && s.at() != ',' && !comma) {
		return c, false
	}
	if !s.more() || s.v[s.p] == '-' {
		return c, false
	}
	if c, ok = s.literal(c); ok {
		c.doubt = likely
	}
	return c, ok
}

// linkTuple reads the second of a pair: auth=("user", "value").
func linkTuple(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.rule != "auth" && n.rule != "credential" && !n.paired(s.v) {
		return c, false
	}
	if !s.led() {
		return c, false
	}
	if ch := s.at(); ch != '(' && ch != '[' || n.paired(s.v) {
		return s.userAnd(c)
	}
	if !s.lit("(") && (!s.lit("[") || s.at() == '(' && !s.lit("(")) || !s.quote() {
		return c, false
	}
	for from := s.p; s.more() && s.p-from < maxName && (isIdent(s.v[s.p]) || s.v[s.p] == '@'); {
		s.p++
	}
	if !s.quote() || !s.lit(",") {
		return c, false
	}
	s.blanks()
	c.class, c.rule = classStrong, "password"
	return s.literal(c)
}

// userAnd reads a user and what stands behind it: credentials: admin / value.
func (s *scan) userAnd(c candidate) (candidate, bool) {
	quoted := s.quote()
	for from := s.p; s.more() && s.p-from < maxName && (isAlnum(s.v[s.p]) || s.v[s.p] == '_' || s.v[s.p] == '@' || s.v[s.p] == '.'); {
		s.p++
	}
	if quoted {
		if !s.quote() || !s.lit(", ") && (s.short || !s.lit(" / ")) {
			return c, false
		}
		c.class, c.rule = classStrong, "password"
		return s.literal(c)
	}
	if s.short || !s.lit(" / ") && (s.short || !s.lit(":")) && (s.short || !s.lit("/")) || !s.more() {
		return c, false
	}
	c.at, c.class, c.rule, c.doubt = s.p, classStrong, "password", likely
	return c, s.v[s.p] > ' '
}

// linkCall reads the argument of a method that has the name, setName("value"), or of a method of what the name
// selects: find("#name").fill("value").
func linkCall(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak && n.class != classPin {
		return c, false
	}
	if s.lit("(") { // setName("value"), Secret(value)
		if at := s.at(); isAlnum(at) && isUpper(s.v[n.start]) {
			c.at, c.doubt = s.p, random
			return c, true
		}
		c, ok = s.literal(c)
		c.doubt, c.list = likely, true // changePassword("user", "value")
		return c, ok
	}
	if s.lit("]"); s.short || !s.quote() || s.short {
		return c, false
	}
	closed := false
	for range 4 {
		if !s.more() || strings.IndexByte("'\")]", s.v[s.p]) < 0 {
			break
		}
		closed = closed || s.v[s.p] == ')'
		s.p++
	}
	if s.short || !closed || !s.lit(".") {
		return c, false
	}
	for from := s.p; s.more() && s.p-from < 24 && (isAlnum(s.v[s.p]) || s.v[s.p] == '_'); {
		s.p++
	}
	if s.short || !s.lit("(") {
		return c, false
	}
	return s.literal(c)
}
