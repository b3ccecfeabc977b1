package filter

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// leftOK reports whether a token may start at i: the byte before is no letter or
// digit, or it belongs to an escape such as \n, %3D or &quot;, without which a
// token at the start of a line inside a JSON string would be lost.
func leftOK(v []byte, i int) bool {
	if i == 0 || !isAlnum(v[i-1]) {
		return true
	}
	if i >= 2 && v[i-2] == '\\' {
		switch v[i-1] {
		case 'n', 't', 'r', 'b', 'f', 'v', '0':
			return true
		}
	}
	if i >= 3 && v[i-3] == '%' && sets[setXDigit].has(v[i-1]) && sets[setXDigit].has(v[i-2]) {
		return true
	}
	if i >= 4 && v[i-4] == '\\' && v[i-3] == 'x' && sets[setXDigit].has(v[i-1]) && sets[setXDigit].has(v[i-2]) {
		return true
	}
	if i >= 6 && v[i-6] == '\\' && v[i-5] == 'u' {
		return isHex(v[i-4 : i])
	}
	return false
}

// runMemo remembers a run of bytes of one set, and how many tokens that may start in it were
// none: prefixes side by side would cost the length of the run each.
type runMemo struct {
	set      setID
	from, to int
	rejects  int
	last     int // position of the last
}

// maxRejects is how many positions of a run are judged.
const maxRejects = 16

func (m *runMemo) forget(cut int) { m.from, m.to, m.last = m.from-cut, m.to-cut, m.last-cut }

// end returns the end of the run of bytes of a set from p on, of at most most bytes.
func (m *runMemo) end(v []byte, p, most int, id setID) int {
	limit := min(len(v), p+most)
	q := p
	if m.set == id && p >= m.from && p < m.to {
		q = min(m.to, limit)
	}
	set := &sets[id]
	for q < limit && set.has(v[q]) {
		q++
	}
	switch {
	case m.set == id && p >= m.from && p <= m.to:
		m.to = max(m.to, q)
	case q-p >= minRun:
		*m = runMemo{set: id, from: p, to: q, last: -1}
	}
	return q
}

// minRun is the length from which a run is worth remembering.
const minRun = 64

// rejected counts the positions at which no token was.
func (m *runMemo) rejected(i int) {
	if i > m.last && i < m.to {
		m.rejects++
		m.last = i
	}
}

// spent reports whether enough positions of the run around i were judged.
func (m *runMemo) spent(i int) bool {
	return m.rejects >= maxRejects && i > m.from && i < m.to && i > m.last
}

// matchRule judges the candidate of r whose prefix of plen bytes stands at i.
func matchRule(v []byte, i, plen int, r *rule, eof bool) verdict {
	var m runMemo
	return m.matchRule(v, i, plen, r, eof)
}

func (m *runMemo) matchRule(v []byte, i, plen int, r *rule, eof bool) verdict {
	if m.spent(i) {
		return verdict{}
	}
	out := m.match(v, i, plen, r, eof)
	if out.outcome == no {
		m.rejected(i)
	}
	return out
}

