package filter

import (
	"bytes"
)

// view is the part of a stream that is still of interest: the raw bytes and the
// visible ones among them. Matching sees visible bytes only, so that a colour
// code inside a token does not hide it.
//
// Invisible are: CSI sequences, charset selection, SO and SI, and the second half
// of an overstrike X BS X. The payload of OSC, DCS and their like is visible, its
// introducer and terminator are visible as ESC and so close every candidate: a
// hyperlink is scanned like a line of its own.
//
// In UTF-16 the zero half of a unit is invisible too. Everything else stays visible, so that
// what follows in one byte a character is read as well.
type view struct {
	raw   []byte
	vis   []byte
	segs  []seg // ascending; the first covers vis[0]
	state escState
	seqAt int // raw index of the ESC or BS under judgement
	near  int // of the segs, for rawAt
	far   int // for visAt
	wide  wideOrder
	last  byte // of the raw bytes that were dropped
	gone  bool // that was not visible
	half  bool // the first byte of a unit is there
	first byte // that
}

// seg maps a run of visible bytes to raw ones: vis+k is at raw+k.
type seg struct{ vis, raw int }

type escState uint8

const (
	ground escState = iota
	afterEsc
	inCSI
	afterCharset
	afterBS
)

const (
	esc = 0x1b
	bs  = 0x08
	so  = 0x0e
	si  = 0x0f
	// maxSeq is where a sequence without end is text again.
	maxSeq = 1024
)

// show makes raw[from:to] visible.
func (v *view) show(from, to int) {
	if from >= to {
		return
	}
	if n := len(v.segs); n == 0 || v.segs[n-1].raw+len(v.vis)-v.segs[n-1].vis != from {
		v.segs = append(v.segs, seg{len(v.vis), from})
	}
	v.vis = append(v.vis, v.raw[from:to]...)
}

// add appends p.
func (v *view) add(p []byte) {
	i := len(v.raw)
	v.raw = append(v.raw, p...)
	if v.wide != narrow {
		v.addWide(i)
		return
	}
	var next [4]int // of ESC, BS, SO, SI; -1 unknown
	for k := range next {
		next[k] = -1
	}
	for i < len(v.raw) {
		if v.state != ground {
			i = v.sequence(i)
			continue
		}
		j := len(v.raw)
		for k, c := range [4]byte{esc, bs, so, si} {
			if next[k] < i {
				next[k] = len(v.raw)
				if at := bytes.IndexByte(v.raw[i:], c); at >= 0 {
					next[k] = i + at
				}
			}
			j = min(j, next[k])
		}
		v.show(i, j)
		if j == len(v.raw) {
			return
		}
		switch v.raw[j] {
		case esc:
			v.state, v.seqAt = afterEsc, j
		case bs:
			v.state, v.seqAt = afterBS, j
		}
		i = j + 1
	}
}

// addWide reads the units from i on. The zero half of a big-endian unit is judged with the
// other one.
func (v *view) addWide(i int) {
	for ; i < len(v.raw); i++ {
		c := v.raw[i]
		if v.half = !v.half; v.half {
			if v.first = c; c != 0 || v.wide == little {
				v.addByte(i)
			}
			continue
		}
		switch {
		case v.first == 0 && c == 0 && v.wide == big:
			v.addByte(i - 1)
		case v.first != 0 && c == 0 && v.wide == little:
			continue
		}
		v.addByte(i)
	}
}

// addByte makes one byte visible, or part of a sequence.
func (v *view) addByte(i int) {
	for v.state != ground {
		if v.sequence(i) > i {
			return
		}
	}
	switch v.raw[i] {
	case esc:
		v.state, v.seqAt = afterEsc, i
	case bs:
		v.state, v.seqAt = afterBS, i
	case so, si:
	default:
		v.show(i, i+1)
	}
}

