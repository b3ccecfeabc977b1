package filter

import "bytes"

// armourHead begins the armour of RFC 7468, PEM and OpenPGP.
const armourHead = "-----BEGIN "

// sshHead begins the armour of RFC 4716.
const sshHead = "---- BEGIN "

// puttyHead begins the private half of a PuTTY key.
const puttyHead = "Private-Lines: "

const (
	// maxArmour is where a key without an end line stops eating the log.
	maxArmour = 64 << 10
	// maxHeadHeld is how much may come before the body.
	maxHeadHeld = 1024
	minBody     = 16
)

// armourState is where the reading of a committed key stands.
type armourState struct {
	at      int // line under judgement
	bodyEnd int // after the last body line
	width   int // of the first body line
	size    int // bytes read
	short   bool
	inLine  bool // in the middle of a long line
}

func (a *armourState) forget(cut int) {
	a.at -= cut
	a.bodyEnd -= cut
}

// armourLine is one line of armour, stripped of indent, diff marks, quotes and
// the forms in which a line break is escaped.
type armourLine struct {
	from, to int // content
	next     int // start of the next line
	whole    bool
}

func readArmourLine(v []byte, p int, eof bool) armourLine {
	limit := p + 2*maxRun
	q := p
	for q < len(v) && q < limit && v[q] != '\n' && v[q] != 0 {
		if v[q] == '\\' {
			r := q
			for r < len(v) && v[r] == '\\' {
				r++
			}
			if r == len(v) && !eof {
				return strip(v, armourLine{from: p, to: q, next: q})
			}
			if r < len(v) && v[r] == 'n' {
				return strip(v, armourLine{p, q, r + 1, true})
			}
			if r < len(v) && v[r] == 'r' {
				// \r\n, escaped; a bare \r ends a line as well
				s := r + 1
				for s < len(v) && v[s] == '\\' {
					s++
				}
				if s == len(v) && !eof {
					return strip(v, armourLine{from: p, to: q, next: q})
				}
				if s > r+1 && s < len(v) && v[s] == 'n' {
					return strip(v, armourLine{p, q, s + 1, true})
				}
				return strip(v, armourLine{p, q, r + 1, true})
			}
			q = r
			continue
		}
		q++
	}
	if q < len(v) && v[q] == '\n' {
		return strip(v, armourLine{p, q, q + 1, true})
	}
	return strip(v, armourLine{p, q, q, eof || q == limit || q < len(v)})
}

func strip(v []byte, l armourLine) armourLine {
	trim := func(c byte) bool {
		return c == ' ' || c == '\t' || c == '\r' || c == '"' || c == '\'' || c == ',' || c == '\\'
	}
	for l.from < l.to && trim(v[l.from]) {
		l.from++
	}
	if l.from < l.to && (v[l.from] == '>' || v[l.from] == '|' || v[l.from] == '-' && !bytes.HasPrefix(v[l.from:l.to], []byte("----")) ||
		v[l.from] == '+' && l.from+1 < l.to && (v[l.from+1] == '-' || v[l.from+1] == ' ' || (l.to-l.from)%4 == 1)) {
		l.from++
		for l.from < l.to && trim(v[l.from]) {
			l.from++
		}
	}
	for l.to > l.from && (trim(v[l.to-1]) || v[l.to-1] == '+' && l.to-2 >= l.from && v[l.to-2] == ' ') {
		l.to--
	}
	return l
}

// body returns the length of the base64 run the line starts with.
func (l armourLine) body(v []byte) int {
	set := &sets[setBase64Pad]
	p := l.from
	for p < l.to && set.has(v[p]) {
		p++
	}
	return p - l.from
}

func (l armourLine) isHeader(v []byte) bool {
	t := v[l.from:l.to]
	colon := bytes.IndexByte(t, ':')
	if colon < 2 || colon > 32 || colon+1 < len(t) && t[colon+1] != ' ' {
		return false
	}
	for _, c := range t[:colon] {
		if !isAlnum(c) && c != '-' {
			return false
		}
	}
	return isAlpha(t[0])
}

