package filter

import (
	"bytes"
	"strings"
)

// Behind a name a secret may stand in a way that no form knows: as another field of the record, in
// the answer of a command, below a title. So two things count there without a form, unless the name right
// in front says what else it is: what reads like nothing but a secret, anywhere, and what looks like the value of such a name
// in the first place where a value of it can stand (see judgeNear).

// zone is the stretch behind the last name in which that is looked for.
type zone struct {
	until int64 // 1 + the position of its last byte in the visible stream
	rule  string
	noTag bool
	least int // how long a value is, or none but licences count
	// near is the last name, as the position behind it; bound is where the last secret ends: what stands before has its value
	near, bound int64
	class       class // of that name, as rule and noTag
}

const (
	// maxZone is how long it is, maxZones how many names begin one in a block of the stream whose store is used up.
	maxZone  = 200
	maxZones = 1
	// maxAnswer is its length behind a command that names secrets, and leastAnswer the least of a value in it.
	maxAnswer   = 800
	leastAnswer = 16
	// minNear is the least length of a value in it, minNearPassword that of one behind a word that says password
	// or secret, maxStray the greatest.
	minNear         = 20
	minNearPassword = 10
	maxStray        = 96
	// maxLong is the greatest length of one that stands by itself and is written in base64.
	maxLong = 2048
	// maxAround is how far the value of a name stands from it that has to be one by its place too, minWord how long it is.
	maxAround = 80
	minWord   = 8
)

// strayStops are the bytes between which a value stands.
var strayStops = byteSet{1<<(' '+1) - 1 | 1<<'"' | 1<<'\'' | 1<<'(' | 1<<')' | 1<<',' | 1<<';' | 1<<'<' | 1<<'>' | 1<<'&' | 1<<':' | 1<<'=' | 1<<'.',
	1<<('`'-64) | 1<<('['-64) | 1<<(']'-64) | 1<<('{'-64) | 1<<('}'-64) | 1<<('|'-64) | 1<<('\\'-64) | 1<<63, ^uint64(0), ^uint64(0)}

// quotedStops are those behind a quote, where a dot is a part of a value.
var quotedStops = strayStops.without(".")

// openZone begins or lengthens the zone behind a name. It reports whether that takes more bytes: right before a
// placeholder of ours a word may have been no name.
func (e *engine) openZone(n *nameInfo, eof bool) (short bool) {
	v, at := e.view.vis, e.base+int64(n.end)
	if n.start < max(e.edge, e.region.end) {
		return false
	}
	if at < e.zone.until {
		walked := e.base // up to where the words were judged as near a name
		if e.zone.near > e.zone.bound {
			walked = e.zone.near + maxAround
		}
		if e.nearName(n) {
			e.walkZone(n.end, walked)
		}
	}
	least := minNear
	if n.class == classStrong || n.rule == "password" {
		least = minNearPassword
	} else if n.class == classGroups {
		least = maxStray
	}
	if at+maxZone/4 < e.zone.until || n.class == classExtra || n.class == classPin || n.bare || n.class == classGroups && at < e.zone.until || bytes.IndexByte(v[n.start:n.end], '/') >= 0 {
		return false
	}
	if k := min(len(v)-n.end, len(placeholderHead)); string(v[n.end:n.end+k]) == placeholderHead[:k] {
		return k < len(placeholderHead) && !eof
	}
	if !e.dense[4].room(at, maxZones) {
		return false
	}
	e.zone.until, e.zone.least = at+maxZone, least
	if line := e.scan.line; (n.rule == "secret" || n.rule == "credential") && line >= 0 && line < n.start && isPrompt(v[line:n.start]) {
		e.zone.until, e.zone.least = at+maxAnswer, leastAnswer
	}
	if at > e.zone.near {
		e.zone.rule, e.zone.noTag = n.rule, n.noTag
	}
	e.nearName(n)
	e.walkZone(n.end, e.base)
	return false
}

// nearName makes n the name whose value may be anything that looks like one in its place. Which of several names counts
// does not depend on their order, which depends on the cuts.
func (e *engine) nearName(n *nameInfo) bool {
	z, v, at := &e.zone, e.view.vis, e.base+int64(n.end)
	switch n.class {
	case classStrong, classWeak, classKey:
	default:
		return false
	}
	if at <= z.bound || e.crowd.at(at, crowdLimit) || at < z.near || at == z.near && (n.class < z.class || n.class == z.class && n.rule <= z.rule) {
		return false
	}
	z.near, z.class, z.rule, z.noTag = at, n.class, n.rule, n.noTag
	if bytes.IndexByte(v[n.start:n.end], '.') >= 0 && before(v, n.start) == '(' && (v[n.start-1] == '(' || n.start > 2 && v[n.start-3] == ' ') { // a file, and its digest
		z.bound = at
	}
	return true
}