func (m *runMemo) match(v []byte, i, plen int, r *rule, eof bool) verdict {
	switch r.check {
	case checkJWT:
		return m.matchJWT(v, i, r, eof)
	}
	if r.regex != nil {
		return matchRegex(v, i, r, eof)
	}
	p := i + plen
	body := p
	minEnd := 0
	lastSet := setNone
	for k := range r.parts {
		s := &r.parts[k]
		if len(s.any) > 0 {
			n, o := matchAny(v[p:], s.any, eof)
			if o == more {
				return verdict{outcome: more, loose: p-body < loosePrefix}
			}
			if o == no && !s.opt {
				return verdict{}
			}
			p += n
			lastSet = setNone
			continue
		}
		if s.lit != "" {
			n := min(len(s.lit), len(v)-p)
			if string(v[p:p+n]) != s.lit[:n] {
				if s.opt {
					continue
				}
				return verdict{}
			}
			if n < len(s.lit) {
				if !eof {
					return verdict{outcome: more, loose: p+n-body < loosePrefix}
				}
				if s.opt {
					continue
				}
				return verdict{}
			}
			p += n
			lastSet = setNone
			continue
		}
		lastSet = s.set
		from := p
		p = m.end(v, p, int(s.max), s.set)
		if p-from < int(s.min) {
			if p == len(v) && !eof {
				return verdict{outcome: more, loose: p-body < loosePrefix}
			}
			return verdict{}
		}
		if k == len(r.parts)-1 {
			minEnd = from + int(s.min)
		}
		if p == len(v) && p-from < int(s.max) && !eof && k < len(r.parts)-1 {
			return verdict{outcome: more}
		}
	}
	if minEnd == 0 {
		minEnd = p
	}
	if !plausible(v[body:minEnd], r) {
		return verdict{}
	}
	if r.check == checkPEMBase64 && !isPEMBase64(v[i:minEnd]) {
		return verdict{}
	}
	if r.check == checkJWTBase64 {
		if p == len(v) && !eof && p-i < maxRun { // the header may be longer than min
			return verdict{outcome: more, loose: p-body < loosePrefix}
		}
		if !isJWTBase64(v[i:p]) {
			return verdict{}
		}
	}
	if inBase64(v, i, plen, p) {
		return verdict{}
	}
	out := verdict{outcome: found, layer: layerPrefix, start: i, rule: r.id, learn: true}
	if lastSet == setNone {
		out.end = p
		return out
	}
	set := &sets[lastSet]
	if r.exact {
		if p == len(v) && !eof {
			return verdict{outcome: more}
		}
		if p < len(v) && v[p] == '.' { // of the sentence
			if p+1 == len(v) && !eof {
				return verdict{outcome: more}
			}
			if p+1 == len(v) || !set.has(v[p+1]) && !isAlnum(v[p+1]) {
				out.end = p
				return out
			}
		}
		if p < len(v) && (set.has(v[p]) || isAlnum(v[p])) {
			return verdict{end: p} // unless a known value begins there
		}
		for p > minEnd && v[p-1] == '.' {
			p--
		}
		return m.withTail(out, v, p, lastSet, eof)
	}
	if p-i < maxRun {
		p = m.end(v, p, i+maxRun-p, lastSet)
	}
	if p-i >= maxRun {
		out.outcome, out.end, out.until = swallow, p, *set
		return out
	}
	if p == len(v) && !eof {
		return verdict{outcome: more}
	}
	for p > minEnd && v[p-1] == '.' { // of the sentence
		p--
	}
	return m.withTail(out, v, p, lastSet, eof)
}

// withTail ends a token at p, or behind what follows if that belongs to it: issuers lengthen
// their tokens and join parts of random characters, and half a token is not masked. A part is a
// run of letters and digits behind a mark; words and numbers, as in names of files, are none.
func (m *runMemo) withTail(out verdict, v []byte, p int, set setID, eof bool) verdict {
	for p < len(v) {
		c := v[p]
		if c == '%' && set != setNone { // as URLs write the + / = of base64
			if len(v)-p < 3 && !eof {
				return verdict{outcome: more}
			}
			if mark := percentMark(v[p:]); mark == 0 || !sets[set].has(mark) {
				break
			}
			if p = m.end(v, p+3, maxRun, set); p == len(v) && !eof {
				return verdict{outcome: more}
			}
			continue
		}
		if c == '=' { // the padding of base64
			q := p + 1
			for q < len(v) && v[q] == '=' && q-p < 3 {
				q++
			}
			if q == len(v) && !eof {
				return verdict{outcome: more}
			}
			if q-p < 3 && (q == len(v) || !isAlnum(v[q])) {
				p = q
			}
			break
		}
		if strings.IndexByte("-_.~+", c) < 0 {
			break
		}
		q := p + 1
		for q < len(v) && q-p <= maxTailWord && isAlnum(v[q]) {
			q++
		}
		if q == len(v) && q-p <= maxTailWord && !eof {
			return verdict{outcome: more}
		}
		part := v[p+1 : q]
		if digits, upper, lower := tally(part); len(part) < minTail || digits == 0 || upper+lower == 0 || !unlikely(part) || readable(part) {
			break
		}
		p = m.end(v, q, maxRun, setAlnum)
		if p-q >= maxRun {
			out.outcome, out.end, out.until = swallow, p, sets[setAlnum]
			return out
		}
		if p == len(v) && !eof {
			return verdict{outcome: more}
		}
	}
	out.end = p
	return out
}

