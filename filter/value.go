package filter

import (
	"bytes"
	"math/bits"
	"strconv"
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
	switch c.form {
	case formData:
		return e.judgeData(c, eof)
	case formRow:
		return e.judgeRow(c, eof)
	case formPgpass:
		return e.judgePgpass(c, eof)
	case formItem:
		return e.judgeItem(c, eof)
	case formPairs:
		return e.judgePair(c, eof)
	case formBefore:
		return e.judgeBefore(c, eof)
	case formStdin:
		return e.judgeStdin(c, eof)
	case formTags:
		return e.judgeTags(c, eof)
	case formBytes:
		return e.judgeBytes(c, eof)
	case formRun:
		return e.judgeRun(c, eof)
	case formZone:
		return e.judgeZone(c, eof)
	case formCodes:
		return e.judgeCodes(c, eof)
	}
	if v[p] == bs || v[p] == esc {
		return verdict{} // such a byte left while it was not yet known to be visible
	}
	if c.front != nothing {
		s := scan{v: v, p: p, eof: eof}
		skipped := c.front.skip(&s)
		if s.short || !s.more() {
			return undecided(eof, true)
		}
		c.list = c.list || skipped && c.front == bullet
		if p = s.p; s.quoted() && (skipped || c.front == echo) {
			c.doubt = literal
		}
	}
	f, quote, depth := c.form, byte(0), 0
	for c.form == formPercent && v[p] == '%' {
		if len(v)-p < 3 && !eof {
			return verdict{outcome: more, loose: true}
		}
		if !bytes.HasPrefix(v[p:], []byte("%20")) {
			break
		}
		if p += 3; p == len(v) {
			return undecided(eof, true)
		}
	}
	switch v[p] {
	case '&', '!', '*':
		q, o := skipMark(v, p, eof)
		if p = q; o == more || p == len(v) {
			return undecided(eof, true)
		}
	}
	term, o := encodedQuote(v, p, eof)
	if o == more {
		return verdict{outcome: more, loose: true}
	}
	if v[p] == '$' || isAlpha(v[p]) { // r"…", b'…', $'…'
		if p+1 == len(v) && !eof {
			return verdict{outcome: more, loose: true}
		}
		if p+1 < len(v) && (v[p+1] == '"' || v[p+1] == '\'') {
			p++
		}
	}
	if o == found {
		p += len(term)
		f = formEncoded
	} else if q, qc, d := readQuote(v, p); q > p {
		p, quote, depth = q, qc, int(d)
		if quote == '"' && d == 0 && p+1 < len(v) && v[p] == '"' && isAlnum(v[p+1]) {
			p++ // doubled, as CSV and PowerShell do
		}
		if f != formHeader && f != formCookie && f != formUser {
			f = formQuoted
		}
	} else if v[p] == '\\' && slashesToEnd(v, p) && !eof {
		return verdict{outcome: more, loose: true}
	}
	if p >= len(v) {
		return undecided(eof, true)
	}
	if c.doubt == literal && quote == 0 && f != formEncoded {
		return verdict{}
	}
	if f == formPlain && quote == 0 && c.doubt < random && (v[p] == '[' || v[p] == '<' || v[p] == '(') { // in brackets, as logs print it
		if p++; p == len(v) {
			return undecided(eof, true)
		}
		if c.doubt = likely; v[p-1] == '<' {
			c.doubt = piped
		}
	}
	g := gate{class: c.class, quoted: quote != 0 || f == formEncoded || f == formXML || c.word, opened: quote != 0, doubt: c.doubt, rule: c.rule,
		crowded: e.crowd.at(e.base+int64(c.at), crowdLimit)}
	if f != formUser && f != formXML {
		if o := e.namesValue(p, eof); o != no {
			if o == more {
				return verdict{outcome: more, loose: true}
			}
			return verdict{}
		}
	}
	switch f {
	case formHeader:
		if c.rule == mnemonicRule {
			g.scheme = true // to the end of the line
			break
		}
		q, o := skipScheme(v, p, eof)
		if o == more {
			return verdict{outcome: more, loose: len(v)-p < loosePrefix || !e.set.passes(v[p:], gate{class: classHeader})}
		}
		if c.assigned && q == p {
			if g.class, f, g.quoted = classWeak, formPlain, quote != 0; quote != 0 {
				f = formQuoted
			}
			break
		}
		g.scheme = wholeLine(v[p:q])
		digest := hasFold(v[p:q], "digest ")
		p = q
		if p >= len(v) {
			return undecided(eof, true)
		}
		if digest { // of its parameters only one proves who asks
			line := v[p:min(len(v), p+maxValue)]
			k := bytes.IndexByte(line, '\n')
			if k < 0 && !eof && len(line) < maxValue {
				return verdict{outcome: more, loose: true}
			} else if k >= 0 {
				line = line[:k]
			}
			if k = bytes.Index(line, []byte("response=")); k < 0 {
				return verdict{} // a challenge
			}
			p, quote, _ = readQuote(v, p+k+len("response="))
			if f, g.scheme = formPlain, false; quote != 0 {
				f, g.quoted = formQuoted, true
			}
			if p >= len(v) {
				return verdict{}
			}
		}
	case formCookie:
		if c.class == classCookie || c.class == classSetCookie {
			q, o := cookieValue(v, p, eof)
			if o == no && c.class == classCookie && p > 0 && before(v, c.at) == '=' {
				q, o, g.class = p, found, classWeak // COOKIE=value
			}
			if o != found {
				return verdict{outcome: o, loose: true}
			}
			p = q
			if p >= len(v) {
				return undecided(eof, true)
			}
		}
	case formUser:
		q, o := userValue(v, p, byte(c.number), eof)
		if o != found {
			return verdict{outcome: o, loose: true}
		}
		if isDigest(v[p:q]) {
			return verdict{} // sha256:…
		}
		if p = q; p >= len(v) {
			return undecided(eof, true)
		}
		if f = formPlain; quote != 0 {
			f = formQuoted
		}
	}
	end, run, until, done := e.valueEnd(p, valueForm{f, quote, uint8(depth), g.scheme, term, c.escaped}, eof)
	if c.form == formUser && c.number == '/' { // user/value@database
		if k := bytes.IndexByte(v[p:end], '@'); k > 0 {
			end, done = p+k, true
		}
	}
	if !done && end-p < maxValue {
		bytesSoFar := v[p:end]
		loose := len(bytesSoFar) < 512 && !unlikely(bytesSoFar) && !e.set.passes(trimValue(bytesSoFar, f), g)
		return verdict{outcome: more, loose: loose}
	}
	if f == formPercent && c.word { // a part of a path
		if k := bytes.IndexByte(v[p:end], '?'); k > 0 {
			end, done = p+k, true
		}
		if bytes.Contains(v[p:end], []byte("%3A")) {
			return verdict{} // a time
		}
	}
	if f == formPlain && done && end < len(v) && v[end] == ' ' && c.doubt <= likely && end-p <= maxGroup {
		switch c.class {
		case classStrong, classKey, classRaw:
			q, o := spacedGroups(v, p, eof)
			if o == more {
				return verdict{outcome: more, loose: true}
			}
			if o == found {
				end = q
			}
		}
	}
	if f == formPlain && done && end < len(v) && v[end] == ' ' && c.rule == "passphrase" && c.doubt <= likely { // of words
		k := bytes.IndexAny(v[p:min(len(v), p+2*maxName)], "\r\n")
		if k < 0 && !eof && len(v)-p < 2*maxName {
			return verdict{outcome: more, loose: true}
		}
		if k < 0 && eof {
			k = len(v) - p
		}
		if gap := bytes.Index(v[p:p+max(k, 0)], []byte("  ")); gap > 0 { // of a table
			k = gap
		}
		if phrase := v[p : p+max(k, 0)]; k > 0 && (isPassphrase(bytes.TrimRight(phrase, " "), true) || p > 0 && v[p-1] == '=' && isNumberedPhrase(phrase)) {
			end = p + len(bytes.TrimRight(v[p:p+k], " "))
		}
	}
	c.then = end
	val := v[p:end]
	if (c.class == classPin || c.rule == digitsRule || c.rule == "passphrase") && quote == 0 && bytes.HasSuffix(bytes.TrimRight(v[max(0, p-4):p], " "), []byte(`":`)) {
		return verdict{} // a number of JSON stays
	}
	if f == formQuoted && done && (end == len(v) || v[end] == '\n') {
		// The quote did not close on its line: it may have closed a string before.
		g.quoted = false
		if len(val) > 0 && val[0] == '+' {
			return verdict{}
		}
	}
	if done {
		val = trimValue(val, f)
		switch f {
		case formPlain:
			val = trimPlain(val)
		case formXML:
			val = bytes.TrimRight(val, " \t")
		}
		if f == formHeader {
			val = bytes.TrimSuffix(val, []byte("[")) // [\r][\n], as some log the ends of lines
		}
	}
	if c.doubt == onlyLine || c.doubt == lone {
		if end < len(v) && quote == 0 && f != formPercent && strings.IndexByte("\n\r\"'", v[end]) < 0 || bytes.IndexByte(val, ' ') >= 0 && c.rule != mnemonicRule {
			return verdict{}
		}
	}
	if f == formPlain && c.doubt == likely && len(val) <= 16 && isHex(val) && end < len(v) && v[end] == ' ' {
		if end+1 == len(v) && !eof {
			return verdict{outcome: more, loose: true}
		}
		if end+1 < len(v) && v[end+1] == ' ' {
			return verdict{} // another column follows: it is an id
		}
	}
	if k := bytes.IndexByte(val, '='); c.word && c.doubt == likely && k > 0 && letters(val[:k]) {
		return verdict{} // name=value
	}
	r := verdict{outcome: found, layer: layerContext, start: p, end: p + len(val), rule: c.rule, noTag: c.noTag,
		learn: len(val) >= 12 && (c.class == classHeader || c.class == classStrong)}
	if c.shape > 0 && done && (c.doubt < unsure || c.doubt == literal) && !(c.bare && (isHex(val) || isUUID(val))) {
		if id, ok := e.shaped(c.shape, val); ok {
			r.layer, r.learn, r.rule, r.noTag = layerPrefix, true, id, false
			return r
		}
	}
	if c.class == classShape || c.noID && (isUUID(val) || isHex(val)) {
		return verdict{}
	}
	if run >= 0 && e.nested.spent(p, run) {
		return verdict{}
	}
	if (c.rule == "auth" || c.rule == "credential") && g.quoted && done { // "auth": "user:value"
		if k := bytes.IndexByte(val, ':') + 1; k > 1 && k < maxName && isUser(val[:k-1]) {
			val, r.start, r.noTag = val[k:], p+k, true
			g.class, g.rule, g.doubt = classStrong, "password", max(g.doubt, likely)
		}
	}
	if !e.set.passes(decoded(val), g) {
		if run >= 0 {
			e.nested.rejected(p, run)
		}
		return verdict{}
	}
	if !done {
		r.outcome, r.until = swallow, until
	}
	return r
}

