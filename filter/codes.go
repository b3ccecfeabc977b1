package filter

import (
	"bytes"
	"strings"
)

// Recovery codes have no name of their own: they stand in a list below or behind a title.

const (
	// codesRule finds them.
	codesRule = "recovery-code"
	// maxBetween is how far they stand apart.
	maxBetween = 48
	// maxRecovery bounds one of them.
	maxRecovery = 48
	// maxGroup is the length of the groups of a secret that is written with blanks.
	maxGroup = 8
)

// linkCodes finds the list below or behind its title: "Recovery codes (save them):", "backup_codes": [.
func linkCodes(s *scan, n *nameInfo) (c candidate, ok bool) {
	s.quote()
	for from := s.p; s.more() && s.p-from < maxNear; s.p++ {
		switch ch := s.v[s.p]; {
		case s.p == from+1 && isDigit(ch) && s.v[from] == ' ':
			c.at, c.form, c.doubt = s.p, formCodes, likely
			return c, true
		case ch == ':' || ch == '=' || ch == '\n':
			if s.p++; !s.more() {
				return c, false
			}
			c.at, c.form, c.doubt = s.p, formCodes, likely
			return c, true
		case !isAlnum(ch) && strings.IndexByte(" ,.()!'-\r", ch) < 0:
			return c, false
		}
	}
	return c, false
}

// betweenCodes are the bytes that may stand between two codes, apart from numbers.
var betweenCodes = byteSet{1<<' ' | 1<<'\t' | 1<<'\r' | 1<<'\n' | 1<<'"' | 1<<'\'' | 1<<',' | 1<<'*' | 1<<'-' | 1<<'=' | 1<<'>', 1<<('['-64) | 1<<('|'-64) | 1<<('`'-64)}

// judgeCodes judges the next word of a list of recovery codes; what is none ends the list, but for remarks below its title.
func (e *engine) judgeCodes(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	c.then = 0
	end := 0
	for lines := 0; ; {
		if !s.more() {
			return undecided(eof, true)
		}
		ch := s.v[s.p]
		if ch == '\n' {
			lines++
		}
		if s.p-c.at > maxBetween || lines > 3 {
			return verdict{}
		}
		if betweenCodes.has(ch) {
			s.p++
			continue
		}
		if !isAlnum(ch) {
			return c.remark(&s)
		}
		for end = s.p; end < len(s.v) && end-s.p <= maxRecovery && (isAlnum(s.v[end]) || s.v[end] == '-'); {
			end++
		}
		if end == len(s.v) && !eof && end-s.p <= maxRecovery {
			return verdict{outcome: more, loose: true}
		}
		if end-s.p > 2 || end == len(s.v) || s.v[end] != '.' && s.v[end] != ')' && s.v[end] != ':' {
			break
		}
		s.p = end + 1 // its number
	}
	if c.rule == codesRule && end < len(s.v) && s.v[end] == ' ' && end-s.p >= 4 && end-s.p <= maxGroup { // the lines of a key
		if q, o := spacedGroups(s.v, s.p, eof); o == more {
			return verdict{outcome: more, loose: true}
		} else if o == found {
			c.then, c.number = q, maxRemarks-1 // a checksum may follow
			return verdict{outcome: found, layer: layerContext, start: s.p, end: q, rule: c.rule, noTag: true}
		}
	}
	if end < len(s.v) && s.v[end] == ' ' && end-s.p <= 5 { // in two groups
		n := end - s.p
		if len(s.v) <= end+n+1 && !eof {
			return verdict{outcome: more, loose: true}
		}
		if q := end + 1 + n; q <= len(s.v) && onlyAlnum(s.v[end+1:q]) && (q == len(s.v) || !isAlnum(s.v[q])) {
			end = q
		}
	}
	val := s.v[s.p:end]
	if end < len(s.v) && !betweenCodes.has(s.v[end]) && s.v[end] != ']' && s.v[end] != '.' && s.v[end] < 0x80 || !e.set.passes(val, gate{class: c.class, rule: c.rule}) ||
		c.number > 0 && c.number <= maxRemarks && !bytes.ContainsAny(val, "- ") {
		return c.remark(&s)
	}
	c.then, c.number = end, maxRemarks+1
	return verdict{outcome: found, layer: layerContext, start: s.p, end: end, rule: c.rule, noTag: true}
}

