package filter

import (
	"bytes"
	"encoding/binary"
)

// Binary output comes in stretches: `cat picture; env` is one and then text. Where a stretch
// begins and ends depends on the bytes alone, never on how they were cut. Everything is
// searched for known values, keys and tokens, inside a stretch too; context values count
// where their line is text. So a stretch decides three things: what the report says, what
// BinaryBlock drops, and that BinaryMaskKnown keeps lengths.

const (
	// sniffBlock is the block in which control bytes are counted.
	sniffBlock = 8 << 10
	// textEnds is how much text in a row ends a stretch, lineEnds the length of a line that
	// does, linesEnd the number of shorter ones.
	textEnds, lineEnds, linesEnd = 4 << 10, 64, 2
	// minLine is the shortest line that counts among linesEnd.
	minLine = 8
	// maxKept is what BinaryBlock holds back while bytes may turn out to begin a stretch.
	maxKept = 512
)

// sniffer finds the stretches of a stream.
type sniffer struct {
	units    *wideUnit // while the stream is UTF-16
	n        int64     // bytes seen
	head     [16]byte
	counts   bool  // control bytes of this block
	from     int64 // since here
	controls int
	nuls     int // in a row
	inside   bool
	text     int // bytes of text in a row
	line     int // printable bytes of the line, or -1
	lines    int // printable lines in a row
	total    int64
	kept     []byte // BinaryBlock: may belong to a stretch
	settled  bool   // BinaryBlock: the head of the stream went out
	blocked  int64  // BinaryBlock: bytes of this stretch
	spans    []stretch
}

// stretch is a half-open range of offsets in the stream; to is -1 while it lasts.
type stretch struct{ from, to int64 }

func (s *sniffer) waiting() bool { return len(s.kept) > 0 }

// feed reads p up to a border between text and a stretch. It returns the number of bytes
// before the border, and whether there is one.
func (s *sniffer) feed(p []byte) (int, bool) {
	if s.inside {
		return s.feedBinary(p)
	}
	for i := 0; i < len(p); i++ {
		if s.n&(sniffBlock-1) == 0 {
			s.controls, s.counts, s.from = 0, s.n == 0, s.n
		}
		if !s.counts {
			// Behind the first block nothing counts before a NUL: no format does without for long.
			rest := p[i:min(len(p), i+sniffBlock-int(s.n&(sniffBlock-1)))]
			k := bytes.IndexByte(rest, 0)
			if k < 0 {
				s.n += int64(len(rest))
				s.nuls = 0
				i += len(rest) - 1
				continue
			}
			if k > 0 {
				s.nuls = 0
			}
			s.n += int64(k)
			i += k
			s.counts, s.from = true, s.n
		}
		c := p[i]
		at := s.n - s.from
		if c == 0 {
			s.nuls++
		} else {
			s.nuls = 0
		}
		if isControl(c) {
			s.controls++
		}
		if s.n < int64(len(s.head)) {
			s.head[s.n] = c
		}
		if s.nuls == 3 || s.controls >= 4 && int64(s.controls)*20 > at+1 || s.n < 8 && isMagic(s.head[:s.n+1]) {
			s.inside, s.text, s.line, s.lines, s.nuls = true, 0, -1, 0, 0
			return i, true
		}
		s.n++
	}
	return len(p), false
}

const ones, high = 0x0101010101010101, 0x8080808080808080

// printable reports whether eight bytes are all 20 to 7E.
func printable(w uint64) bool {
	del := w ^ 0x7f*ones
	return w&high == 0 && (w+0x60*ones)&high == high && (del+0x7f*ones)&high == high
}

// feedBinary looks for the end of a stretch.
func (s *sniffer) feedBinary(p []byte) (int, bool) {
	for i := 0; i < len(p); i++ {
		if i+8 <= len(p) && s.text < textEnds-8 {
			if printable(binary.LittleEndian.Uint64(p[i:])) {
				s.n += 8
				s.total += 8
				s.text += 8
				if s.line >= 0 {
					s.line += 8
				}
				i += 7
				continue
			}
		}
		c := p[i]
		s.n++
		s.total++
		switch {
		case c == 0 || isControl(c):
			s.text, s.line, s.lines = 0, -1, 0
			continue
		case c == '\n':
			switch {
			case s.line >= minLine:
				s.lines++
			case s.line != 0:
				s.lines = 0
			}
			if s.line >= lineEnds || s.lines >= linesEnd {
				s.resume()
				return i + 1, true
			}
			s.line = 0
		case c >= 0x80:
			s.line = -1
		case s.line >= 0:
			s.line++
		}
		if s.text++; s.text >= textEnds {
			s.resume()
			return i + 1, true
		}
	}
	return len(p), false
}