// zoneAgain lets a zone begin again behind a secret in it, or behind a placeholder of ours for one; behind the id of a key
// one begins for the key.
func (e *engine) zoneAgain(from, to int, rule string) {
	z, at := &e.zone, e.base+int64(to)
	switch open := e.base+int64(from) < z.until; {
	case rule == keyID && e.dense[4].room(at, maxZones):
		if open {
			z.until = max(z.until, at+maxZone)
		} else {
			z.until, z.least = at+maxZone/4, maxStray
		}
		z.near, z.bound, z.class, z.rule, z.noTag = at, at-1, classStrong, keyOfID, false
	case open:
		z.bound, z.until = at, max(z.until, at+maxZone)
	default:
		return
	}
	e.walkZone(to, e.base)
}

// keyID is the rule of ids of keys, keyOfID that of the keys beside them, of 40 bytes.
const keyID, keyOfID = "aws-access-key-id", "aws-secret-key"

// walkZone has the words behind at judged, but for those up to walked that were seen to be none.
func (e *engine) walkZone(at int, walked int64) {
	for k := range e.values {
		if e.values[k].form != formZone {
			continue
		}
		if next := e.values[k].at; next <= at+minWord || e.base+int64(next) <= walked {
			return // no value is between
		}
		e.values = append(e.values[:k], e.values[k+1:]...)
		break
	}
	e.schedule(candidate{at: max(at, e.cursor), form: formZone})
}

// judgeZone judges the word at c, or goes on to the next that could be a value.
func (e *engine) judgeZone(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	c.then, c.number = 0, 0
	if e.region.open && p < e.region.end { // found already
		c.then = e.region.end
		return verdict{}
	}
	limit := min(int(e.zone.until-e.base), len(v))
	for p > 0 && p < limit && !strayStops.has(v[p-1]) { // inside a word
		p++
	}
	around := int(e.zone.near-e.base) + maxAround // the place of the name's value
	if e.zone.near <= e.zone.bound {
		around = -1
	}
	for p < limit {
		stops, quoted := &strayStops, p > 0 && (v[p-1] == '"' || v[p-1] == '\'')
		if quoted {
			stops = &quotedStops
		}
		// From the last byte of the shortest value back: most words are short.
		near, least := p <= around || quoted && e.zone.near > 0 && isLabelled(v, p), minNearPassword
		if near {
			least = minWord
		}
		last := min(p+least, len(v)) - 1
		k := last
		for k >= p && (!stops.has(v[k]) || v[k] == '|' && isCounted(v[p:k])) {
			k--
		}
		if k >= p {
			if dot := k; v[k] == '.' { // which is none behind a quote
				for k > p && v[k] != '"' && v[k] != '\'' {
					k--
				}
				if v[k] != '"' && v[k] != '\'' {
					k = dot
				}
			}
			p = k + 1
			continue
		}
		q := last + 1
		for q < len(v) && q-p <= maxLong && (!stops.has(v[q]) || v[q] == '|' && isCounted(v[p:q])) {
			q++
		}
		open := q == len(v) && !eof && q-p <= maxLong
		sign := v[p] == '-' || v[p] == '+' && p > 0 && v[p-1] == '{' // of an option, ${name:-value}, {+value+}
		stray := open
		if !open && !sign && q-p >= least && (q-p <= maxStray || isLong(v, p, q)) {
			stray, near = couldBe(v[p:q], near)
		} else if !open {
			near = false
		}
		if sign || !stray && !near {
			p = q
			continue
		}
		if p > c.at {
			break // a name may stand before
		}
		for q < len(v) && v[q] == '=' && q-p <= maxLong {
			q++
		}
		if q == len(v) && !eof {
			return undecided(eof, looseValue(v[p:q]))
		}
		c.then, c.number = q, 1
		if near {
			if r := e.judgeNear(p, q, eof); r.outcome != no {
				return r
			}
		}
		if !stray || !e.isStray(p, q) {
			return verdict{}
		}
		r := verdict{outcome: found, layer: layerContext, start: p, end: q, rule: e.zone.rule, noTag: e.zone.noTag}
		if isKeyGroups(v[p:q]) {
			r.rule, r.noTag = groupsRule, true
		}
		return r
	}
	c.then = p
	return verdict{}
}

