package filter

import (
	"bytes"
	"strings"
)

// judgeValue judges the value of a name, from its opening quote on.
func (e *engine) judgeValue(c *candidate, eof bool) verdict {
	if c.form == formURL {
		return e.judgeURL(c, eof)
	}
	v := e.view.vis
	p := c.at
	if p >= len(v) {
		return undecided(eof, true)
	}
	if c.form == formData {
		return e.judgeData(c, eof)
	}
	if v[p] == bs || v[p] == esc {
		return verdict{} // such a byte left while it was not yet known to be visible
	}
	f, quote, depth := c.form, byte(0), 0
	if v[p] == '$' || isAlpha(v[p]) { // r"…", b'…', $'…'
		if p+1 == len(v) && !eof {
			return verdict{outcome: more, loose: true}
		}
		if p+1 < len(v) && (v[p+1] == '"' || v[p+1] == '\'') {
			p++
		}
	}
	if q, qc, d := readQuote(v, p); q > p {
		p, quote, depth = q, qc, int(d)
		if f != formHeader && f != formCookie && f != formUser {
			f = formQuoted
		}
	} else if v[p] == '\\' && slashesToEnd(v, p) && !eof {
		return verdict{outcome: more, loose: true}
	}
	if p >= len(v) {
		return undecided(eof, true)
	}
	g := gate{class: c.class, quoted: quote != 0, opened: quote != 0}
	switch f {
	case formHeader:
		q, o := skipScheme(v, p, eof)
		if o == more {
			return verdict{outcome: more, loose: len(v)-p < loosePrefix || !e.set.passes(v[p:], gate{class: classHeader})}
		}
		g.scheme = wholeLine(v[p:q])
		p = q
		if p >= len(v) {
			return undecided(eof, true)
		}
	case formCookie:
		if c.class == classCookie || c.class == classSetCookie {
			q, o := cookieValue(v, p, eof)
			if o != found {
				return verdict{outcome: o, loose: true}
			}
			p = q
			if p >= len(v) {
				return undecided(eof, true)
			}
		}
	case formTable:
		g.table = true
	case formUser:
		q, o := userValue(v, p, eof)
		if o != found {
			return verdict{outcome: o, loose: true}
		}
		if p = q; p >= len(v) {
			return undecided(eof, true)
		}
		if f = formPlain; quote != 0 {
			f = formQuoted
		}
	}
	end, until, done := valueEnd(v, p, f, quote, depth, g.scheme, eof)
	if !done && end-p < maxValue {
		bytesSoFar := v[p:end]
		loose := len(bytesSoFar) < 512 && !unlikely(bytesSoFar) && !e.set.passes(trimValue(bytesSoFar, f), g)
		return verdict{outcome: more, loose: loose}
	}
	c.then = end
	val := v[p:end]
	if f == formQuoted && (end == len(v) || v[end] == '\n') {
		// The quote did not close on its line: it may have closed a string before.
		g.quoted = false
		if len(val) > 0 && val[0] == '+' {
			return verdict{}
		}
	}
	if done {
		val = trimValue(val, f)
	}
	if !e.set.passes(val, g) {
		return verdict{}
	}
	r := verdict{outcome: found, layer: layerContext, start: p, end: p + len(val), rule: c.rule, noTag: c.noTag,
		learn: len(val) >= 12 && (c.class == classHeader || c.class == classStrong) && mayLearn(val)}
	if !done {
		r.outcome, r.until = swallow, until
	}
	return r
}

func undecided(eof, loose bool) verdict {
	if eof {
		return verdict{}
	}
	return verdict{outcome: more, loose: loose}
}

// next returns the value that follows in the same header.
func (c *candidate) next(v []byte) (candidate, bool) {
	if c.form == formData && c.then > c.at {
		n := *c
		n.at, n.then = c.then, 0
		return n, true
	}
	if c.class != classCookie || c.then == 0 || c.then >= len(v) || v[c.then] != ';' {
		return candidate{}, false
	}
	n := *c
	n.at, n.then = c.then+1, 0
	return n, true
}

// mayLearn reports whether a value is so unlike a word or code that looking for it
// elsewhere cannot hit ordinary text.
func mayLearn(val []byte) bool {
	digits, _, _ := tally(val)
	return digits > 0 && !bytes.ContainsAny(val, "(){}[]<>; ")
}

// skipScheme skips the scheme of an Authorization header.
func skipScheme(v []byte, p int, eof bool) (int, outcome) {
	q := p
	for q < len(v) && q-p < 24 && (isAlnum(v[q]) || v[q] == '-') {
		q++
	}
	if q == len(v) && !eof {
		return p, more
	}
	if q == p || q == len(v) || v[q] != ' ' {
		return p, found
	}
	for q < len(v) && v[q] == ' ' {
		q++
	}
	return q, found
}

// wholeLine reports the schemes whose parameters run to the end of the line.
func wholeLine(scheme []byte) bool {
	for _, s := range [...]string{"digest ", "aws4-", "oauth ", "hawk ", "signature "} {
		if hasFold(scheme, s) {
			return true
		}
	}
	return false
}

