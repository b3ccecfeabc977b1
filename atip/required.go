package atip

import "strings"

// requiredText is a text that every match of an expression contains, "" if none is
// evident or if the expression may not compile: such a one may match anything.
// Compiling costs tens of microseconds, and most words lack the text.
func requiredText(expr string) string {
	p := expressionReader{rest: strings.TrimPrefix(expr, "(?s)")}
	best := p.alternatives()
	if p.bad || p.rest != "" {
		return ""
	}
	return string(best.text[:best.n])
}

// literalRun is the longest run of literal bytes seen, or its beginning.
type literalRun struct {
	text [24]byte
	n    int
}

func (r *literalRun) add(c byte) {
	if r.n < len(r.text) {
		r.text[r.n] = c
		r.n++
	}
}

// expressionReader reads the part of RE2 that needs no thought: no flags, no counted
// repetition, no named classes.
type expressionReader struct {
	rest string
	bad  bool
}

// alternatives reads up to the end of the group and returns what a match must contain.
func (p *expressionReader) alternatives() literalRun {
	best := p.sequence()
	for !p.bad && p.next('|') {
		p.sequence()
		best = literalRun{}
	}
	return best
}

func (p *expressionReader) next(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// sequence reads atoms and returns the longest run of literal ones.
func (p *expressionReader) sequence() (best literalRun) {
	var run literalRun
	for !p.bad && p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		literal, repeats := p.atom()
		if p.bad {
			return best
		}
		if p.rest != "" && strings.IndexByte("*+?{", p.rest[0]) >= 0 {
			p.bad = !repeats || p.rest[0] == '{'
			p.rest = strings.TrimPrefix(p.rest[1:], "?")
			p.bad = p.bad || p.rest != "" && strings.IndexByte("*+?{", p.rest[0]) >= 0
			literal = 0
		}
		if literal == 0 {
			run.n = 0
			continue
		}
		if run.add(literal); run.n > best.n {
			best = run
		}
	}
	return best
}

// atom reads one element: a literal byte, or 0 for something else; repeats tells
// whether it may be repeated.
func (p *expressionReader) atom() (literal byte, repeats bool) {
	c := p.rest[0]
	switch {
	case c == '(':
		p.rest = strings.TrimPrefix(p.rest[1:], "?:")
		p.bad = strings.HasPrefix(p.rest, "?")
		p.alternatives()
		p.bad = p.bad || !p.next(')')
		return 0, true
	case c == '[':
		p.class()
		return 0, true
	case c == '^' || c == '$' || c == '.':
		p.rest = p.rest[1:]
		return 0, c == '.'
	case c == '\\':
		if len(p.rest) < 2 || p.rest[1] >= 0x80 || p.rest[1] == '_' || isWordByte(p.rest[1]) && strings.IndexByte("bBdDsSwWn", p.rest[1]) < 0 {
			p.bad = true
			return 0, false
		}
		e := p.rest[1]
		if p.rest = p.rest[2:]; isWordByte(e) {
			return 0, e != 'b' && e != 'B'
		}
		return e, true
	case c == 0 || c >= 0x80 || strings.IndexByte("*+?{}])", c) >= 0:
		p.bad = true
		return 0, false
	}
	p.rest = p.rest[1:]
	return c, true
}

// class reads a character class of single characters, ranges and the likes of \s.
func (p *expressionReader) class() {
	p.rest = strings.TrimPrefix(p.rest[1:], "^")
	for first := true; ; first = false {
		if p.rest == "" {
			p.bad = true
			return
		}
		if !first && p.next(']') {
			return
		}
		low, single := p.classItem()
		if p.bad {
			return
		}
		if len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' {
			p.rest = p.rest[1:]
			high, also := p.classItem()
			if p.bad = p.bad || !single || !also || high < low; p.bad {
				return
			}
		}
	}
}

func (p *expressionReader) classItem() (c byte, single bool) {
	c = p.rest[0]
	switch {
	case c >= 0x80 || c == '[' || c == ']':
		p.bad = true
		return 0, false
	case c != '\\':
		p.rest = p.rest[1:]
		return c, true
	case len(p.rest) < 2 || p.rest[1] >= 0x80 || isWordByte(p.rest[1]) && strings.IndexByte("dDsSwWn", p.rest[1]) < 0 || p.rest[1] == '_':
		p.bad = true
		return 0, false
	}
	c = p.rest[1]
	p.rest = p.rest[2:]
	if c == 'n' {
		return '\n', true
	}
	return c, !isWordByte(c)
}