// sequence handles the byte at i inside a sequence and returns the next index.
func (v *view) sequence(i int) int {
	c := v.raw[i]
	switch v.state {
	case afterEsc:
		switch c {
		case '[':
			v.state = inCSI
			return i + 1
		case '(', ')', '*', '+':
			v.state = afterCharset
			return i + 1
		}
		v.state = ground
		v.show(v.seqAt, v.seqAt+1)
		return i
	case inCSI:
		switch {
		case i-v.seqAt >= maxSeq:
			v.state = ground
			v.show(v.seqAt, i)
			return i
		case c >= 0x40 && c <= 0x7e:
			v.state = ground
			return i + 1
		case c >= 0x20 && c <= 0x3f:
			return i + 1
		}
		v.state = ground
		return i
	case afterCharset:
		v.state = ground
		return i + 1
	}
	v.state = ground
	if n := len(v.vis); n > 0 && v.vis[n-1] == c {
		return i + 1
	}
	v.show(v.seqAt, v.seqAt+1)
	return i
}

// rawAt returns the raw index of the visible byte i.
func (v *view) rawAt(i int) int {
	lo, hi := 0, len(v.segs)
	if k := v.near; k < hi && v.segs[k].vis <= i { // mostly a little further on than the last time
		for last := min(k+8, hi-1); k < last && v.segs[k+1].vis <= i; k++ {
		}
		if lo = k; k+1 == hi || v.segs[k+1].vis > i {
			v.near = k
			return v.segs[k].raw + i - v.segs[k].vis
		}
	}
	for hi-lo > 1 {
		if m := int(uint(lo+hi) >> 1); v.segs[m].vis <= i {
			lo = m
		} else {
			hi = m
		}
	}
	if hi == 0 {
		return i
	}
	v.near = lo
	return v.segs[lo].raw + i - v.segs[lo].vis
}

// hides reports whether what is not visible ends with c right in front of the visible byte i.
func (v *view) hides(i int, c byte) bool {
	r := v.rawAt(i)
	if r == 0 {
		return v.gone && v.last == c
	}
	return v.raw[r-1] == c && (i == 0 || v.rawAt(i-1) < r-1)
}

// visAt returns how many visible bytes stand before the raw index to.
func (v *view) visAt(to int) int {
	if n := len(v.segs); n > 0 && v.segs[n-1].raw <= to { // mostly the end is asked for
		return min(v.segs[n-1].vis+to-v.segs[n-1].raw, len(v.vis))
	}
	lo, hi := 0, len(v.segs)
	if k := v.far; k > 0 && k <= hi && v.segs[k-1].raw <= to { // as in rawAt
		for last := min(k+8, hi); k < last && v.segs[k].raw <= to; k++ {
		}
		if lo = k; k == hi || v.segs[k].raw > to {
			hi = k
		}
	}
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); v.segs[m].raw <= to {
			lo = m + 1
		} else {
			hi = m
		}
	}
	k := lo
	v.far = k
	if k == 0 {
		return 0
	}
	end := len(v.vis)
	if k < len(v.segs) {
		end = v.segs[k].vis
	}
	return min(v.segs[k-1].vis+to-v.segs[k-1].raw, end)
}

// decided is the number of raw bytes of which it is known whether they are visible.
func (v *view) decided() int {
	if v.state != ground {
		return v.seqAt
	}
	return len(v.raw)
}

// rawEnd returns the raw index after the visible byte i-1.
func (v *view) rawEnd(i int) int {
	if i == 0 {
		return 0
	}
	return v.rawAt(i-1) + 1
}