// cookieValue skips "name=" of a cookie pair.
func cookieValue(v []byte, p int, eof bool) (int, outcome) {
	for p < len(v) && v[p] == ' ' {
		p++
	}
	q := p
	for q < len(v) && q-p < 256 && (isIdent(v[q]) || v[q] == '%' || v[q] == '$' || v[q] == '!') {
		q++
	}
	switch {
	case q == len(v) && !eof:
		return p, more
	case q == len(v) || q == p || v[q] != '=':
		return p, no
	}
	return q + 1, found
}

// valueEnd finds the end of a value. If there is none yet it returns what there
// is, and the set of bytes that cannot end it.
func valueEnd(v []byte, p int, f form, quote byte, depth int, line, eof bool) (int, byteSet, bool) {
	stops := "\n\r\x00\x1b"
	switch f {
	case formQuoted:
		switch quote {
		case '"':
			stops = "\n\x00\""
		case '\'':
			stops = "\n\x00'"
		default:
			stops = "\n\x00`"
		}
	case formPlain, formTable:
		stops = "\n\r\x00\x1b \t\"'`<|"
	case formQuery:
		stops = "\n\r\x00\x1b \t\"'`<>&#|"
	case formXML:
		stops = "\n\r\x00\x1b<"
	case formHeader:
		stops = "\n\r\x00\x1b\"' "
		if line {
			stops = "\n\r\x00\x1b\"'"
		}
	case formCookie:
		stops = "\n\r\x00\x1b\"'; "
	}
	all := byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	until := all.without(stops)
	for q := p; q < len(v); q++ {
		if q-p >= maxValue {
			return q, until, false
		}
		c := v[q]
		if c == '\\' && f != formQuoted {
			if q+1 == len(v) && !eof {
				return q, until, false
			}
			if q+1 < len(v) && strings.IndexByte(`nrt"'\u`, v[q+1]) >= 0 {
				return q, until, true
			}
			continue
		}
		if until.has(c) {
			if (c == '&' || c == ';') && f == formPlain {
				if o := nextParam(v, q, eof); o != no {
					return q, until, o == found
				}
			}
			continue
		}
		if f != formQuoted || c != quote {
			return q, until, true
		}
		slashes := 0
		for slashes < q-p && v[q-1-slashes] == '\\' {
			slashes++
		}
		// At depth d a quote has 2^d-1 backslashes; one that is part of the value
		// has as many more as make the quotient odd.
		if slashes < depth || slashes/(depth+1)%2 == 0 {
			return max(q-min(depth, slashes), p), until, true
		}
	}
	return len(v), until, eof
}

// nextParam reports whether "&name=" or ";name=" stands at q.
func nextParam(v []byte, q int, eof bool) outcome {
	p := q + 1
	for p < len(v) && p-q < 32 && isIdent(v[p]) {
		p++
	}
	switch {
	case p == len(v) && !eof:
		return more
	case p < len(v) && p > q+1 && v[p] == '=':
		return found
	}
	return no
}

// trimValue strips what does not belong to an unquoted value.
func trimValue(val []byte, f form) []byte {
	if f == formQuoted || f == formXML || f == formCookie {
		return val
	}
	for len(val) > 0 {
		switch c := val[len(val)-1]; c {
		case ',', ';', '.', ':', ' ', '\t':
		case ')', ']', '}':
			open := byte('(')
			if c != ')' {
				open = c - 2
			}
			if bytes.Count(val, []byte{open}) >= bytes.Count(val, []byte{c}) {
				return val
			}
		default:
			return val
		}
		val = val[:len(val)-1]
	}
	return val
}

// judgeURL judges the authority of a URL: what stands before the last @ that
// precedes a slash, white space, a quote or an angle bracket.
func (e *engine) judgeURL(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	at, colon, q := -1, -1, p
	for ; q < len(v) && q-p < maxValue; q++ {
		ch := v[q]
		if ch <= ' ' || ch == '/' || ch == '"' || ch == '\'' || ch == '<' || ch == '>' || ch == '`' || ch == '\\' || ch == 0x7f {
			break
		}
		if ch == '@' {
			at = q
		}
		if ch == ':' && colon < 0 {
			colon = q
		}
	}
	if q == len(v) && !eof && q-p < maxValue {
		return verdict{outcome: more, loose: at < 0 && looksLikeHost(v[p:q])}
	}
	if at < 0 {
		return verdict{}
	}
	r := verdict{outcome: found, layer: layerContext, end: at, rule: c.rule, noTag: true}
	if colon < 0 || colon > at {
		r.start = p
		if at-p < 16 || !unlikely(v[p:at]) || !e.set.passes(v[p:at], gate{class: classURL}) {
			return verdict{}
		}
	} else {
		r.start = colon + 1
		if !e.set.passes(v[r.start:at], gate{class: classURL}) {
			return verdict{}
		}
	}
	r.learn = at-r.start >= 12 && mayLearn(v[r.start:at])
	if q-p >= maxValue {
		r.end = q
	}
	return r
}

// looksLikeHost reports whether an unfinished authority is a plain host[:port],
// the kind of address a dev server prints as a prompt.
func looksLikeHost(b []byte) bool {
	host, port, _ := bytes.Cut(b, []byte(":"))
	for _, c := range port {
		if !isDigit(c) {
			return false
		}
	}
	return len(port) <= 5 && !unlikely(host)
}
