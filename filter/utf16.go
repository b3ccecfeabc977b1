package filter

// wideOrder says that a stream is UTF-16, and in which order of bytes.
type wideOrder uint8

const (
	narrow wideOrder = iota
	little
	big
)

// wideHead holds the first bytes while they may be UTF-16: a byte order mark, or
// eight units of which every other byte is NUL. The first byte need not wait.
type wideHead struct {
	done bool
	sent bool // the first byte is judged
	buf  []byte
}

const wideUnits = 8

// judge reports whether the bytes say UTF-16, and of which order.
func (h *wideHead) judge() (outcome, wideOrder) {
	b := h.buf
	order := little
	switch {
	case b[0] == 0xff || b[0] == 0xfe:
		if len(b) < 2 {
			return more, order
		}
		if b[0] == 0xfe {
			order = big
		}
		if b[0]^b[1] == 1 && b[1] >= 0xfe {
			return found, order
		}
		return no, order
	case b[0] == 0:
		order = big
	}
	for i, c := range b {
		if (i%2 == 0) == (order == big) {
			if c != 0 {
				return no, order
			}
		} else if c == 0 || c >= 0x80 {
			return no, order
		}
	}
	if len(b) < 2*wideUnits {
		return more, order
	}
	return found, order
}

// startsWide handles the first bytes of a stream and reports whether it took p.
func (w *Writer) startsWide(p []byte) bool {
	h := &w.head
	if h.done {
		return false
	}
	if len(h.buf) == 0 && len(p) >= 2 && p[0] != 0 && p[0] < 0xfe && p[1] != 0 {
		h.done = true
		return false
	}
	for i, c := range p {
		h.buf = append(h.buf, c)
		o, order := h.judge()
		if o == more {
			if len(h.buf) == 1 && c != 0 && c < 0x80 {
				h.sent = true
				w.cleanNarrow(h.buf)
			}
			continue
		}
		h.done = true
		held := h.buf
		if h.sent {
			held = held[1:]
		}
		if o == found {
			if w.sniff.waiting() {
				w.settle()
			}
			w.sniff.units = &wideUnit{order: order, half: h.sent, first: h.buf[0]}
			v := &w.e.view
			v.wide, v.half, v.first = order, h.sent, h.buf[0]
		}
		w.route(append(append([]byte(nil), held...), p[i+1:]...))
		return true
	}
	return true
}

// endHead lets held first bytes go as text.
func (w *Writer) endHead() {
	h := &w.head
	if h.done || len(h.buf) == 0 {
		return
	}
	h.done = true
	if h.sent {
		h.buf = h.buf[1:]
	}
	if len(h.buf) > 0 {
		w.route(h.buf)
	}
}

// reset starts the engine afresh.
func (w *Writer) reset() {
	w.base += int64(len(w.e.view.raw))
	w.e = engine{set: w.set, terminal: w.stream == PTY, named: w.e.named}
	w.out = 0
}

// wideUnit counts the units of UTF-16 that speak against it. It is no verdict on the stream
// either: two bytes at its beginning must not change how the rest is read.
type wideUnit struct {
	order    wideOrder
	n        int64
	half     bool
	first    byte
	last     uint // unit
	zeros    int  // in a row
	controls int
	pairs    int // in a row, of two characters of text in one byte each
}

const (
	// maxPairs is how many pairs of characters in a row are no UTF-16: as ideographs they are rare.
	maxPairs = 32
	// unitBlock is the block in which control characters are counted.
	unitBlock = sniffBlock / 2
)

// feed reads one byte and reports whether the stream is no UTF-16 behind it.
func (u *wideUnit) feed(c byte) bool {
	if u.half = !u.half; u.half {
		u.first = c
		return false
	}
	r, last := uint(u.first)|uint(c)<<8, u.last
	if u.order == big {
		r = uint(u.first)<<8 | uint(c)
	}
	if u.n%unitBlock == 0 {
		u.controls = 0
	}
	u.last = r
	u.n++
	if r == 0 {
		u.zeros++
	} else {
		u.zeros = 0
	}
	if r < 0x80 && isControl(byte(r)) {
		u.controls++
	}
	if isTextByte(u.first) && isTextByte(c) {
		u.pairs++
	} else {
		u.pairs = 0
	}
	paired := last>>10 == 0xd800>>10
	return u.zeros == 3 || u.pairs == maxPairs || r >= 0xfffe || paired != (r>>10 == 0xdc00>>10) ||
		u.controls >= 4 && int64(u.controls)*20 > (u.n-1)%unitBlock+1
}

// isTextByte reports what text in one byte a character is made of.
func isTextByte(c byte) bool {
	return c >= 0x20 && c < 0x7f || c == '\n' || c == '\r' || c == '\t' || c == esc
}

// cleanWide cleans what is UTF-16 of p and returns the rest.
func (w *Writer) cleanWide(p []byte) []byte {
	u := w.sniff.units
	if u == nil {
		return p
	}
	for i, c := range p {
		if !u.feed(c) {
			continue
		}
		w.clean(p[:i+1])
		w.sniff.units = nil
		w.sniff.n = w.base + int64(len(w.e.view.raw))
		w.sniff.resume()
		w.e.view.wide, w.e.view.half = narrow, false
		return p[i+1:]
	}
	w.clean(p)
	return nil
}

// interleave puts a NUL between the bytes of text, as in UTF-16 of either order.
func interleave(text []byte) []byte {
	out := make([]byte, 0, 2*len(text))
	for i, c := range text {
		if i > 0 {
			out = append(out, 0)
		}
		out = append(out, c)
	}
	return out
}