// drop forgets the first cut visible bytes and all raw bytes before the next.
// It returns how many raw bytes went. Raw bytes from keep on stay.
func (v *view) drop(cut, keep int) int {
	rawCut := keep
	if cut < len(v.vis) {
		rawCut = min(keep, v.rawAt(cut))
	}
	if v.state != ground {
		rawCut = min(rawCut, v.seqAt)
	}
	if v.half {
		rawCut = max(min(rawCut, len(v.raw)-1), 0)
	}
	if rawCut > 0 {
		v.last, v.gone = v.raw[rawCut-1], cut == 0 || v.rawAt(cut-1) != rawCut-1
	}
	k := 0
	for k+1 < len(v.segs) && v.segs[k+1].vis <= cut {
		k++
	}
	if len(v.segs) > 0 {
		s := v.segs[k]
		out := append(v.segs[:0], seg{0, s.raw + cut - s.vis - rawCut})
		for _, s := range v.segs[k+1:] {
			out = append(out, seg{s.vis - cut, s.raw - rawCut})
		}
		v.segs, v.near, v.far = out, 0, 0
	}
	v.vis = v.vis[:copy(v.vis, v.vis[cut:])]
	v.raw = v.raw[:copy(v.raw, v.raw[rawCut:])]
	v.seqAt -= rawCut
	return rawCut
}

// openRegion writes what stands before the region that is open.
func (w *Writer) openRegion() {
	if w.flushed {
		return
	}
	w.flushed = true
	v := &w.e.view
	start := v.rawAt(w.e.region.start)
	w.regionAt = w.base + int64(start)
	w.wide = v.wide != narrow && start+1 < len(v.raw) && v.raw[start+1] == 0
	w.emit(start)
}

// closeRegion writes the placeholder of the region that closed.
func (w *Writer) closeRegion() {
	e := &w.e
	r := &e.region
	w.openRegion()
	end := e.view.rawEnd(r.end)
	best := &r.best
	tag := ""
	var value []byte
	if r.hash == nil {
		value = e.view.vis[best.start:best.end]
	}
	crowded := best.layer == layerContext && e.crowd.at(e.base+int64(r.start), crowdLimit)
	switch {
	case best.noTag || crowded:
	case best.layer == layerKnown:
		tag = w.tagOf([]byte(best.known))
	case value == nil:
		if r.hash.n >= minTagged {
			tag = r.hash.sum()
		}
	default:
		tag = w.tagOf(value)
	}
	if value != nil && best.start == r.start && best.end == r.end && w.set.allowed(value) {
		w.flushed = false
		w.emit(end)
	} else {
		if at := w.base + int64(end); w.sniff.inStretch(w.regionAt) {
			w.stars(at - w.regionAt)
		} else {
			text := appendPlaceholder(w.holder[:0], best.rule, tag)
			w.holder = text
			w.collect(end)
			after := append(w.moves, w.colours...)
			if r.start > 0 && e.view.vis[r.start-1] == esc {
				text = append([]byte{' '}, text...) // ESC [ would begin a sequence
			}
			if w.wide {
				text = interleave(text)
				if len(after) > 0 {
					after = append([]byte{0}, interleave(after)...)
				}
			}
			w.sendWhole(text)
			w.pend = append(w.pend, after...)
			e.zoneAgain(r.start, r.end, best.rule)
		}
		w.out = max(w.out, end)
		if w.wide && e.view.wide == little {
			end++ // the zero half of the last unit stays, as that of the placeholder
		}
		w.note(best, tag, w.base+int64(end))
		if value != nil && best.learn && best.layer != layerKnown && !crowded && !w.set.full.Load() && (best.layer != layerContext || mayLearn(value)) {
			w.set.learn(value, best.rule, tag != "")
			e.snap = w.set.current()
		}
	}
	e.edge = r.end
	e.region = region{}
	w.flushed, w.colours, w.moves = false, w.colours[:0], w.moves[:0]
}

// stars stands for a region of a binary stretch, whose length has to stay.
func (w *Writer) stars(n int64) {
	for n > 0 {
		k := min(n, int64(piece))
		w.pend = append(w.pend, bytes.Repeat([]byte("*"), int(k))...)
		if n -= k; len(w.pend) >= piece {
			w.flush()
		}
	}
}

