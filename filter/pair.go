package filter

// A pair is a key, a sign and a value. Here are the forms in which the name that says what the
// value is stands elsewhere: above the object or list, or in the field behind the value.

// privateParts are the fields of a JWK that are the private key: RFC 7518.
var privateParts = [...]string{"d", "p", "q", "dp", "dq", "qi", "k"}

// notSecrets are keys of pairs that say where a secret is, or whose.
const notSecrets = "name names id ids namespace type kind path file url uri host endpoint created updated expires version ref hash digest count provider source image tag label description arn issuer " +
	"alg algorithm use crv kty kid format policy mode role scope scopes user username owner store class method"

// maxPairRows bounds the pairs that are followed.
const maxPairRows = 64

// judgePair judges one pair of an object or list, from what stands before its key on.
func (e *engine) judgePair(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	if c.number >= maxPairRows {
		return verdict{}
	}
	inline := c.row.sep != 0
	indent, broken := 0, false
	for ; s.more() && s.p-c.at < maxSpace; s.p++ {
		switch ch := s.v[s.p]; {
		case ch == '\n':
			indent, broken = 0, true
			continue
		case isBlank(ch) || ch == '-' && !inline:
			indent++
			continue
		case ch == '\r' || inline && (ch == ',' || (ch == '{' || ch == '[') && c.number == 0):
			continue
		}
		break
	}
	if s.short || !s.more() || !inline && (!broken || indent <= int(c.row.at)) {
		return undecided(!s.short, true)
	}
	s.quote()
	from := s.p
	for s.more() && s.p-from < maxName && (isAlnum(s.v[s.p]) || s.v[s.p] == '_' || s.v[s.p] == '-' || s.v[s.p] == '.') {
		s.p++
	}
	at, key := from, s.v[from:s.p]
	if string(key) == placeholderHead[1:len(placeholderHead)-1] {
		return verdict{}
	}
	s.quote()
	s.blanks()
	if s.short || len(key) == 0 || s.operator() == opNone || s.short {
		return undecided(!s.short, true)
	}
	s.blanks()
	start := s.p
	quoted := s.quote()
	if s.short {
		return verdict{outcome: more, loose: true}
	}
	if !quoted {
		s.p = start
	}
	from = s.p
	for s.more() && s.p-from < maxValue && s.v[s.p] >= ' ' && s.v[s.p] != '"' && s.v[s.p] != '\'' && s.v[s.p] != '\\' && (quoted || s.v[s.p] != ' ' && s.v[s.p] != ',') {
		s.p++
	}
	val := s.v[from:s.p]
	if s.short {
		return verdict{outcome: more, loose: len(val) < loosePrefix || !unlikely(val)}
	}
	if !quoted {
		val = trimValue(val, formPlain)
	}
	c.number++
	if c.then = s.p; quoted && s.more() && s.v[s.p] != '\n' {
		c.then++
	}
	if c.row.kind == jwkKey {
		if !isOneOf(key, privateParts[:]) || !e.set.passes(val, gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: quoted}) {
			return verdict{}
		}
		return verdict{outcome: found, layer: layerContext, start: from, end: from + len(val), rule: c.rule}
	}
	says := string(key) == "S" || hasFold(key, "key") && len(key) <= len("key1") || hasFoldSuffix(key, "value") && len(key) <= len("x_value")
	if !says && (c.row.kind != anyKey || endsInAny(key, notSecrets)) ||
		!e.set.passes(val, gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: quoted}) {
		return verdict{}
	}
	if class, _, _ := e.namedBy(at, at+len(key)); class != classNone {
		return verdict{} // announced by its own name
	}
	return verdict{outcome: found, layer: layerContext, start: from, end: from + len(val), rule: c.rule, noTag: c.noTag,
		learn: c.class == classStrong && mayLearn(val)}
}

