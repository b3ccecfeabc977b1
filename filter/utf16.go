package filter

// utf16Stream carries a UTF-16 stream through the text filter: each unit becomes
// the UTF-8 of its number, surrogates included, so that the way back is exact.
type utf16Stream struct {
	big  bool
	odd  []byte // half a unit
	tail []byte // half a rune on the way back
}

// wideHead holds the first bytes while they may be UTF-16: a byte order mark, or
// eight units of which every other byte is NUL. Without a mark the first byte
// need not wait, because the first unit is never masked.
type wideHead struct {
	done bool
	sent bool // the first byte is out
	buf  []byte
}

const wideUnits = 8

// judge reports whether the bytes say UTF-16, and of which order.
func (h *wideHead) judge() (o outcome, big bool) {
	b := h.buf
	switch {
	case b[0] == 0xff || b[0] == 0xfe:
		if len(b) < 2 {
			return more, false
		}
		if b[0]^b[1] == 1 && b[1] >= 0xfe {
			return found, b[0] == 0xfe
		}
		return no, false
	case b[0] == 0:
		big = true
	}
	for i, c := range b {
		if (i%2 == 0) == big {
			if c != 0 {
				return no, big
			}
		} else if c == 0 || c >= 0x80 {
			return no, big
		}
	}
	if len(b) < 2*wideUnits {
		return more, big
	}
	return found, big
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
		o, big := h.judge()
		switch {
		case o == more && len(h.buf) == 1 && c != 0 && c < 0x80:
			h.sent = true
			w.sniff.feed(h.buf)
			w.clean(h.buf)
		case o == more:
		case o == found:
			h.done = true
			w.endText()
			skip := 0
			if h.sent {
				w.send(h.buf[1:2])
				skip = 2
			}
			w.wide = &utf16Stream{big: big}
			w.reset()
			w.cleanWide(h.buf[skip:])
			w.cleanWide(p[i+1:])
			return true
		default:
			h.done = true
			skip := 0
			if h.sent {
				skip = 1
			}
			w.route(append(append([]byte(nil), h.buf[skip:]...), p[i+1:]...))
			return true
		}
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

// reset starts the engine afresh for a stream of another encoding.
func (w *Writer) reset() {
	w.base += int64(len(w.e.view.raw))
	w.e = engine{set: w.set, terminal: w.stream == PTY}
	w.out = 0
}

func (w *Writer) cleanWide(p []byte) {
	u := w.wide
	buf := append(u.odd, p...)
	out := make([]byte, 0, len(buf))
	i := 0
	for ; i+1 < len(buf); i += 2 {
		r := uint(buf[i]) | uint(buf[i+1])<<8
		if u.big {
			r = uint(buf[i])<<8 | uint(buf[i+1])
		}
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r < 0x800:
			out = append(out, 0xc0|byte(r>>6), 0x80|byte(r&0x3f))
		default:
			out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
		}
	}
	u.odd = append([]byte(nil), buf[i:]...)
	if len(out) > 0 {
		w.clean(out)
	}
}

// widen is the way back.
func (u *utf16Stream) widen(b []byte) []byte {
	b = append(u.tail, b...)
	out := make([]byte, 0, 2*len(b))
	i := 0
	for i < len(b) {
		n, r := 1, uint(b[i])
		switch {
		case b[i] >= 0xe0:
			n = 3
		case b[i] >= 0xc0:
			n = 2
		}
		if i+n > len(b) {
			break
		}
		switch n {
		case 2:
			r = uint(b[i]&0x1f)<<6 | uint(b[i+1]&0x3f)
		case 3:
			r = uint(b[i]&0x0f)<<12 | uint(b[i+1]&0x3f)<<6 | uint(b[i+2]&0x3f)
		}
		i += n
		if u.big {
			out = append(out, byte(r>>8), byte(r))
		} else {
			out = append(out, byte(r), byte(r>>8))
		}
	}
	u.tail = append([]byte(nil), b[i:]...)
	return out
}

// endWide ends a UTF-16 stream; a last half unit goes out as it is.
func (w *Writer) endWide() {
	w.endText()
	odd := w.wide.odd
	w.wide = nil
	w.send(odd)
}