// judgeItem judges the next element of a list: behind a comma, or a dash on a line of its own.
func (e *engine) judgeItem(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	s.quote()
	comma := s.p < len(s.v) && s.v[s.p] == ',' || c.doubt == unsure && (s.lit(" to ") || !s.short && s.lit(" TO "))
	if !comma && s.at() == ')' && !s.short { // getenv("X") or "value"
		comma = s.lit(") or ") || !s.short && s.lit(") || ") || !s.short && s.lit(") ?? ")
	}
	if comma && s.p < len(s.v) && s.v[s.p] == ',' {
		s.p++
	}
	lines, quoted := s.space(), false
	if lines == 1 && s.at() == '+' && s.diffMark() == '+' && !s.short { // - value: old⏎+ value: new
		key, sign := s.field()
		if s.blanks(); s.short || !s.more() {
			return undecided(eof, true)
		}
		comma = sign == ':' && isOneOf(key, valueFields[:])
		quoted = true
	}
	if s.at() == '$' { // $2 = 'value'
		s.p++
		s.word(2)
		s.lit(" = ")
	}
	dash := !comma && lines == 1 && ((s.v[s.p-1] == ' ' || c.bareItems) && s.lit("- ") || c.doubt == lone && s.more() && s.bullet())
	quoted = quoted || s.quoted()
	if s.short || !s.more() {
		return undecided(eof, true)
	}
	if !dash && !(comma && (quoted || c.bareItems)) {
		return verdict{}
	}
	item := *c
	item.at, item.form, item.then = s.p, formPlain, 0
	r := e.judgeValue(&item, eof)
	c.then = item.then
	return r
}