// maxRemarks is how many lines may stand between a title and the first of its codes.
const maxRemarks = 3

// remark passes over the rest of a line.
func (c *candidate) remark(s *scan) verdict {
	if c.number >= maxRemarks {
		return verdict{}
	}
	k := bytes.IndexByte(s.v[s.p:min(len(s.v), s.p+2*maxName)], '\n')
	if k < 0 {
		return undecided(s.eof || len(s.v)-s.p >= 2*maxName, true)
	}
	c.number++
	c.then = s.p + k
	return verdict{}
}

func onlyAlnum(b []byte) bool { return allOf(b, &sets[setAlnum]) }

// isRecoveryCode reports groups of one length, which dates and versions have not, or one group with digits.
func isRecoveryCode(val []byte) bool {
	if len(val) < 8 || len(val) > maxRecovery {
		return false
	}
	digits, upper, lower := tally(val)
	group := bytes.IndexAny(val, "- ")
	if group < 0 {
		return len(val) == digits && len(val) <= 16 || digits >= 2 && upper+lower > 0 && digits+upper+lower == len(val) && !readable(val)
	}
	for i, c := range val {
		if (i+1)%(group+1) == 0 != (c == '-' || c == ' ') {
			return false
		}
	}
	return group >= 3 && (len(val)+1)%(group+1) == 0 && (digits > 0 || !wordy(val))
}

// spacedGroups returns where a value ends that is written in groups of one length with a blank between
// them, as keys and passwords for apps are.
func spacedGroups(v []byte, p int, eof bool) (int, outcome) {
	n := 0
	for p+n < len(v) && isAlnum(v[p+n]) && n <= maxGroup {
		n++
	}
	end := p + n
	for end-p < 2*maxName {
		if end == len(v) && !eof {
			return 0, more
		}
		if end == len(v) || v[end] != ' ' {
			break
		}
		next := end + 1
		for next < len(v) && next-end <= n && isAlnum(v[next]) {
			next++
		}
		if next == len(v) && !eof {
			return 0, more
		}
		if next == end+1 && next < len(v) && v[next] > ' ' && n > 2 { // a remark
			break
		}
		if next-end-1 != n || next < len(v) && v[next] > ' ' && v[next] != '"' && v[next] != '\'' {
			return 0, no
		}
		end = next
	}
	if !isSpacedGroups(v[p:end]) {
		return 0, no
	}
	return end, found
}

// isSpacedGroups reports four groups of four to eight, or sixteen bytes in hexadecimal, that are no words.
func isSpacedGroups(val []byte) bool {
	n := bytes.IndexByte(val, ' ')
	if n < 2 || n > maxGroup || n == 3 || (len(val)+1)%(n+1) != 0 {
		return false
	}
	words := 0
	for i := 0; i < len(val); i += n + 1 {
		g := val[i : i+n]
		if i+n < len(val) && val[i+n] != ' ' || !onlyAlnum(g) || n == 2 && !isHex(g) {
			return false
		}
		if inWordList(g) {
			words++
		}
	}
	groups := (len(val) + 1) / (n + 1)
	if n == 2 {
		return groups >= 16
	}
	digits, _, _ := tally(val)
	joined := bytes.ReplaceAll(val, []byte(" "), nil)
	return groups >= 4 && words*4 <= groups && digits < len(joined) && (unlikely(joined) || len(joined) >= 32 && isHex(joined))
}

// isUser reports the name of an account.
func isUser(b []byte) bool {
	for _, c := range b {
		if !isAlnum(c) && strings.IndexByte("._-@+", c) < 0 {
			return false
		}
	}
	return len(b) > 0
}
