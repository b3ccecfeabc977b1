package filter

import "bytes"

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
	crowded := best.layer == layerContext && e.crowd.at(e.base+int64(r.start))
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