// judgeBytes judges a key that is written as its bytes: [12, 144, …] as Go, JavaScript and JSON
// print them, {0x0c, 0x90, …} as in C.
func (e *engine) judgeBytes(c *candidate, eof bool) verdict {
	const least, most = 16, 128
	v, p, end := e.view.vis, c.at, c.at
	numbers, steps, before, step, distinct := 0, 0, uint64(0), uint64(1), byteSet{}
	for ; numbers <= most && p < len(v); numbers++ {
		from := p
		for p < len(v) && p-from < 4 && (sets[setXDigit].has(v[p]) || v[p] == 'x') {
			p++
		}
		number, base := v[from:p], 10
		if hasFold(number, "0x") {
			number, base = number[2:], 16
		}
		n, err := strconv.ParseUint(string(number), base, 8)
		if p == len(v) || err != nil {
			break
		}
		end = p
		if n-before == step {
			steps++ // 1, 2, 3, … in an example
		}
		before, step = n, n-before
		distinct[n>>6] |= 1 << (n & 63)
		if left := bytes.TrimRight(v[max(0, c.at-8):c.at-1], " :"); v[p] == ',' && base == 10 && v[c.at-1] == '[' && (len(left) == 0 || strings.IndexByte("\"'[,", last(left)) >= 0) {
			return verdict{} // JSON, whose numbers stay
		}
		for from = p; p < len(v) && p-from < maxDistance && strings.IndexByte(", \n\t", v[p]) >= 0; {
			p++
		}
		if p == from {
			numbers++
			break
		}
	}
	if p == len(v) && !eof && numbers <= most {
		return verdict{outcome: more, loose: numbers < 4}
	}
	kinds := 0
	for _, w := range distinct {
		kinds += bits.OnesCount64(w)
	}
	if numbers < least || numbers > most || steps*2 > numbers || kinds*4 < numbers*3 && kinds < least {
		return verdict{}
	}
	return verdict{outcome: found, layer: layerContext, start: c.at, end: end, rule: c.rule}
}