// matchArmour judges the begin line of a private key. Nothing is masked before
// sixteen characters of a body: a begin line in prose stays.
func matchArmour(v []byte, i int, head string, eof bool) verdict {
	wait := verdict{outcome: more, loose: true}
	if eof {
		wait = verdict{}
	}
	n := min(len(head), len(v)-i)
	if string(v[i:i+n]) != head[:n] {
		return verdict{}
	}
	if n < len(head) {
		return wait
	}
	p := i + n
	if head == puttyHead {
		for p < len(v) && p-i-n < 4 && isDigit(v[p]) {
			p++
		}
	} else {
		for p < len(v) && p-i < 80 && (isUpper(v[p]) || isDigit(v[p]) || v[p] == ' ') {
			p++
		}
	}
	if p == len(v) {
		return wait
	}
	if head != puttyHead {
		if v[p] != '-' {
			return verdict{}
		}
		label := v[i+n : p]
		if !bytes.Contains(label, []byte("PRIVATE KEY")) {
			return verdict{}
		}
		for p < len(v) && v[p] == '-' {
			p++
		}
		if p == len(v) {
			return wait
		}
	}
	for first := true; ; first = false {
		l := readArmourLine(v, p, eof)
		b := l.body(v)
		switch {
		case b >= minBody:
			// All on one line is possible too: what follows the run is judged later.
			return verdict{outcome: armoured, layer: layerArmour, start: i, end: l.from, rule: "private-key"}
		case l.next-i > maxHeadHeld:
			return verdict{}
		case !l.whole:
			if l.to > l.from && b < l.to-l.from && !headerSoFar(v[l.from:l.to]) && !first {
				return verdict{}
			}
			return wait
		case l.from == l.to || l.isHeader(v):
		default:
			return verdict{}
		}
		if l.next == p {
			return verdict{}
		}
		p = l.next
	}
}

// headerSoFar reports whether an unfinished line may become a header.
func headerSoFar(t []byte) bool {
	for i, c := range t {
		if c == ':' {
			return i >= 2
		}
		if !isAlnum(c) && c != '-' {
			return false
		}
	}
	return true
}

// startArmour begins to read a committed key; r.end is the start of its body.
func (e *engine) startArmour(r verdict) {
	e.mode = inArmour
	e.arm = armourState{at: r.end, bodyEnd: r.end, size: r.end - r.start}
	e.region.hash = e.set.newTag()
	e.cursor = max(e.cursor, r.end)
}

// eatArmour reads body lines and reports whether the key ended. The judgement of
// a line needs all of it and the beginning of the next one: the last line is
// shorter, and so is the first line of what follows a key cut short.
func (e *engine) eatArmour(eof bool) bool {
	v, a := e.view.vis, &e.arm
	for {
		if a.size > maxArmour {
			break
		}
		l := readArmourLine(v, a.at, eof)
		b := l.body(v)
		if bytes.HasPrefix(v[l.from:l.to], []byte("-----END")) || bytes.HasPrefix(v[l.from:l.to], []byte("---- END")) {
			end := bytes.Index(v[min(l.from+8, l.to):l.to], []byte("----"))
			if end < 0 && !l.whole {
				return false
			}
			a.bodyEnd = l.to
			if end >= 0 {
				a.bodyEnd = l.from + 8 + end
				for a.bodyEnd < l.to && v[a.bodyEnd] == '-' {
					a.bodyEnd++
				}
				if a.bodyEnd == len(v) && !eof && a.bodyEnd-(l.from+8+end) < 5 {
					return false
				}
			}
			break
		}
		if !l.whole && l.to-l.from < maxRun {
			return false
		}
		if l.from == l.to { // a blank line or an escaped one
			if l.next == a.at || a.size-0 > maxArmour {
				break
			}
			a.size += l.next - a.at
			a.at = l.next
			continue
		}
		if b == 0 || b < l.to-l.from && !(v[l.from+b] == ' ' || v[l.from+b] == '-' && v[l.from+b-1] != ' ') {
			break
		}
		if b < l.to-l.from {
			// Several body lines joined by spaces, or the end line right behind.
			if b < minBody && a.width == 0 {
				break
			}
			l.to, l.next = l.from+b, l.from+b
			if b < minBody && !bytes.HasPrefix(bytes.TrimLeft(v[l.to:], " "), []byte("-----END")) {
				if len(v)-l.to < 64 && !eof {
					return false
				}
				break
			}
		} else if a.short {
			break // two short lines: the first was the last
		} else if a.width == 0 {
			a.width = b
		} else if b < a.width {
			a.short = true
			if b < minBody && !eof && !l.whole {
				return false
			}
			if !endFollows(v, l.next, eof) {
				if len(v)-l.next < 64 && !eof {
					a.short = false
					return false
				}
				if b < minBody {
					break
				}
			}
		}
		if !l.whole && b >= maxRun {
			l.next = l.to
		}
		e.region.hash.write(v[l.from:l.to])
		a.size += l.next - a.at
		a.at, a.bodyEnd = l.next, l.to
	}
	e.mode = scanning
	e.cursor, e.region.end = a.bodyEnd, a.bodyEnd
	return true
}

// endFollows reports whether the next line is an end line.
func endFollows(v []byte, p int, eof bool) bool {
	l := readArmourLine(v, p, eof)
	return bytes.HasPrefix(v[l.from:l.to], []byte("---"))
}
