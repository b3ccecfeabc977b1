package filter

// needle is one form of one known value.
type needle struct {
	text   string
	value  int32 // index into Set.values
	base64 bool  // a core: the rest of the base64 run belongs to the value
}

// secretValue is what a placeholder says about a known value.
type secretValue struct {
	name  string
	value string // for its tag, which is made when it is found
}

const (
	// maxNeedle bounds what a known value may hold back.
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

// matchNeedle judges whether the needle stands at i. White space matches any run
// of white space, because set -x and terminals change it. After eight bytes, and
// then once in sixteen, a line break with its indent, or the " \r" by which line
// editors wrap, is skipped.
func matchNeedle(v []byte, i int, nd *needle, eof bool) (outcome, int, int) {
	p, lastSkip := i, 0
	t := nd.text
	for k := 0; k < len(t); {
		if p == len(v) {
			if eof {
				return no, p, k
			}
			return more, p, k
		}
		c := v[p]
		if isSpace(t[k]) {
			if !isSpace(c) {
				return no, p, k
			}
			for k < len(t) && isSpace(t[k]) {
				k++
			}
			from := p
			for p < len(v) && isSpace(v[p]) {
				p++
			}
			if p-from > maxGap {
				return no, p, k
			}
			if p == len(v) && !eof {
				return more, p, k
			}
			continue
		}
		if c == t[k] {
			p, k = p+1, k+1
			continue
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
	wait := more
	if eof {
		wait = no
	}
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

// matchKnown judges the candidate of a known value at i.
func matchKnown(v []byte, i int, nd *needle, val *secretValue, eof bool) verdict {
	o, p, k := matchNeedle(v, i, nd, eof)
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