func undecided(eof, loose bool) verdict {
	if eof {
		return verdict{}
	}
	return verdict{outcome: more, loose: loose}
}

// next returns the value that follows in the same header.
func (c *candidate) next(v []byte) (candidate, bool) {
	if (c.form == formData || c.form == formRow || c.form == formPairs || c.form == formTags || c.form == formRun || c.form == formCodes || c.form == formZone) && c.then > c.at {
		n := *c
		n.at, n.then = c.then, 0
		return n, true
	}
	if c.list && c.then > c.at && c.number < maxItems {
		n := *c
		n.at, n.then, n.form, n.number = c.then, 0, formItem, c.number+1
		return n, true
	}
	if c.class != classCookie || c.then == 0 || c.then >= len(v) || v[c.then] != ';' {
		return candidate{}, false
	}
	n := *c
	n.at, n.then = c.then+1, 0
	return n, true
}

// maxItems is how many elements of a list are followed.
const maxItems = 64

// mayLearn reports whether a value is so unlike a word or code that looking for it
// elsewhere cannot hit ordinary text: names of types stand behind private_key: too.
func mayLearn(val []byte) bool {
	digits, _, _ := tally(val)
	return digits > 0 && !bytes.ContainsAny(val, "(){}[]<>; ") && unlikely(val) && !readable(val) && !isUUID(val) && entropy(val) >= 2.8
}

// shaped reports whether a value has a shape of the vendor whose first row shape is.
func (e *engine) shaped(shape int32, val []byte) (string, bool) {
	rows := e.snap.vendors
	for k := int(shape - 1); k < len(rows) && rows[k].word == rows[shape-1].word; k++ {
		if r := &e.snap.rules[rows[k].rule]; r.whole(val) {
			return r.id, true
		}
	}
	return "", false
}

// brackets quote too: long strings of Lua, and what a diff by words took away or added. The
// values are as long as the marks that end them.
var brackets = [...]struct{ open, end string }{{"[[", "]]"}, {"[-", "-]"}, {"{+", "+}"}, {"q{", "}"}, {"q(", ")"}, {"「", "」"}, {"“", "”"}, {"«", "»"}}

func bracketQuote(v []byte, p int, eof bool) (string, outcome) {
	for k := range brackets {
		b := &brackets[k]
		n := min(len(b.open), len(v)-p)
		if string(v[p:p+n]) != b.open[:n] {
			continue
		}
		if n == len(b.open) {
			return b.end, found
		}
		if !eof {
			return "", more
		}
	}
	return "", no
}

// marks stand between an operator and its value: the rest of =&gt;, a tag in YAML, the end of bold
// type in Markdown.
var marks = [...]string{"&gt;", "!!str ", "!!binary ", "** "}

// skipMark skips a mark at p and the blanks behind it.
func skipMark(v []byte, p int, eof bool) (int, outcome) {
	if v[p] == '&' && p+1 < len(v) && v[p+1] == '"' { // what a pointer points to
		return p + 1, found
	}
	if v[p] == '&' && p+1 < len(v) && isAlpha(v[p+1]) { // an anchor in YAML
		q := p + 1
		for q < len(v) && q-p < 24 && isIdent(v[q]) {
			q++
		}
		if q == len(v) && !eof {
			return p, more
		}
		if q < len(v) && v[q] == ' ' {
			return q + 1, found
		}
	}
	for _, m := range &marks {
		n := min(len(m), len(v)-p)
		if string(v[p:p+n]) != m[:n] || n < len(m) && eof {
			continue
		}
		if n < len(m) {
			return p, more
		}
		for p += n; p < len(v) && v[p] == ' '; p++ {
		}
		return p, found
	}
	return p, no
}

// encodedQuote reports an escaped quote at p, and what ends the value.
func encodedQuote(v []byte, p int, eof bool) (string, outcome) {
	switch v[p] {
	case '&', '%', '\\':
	case '\'': // a quote inside a text in quotes
		for _, in := range &insideQuotes {
			n := min(len(in), len(v)-p)
			if string(v[p:p+n]) != in[:n] {
				continue
			}
			if n == len(in) {
				return in, found
			}
			if n > 1 && !eof {
				return "", more
			}
		}
		return "", no
	case '[', '{', 'q', 0xe3, 0xe2, 0xc2:
		return bracketQuote(v, p, eof)
	default:
		return "", no
	}
	for _, q := range &encodedQuotes {
		n := min(len(q), len(v)-p)
		if string(v[p:p+n]) != q[:n] {
			continue
		}
		if n == len(q) {
			return q, found
		}
		if !eof {
			return "", more
		}
	}
	return "", no
}