// couldBe reports digits and letters of both cases, and groups of a licence; near a name also letters and digits or marks, or
// letters of both cases.
func couldBe(val []byte, near bool) (stray, named bool) {
	digits, upper, lower := tally(val)
	stray = digits >= 2 && upper > 0 && (lower > 0 || isKeyGroups(val) || isSeed(val))
	return stray, near && (stray || upper+lower > 0 && (digits > 0 || digits+upper+lower < len(val) || upper > 1 && lower > 1))
}

// isCounted reports the number in front of a token, which a bar joins to it: 314|aB3dE5….
func isCounted(b []byte) bool {
	k := len(b)
	for k > 0 && isDigit(b[k-1]) {
		k--
	}
	return k < len(b) && len(b)-k < 10 && (k == 0 || strayStops.has(b[k-1]))
}

// isLong reports whether v[p:q] is a long word of base64 that stands by itself, such as the token of a session.
func isLong(v []byte, p, q int) bool {
	return q-p <= maxLong && (p == 0 || v[p-1] <= ' ' || v[p-1] == '"') && (q == len(v) || v[q] <= ' ' || v[q] == '"' || v[q] == '=') && allOf(v[p:q], &sets[setAny64])
}

// isStray reports whether the word v[p:q] is a value.
func (e *engine) isStray(p, q int) bool {
	v := e.view.vis
	if e.inRow() || p == e.edge || p > 0 && v[p-1] == ']' && endsPlaceholder(v[:p]) {
		return false // of a column; a part of what the placeholder stands for
	}
	if q < len(v) && v[q] < ' ' && v[q] != '\n' && v[q] != '\r' && v[q] != '\t' || bytes.HasPrefix(v[q:], []byte(placeholderHead)) {
		return false
	}
	if v[q-1] == '=' && q < len(v) && isAlnum(v[q]) {
		return false // a name
	}
	val, left := v[p:q], v[max(e.edge, p-maxName, 0):p]
	if p > 0 && v[p-1] == '.' && bytes.Contains(v[max(e.edge, p-maxZone, 0):p], []byte(" pk.")) {
		return false // the end of a public key
	}
	if p > 0 && (v[p-1] == ',' || v[p-1] == '.' && q < len(v) && v[q] == '.') {
		return false // a record without blanks, whose header says what it is; a label of a host
	}
	if isKeyGroups(val) {
		return !endsInAny(bytes.TrimRight(left, ":=\"' \t"), "id ids device uuid fingerprint")
	}
	if k := bytes.IndexByte(val, '_'); k >= 2 && k <= 4 && allOf(val[:k], &sets[setLower]) && onlyAlnum(val[k+1:]) && !isOneOf(val[:k], secretPrefixes[:]) {
		return false // an id with its type
	}
	return len(val) >= e.zone.least && !bytes.Contains(left, []byte("ENC[")) && val[0] != '/' && !(p > 0 && v[p-1] == '\\') && !otherName(left) && !hasWord(val) && !isDirectory(val) && !e.inPEM(p, q) && textBefore(v, p, e.edge) &&
		(isSeed(val) || e.set.passes(val, gate{class: classWeak, doubt: random, rule: "password"}))
}

// isDirectory reports a path that begins with a word.
func isDirectory(val []byte) bool {
	k := bytes.IndexByte(val, '/')
	return k > 3 && letters(val[:k]) && sameCase(val[:k])
}

// secretPrefixes begin tokens, others of that kind ids.
var secretPrefixes = [...]string{"sk", "rk", "tok", "key", "pat", "sec", "api", "pw", "pass", "auth"}

// inRow reports whether the header of a table says what stands here.
func (e *engine) inRow() bool {
	for k := range e.values {
		if r := &e.values[k]; r.form == formRow && r.number > 0 {
			return true
		}
	}
	return false
}

// labels stand in front of what is compared with a value or said to be it: Expected: "value", input_value='value'.
var labels = [...]string{"expected", "actual", "received", "got", "want", "wanted", "have", "left", "right", "was", "vs", "to", "equal"}

