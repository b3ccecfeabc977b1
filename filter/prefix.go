package filter

import (
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
		for _, c := range v[i-4 : i] {
			if !sets[setXDigit].has(c) {
				return false
			}
		}
		return true
	}
	return false
}

// matchRule judges the candidate of r whose prefix of plen bytes stands at i.
func matchRule(v []byte, i, plen int, r *rule, eof bool) verdict {
	switch r.check {
	case checkJWT:
		return matchJWT(v, i, r, eof)
	}
	p := i + plen
	body := p
	minEnd := 0
	lastSet := setNone
	for k := range r.parts {
		s := &r.parts[k]
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
		set := &sets[s.set]
		lastSet = s.set
		from := p
		for p < len(v) && p-from < int(s.max) && set.has(v[p]) {
			p++
		}
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
		if p < len(v) && (set.has(v[p]) || isAlnum(v[p])) {
			return verdict{}
		}
		out.end = p
		return out
	}
	for p < len(v) && p-i < maxRun && set.has(v[p]) {
		p++
	}
	if p-i >= maxRun {
		out.outcome, out.end, out.until = swallow, p, *set
		return out
	}
	if p == len(v) && !eof {
		return verdict{outcome: more}
	}
	out.end = p
	return out
}

// plausible reports whether the first bytes of a body look issued, not written
// by hand as an example.
func plausible(body []byte, r *rule) bool {
	var seen byteSet
	distinct, digits, run := 0, 0, 1
	for i, c := range body {
		if !seen.has(c) {
			seen[c>>6] |= 1 << (c & 63)
			distinct++
		}
		if isDigit(c) {
			digits++
		}
		if i > 0 && c == body[i-1]+1 {
			if run++; run >= 8 {
				return false
			}
		} else {
			run = 1
		}
	}
	need := int(r.distinct)
	if need == 0 && len(body) >= 16 {
		need = 6
	}
	if distinct < need || digits < int(r.digits) {
		return false
	}
	return !isExample(body)
}

// isExample reports whether the text says that it stands for a secret.
func isExample(b []byte) bool {
	for i := range b {
		switch b[i] {
		case 'E', 'e':
			if hasFold(b[i:], "example") {
				return true
			}
		case 'x', 'X', '*', '.':
			if i+4 <= len(b) && b[i+1] == b[i] && b[i+2] == b[i] && b[i+3] == b[i] {
				return true
			}
		case 'y', 'Y':
			if hasFold(b[i:], "your") && (i+4 == len(b) || !isAlnum(b[i+4]) || i == 0) {
				return true
			}
		}
	}
	return false
}

// matchJWT judges "eyJ…": base64url of a JSON header that names alg or enc, then
// two dots (RFC 7515, RFC 7516).
func matchJWT(v []byte, i int, r *rule, eof bool) verdict {
	set := sets[setTokenDot]
	p := i
	dots, first := 0, 0
	for p < len(v) && p-i < maxValue && set.has(v[p]) {
		if v[p] == '.' {
			if dots++; dots == 1 {
				first = p
				if !isJOSEHeader(v[i:first]) {
					return verdict{}
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
	return out
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

func isPEMBase64(b []byte) bool {
	n := len(b) &^ 3
	dec := make([]byte, base64.StdEncoding.DecodedLen(n))
	m, err := base64.StdEncoding.Decode(dec, b[:n])
	return err == nil && strings.Contains(string(dec[:m]), "PRIVATE KEY")
}