// namesValue reports whether another name and its operator stand at p, as in
// export TOKEN=API_KEY=…: that name announces the value. Without this, names in a row would
// cost the length of their line each.
func (e *engine) namesValue(p int, eof bool) outcome {
	v, q := e.view.vis, p
	for q < len(v) && q-p < maxName && isIdent(v[q]) {
		q++
	}
	if q == p || q-p == maxName {
		return no
	}
	if q == len(v) {
		return no // decided with the end of the value
	}
	sign := 1
	if v[q] == '%' {
		if sign = 3; len(v)-q >= 3 && !bytes.HasPrefix(v[q:], []byte("%3D")) && !bytes.HasPrefix(v[q:], []byte("%3A")) {
			return no
		}
	} else if v[q] != '=' && v[q] != ':' {
		return no
	}
	if q+sign >= len(v) {
		if eof {
			return no
		}
		return more
	}
	if c := v[q+sign]; !isIdent(c) && c != '"' && c != '\'' && c != '\\' {
		return no
	}
	for k := range keywords {
		kw := keywords[k].word
		if at := q - len(kw); at >= p && hasFold(v[at:], kw) {
			if class, _, _ := classify(v, p, at, q, k, ""); class != classNone {
				return found
			}
		}
	}
	return no
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

// valueForm is all that decides where a value ends.
type valueForm struct {
	form  form
	quote byte
	depth uint8
	line  bool   // a header that runs to the end of its line
	term  string // formEncoded: the quote it began with
	// formXML: the document is escaped itself, so an escaped < ends the value
	escaped bool
}

// endMemo remembers how far the last value was read without finding its end: names side by
// side share it.
type endMemo struct {
	from, to int
	form     valueForm
	sets     endSets // of the last value
}

// endSets are the bytes that cannot end a value, and those at which nothing has to be looked at.
type endSets struct {
	form         valueForm
	until, watch byteSet
}

// valueEnd finds the end of a value. If there is none yet it returns what there
// is, and the set of bytes that cannot end it. run names the long run of bytes without an
// end in which the value lies, or is -1.
func (e *engine) valueEnd(p int, f valueForm, eof bool) (end, run int, until byteSet, done bool) {
	m, v, from := &e.memo, e.view.vis, p
	inside := m.form == f && p >= m.from && p < m.to && (p == m.from || v[p-1] != '\\')
	if inside {
		from = m.to
	}
	if m.sets.until == (byteSet{}) || m.sets.form != f {
		m.sets = f.sets()
	}
	end, done = valueEnd(v, p, from, &m.sets, eof)
	until = m.sets.until
	e.work += int64(max(end-from, 0)+min(end-p, maxJudged)) / 64
	clean := min(end, p+maxValue)
	switch {
	case inside:
		m.to = max(m.to, clean)
	case clean-p > history:
		m.from, m.to, m.form = p, clean, f
	default:
		return end, -1, until, done
	}
	return end, m.from, until, done
}

func (f *valueForm) stops() string {
	switch f.form {
	case formQuoted:
		switch f.quote {
		case '"':
			return "\n\x00\""
		case '\'':
			return "\n\x00'"
		}
		return "\n\x00`"
	case formPlain:
		return "\n\r\x00\x1b \t\"'`<|"
	case formQuery, formPercent:
		return "\n\r\x00\x1b \t\"'`<>&#|"
	case formXML:
		return "\n\r\x00\x1b<"
	case formHeader:
		if f.line {
			return "\n\r\x00\x1b\"'"
		}
		return "\n\r\x00\x1b\"' "
	case formCookie:
		return "\n\r\x00\x1b\"'; "
	case formEncoded:
		return "\n\r\x00\x1b"
	}
	return "\n\r\x00\x1b"
}

// percentStops are the escaped delimiters that end a value whose operator was escaped too.
var percentStops = [...]string{"%26", "%22", "%27", "%2C", "%2c", "%7D", "%7d", "%0A", "%0a", "%0D", "%0d", "%3B", "%3b"}

func (f *valueForm) sets() endSets {
	all := byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	until := all.without(f.stops())
	watch := until
	switch f.form {
	case formEncoded:
		watch = watch.without(f.term[:1])
	case formPercent:
		watch = watch.without("%\\")
	case formPlain:
		watch = watch.without("&;,\\")
	case formQuoted:
	case formXML:
		if watch = watch.without("\\]"); f.escaped {
			watch = watch.without("&") // else an entity is part of the value
		}
	default:
		watch = watch.without("\\&")
	}
	return endSets{*f, until, watch}
}

// valueEnd reads a value that starts at p from from on: before that nothing ends it.
func valueEnd(v []byte, p, from int, sets *endSets, eof bool) (int, bool) {
	f, until, watch := &sets.form, &sets.until, &sets.watch
	for q := from; q < len(v); q++ {
		if q-p >= maxValue {
			return p + maxValue, false
		}
		c := v[q]
		if watch.has(c) {
			continue
		}
		if f.form == formEncoded && c == f.term[0] {
			n := min(len(f.term), len(v)-q)
			if string(v[q:q+n]) == f.term[:n] {
				return q, n == len(f.term) || eof
			}
			continue
		}
		if f.form == formPercent && c == '%' {
			if len(v)-q < 3 && !eof {
				return q, false
			}
			for _, stop := range &percentStops {
				if bytes.HasPrefix(v[q:], []byte(stop)) {
					return q, true
				}
			}
			continue
		}
		if c == '\\' && f.form != formQuoted {
			if q+1 == len(v) && !eof {
				return q, false
			}
			if q+1 < len(v) && strings.IndexByte(`nrt"'\u`, v[q+1]) >= 0 {
				return q, true
			}
			if q+1 < len(v) && f.form == formPlain && strings.IndexByte(" $&;|<>()`", v[q+1]) >= 0 {
				q++ // as printf %q writes it
			}
			continue
		}
		if c == '#' && !until.has(c) && f.form == formQuery {
			// A fragment is not empty: a mark at the end belongs to the value.
			if q+1 == len(v) && !eof {
				return q, false
			}
			if q+1 < len(v) && !until.has(v[q+1]) && v[q+1] != '&' && v[q+1] != '#' {
				continue
			}
			return q, true
		}
		if until.has(c) {
			if c == ']' && f.form == formXML || c == '&' && f.form == formXML {
				if o := closesXML(v, q, eof); o != no {
					return q, o == found
				}
			}
			if c == '&' {
				if _, o := encodedQuote(v, q, eof); o != no {
					return q, o == found
				}
			}
			if f.form == formPlain {
				if o := nextParam(v, q, eof); o != no {
					return q, o == found
				}
			}
			continue
		}
		if f.form == formPlain && c == '|' && isCounted(v[p:q]) {
			if q+1 == len(v) && !eof {
				return q, false
			}
			if q+1 < len(v) && isAlnum(v[q+1]) {
				continue
			}
		} else if f.form == formPlain && c == '|' && q-p >= minNearPassword && v[q-1] > ' ' && unlikely(v[p:q]) { // a mark of a password, no pipe
			r := q + 1
			for r < len(v) && r-q < maxName && v[r] > ' ' && strings.IndexByte("|\"'<`", v[r]) < 0 {
				r++
			}
			if r == len(v) && !eof {
				return q, false
			}
			if digits, upper, lower := tally(v[q+1 : r]); digits > 0 && upper > 1 && lower > 1 && unlikely(v[q+1:r]) {
				continue
			}
		}
		if f.form == formPlain && (c == '"' || c == '\'' || c == '<') && q > p {
			// Nothing that closes or opens stands before a digit or a capital.
			if q+1 == len(v) && !eof {
				return q, false
			}
			if q+1 < len(v) && v[q-1] > '0' && v[q-1] != '{' && v[q-1] != '=' && v[q-1] != ':' && (isDigit(v[q+1]) || c == '<' && isUpper(v[q+1]) || c != '<' && isAlpha(v[q+1])) {
				continue
			}
		}
		if f.form != formQuoted || c != f.quote {
			return q, true
		}
		if n, o := quoteInside(v, q, *f, eof); o == more {
			return q, false
		} else if o == found {
			q += n - 1
			continue
		}
		slashes, depth := 0, int(f.depth)
		for slashes < q-p && v[q-1-slashes] == '\\' {
			slashes++
		}
		// At depth d a quote has 2^d-1 backslashes; one that is part of the value
		// has as many more as make the quotient odd.
		if slashes < depth || slashes/(depth+1)%2 == 0 {
			return max(q-min(depth, slashes), p), true
		}
	}
	return len(v), eof
}

// insideQuotes are the ways in which a shell puts a quote between two quotes of its kind.
var insideQuotes = [...]string{`'\''`, `'"'"'`}

// quoteInside reports whether the quote at q does not close the value: the shell closes, escapes
// and opens again, SQL and CSV write it twice.
func quoteInside(v []byte, q int, f valueForm, eof bool) (int, outcome) {
	if f.depth != 0 || f.quote == '`' {
		return 0, no
	}
	for _, in := range &insideQuotes {
		n := min(len(in), len(v)-q)
		switch {
		case f.quote != '\'' || string(v[q:q+n]) != in[:n]:
		case n == len(in):
			return n, found
		case n > 1 && !eof:
			return 0, more
		}
	}
	if q+2 < len(v) && v[q+1] == f.quote && isAlnum(v[q+2]) {
		return 2, found
	}
	if q+2 >= len(v) && !eof && (q+1 == len(v) || v[q+1] == f.quote) {
		return 0, more
	}
	return 0, no
}

// closesXML reports an escaped < or the end of a CDATA section at q.
func closesXML(v []byte, q int, eof bool) outcome {
	for _, mark := range [...]string{"&lt;", "]]>"} {
		n := min(len(mark), len(v)-q)
		switch {
		case string(v[q:q+n]) != mark[:n]:
		case n == len(mark):
			return found
		case !eof:
			return more
		}
	}
	return no
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
	if f == formQuoted || f == formXML || f == formCookie || f == formEncoded {
		return val
	}
	for len(val) > 0 {
		switch c := val[len(val)-1]; c {
		case ',', ';', '.', ':', ' ', '\t':
		case ')', ']', '}', '>':
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

// trimColour strips the end of a colour whose escape byte was lost, as in logs that were copied: [0m.
func trimColour(val []byte) []byte {
	k := len(val) - 1
	if k < 0 || val[k] != 'm' {
		return val
	}
	for k--; k >= 0 && (isDigit(val[k]) || val[k] == ';'); {
		k--
	}
	if k > 0 && val[k] == '[' {
		return val[:k]
	}
	return val
}

// trimPlain strips what is no part of a value without quotes.
func trimPlain(val []byte) []byte { return trimSentence(trimColour(val)) }

// trimSentence strips the rest of a sentence in a script without blanks, which begins with a mark.
func trimSentence(val []byte) []byte {
	if bytes.IndexByte(val, 0xe3) < 0 && bytes.IndexByte(val, 0xef) < 0 {
		return val
	}
	if k := bytes.IndexAny(val, "。，、；」』）！"); k > 0 {
		return val[:k]
	}
	return val
}

// authorityEnds are the bytes behind the authority of a URL.
var authorityEnds = byteSet{1<<(' '+1) - 1 | 1<<'/' | 1<<'"' | 1<<'\'' | 1<<'<' | 1<<'>', 1<<('`'-64) | 1<<('\\'-64) | 1<<63}

// isHost reports whether the authority at p, as nearly all, is there and names no user.
func isHost(v []byte, p int) bool {
	v = v[p:min(len(v), p+history)]
	for q := 0; q < len(v) && v[q] != '@'; q++ {
		if authorityEnds.has(v[q]) && !slashInside(v[:q], v[q]) {
			return true
		}
	}
	return false
}

// slashInside reports a slash of base64 behind b, the beginning of an authority that can be no host: ss://base64@host.
func slashInside(b []byte, ch byte) bool {
	if ch != '/' || len(b) < 16 || len(b) > 2*maxName || !allOf(b, &sets[setAny64]) {
		return false
	}
	digits, upper, lower := tally(b)
	return digits >= 2 && upper >= 2 && lower >= 2 && unlikely(b)
}

// judgeURL judges the authority of a URL: what stands before the last @ that
// precedes a slash, white space, a quote or an angle bracket.
func (e *engine) judgeURL(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	at, colon, q := -1, -1, p
	for ; q < len(v) && q-p < maxValue; q++ {
		ch := v[q]
		if authorityEnds.has(ch) && !(at < 0 && slashInside(v[p:q], ch)) {
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
	if at < 0 || bytes.Contains(v[p:at], []byte(placeholderHead)) {
		return verdict{}
	}
	r := verdict{outcome: found, layer: layerContext, end: at, rule: c.rule, noTag: true}
	if colon < 0 || colon > at {
		r.start = p
		if at-p == 32 && isHex(v[p:at]) && q < len(v) && v[q] == '/' { // where errors are sent, and the public key of that
			k := q + 1
			for k < len(v) && k-q < 24 && isDigit(v[k]) {
				k++
			}
			if k == len(v) && !eof {
				return verdict{outcome: more}
			}
			if k > q+1 && (k == len(v) || !isAlnum(v[k]) && v[k] != '/') {
				return verdict{}
			}
		}
		if at-p < 16 || !unlikely(v[p:at]) && !isHex(v[p:at]) && !isUUID(v[p:at]) || !e.set.passes(v[p:at], gate{class: classURL}) {
			return verdict{}
		}
	} else {
		r.start = colon + 1
		if colon == p && wordPair(v[r.start:at]) || !e.set.passes(v[r.start:at], gate{class: classURL}) {
			return verdict{}
		}
	}
	r.learn = at-r.start >= 12
	if q-p >= maxValue {
		r.end = q
	}
	return r
}

// wordPair reports a method and a user, as in the roots of CVS: pserver:anoncvs.
func wordPair(b []byte) bool {
	method, user, ok := bytes.Cut(b, []byte(":"))
	return ok && letters(method) && letters(user)
}

// before returns the byte in front of i, blanks and quotes apart, or 0.
func before(v []byte, i int) byte {
	for i--; i >= 0; i-- {
		if strings.IndexByte(" \t\"'", v[i]) < 0 {
			return v[i]
		}
	}
	return 0
}

// looksLikeHost reports whether an unfinished authority is a plain host[:port],
// the kind of address a dev server prints as a prompt.
func looksLikeHost(b []byte) bool {
	host, port, _ := bytes.Cut(b, []byte(":"))
	return len(port) <= 5 && allOf(port, &sets[setDigit]) && !unlikely(host)
}

// xmlEntities are the characters that XML and HTML escape by name.
var xmlEntities = [...]struct {
	text string
	char byte
}{{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}

// decoded undoes what XML and JSON write in place of a character, for the judgement: a value
// whose bytes are all written as escapes is no other value.
func decoded(val []byte) []byte {
	if len(val) > maxJudged {
		val = val[:maxJudged]
	}
	if bytes.IndexByte(val, '&') < 0 && !bytes.Contains(val, []byte(`\u0`)) {
		return val
	}
	out := make([]byte, 0, len(val))
next:
	for i := 0; i < len(val); i++ {
		rest := val[i:]
		switch {
		case rest[0] == '&':
			for _, x := range &xmlEntities {
				if bytes.HasPrefix(rest, []byte(x.text)) {
					out = append(out, x.char)
					i += len(x.text) - 1
					continue next
				}
			}
			if k := bytes.IndexByte(rest, ';'); k > 2 && k < 7 && rest[1] == '#' {
				base, digits := 10, rest[2:k]
				if digits[0]|0x20 == 'x' {
					base, digits = 16, digits[1:]
				}
				if n, err := strconv.ParseUint(string(digits), base, 7); err == nil {
					out = append(out, byte(n))
					i += k
					continue
				}
			}
		case len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' && rest[2] == '0' && rest[3] == '0':
			if n, err := strconv.ParseUint(string(rest[4:6]), 16, 7); err == nil {
				out = append(out, byte(n))
				i += 5
				continue
			}
		}
		out = append(out, rest[0])
	}
	return out
}

const (
	placeholderHead = "[REDACTED:"
	maxPlaceholder  = len(placeholderHead) + 48 + 1 + 6 + 1
	tagDigits       = 6
)

// appendPlaceholder appends [REDACTED:rule:tag] or [REDACTED:rule]. No part of
// the secret is in it: shortened keys were seen written back as if real.
func appendPlaceholder(b []byte, rule, tag string) []byte {
	b = append(b, placeholderHead...)
	b = append(b, rule...)
	if tag != "" {
		b = append(b, ':')
		b = append(b, tag...)
	}
	return append(b, ']')
}

// HasPlaceholder reports whether text holds a full placeholder of ours: a value
// that was redacted once and comes back as if it were real.
func HasPlaceholder(text string) bool {
	for {
		i := strings.Index(text, placeholderHead)
		if i < 0 {
			return false
		}
		text = text[i+len(placeholderHead):]
		end := strings.IndexByte(text, ']')
		if end < 0 || end > maxPlaceholder {
			continue
		}
		rule, tag, tagged := strings.Cut(text[:end], ":")
		if !ruleName(rule) {
			continue
		}
		if !tagged || isTag(tag) {
			return true
		}
	}
}

// endsPlaceholder reports whether text, which ends with a bracket, ends with a placeholder.
func endsPlaceholder(text []byte) bool {
	text = text[max(0, len(text)-maxPlaceholder):]
	i := bytes.LastIndex(text, []byte(placeholderHead))
	return i >= 0 && bytes.IndexByte(text[i:], ']') == len(text)-i-1
}

// meetsPlaceholder reports whether a placeholder of ours, or what may become one, stands in v[from:to]
// or goes on there. A context value with a secret in it was one region when it was filtered first; so
// it is none that a placeholder is in, and what is written in a placeholder is no value either.
func meetsPlaceholder(v []byte, from, to int) bool {
	open := placeholderHead[:len(placeholderHead)-1]
	if bytes.Contains(v[from:to], []byte(placeholderHead)) || bytes.HasSuffix(v[from:to], []byte(open)) {
		return true
	}
	before := v[max(0, from-maxPlaceholder):from]
	for k := len(before); k > 0; k-- {
		if c := before[k-1]; c == ':' && bytes.HasSuffix(before[:k], []byte(placeholderHead)) {
			return true
		} else if c != ':' && !sets[setTokenDot].has(c) {
			return false
		}
	}
	return false
}

func isTag(s string) bool {
	if len(s) != tagDigits {
		return false
	}
	for i := range len(s) {
		if !sets[setHex].has(s[i]) {
			return false
		}
	}
	return true
}