// resume ends a stretch.
func (s *sniffer) resume() {
	s.inside, s.controls, s.nuls, s.counts, s.from = false, 0, 0, false, s.n
}

// isControl reports control bytes that text has no use for. SOH and STX frame
// prompts, 07 to 0F are bells and blanks, 1B starts escapes, NUL separates lists.
func isControl(c byte) bool {
	return c < 0x20 && c > 0x02 && (c < 0x07 || c > 0x0f) && c != esc || c == 0x7f
}

// isMagic reports the first bytes of formats whose beginning may look like text.
func isMagic(b []byte) bool {
	for _, m := range [...]string{"\x7fELF", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh91AY", "PK\x03\x04", "PK\x05\x06",
		"\x89PNG", "\xff\xd8\xff", "GIF87a", "GIF89a", "%PDF-", "\x00asm", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe",
		"MZ\x90\x00", "SQLite f"} {
		if string(b) == m {
			return true
		}
	}
	return false
}

// route sends bytes to the text filter, and those of a stretch where policy says.
func (w *Writer) route(p []byte) {
	if w.text {
		w.clean(p)
		return
	}
	if w.startsWide(p) {
		return
	}
	if p = w.cleanWide(p); len(p) > 0 {
		w.cleanNarrow(p)
	}
}

// cleanNarrow takes what is not UTF-16.
func (w *Writer) cleanNarrow(p []byte) {
	s := &w.sniff
	if w.set.cfg.Binary == BinaryBlock {
		w.block(p)
		return
	}
	for rest := p; len(rest) > 0; {
		n, border := s.feed(rest)
		rest = rest[n:]
		if border {
			w.border()
		}
	}
	w.clean(p)
}

// border notes that a stretch begins or ends here.
func (w *Writer) border() {
	s := &w.sniff
	if s.inside {
		w.report.Binary = true
	}
	if w.set.cfg.Binary != BinaryMaskKnown {
		return
	}
	for len(s.spans) > 0 && s.spans[0].to >= 0 && s.spans[0].to < w.base {
		s.spans = s.spans[1:]
	}
	if s.inside {
		s.spans = append(s.spans, stretch{s.n, -1})
	} else if n := len(s.spans); n > 0 {
		s.spans[n-1].to = s.n
	}
}

// inStretch reports whether an offset lies in a stretch whose lengths have to stay.
func (s *sniffer) inStretch(at int64) bool {
	for _, sp := range s.spans {
		if at >= sp.from && (sp.to < 0 || at < sp.to) {
			return true
		}
	}
	return false
}

// block drops stretches and puts a line in their place.
func (w *Writer) block(p []byte) {
	s := &w.sniff
	for len(p) > 0 {
		inside := s.inside
		n, border := s.feed(p)
		part := p[:n]
		p = p[n:]
		if inside {
			s.blocked += int64(len(part))
		} else {
			s.kept = append(s.kept, part...)
			w.settleSome()
		}
		switch {
		case !border:
		case s.inside:
			s.blocked += int64(len(s.kept))
			s.total += int64(len(s.kept))
			s.kept, s.settled = nil, true
			w.report.Binary = true
			w.endText()
			w.base += s.blocked
			w.reset()
		default:
			w.sayBlocked()
		}
	}
}

// sayBlocked writes the line that stands for a stretch.
func (w *Writer) sayBlocked() {
	w.send([]byte("[atip-exec: " + decimal(w.sniff.blocked) + " bytes of binary output blocked]\n"))
	w.sniff.blocked = 0
}

// settleSome lets go what cannot begin a stretch any more: all before the first suspicious
// byte of the last maxKept.
func (w *Writer) settleSome() {
	s := &w.sniff
	from := max(0, len(s.kept)-maxKept)
	if !s.settled && len(s.kept) < maxKept {
		return
	}
	s.settled = true
	for from < len(s.kept) && s.kept[from] != 0 && !isControl(s.kept[from]) {
		from++
	}
	if from == 0 {
		return
	}
	w.clean(s.kept[:from])
	s.kept = s.kept[:copy(s.kept, s.kept[from:])]
}

// settle lets all that is kept go.
func (w *Writer) settle() {
	kept := w.sniff.kept
	w.sniff.kept, w.sniff.settled = nil, true
	w.clean(kept)
}

// finish ends the stream, whatever kind it was.
func (w *Writer) finish() {
	w.endHead()
	s := &w.sniff
	if s.waiting() {
		w.settle()
	}
	w.endText()
	if s.blocked > 0 {
		w.sayBlocked()
	}
}

func countLines(b []byte) int { return bytes.Count(b, []byte("\n")) }

func decimal(n int64) string {
	var buf [20]byte
	i := len(buf)
	for {
		i--
		buf[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(buf[i:])
		}
	}
}

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
