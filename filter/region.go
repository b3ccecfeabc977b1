package filter

import "bytes"

// openRegion writes what stands before the region that is open.
func (w *Writer) openRegion() {
	if w.flushed {
		return
	}
	w.flushed = true
	start := w.e.view.rawAt(w.e.region.start)
	w.regionAt = w.base + int64(start)
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
	switch {
	case best.noTag:
	case best.layer == layerKnown:
		tag = w.set.tagOf([]byte(best.known))
	case value == nil:
		if r.hash.n >= minTagged {
			tag = r.hash.sum()
		}
	default:
		tag = w.set.tagOf(value)
	}
	if value != nil && best.start == r.start && best.end == r.end && w.set.allowed(value) {
		w.flushed = false
		w.emit(end)
	} else {
		if at := w.base + int64(end); w.sniff.inStretch(w.regionAt) {
			w.stars(at - w.regionAt)
		} else {
			w.sendWhole(appendPlaceholder(nil, best.rule, tag))
		}
		if !w.sniff.inStretch(w.regionAt) {
			var rest []byte
			if w.out < end {
				rest = w.sequences(max(w.out, 0), end)
			}
			w.pend = append(w.pend, joinSequences(w.colours, rest)...)
		}
		w.out = max(w.out, end)
		w.note(best, tag, w.base+int64(end))
		if value != nil && best.learn && best.layer != layerKnown {
			w.set.learn(value, best.rule, tag != "")
			e.snap = w.set.current()
		}
	}
	e.region = region{}
	w.flushed, w.colours = false, nil
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

// sequences returns the escape sequences of a replaced stretch that the screen
// still needs: colours from the last reset on, and movements. Erasing a line
// after what is no longer there would erase the placeholder.
func (w *Writer) sequences(from, to int) []byte {
	var out []byte
	raw := w.e.view.raw[from:to]
	for i := 0; i < len(raw); i++ {
		if raw[i] != esc || i+1 == len(raw) || raw[i+1] != '[' {
			continue
		}
		j := i + 2
		for j < len(raw) && raw[j] >= 0x20 && raw[j] <= 0x3f {
			j++
		}
		if j == len(raw) {
			break
		}
		switch seq := raw[i : j+1]; {
		case raw[j] == 'm' && (string(seq) == "\x1b[m" || string(seq) == "\x1b[0m"):
			out = append(out[:0], seq...)
		case raw[j] != 'K' && raw[j] >= 0x40 && len(out) < maxSeq:
			out = append(out, seq...)
		}
		i = j
	}
	return out
}

// joinSequences joins the sequences of two stretches: a reset in the second ends what the first
// did.
func joinSequences(first, second []byte) []byte {
	if len(first) == 0 || bytes.HasPrefix(second, []byte("\x1b[m")) || bytes.HasPrefix(second, []byte("\x1b[0m")) {
		return second
	}
	if len(first)+len(second) > maxSeq {
		return first
	}
	return append(first, second...)
}

// note counts a finding.
func (w *Writer) note(best *verdict, tag string, end int64) {
	if w.counts == nil {
		w.counts = make(map[Redaction]int64)
	}
	key := Redaction{Rule: best.rule, Tag: tag, Stream: w.stream.String()}
	if _, ok := w.counts[key]; ok || len(w.counts) < maxCounts {
		w.counts[key]++
	} else {
		w.counts[Redaction{Rule: best.rule, Stream: key.Stream}]++
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
