package filter

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// kubectl prints the data of a Secret before its kind, and waiting for the kind
// would mean to look back. So each base64 value that decodes to text is taken for
// a secret if it stands under data: right behind apiVersion: v1.

const (
	maxDataKey = 300 // white space, quotes and a key of 253 bytes
	minData    = 12
)

// startsData reports whether the "data" at i is that of such an object.
func startsData(v []byte, i int) bool {
	left := bytes.TrimRight(v[max(0, i-80):i], " \t\r\n\"")
	for _, head := range [...]string{"apiVersion: v1", `apiVersion":"v1",`, `apiVersion": "v1",`} {
		if bytes.HasSuffix(left, []byte(head)) {
			return true
		}
	}
	return false
}

// judgeData judges one pair of the block, from what stands before its key on.
func (e *engine) judgeData(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	limit := p + maxDataKey
	indented, broken := false, false
	for p < len(v) && p < limit {
		switch v[p] {
		case '\n':
			broken, indented = true, false
		case ' ', '\t', '{', '"':
			indented = true
		case '\r', ',':
		default:
			goto key
		}
		p++
	}
key:
	if p < len(v) && broken && !indented {
		return verdict{}
	}
	from := p
	for p < len(v) && p < limit && isNameByte(v[p]) {
		p++
	}
	keyed := p > from
	if p < len(v) && v[p] == '"' {
		p++
	}
	if p < len(v) && (v[p] != ':' || !keyed || p >= limit) {
		return verdict{}
	}
	for p++; p < len(v) && v[p] == ' '; p++ {
	}
	if p < len(v) && v[p] == '"' {
		p++
	}
	start := p
	for p < len(v) && p-start < maxValue && sets[setBase64Pad].has(v[p]) {
		p++
	}
	if p >= len(v) && !eof {
		return verdict{outcome: more, loose: p < start+loosePrefix}
	}
	if p > len(v) {
		return verdict{}
	}
	c.then = p
	val := v[start:p]
	r := verdict{outcome: found, layer: layerContext, start: start, end: p, rule: c.rule}
	if len(val) >= maxValue {
		r.outcome, r.until = swallow, sets[setBase64Pad]
		return r
	}
	if p == start || p < len(v) && v[p] != '"' && v[p] != '\n' && v[p] != '\r' && v[p] != ',' || !encodesText(val) {
		return verdict{}
	}
	return r
}

// encodesText reports whether a value is padded base64 of readable text.
func encodesText(val []byte) bool {
	if len(val) < minData || len(val)%4 != 0 {
		return false
	}
	dec := make([]byte, base64.StdEncoding.DecodedLen(len(val)))
	n, err := base64.StdEncoding.Decode(dec, val)
	if err != nil || !utf8.Valid(dec[:n]) {
		return false
	}
	for _, c := range dec[:n] {
		if c < 0x20 && !isSpace(c) || c == 0x7f {
			return false
		}
	}
	return true
}
