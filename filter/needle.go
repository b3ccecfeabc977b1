package filter

import (
	"strings"
	"unicode/utf8"
)

// needle is what one known value, or a piece of it, is found by.
type needle struct {
	text   string
	value  int32 // index into Set.values
	base64 bool  // a core: the rest of the base64 run belongs to the value
	plain  bool  // no quoting or escaping changes it
	lead   byte  // the letter in front of it that an escape sequence has taken; 0 for none
}

// secretValue is what a placeholder says about a known value.
type secretValue struct {
	name  string
	value string // for its tag, which is made when it is found
}

const (
	// maxNeedle bounds what a known value may hold back. Escaped it is longer.
	maxNeedle = 1023
	// chunk is the length of the needles of longer values. They overlap, so that the
	// masks of one value join.
	chunk = 512
	// chunkOverlap is how far they overlap; a wrapped line hides the beginning of one.
	chunkOverlap = 32
	// maxGap bounds a run of white space inside a match.
	maxGap = 64
	// maxIndent is how far a wrapped line may be indented.
	maxIndent = 16
)

// escaping is a way in which text writes characters. Each is read to any depth: JSON in JSON,
// a URL in a URL.
type escaping uint8

const (
	unescaped escaping = iota
	slashes            // JSON, Go, Python, C, shells
	percents           // URLs and forms
	entities           // XML and HTML
	escapings
)

// signs are the bytes with which an escaping differs from the text itself.
var signs = [escapings]byteSet{slashes: {1 << '\'', 1 << ('\\' - 64)}, percents: {1<<'%' | 1<<'+'}, entities: {1 << '&'}}

// unit is what one escape stands for.
type unit struct {
	text [utf8.UTFMax]byte
	n    int // bytes of text; 0 if it is no escape
	next int
}

func (u *unit) set(r rune) { u.n = utf8.EncodeRune(u.text[:], r) }

func (u *unit) setByte(c byte) { u.text[0], u.n = c, 1 }

// readUnit reads the escape at p. want is the byte that the needle has there.
func readUnit(v []byte, p int, as escaping, want byte, eof bool) (unit, outcome) {
	switch as {
	case slashes:
		return readSlashes(v, p, want, eof)
	case percents:
		return readPercent(v, p, want, eof)
	}
	return readEntity(v, p, want, eof)
}

// short is what a read says that came to the end of the buffer.
func short(eof bool) outcome {
	if eof {
		return no
	}
	return more
}

// hexRune reads n hexadecimal digits.
func hexRune(v []byte, p, n int) (rune, bool) {
	r := rune(0)
	for _, c := range v[p : p+n] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case sets[setXDigit].has(c):
			r = r<<4 | rune(c&7+9)
		default:
			return 0, false
		}
	}
	return r, true
}

// readSlashes reads backslashes and what they escape, or a quote between quotes of a shell.
func readSlashes(v []byte, p int, want byte, eof bool) (u unit, o outcome) {
	if v[p] == '\'' { // '\'' and '"'"'
		for _, q := range [...]string{`'\''`, `'"'"'`} {
			n := min(len(q), len(v)-p)
			if string(v[p:p+n]) != q[:n] {
				continue
			}
			if n < len(q) {
				return u, short(eof)
			}
			u.setByte('\'')
			u.next = p + n
			return u, found
		}
		return u, no
	}
	q := p
	for q < len(v) && v[q] == '\\' && q-p < maxGap {
		q++
	}
	if q == len(v) {
		return u, short(eof)
	}
	c, run := v[q], q-p
	u.next = q + 1
	if want == '\\' && !hasHexOf(v[q:], '\\') { // of what escapes them no more than a multiple is known
		u.setByte('\\')
		u.next = q
		return u, found
	}
	digits := 0
	switch c {
	case 'n':
		u.setByte('\n')
	case 'r':
		u.setByte('\r')
	case 't':
		u.setByte('\t')
	case 'b':
		u.setByte('\b')
	case 'f':
		u.setByte('\f')
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		u.setByte(c)
	}
	if digits == 0 {
		if u.text[0] != want && c == want {
			u.setByte(c)
		}
		return u, found
	}
	if q+1+digits > len(v) {
		return u, short(eof)
	}
	r, ok := hexRune(v, q+1, digits)
	if !ok {
		return u, no
	}
	u.next = q + 1 + digits
	switch {
	case digits == 2:
		u.setByte(byte(r))
	case r>>10 == 0xd800>>10: // the other half follows
		end := u.next + run + 1 + 4
		if end > len(v) {
			return u, short(eof)
		}
		low, ok := hexRune(v, end-4, 4)
		if !ok || v[end-5] != 'u' || v[u.next] != '\\' {
			return u, no
		}
		u.set(0x10000 + (r&0x3ff)<<10 + low&0x3ff)
		u.next = end
	default:
		u.set(r)
	}
	return u, found
}