// readField finds the value of a field, in quotes, whose name may stand behind it.
func (e *engine) readField(i int, text string, eof bool) (candidate, outcome) {
	s := scan{v: e.view.vis, p: i, eof: eof}
	for k := range len(text) {
		if !s.more() {
			return candidate{}, more
		}
		if fold(s.v[s.p]) != text[k] {
			return candidate{}, no
		}
		s.p++
	}
	bare := text[0] == '-' // an item of a list in YAML
	if text[len(text)-1] != '"' {
		s.blanks()
		s.lit("\"")
	}
	if s.short {
		return candidate{}, more
	}
	if s.p == 0 || s.v[s.p-1] != '"' && !bare {
		return candidate{}, no
	}
	return candidate{at: s.p, form: formBefore, class: classWeak, doubt: likely, rule: "secret"}, found
}

// rawAccountKey is the length of 64 random bytes in base64. No digest that people print is so
// long and has no prefix that names it.
const rawAccountKey = 88

// nameFields are the keys of the field that holds the name of a value.
var nameFields = [...]string{"name", "key", "keyname", "parametername", "label", "id", "field", "option_name", "variable"}

// judgeBefore judges a value in quotes by the name in a field behind it.
func (e *engine) judgeBefore(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	for s.more() && s.p-c.at < maxJudged && s.v[s.p] > ' ' && s.v[s.p] != '"' && s.v[s.p] != '\\' {
		s.p++
	}
	val := s.v[c.at:s.p]
	if s.short {
		return verdict{outcome: more, loose: len(val) < loosePrefix || !unlikely(val)}
	}
	if len(val) < 8 || s.at() != '"' && s.at() != '\n' || !likelySecret(val, true) {
		return verdict{}
	}
	end := s.p
	if s.v[s.p] == '\n' {
		s.p-- // no quote to pass over
	}
	if len(val) == rawAccountKey && isRawKey(val) {
		return verdict{outcome: found, layer: layerContext, start: c.at, end: end, rule: c.rule}
	}
	s.p++
	for fields := 0; fields < 6 && s.p-end < maxSibling; fields++ {
		s.space()
		if s.at() == ',' {
			s.p++
			s.space()
		}
		s.quote()
		from := s.p
		for s.more() && s.p-from < 32 && (isAlnum(s.v[s.p]) || s.v[s.p] == '_') {
			s.p++
		}
		key := s.v[from:s.p]
		s.quote()
		s.blanks()
		if s.short {
			break
		}
		if len(key) == 0 || s.at() != ':' && s.at() != '=' {
			return verdict{}
		}
		s.p++
		s.blanks()
		if !s.quote() && !s.short {
			if !s.scalar(s.p + maxSibling) {
				break
			}
			continue
		}
		from = s.p
		for s.more() && s.p-from < maxSibling && s.v[s.p] >= ' ' && s.v[s.p] != '"' && s.v[s.p] != '\\' {
			s.p++
		}
		if s.short {
			break
		}
		if isOneOf(key, nameFields[:]) {
			class, rule, noTag := e.namedBy(from, s.p)
			if class == classNone || !e.set.passes(val, gate{class: class, doubt: c.doubt, rule: rule, quoted: true}) {
				return verdict{}
			}
			return verdict{outcome: found, layer: layerContext, start: c.at, end: end, rule: rule, noTag: noTag}
		}
		s.p++
	}
	if s.short {
		return verdict{outcome: more}
	}
	return verdict{}
}

// namedBy judges a name that ends at to.
func (e *engine) namedBy(from, to int) (class, string, bool) {
	v := e.view.vis
	for k := range keywords {
		kw := keywords[k].word
		for at := max(from, to-len(kw)-len("_base64")); at+len(kw) <= to; at++ {
			if !hasFold(v[at:to], kw) {
				continue
			}
			info := e.readName(at, &entry{text: kw, ref: keywordRef(k), kind: eName}, true)
			if info.outcome == found && info.end == to && (info.class == classStrong || info.class == classWeak || info.class == classKey) {
				return info.class, info.rule, info.noTag
			}
		}
	}
	return classNone, "", false
}

// isOneOf reports whether a word is in a list, ignoring case.
func isOneOf(word []byte, list []string) bool {
	for _, w := range list {
		if len(w) == len(word) && hasFold(word, w) {
			return true
		}
	}
	return false
}