// percentMark returns the mark of base64 that b begins with, escaped, or 0.
func percentMark(b []byte) byte {
	if len(b) < 3 {
		return 0
	}
	switch string([]byte{b[1], b[2] | 0x20}) {
	case "2b":
		return '+'
	case "2f":
		return '/'
	case "3d":
		return '='
	}
	return 0
}

// minTail is how long a part that belongs to a token is at least; maxTailWord, how much of it is
// judged.
const (
	minTail     = 6
	maxTailWord = 24
)

// inBase64 reports whether a prefix of letters and digits at i is a part of base64: a plus stands
// on one side of the token, and on the other a mark of base64 too.
func inBase64(v []byte, i, plen, end int) bool {
	if i == 0 || end >= len(v) || v[i-1] != '+' && v[end] != '+' {
		return false
	}
	return onlyAlnum(v[i:i+plen]) && strings.IndexByte("+/=", v[i-1]) >= 0 && strings.IndexByte("+/=", v[end]) >= 0
}

// matchAny returns the length of the longest alternative.
func matchAny(v []byte, any []part, eof bool) (int, outcome) {
	best := 0
	for k := range any {
		a := &any[k]
		n := 0
		if a.lit != "" {
			n = min(len(a.lit), len(v))
			if string(v[:n]) != a.lit[:n] {
				continue
			}
			if n < len(a.lit) {
				if !eof {
					return 0, more
				}
				continue
			}
		} else {
			for n < len(v) && n < int(a.max) && sets[a.set].has(v[n]) {
				n++
			}
			if n == len(v) && n < int(a.max) && !eof {
				return 0, more
			}
			if n < int(a.min) {
				continue
			}
		}
		best = max(best, n)
	}
	if best == 0 {
		return 0, no
	}
	return best, found
}

// matchRegex applies the expression of a rule to the run of bytes without white space, quotes
// and angle brackets.
func matchRegex(v []byte, i int, r *rule, eof bool) verdict {
	p := i
	for p < len(v) && p-i < maxValue && v[p] > ' ' && v[p] != '"' && v[p] != '\'' && v[p] != '<' && v[p] != '>' && v[p] != '`' && v[p] != 0x7f {
		p++
	}
	if p == len(v) && p-i < maxValue && !eof {
		return verdict{outcome: more, loose: p-i < 3*loosePrefix}
	}
	n := r.regex.match(v[i:p])
	if n == 0 || !plausible(v[i:i+n], r) {
		return verdict{}
	}
	return verdict{outcome: found, layer: layerPrefix, start: i, end: i + n, rule: r.id, learn: true}
}

// plausible reports whether the first bytes of a body look issued, not written
// by hand as an example.
func plausible(body []byte, r *rule) bool {
	var seen byteSet
	distinct, digits, run, same := 0, 0, 1, 1
	for i, c := range body {
		if !seen.has(c) {
			seen[c>>6] |= 1 << (c & 63)
			distinct++
		}
		if isDigit(c) {
			digits++
		}
		if i > 0 && fold(c) == fold(body[i-1])+1 {
			if run++; run >= 8 {
				return false
			}
		} else {
			run = 1
		}
		if i > 0 && c == body[i-1] && c != 'A' { // zero bytes are A in base64
			if same++; same >= 12 {
				return false
			}
		} else {
			same = 1
		}
	}
	need := int(r.distinct)
	if need == 0 && len(body) >= 16 {
		need = 6
	}
	if distinct < need || digits < int(r.digits) {
		return false
	}
	return !isExample(body) && !(len(body) >= 12 && digits < 3 && readable(body))
}

// exampleStarts are the first bytes of what isExample looks for.
var exampleStarts = byteSet{1<<'*' | bitsDot | 1<<'#', 1<<('C'-64) | 1<<('c'-64) | 1<<('D'-64) | 1<<('d'-64) | 1<<('E'-64) | 1<<('e'-64) | 1<<('F'-64) | 1<<('f'-64) | 1<<('P'-64) | 1<<('p'-64) | 1<<('X'-64) | 1<<('x'-64) | 1<<('Y'-64) | 1<<('y'-64)}