// hasHexOf reports whether xXX or uXXXX stands for c.
func hasHexOf(v []byte, c rune) bool {
	n := 4
	switch v[0] {
	case 'x':
		n = 2
	case 'u':
	default:
		return false
	}
	if len(v) <= n {
		return false
	}
	r, ok := hexRune(v, 1, n)
	return ok && r == c
}

// readPercent reads %XX, also %25XX.
func readPercent(v []byte, p int, want byte, eof bool) (u unit, o outcome) {
	if v[p] == '+' {
		u.setByte(' ')
		u.next = p + 1
		return u, found
	}
	q := p + 1
	for want != '%' && q+2 <= len(v) && v[q] == '2' && v[q+1] == '5' && q-p < maxGap {
		q += 2
	}
	if q+2 > len(v) {
		return u, short(eof)
	}
	r, ok := hexRune(v, q, 2)
	if !ok {
		return u, no
	}
	u.setByte(byte(r))
	u.next = q + 2
	return u, found
}

// entityNames are the named entities of XML.
var entityNames = [...]struct {
	name string
	c    byte
}{{"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}, {"amp;", '&'}}

// readEntity reads &name; and &#number;, also with &amp; for &.
func readEntity(v []byte, p int, want byte, eof bool) (u unit, o outcome) {
	q := p + 1
	for want != '&' && strings.HasPrefix(string(v[q:min(len(v), q+4)]), "amp;") && q-p < maxGap {
		q += 4
	}
	rest := v[q:min(len(v), q+10)]
	if len(rest) == 0 {
		return u, short(eof)
	}
	if rest[0] != '#' {
		for k := range entityNames {
			name := entityNames[k].name
			n := min(len(name), len(rest))
			if string(rest[:n]) != name[:n] {
				continue
			}
			if n < len(name) {
				return u, short(eof)
			}
			u.setByte(entityNames[k].c)
			u.next = q + n
			return u, found
		}
		if want != '&' && len(rest) < 4 && string(rest) == "amp;"[:len(rest)] {
			return u, short(eof)
		}
		return u, no
	}
	r, base := rune(0), rune(10)
	k := 1
	if k < len(rest) && (rest[k] == 'x' || rest[k] == 'X') {
		k, base = 2, 16
	}
	for ; k < len(rest); k++ {
		c := rest[k]
		switch {
		case c == ';':
			u.set(r)
			u.next = q + k + 1
			return u, found
		case isDigit(c):
			r = r*base + rune(c-'0')
		case base == 16 && sets[setXDigit].has(c):
			r = r*base + rune(c&7+9)
		default:
			return u, no
		}
		if r > utf8.MaxRune {
			return u, no
		}
	}
	if len(rest) == 10 {
		return u, no
	}
	return u, short(eof)
}

// matchNeedle judges whether the needle stands at i, escaped in one way. White space matches
// any run of white space, because set -x and terminals change it. After eight bytes, and
// then once in sixteen, a line break with its indent, or the " \r" by which line
// editors wrap, is skipped. It returns how far it came, in the text and in the needle.
func matchNeedle(v []byte, i int, nd *needle, as escaping, eof bool) (o outcome, p, k int) {
	p = i
	lastSkip := 0
	t := nd.text
	for k < len(t) {
		if p == len(v) {
			return short(eof), p, k
		}
		c := v[p]
		escape := as != unescaped && signs[as].has(c)
		if isSpace(t[k]) {
			from := p
			for p < len(v) {
				if isSpace(v[p]) {
					p++
					continue
				}
				if as == unescaped || !signs[as].has(v[p]) {
					break
				}
				u, o := readUnit(v, p, as, t[k], eof)
				if o == more {
					return more, p, k
				}
				if o == no || u.n != 1 || !isSpace(u.text[0]) {
					break
				}
				p = u.next
			}
			switch {
			case p == from:
				return no, p, k
			case p-from > 4*maxGap || as == unescaped && p-from > maxGap:
				return no, p, k
			case p == len(v) && !eof:
				return more, p, k
			}
			for k < len(t) && isSpace(t[k]) {
				k++
			}
			continue
		}
		if c == t[k] && !escape {
			p, k = p+1, k+1
			continue
		}
		if escape {
			u, o := readUnit(v, p, as, t[k], eof)
			if o == more {
				return more, p, k
			}
			if o == found && strings.HasPrefix(t[k:], string(u.text[:u.n])) {
				p, k = u.next, k+u.n
				for as == slashes && t[k-1] == '\\' && k < len(t) && t[k] == '\\' {
					k++ // they came with the first
				}
				continue
			}
			if c == t[k] {
				p, k = p+1, k+1
				continue
			}
		}
		if k < 8 || lastSkip != 0 && k-lastSkip < 16 {
			return no, p, k
		}
		q, o := skipBreak(v, p, eof)
		if o != found {
			return o, p, k
		}
		p, lastSkip = q, k
	}
	return found, p, len(t)
}

// skipBreak skips a line break and its indent, or " \r".
func skipBreak(v []byte, p int, eof bool) (int, outcome) {
	wait := short(eof)
	switch v[p] {
	case ' ':
		if p+1 == len(v) {
			return p, wait
		}
		if v[p+1] != '\r' {
			return p, no
		}
		return p + 2, found
	case '\r':
		if p+1 == len(v) {
			return p, wait
		}
		if v[p+1] != '\n' {
			return p, no
		}
		p++
	case '\n':
	default:
		return p, no
	}
	p++
	from := p
	for p < len(v) && (v[p] == ' ' || v[p] == '\t') {
		if p++; p-from > maxIndent {
			return p, no
		}
	}
	if p == len(v) {
		return p, wait
	}
	return p, found
}

// matchAny judges whether the needle stands at i in any of its writings, and returns the
// longest. Only the escapings whose signs stand there can differ from the text itself.
func (nd *needle) matchAny(v []byte, i int, eof bool) (o outcome, p, k int) {
	o, p, k = matchNeedle(v, i, nd, unescaped, eof)
	if nd.plain || o != no {
		return o, p, k
	}
	span := v[i:min(p+1, len(v))]
	for as := slashes; as < escapings; as++ {
		if !anyOf(span, &signs[as]) {
			continue
		}
		o2, p2, k2 := matchNeedle(v, i, nd, as, eof)
		if o2 == more || o2 == found && (o == no || o == found && p2 > p) || o2 == no && o == no && k2 > k {
			o, p, k = o2, p2, k2
		}
		if o == more {
			break // it may be longer
		}
	}
	return o, p, k
}

// anyOf reports whether a byte of the set stands in b.
func anyOf(b []byte, set *byteSet) bool {
	for _, c := range b {
		if set.has(c) {
			return true
		}
	}
	return false
}

// allOf reports whether all bytes of b are of the set.
func allOf(b []byte, set *byteSet) bool {
	for _, c := range b {
		if !set.has(c) {
			return false
		}
	}
	return true
}

// matchKnown judges the candidate of a known value at i.
func matchKnown(v []byte, i int, nd *needle, val *secretValue, eof bool) verdict {
	o, p, k := nd.matchAny(v, i, eof)
	switch o {
	case more:
		return verdict{outcome: more, loose: k < 4}
	case no:
		if !eof || p < len(v) || k < 8 {
			return verdict{}
		}
		// The stream ended inside it: what is there is a piece of the value.
	}
	out := verdict{outcome: found, layer: layerKnown, start: i, end: p, rule: val.name, known: val.value}
	if !nd.base64 {
		return out
	}
	set := &sets[setAny64]
	for p < len(v) && p-i < maxRun+maxNeedle && set.has(v[p]) {
		p++
	}
	switch {
	case p-i >= maxRun+maxNeedle:
		out.outcome, out.until = swallow, *set
	case p == len(v) && !eof:
		return verdict{outcome: more}
	}
	out.end = p
	return out
}

// escapedStart begins a text in which each character is written so. escapedValues is the ref of its entry: no
// value, but all of them.
const (
	escapedStart  = `\u00`
	escapedValues = -1
)

// matchEscaped judges the known values that may stand at i, where the first character is escaped.
func (sn *snapshot) matchEscaped(v []byte, i int, eof bool) verdict {
	var room [8 + utf8.UTFMax]byte
	text, p := room[:0], i
	for len(text) < 8 && p < len(v) && v[p] >= ' ' {
		if v[p] != '\\' {
			text, p = append(text, v[p]), p+1
			continue
		}
		u, o := readSlashes(v, p, 0, eof)
		if o == more {
			return verdict{outcome: more, loose: true}
		}
		if o == no {
			break
		}
		text, p = append(text, u.text[:u.n]...), u.next
	}
	switch {
	case len(text) < 8 && p == len(v) && !eof:
		return verdict{outcome: more, loose: true}
	case len(text) < 3:
		return verdict{}
	}
	best := verdict{}
	for k := sn.index.entryAt(text, 0); k >= 0; k = sn.index.after(text, 0, k) {
		ent := &sn.index.entries[k]
		if ent.kind != eKnown || ent.ref < 0 || sn.needles[ent.ref].lead != 0 {
			continue
		}
		nd := sn.needles[ent.ref]
		nd.plain = false
		if r := matchKnown(v, i, &nd, &sn.values[nd.value], eof); r.outcome == more {
			return r
		} else if r.end > best.end {
			best = r
		}
	}
	return best
}

// writings calls add with the three bytes with which a text may begin that stands for s, and
// with s itself as far as no escaping changes it.
func writings(s string, add func(string)) {
	plain := 0
	for plain < len(s) && isPlain(s[plain]) {
		plain++
	}
	if plain >= 3 {
		add(s[:plain])
		return
	}
	starts("", s, add)
}

// starts extends a beginning by each way to write what follows.
func starts(begin, s string, add func(string)) {
	if len(begin) >= 3 {
		add(begin[:3])
		return
	}
	if s == "" {
		return
	}
	if c := s[0]; isPlain(c) {
		starts(begin+s[:1], s[1:], add)
		return
	}
	r, n := utf8.DecodeRuneInString(s)
	each := func(text string, rest string) { starts(begin+text, rest, add) }
	if isSpace(s[0]) {
		rest := strings.TrimLeft(s, " \t\n\r")
		for _, text := range [...]string{" ", "\t", "\n", "\r", "+", `\n`, `\r`, `\t`, `\\`, "%0A", "%0a", "%0D", "%0d", "%09", "%20", "%25", "&#1", "&#9", "&#x", "&am"} {
			each(text, rest)
			if len(begin)+len(text) < 3 { // another one may follow
				each(text, " ")
			}
		}
		return
	}
	rest := s[n:]
	each(s[:n], rest)
	switch {
	case r >= utf8.RuneSelf:
		each(`\u`, "")
		for _, hex := range [...]string{"0123456789ABCDEF", "0123456789abcdef"} {
			each("%"+string(hex[s[0]>>4])+string(hex[s[0]&15]), "")
		}
		for _, text := range [...]string{`\u0`, `\u1`, `\u2`, `\u3`, `\u4`, `\u5`, `\u6`, `\u7`, `\u8`, `\u9`, `\ua`, `\ub`, `\uc`, `\ud`, `\ue`, `\uf`, `\uA`, `\uB`, `\uC`, `\uD`, `\uE`, `\uF`, `\U0`, `\\u`, `\\U`, `\x8`, `\x9`, `\xa`, `\xb`, `\xc`, `\xd`, `\xe`, `\xf`, "&#1", "&#2", "&#3", "&#4", "&#5", "&#6", "&#7", "&#8", "&#9", "&#x", "&am"} {
			each(text, "")
		}
		return
	}
	each(`\`+s[:1], rest)
	each(`\\`+s[:1], rest)
	each(`\\\`, "")
	for _, text := range [...]string{`\u0`, `\\u`, `\\x`, "%25", "&#3", "&#4", "&#5", "&#6", "&#9", "&#1", "&#x", "&am", "&lt", "&gt", "&qu", "&ap"} {
		each(text, "")
	}
	const upper, lower = "0123456789ABCDEF", "0123456789abcdef"
	each("%"+upper[s[0]>>4:s[0]>>4+1]+upper[s[0]&15:s[0]&15+1], "")
	each("%"+lower[s[0]>>4:s[0]>>4+1]+lower[s[0]&15:s[0]&15+1], "")
	each(`\x`+lower[s[0]>>4:s[0]>>4+1], "")
	if s[0] == '\'' {
		each(`'\'`, "")
		each(`'"'`, "")
	}
}

// isPlain reports what no escaping changes.
func isPlain(c byte) bool { return isAlnum(c) }

// isPlainText reports whether nothing in a text is changed.
func isPlainText(s string) bool {
	for i := range len(s) {
		if !isPlain(s[i]) {
			return false
		}
	}
	return true
}