// isLabelled reports whether one of them stands in front of the quote in front of p.
func isLabelled(v []byte, p int) bool {
	if p < 5 || v[p-1] != '"' && v[p-1] != '\'' || v[p-2] != ' ' && v[p-2] != '=' && v[p-2] != ':' {
		return false
	}
	end := p - 2
	for end > 0 && p-end < 12 && (v[end-1] == ' ' || v[end-1] == ':' || v[end-1] == '=') {
		end--
	}
	if end > 0 && v[end-1] == '!' { // !=
		return true
	}
	from := end
	for from > 0 && end-from < 16 && (isAlpha(v[from-1]) || v[from-1] == '_') {
		from--
	}
	word := v[from:end]
	return len(word) > 1 && (hasFoldSuffix(word, "value") || isOneOf(word, labels[:]))
}

// opens are the bytes in front of a value, sentenceEnds those that may follow one at the end of its line.
var opens = byteSet{1<<' ' | 1<<'\t' | 1<<'\n' | 1<<'"' | 1<<'\'' | 1<<'(' | 1<<'=' | 1<<'>' | 1<<':' | 1<<',', 1<<('`'-64) | 1<<('['-64) | 1<<('|'-64), ^uint64(0), ^uint64(0)}

const sentenceEnds = ".,;!)"

// judgeNear judges the word v[p:q] near a name. It is the value if it stands where one does: between quotes, behind a sign, or at
// the end of its line; below the line of the name, alone on its own. How much it must look like one is the gate's to say.
func (e *engine) judgeNear(p, q int, eof bool) verdict {
	v := e.view.vis
	from := max(int(e.zone.near-e.base), int(e.zone.bound-e.base), e.edge, 1) // a label needs no name that is still there
	if from >= p || !opens.has(v[p-1]) || q < len(v) && (v[q] == ':' && q+1 < len(v) && v[q+1] != '\n' || v[q-1] == '=' && isAlnum(v[q])) || e.inRow() {
		return verdict{} // a part of a word, a name
	}
	between := v[from:p]
	f := valueForm{form: formPlain}
	if quote := v[p-1]; quote == '"' || quote == '\'' || quote == '`' {
		f = valueForm{form: formQuoted, quote: quote}
	}
	end, _, _, done := e.valueEnd(p, f, eof)
	if !done {
		return undecided(end-p > maxStray, looseValue(v[p:end]))
	}
	val := trimValue(v[p:end], f.form)
	if f.form == formPlain {
		val = trimPlain(val)
	}
	end = p + len(val)
	if len(val) < minWord || len(val) > maxStray || e.zone.rule == keyOfID && (len(val) != 40 || isHex(val)) {
		return verdict{}
	}
	g := gate{class: e.zone.class, rule: e.zone.rule, doubt: said, quoted: f.quote != 0}
	next := end
	for next < len(v) && (strings.IndexByte(sentenceEnds, v[next]) >= 0 || g.quoted && next == end && v[next] == f.quote) {
		next++
	}
	if next == len(v) && !eof {
		return undecided(eof, looseValue(val))
	}
	ends := next == len(v) || v[next] == '\n' || v[next] == '\r'
	sign := last(bytes.TrimRight(v[from-1:p], " \t\"'`"))
	words := bytes.TrimRight(between, " ")
	tied := isOneOf(words[bytes.LastIndexByte(words, ' ')+1:], copulas[:])
	signed := strings.IndexByte(":=#", sign) >= 0 || string(between) == " " && g.class != classKey && isHex(val) || isUpper(v[from-1]) && bytes.HasPrefix(between, []byte("  ")) && v[p-1] == ' ' && ends || string(between) == "] " || string(between) == "," || tied
	switch k := bytes.LastIndexByte(between, '\n'); {
	case isLabelled(v, p):
		if isHex(val) && len(val) < 32 {
			return verdict{}
		}
	case k > 0 && g.quoted && strings.IndexByte(":=>", last(bytes.TrimRight(v[from-1:from+k], " \r"))) >= 0 && bytes.Count(between, []byte("\n")) == 1: // name =>⏎  string(9) "value"
	case k >= 0 && !(tied && marked(val)): // below
		if g.doubt = lone; !ends || isHex(val) || bytes.Count(between, []byte("\n")) > 2 || len(bytes.TrimLeft(between[k+1:], " \t\"'`*-=>$#")) > 0 {
			return verdict{}
		}
	case sign == ':' && v[p-1] == ':', v[p-1] == ',' && (len(between) > 1 || !ends), isUUID(val) && (g.quoted && !signed || bytes.IndexFunc(between, func(r rune) bool { return r < 0x80 && isAlnum(byte(r)) }) >= 0): // of something else
		return verdict{}
	case g.quoted || signed:
		if isHex(val) && len(val) < 32 {
			return verdict{} // an id
		}
	case !ends && sign != '>' && sign != '|' && v[p-1] < 0x80 || isHex(val) || isUUID(val) || readable(val) || isDirectory(val):
		return verdict{}
	}
	left := bytes.TrimRight(v[max(e.edge, p-maxName, 0):p], "\"',. ")
	if otherName(left) || endsInAny(left, "example e.g eg like") || !g.quoted && hasWord(val) || e.inPEM(p, end) || !textBefore(v, p, e.edge) || !e.set.passes(decoded(val), g) {
		return verdict{}
	}
	return verdict{outcome: found, layer: layerContext, start: p, end: end, rule: e.zone.rule, noTag: e.zone.noTag}
}

