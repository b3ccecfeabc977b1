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
	joined  bool // lines are joined by spaces
	lead    lineLead
}

// lineLead is what stands before the begin line of a key, and may stand before each of its lines:
// the mark of a diff or a quotation; or whatever a log, grep or cat -n puts there, whose numbers
// change.
type lineLead struct {
	marker byte
	text   string
}

// maxLead bounds the text before the begin line.
const maxLead = 64

// leadAt returns what stands before the begin line at i.
func leadAt(v []byte, i int) lineLead {
	out := lineLead{marker: markerOf(v, i)}
	from := i
	for from > 0 && i-from <= maxLead && v[from-1] != '\n' {
		from--
	}
	if text := bytes.TrimRight(v[from:i], " \t"); i-from <= maxLead && len(text) > 0 && !(len(text) == 1 && text[0] == out.marker) {
		out.text = string(text)
	}
	return out
}

// skip returns what of a line is behind the text, and whether the line may still be too short to
// tell. Numbers may be others, and longer.
func (l *lineLead) skip(line []byte) (int, bool) {
	if l.text == "" {
		return 0, false
	}
	p, q := 0, 0
	for q < len(l.text) {
		c := l.text[q]
		blank, digit := c == ' ', isDigit(c)
		if !blank && !digit {
			if p == len(line) {
				return 0, true
			}
			if line[p] != c {
				return 0, false
			}
			p, q = p+1, q+1
			continue
		}
		for q < len(l.text) && (l.text[q] == ' ' || isDigit(l.text[q])) {
			q++
		}
		from := p
		for p < len(line) && (line[p] == ' ' || isDigit(line[p])) {
			p++
		}
		if p == len(line) {
			return 0, true
		}
		if p == from {
			return 0, false
		}
	}
	return p, false
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

// A line of more than limit bytes counts as several.
func readArmourLine(v []byte, p int, lead lineLead, eof bool) armourLine {
	limit := p + 2*maxRun
	q := p
	for q < len(v) && q < limit && v[q] != '\n' && v[q] != 0 {
		if v[q] == '\\' {
			r := q
			for r < len(v) && v[r] == '\\' {
				r++
			}
			if r == len(v) && !eof {
				return strip(v, lead, armourLine{from: p, to: q, next: q})
			}
			if r < len(v) && v[r] == 'n' {
				return strip(v, lead, armourLine{p, q, r + 1, true})
			}
			if r < len(v) && v[r] == 'r' {
				// \r\n, escaped; a bare \r ends a line as well
				s := r + 1
				for s < len(v) && v[s] == '\\' {
					s++
				}
				if s == len(v) && !eof {
					return strip(v, lead, armourLine{from: p, to: q, next: q})
				}
				if s > r+1 && s < len(v) && v[s] == 'n' {
					return strip(v, lead, armourLine{p, q, s + 1, true})
				}
				return strip(v, lead, armourLine{p, q, r + 1, true})
			}
			q = r
			continue
		}
		q++
	}
	if q < len(v) && v[q] == '\n' {
		return strip(v, lead, armourLine{p, q, q + 1, true})
	}
	return strip(v, lead, armourLine{p, q, q, eof || q == limit || q < len(v)})
}

func strip(v []byte, lead lineLead, l armourLine) armourLine {
	start := l.from
	n, short := lead.skip(v[l.from:l.to])
	if l.from += n; short {
		if !l.whole {
			l.from = l.to // the text may go on
			return l
		}
	}
	trim := func() {
		for l.from < l.to && isFringe(v[l.from]) {
			l.from++
		}
	}
	trim()
	if lead.marker != 0 && l.from < l.to && v[l.from] == lead.marker {
		l.from++
		trim()
	}
	for l.to > l.from && (isFringe(v[l.to-1]) || v[l.to-1] == '+' && l.to-2 >= start && v[l.to-2] == ' ') {
		l.to--
	}
	return l
}

// isFringe reports what stands around a line inside a string or a list.
func isFringe(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '"' || c == '\'' || c == ',' || c == '\\'
}

// markerOf returns the diff or quotation mark before the begin line at i.
func markerOf(v []byte, i int) byte {
	for i > 0 && (v[i-1] == ' ' || v[i-1] == '\t') {
		i--
	}
	if i > 0 {
		switch c := v[i-1]; c {
		case '+', '-', '>', '|':
			return c
		}
	}
	return 0
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
	if colon < 2 || colon > 32 || colon+1 < len(t) && t[colon+1] != ' ' || bytes.Contains(t, []byte(placeholderHead)) {
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
func (m *headMemo) matchArmour(v []byte, i int, head string, eof bool) verdict {
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
		for p < len(v) && p-i < 80 && (isAlnum(v[p]) || v[p] == ' ') {
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
		if !bytes.Contains(label, []byte("PRIVATE KEY")) && !bytes.Contains(label, []byte("OpenVPN Static key")) {
			return verdict{}
		}
		for p < len(v) && v[p] == '-' {
			p++
		}
		if p == len(v) {
			return wait
		}
	}
	lead := leadAt(v, i)
	for first := true; ; first = false {
		if !first {
			if p = m.skip(p, lead); p-i > maxHeadHeld {
				return verdict{}
			}
		}
		if p < len(v) && noHeadLine(v, p, lead) {
			return verdict{}
		}
		l := readArmourLine(v, p, lead, eof)
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
		if !first {
			m.read(p, l.next, lead)
		}
		p = l.next
	}
}

// headMemo remembers headers and blank lines that were read once, side by side: heads in a row
// would read them again each.
type headMemo struct {
	from, to int
	lead     lineLead
}

func (m *headMemo) forget(cut int) { m.from, m.to = m.from-cut, m.to-cut }

// skip returns the start of the first line from p on that was not read.
func (m *headMemo) skip(p int, lead lineLead) int {
	if m.lead == lead && p >= m.from && p < m.to {
		return m.to
	}
	return p
}

func (m *headMemo) read(p, next int, lead lineLead) {
	if m.lead == lead && p == m.to {
		m.to = next
		return
	}
	*m = headMemo{p, next, lead}
}

// noHeadLine reports a line that its beginning shows to be neither blank nor a header nor of a
// body.
func noHeadLine(v []byte, p int, lead lineLead) bool {
	line := v[p:min(len(v), p+2*maxLead)]
	if k := bytes.IndexByte(line, '\n'); k >= 0 {
		line = line[:k]
	}
	n, short := lead.skip(line)
	if p += n; short {
		return false
	}
	blanks := func() {
		for p < len(v) && (v[p] == '+' && p+1 < len(v) && v[p+1] == '\n' || v[p] == ' ' || v[p] == '\t' || v[p] == '\r' || v[p] == '"' || v[p] == '\'' || v[p] == ',') {
			p++
		}
	}
	blanks()
	if lead.marker != 0 && p < len(v) && v[p] == lead.marker {
		p++
		blanks()
	}
	if p == len(v) || v[p] == '\n' || v[p] == 0 || v[p] == '\\' {
		return false
	}
	set := &sets[setBase64Pad]
	if !set.has(v[p]) {
		return true
	}
	from := p
	for p < len(v) && p-from < minBody && set.has(v[p]) {
		p++
	}
	if p == len(v) || p-from == minBody {
		return false
	}
	for p = from; p < len(v) && p-from < 34 && (isAlnum(v[p]) || v[p] == '-'); {
		p++
	}
	return p < len(v) && v[p] != ':'
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
	e.arm = armourState{at: r.end, bodyEnd: r.end, size: r.end - r.start, lead: leadAt(e.view.vis, r.start)}
	e.region.hash = e.set.newTag()
	e.cursor = max(e.cursor, r.end)
}

// eatArmour reads body lines and reports whether the key ended. The judgement of
// a line needs all of it and the beginning of the next one: the last line is
// shorter, and so is the first line of what follows a key cut short.
func (e *engine) eatArmour(eof bool) bool {
	v, a := e.view.vis, &e.arm
	for a.size <= maxArmour {
		l := readArmourLine(v, a.at, a.lead, eof)
		if end, o := endLine(v[l.from:l.to], l.whole); o == more {
			return false
		} else if o == found {
			a.bodyEnd = l.from + end
			break
		}
		if !l.whole {
			return false
		}
		if l.from == l.to { // a blank line
			if l.next == a.at {
				break
			}
			a.size += l.next - a.at
			a.at = l.next
			continue
		}
		b := l.body(v)
		if b == 0 {
			break
		}
		if isChecksum(v[l.from:l.to]) { // the end line of OpenPGP follows
			o := e.endAhead(l.next, eof)
			if o == more {
				return false
			}
			if o == no {
				break
			}
			e.region.hash.write(v[l.from:l.to])
			a.size += l.next - a.at
			a.at, a.bodyEnd = l.next, l.to
			continue
		}
		if b < l.to-l.from {
			first := a.width == 0 && !a.joined
			rest := v[l.from+b : l.to]
			l.to, l.next = l.from+b, l.from+b
			switch {
			case bytes.HasPrefix(rest, []byte("----")): // the end line right behind the body
			case rest[0] == ' ' && (first || a.joined):
				a.joined = true // lines joined by spaces, as in a variable that was not quoted
			case first: // it was enough to begin with, so it goes; nothing more does
				e.region.hash.write(v[l.from:l.to])
				a.bodyEnd = l.to
				return e.endArmour()
			default:
				return e.endArmour()
			}
			if b < minBody {
				o := e.endAhead(l.next, eof)
				if o == more {
					return false
				}
				if o == no {
					return e.endArmour()
				}
			}
		} else if a.short {
			break // two short lines: the first was the last
		} else if a.width == 0 {
			a.width = b
		} else if b < a.width {
			o := e.endAhead(l.next, eof)
			if o == more {
				return false
			}
			if o == no && b < minBody {
				break // a word of the log behind a key that was cut
			}
			a.short = true
		}
		e.region.hash.write(v[l.from:l.to])
		a.size += l.next - a.at
		a.at, a.bodyEnd = l.next, l.to
	}
	return e.endArmour()
}

// isChecksum reports the checksum line of OpenPGP (RFC 4880, 6.1).
func isChecksum(line []byte) bool { return len(line) == 5 && line[0] == '=' }

// endArmour closes the region after the last body line or the end line.
func (e *engine) endArmour() bool {
	e.mode = scanning
	e.cursor, e.region.end = e.arm.bodyEnd, max(e.region.end, e.arm.bodyEnd) // a known value may go further
	return true
}

// endLine reports whether a line is an end line, and the length of that.
func endLine(line []byte, whole bool) (int, outcome) {
	head, dashes := "-----END", "-----"
	if bytes.HasPrefix(line, []byte("---- ")) {
		head, dashes = "---- END", "----"
	}
	if !bytes.HasPrefix(line, []byte(head)) {
		return 0, no
	}
	i := bytes.Index(line[len(head):], []byte(dashes))
	switch {
	case i >= 0:
		return len(head) + i + len(dashes), found
	case whole:
		return len(line), found
	}
	return 0, more
}

// lookAhead is how much of the next line decides whether it is the end line.
const lookAhead = 64 + maxLead

// endAhead reports whether an end line begins at p.
func (e *engine) endAhead(p int, eof bool) outcome {
	v := e.view.vis
	if len(v)-p < lookAhead && !eof {
		return more
	}
	window := v[p:min(len(v), p+lookAhead)]
	l := readArmourLine(window, 0, e.arm.lead, true)
	if bytes.HasPrefix(window[l.from:l.to], []byte("----")) {
		return found
	}
	return no
}