// exampleWords are the words that isExample looks for, by the lowest bits of their first letters.
var exampleWords = [32]string{'c' & 31: "changeme", 'd' & 31: "dummy", 'e' & 31: "example", 'f' & 31: "fake", 'p' & 31: "placeholder", 'y' & 31: "your"}

// isExample reports whether the text says that it stands for a secret.
func isExample(b []byte) bool {
	run := 1
	for i := range b {
		if i > 0 && b[i] == b[i-1] && isAlnum(b[i]) {
			if run++; run >= 6 && b[i] != 'A' { // the zeros of a structure in base64
				return true
			}
		} else {
			run = 1
		}
		if !exampleStarts.has(b[i]) || i+4 > len(b) {
			continue
		}
		word := exampleWords[b[i]&31]
		if word == "" || !isAlpha(b[i]) {
			if b[i+1] == b[i] && b[i+2] == b[i] && b[i+3] == b[i] {
				return true
			}
		} else if b[i+1]|0x20 == word[1] && hasFold(b[i:], word) && (len(word) > 4 || i+4 == len(b) || i == 0 && word == "your" || !isLower(b[i+4]) && (word == "fake" || !isAlnum(b[i+4]))) {
			return true
		}
	}
	return false
}

// matchJWT judges "eyJ…": base64url of a JSON header that names alg or enc, then
// two dots (RFC 7515, RFC 7516).
func (m *runMemo) matchJWT(v []byte, i int, r *rule, eof bool) verdict {
	if len(v)-i >= maxRun && bytes.IndexByte(v[i:i+maxRun], '.') < 0 {
		return verdict{}
	}
	set := sets[setTokenDot]
	p := i
	dots, first := 0, 0
	for p < len(v) && p-i < maxValue && set.has(v[p]) {
		if v[p] == '.' {
			if dots++; dots == 1 {
				first = p
				if !isJOSEHeader(v[i:first]) { // what claims follow say as much
					const claims = "eyJ"
					if n := min(len(claims), len(v)-p-1); string(v[p+1:p+1+n]) != claims[:n] {
						return verdict{}
					} else if n < len(claims) && eof {
						return verdict{}
					}
				}
			}
		}
		if dots == 0 && p-i >= maxRun || dots >= 2 && p-i >= maxRun {
			break
		}
		p++
	}
	if p-i >= maxRun && dots == 0 {
		return verdict{}
	}
	out := verdict{outcome: found, layer: layerPrefix, start: i, end: p, rule: r.id, learn: true}
	if p < len(v) && set.has(v[p]) {
		out.outcome, out.until = swallow, set
		return out
	}
	if p == len(v) && !eof {
		return verdict{outcome: more, loose: p-i < len("eyJ")+loosePrefix}
	}
	for out.end > i && v[out.end-1] == '.' && dots > 2 {
		out.end, dots = out.end-1, dots-1
	}
	if dots < 2 || out.end-first < 8 {
		return verdict{}
	}
	return m.withTail(out, v, out.end, setNone, eof) // some libraries pad; disclosures follow a ~
}

func isJOSEHeader(b []byte) bool {
	if len(b) < 12 {
		return false
	}
	dec := make([]byte, base64.RawURLEncoding.DecodedLen(len(b)))
	n, err := base64.RawURLEncoding.Decode(dec, b)
	if err != nil {
		return false
	}
	s := string(dec[:n])
	return strings.HasPrefix(s, "{") && (strings.Contains(s, `"alg"`) || strings.Contains(s, `"enc"`))
}

// isJWTBase64 reports the base64 of a JWT: of "eyJ…", whose header says alg or enc.
func isJWTBase64(b []byte) bool {
	n := len(b) &^ 3
	dec := make([]byte, base64.StdEncoding.DecodedLen(n))
	m, err := base64.StdEncoding.Decode(dec, b[:n])
	header, claims, ok := bytes.Cut(dec[:m], []byte("."))
	return err == nil && ok && (isJOSEHeader(header) || bytes.HasPrefix(claims, []byte("eyJ")) && bytes.IndexByte(claims, '.') > 0)
}

func isPEMBase64(b []byte) bool {
	n := len(b) &^ 3
	dec := make([]byte, base64.StdEncoding.DecodedLen(n))
	m, err := base64.StdEncoding.Decode(dec, b[:n])
	return err == nil && strings.Contains(string(dec[:m]), "PRIVATE KEY")
}