// looseValue reports what may be no value yet, and goes if nothing follows.
func looseValue(val []byte) bool { return len(val) < loosePrefix || !unlikely(val) }

// inPEM reports whether a line of base64 in v[p:q] belongs to a certificate or what else is armoured.
func (e *engine) inPEM(p, q int) bool {
	v := e.view.vis
	if bytes.HasPrefix(v[p:q], []byte("MII")) {
		return true
	}
	above := bytes.TrimRight(v[max(0, p-history):p], " \t")
	if len(above) == 0 || above[len(above)-1] != '\n' {
		return false
	}
	if e.edge > 0 && e.edge >= max(0, p-history)+bytes.LastIndexByte(above[:len(above)-1], '\n')+1 {
		return false // that line was a secret, and this may be the rest of it
	}
	above = bytes.TrimRight(above, "\r\n")
	above = bytes.TrimLeft(above[bytes.LastIndexByte(above, '\n')+1:], " \t")
	return len(above) >= 60 && allOf(above, &sets[setAny64]) || bytes.HasPrefix(above, []byte("-----BEGIN"))
}

// hasWord reports whether a word is a part of a value, as in the key of a cache.
func hasWord(val []byte) bool {
	least := 5
	if bytes.IndexByte(val, '/') >= 0 {
		least = 4
	}
	if len(val) > maxStray {
		least = 7 // shorter ones stand in any
	}
	for part := range bytes.FieldsFuncSeq(val, func(r rune) bool { return r >= 0x80 || !isAlpha(byte(r)) }) {
		if len(part) >= least && inWordList(part) {
			return true
		}
	}
	return false
}

// otherNames say what a value is that is no secret.
const otherNames = "id ids identity sid kid uid gid guid uuid hash digest sha sha1 shasum sha256 sha384 sha512 md5 fingerprint thumbprint etag checksum integrity sum " +
	"commit revision rev ref ray trace version request req span cursor page next marker sequence state challenge nonce iv salt tag mac public pub cert certificate " +
	"url uri path file image name arn account user username host hostname zone region accessor lease type alg algorithm method role iss aud sub subject " +
	"encrypted secure ciphertext build release job node cluster object client peer accept match boundary jti x5t azp realm opaque serial device tenant order customer " +
	"invoice payment charge subscription plan price product org organization project workspace team group bucket repository package bundle recipient issuer address wallet number"

// otherName reports whether the text left of a value ends in a name, and perhaps a sign, that says so.
func otherName(left []byte) bool {
	const signs = ":=>-.\"' \t\\"
	name := bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(left, signs), []byte("W/")), signs)
	sign := left[len(name):]
	signed := bytes.ContainsAny(sign, ":=")
	name = name[bytes.LastIndexByte(name, '\n')+1:]
	if len(name) == 0 {
		return false
	}
	if signed {
		last := len(name)
		for last > 0 && isIdent(name[last-1]) {
			last--
		}
		if n := len(name) - last; n > 0 && n <= 2 && (isAlpha(name[last]) || name[last] == '-') && sign[0] != ' ' {
			return true // h1:, iv=; and not p = 'value', a parameter or a type
		}
	}
	known := qualified()
	if known.others.has(name) && endsInAny(name, otherNames) {
		return true
	}
	if !known.none.has(name) {
		return false
	}
	for k := range qualifiers {
		q := &qualifiers[k]
		if n := len(name) - len(q.word); q.class == classNone && n > 0 && hasFoldSuffix(name, q.word) && endsInAny(bytes.TrimRight(name[:n], "_- "), q.before) {
			return true
		}
	}
	return false
}