// collect drops raw bytes of the open region up to to, but for the escape sequences that the
// screen still needs: colours from the last reset on, and movements. Erasing a line after what
// is no longer there would erase the placeholder. It takes one sequence after the other, so
// that the result does not depend on how many are there at once.
func (w *Writer) collect(to int) {
	if to <= w.out {
		return
	}
	raw := w.e.view.raw[max(w.out, 0):to]
	w.out = to
	if w.wide {
		raw = bytes.ReplaceAll(raw, []byte{0}, nil)
	}
	for {
		i := bytes.IndexByte(raw, esc)
		if i < 0 || i+1 == len(raw) {
			return
		}
		if raw = raw[i+1:]; raw[0] != '[' {
			continue
		}
		j := 1
		for j < len(raw) && raw[j] >= 0x20 && raw[j] <= 0x3f {
			j++
		}
		if j == len(raw) {
			return
		}
		seq := "\x1b" + string(raw[:j+1])
		switch end := raw[j]; {
		case end == 'm' && (seq == "\x1b[m" || seq == "\x1b[0m"):
			w.colours = append(w.colours[:0], seq...)
		case end == 'm' && len(w.colours)+len(seq) <= maxSeq:
			w.colours = append(w.colours, seq...)
		case end != 'm' && end != 'K' && end >= 0x40 && len(w.moves)+len(seq) <= maxSeq:
			w.moves = append(w.moves, seq...)
		}
	}
}

// note counts a finding.
func (w *Writer) note(best *verdict, tag string, end int64) {
	if n := w.counts[ruleTag{best.rule, tag}]; n != nil {
		*n++
	} else {
		w.count(best.rule, tag)
	}
	if w.keep && len(w.findings) < maxFindings {
		line := w.lines + 1
		if at := int(w.regionAt - w.base); at > 0 {
			line += int64(countLines(w.e.view.raw[:at]))
		}
		w.findings = append(w.findings, Finding{Rule: best.rule, Layer: best.layer.String(), Tag: tag,
			Start: w.regionAt, End: end, Line: line})
	}
}

// ruleTag is what findings are counted by.
type ruleTag struct{ rule, tag string }

// count counts the first finding of a rule and a tag. Beyond maxCounts the tags are left out.
func (w *Writer) count(rule, tag string) {
	if len(w.counts) >= maxCounts {
		if w.over == nil {
			w.over = make(map[string]*int64)
		}
		if w.over[rule] == nil {
			if w.over[rule] = w.counts[ruleTag{rule: rule}]; w.over[rule] == nil {
				w.over[rule] = new(int64)
				w.counts[ruleTag{rule: rule}] = w.over[rule]
			}
		}
		*w.over[rule]++
		return
	}
	if w.counts == nil {
		w.counts = make(map[ruleTag]*int64)
	}
	n := int64(1)
	w.counts[ruleTag{rule, tag}] = &n
}

const (
	// maxCounts and maxFindings keep the memory of a report constant.
	maxCounts   = 4096
	maxFindings = 100_000
)

// compact forgets what is judged and written.
func (w *Writer) compact() {
	e := &w.e
	cut := e.cursor
	if e.mode == inArmour {
		cut = min(e.arm.at, e.arm.bodyEnd)
	} else if e.region.open && e.mode == scanning {
		cut = min(cut, e.region.start)
	}
	for i := range e.names {
		cut = min(cut, e.names[i].at-maxDistance)
	}
	if cut -= history; cut < piece/4 && len(e.view.raw) < 2*piece || cut <= 0 && len(e.view.raw) < 4*piece {
		return
	}
	cut = max(cut, 0)
	before := e.view.raw
	var lines int
	if w.keep {
		keepTo := w.out
		if cut < len(e.view.vis) {
			keepTo = min(keepTo, e.view.rawAt(cut))
		}
		if e.view.state != ground {
			keepTo = min(keepTo, e.view.seqAt)
		}
		lines = countLines(before[:keepTo])
	}
	n := e.view.drop(cut, w.out)
	e.forget(cut)
	w.out -= n
	w.base += int64(n)
	w.lines += int64(lines)
}
