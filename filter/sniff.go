package filter

import "bytes"

// sniffAt is how far into a stream it can turn out to be binary. The decision
// falls at a fixed offset, not per read, so that it does not depend on the cuts.
const sniffAt = 8 << 10

// sniffer decides whether a stream is text, binary or UTF-16.
type sniffer struct {
	n        int // bytes seen
	head     [16]byte
	controls int
	nuls     int
	decided  bool
	kept     []byte // block mode: not a byte of a binary stream is shown
	settled  bool
	binary   bool
	blocked  int64
}

func (s *sniffer) waiting() bool { return len(s.kept) > 0 }

// feed returns how many bytes of p are before the point at which the stream
// turns binary, and whether it does.
func (s *sniffer) feed(p []byte) (int, bool) {
	for i, c := range p {
		if s.n < len(s.head) {
			s.head[s.n] = c
		}
		s.n++
		switch {
		case c == 0:
			if s.nuls++; s.nuls == 3 {
				return i, true
			}
		default:
			s.nuls = 0
			if isControl(c) {
				s.controls++
			}
		}
		if s.controls >= 4 && s.controls*20 > s.n || s.n <= 8 && isMagic(s.head[:s.n]) {
			return i, true
		}
		if s.n >= sniffAt {
			s.decided = true
			return len(p), false
		}
	}
	return len(p), false
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

// route sends bytes to the text filter or past it.
func (w *Writer) route(p []byte) {
	s := &w.sniff
	if w.wide != nil {
		w.cleanWide(p)
		return
	}
	if s.binary {
		w.passBinary(p)
		return
	}
	if w.text || s.decided {
		w.clean(p)
		return
	}
	if w.set.cfg.Binary != BinaryBlock && w.startsWide(p) {
		return
	}
	n, binary := s.feed(p)
	if w.set.cfg.Binary == BinaryBlock && !s.settled {
		s.kept = append(s.kept, p[:n]...)
		switch {
		case binary:
			s.blocked += int64(len(s.kept))
			s.kept = nil
		case len(s.kept) >= 512 || s.decided:
			w.settle()
		}
	} else if n > 0 {
		w.clean(p[:n])
	}
	if binary {
		w.endText()
		s.binary, w.report.Binary = true, true
		w.passBinary(p[n:])
	}
}

// settle lets the first bytes go in block mode.
func (w *Writer) settle() {
	kept := w.sniff.kept
	w.sniff.kept, w.sniff.settled = nil, true
	w.clean(kept)
}

// passBinary treats bytes of a binary stream as policy says.
func (w *Writer) passBinary(p []byte) {
	switch w.set.cfg.Binary {
	case BinaryPass:
		w.send(p)
	case BinaryMaskKnown:
		w.maskKnown(p, false)
	default:
		w.sniff.blocked += int64(len(p))
	}
}

// maskKnown replaces raw known values by asterisks of the same length.
func (w *Writer) maskKnown(p []byte, eof bool) {
	w.pend = append(w.pend, p...)
	snap := w.set.snap.Load()
	longest := 0
	for i := range snap.needles {
		longest = max(longest, len(snap.needles[i].text))
		needle := []byte(snap.needles[i].text)
		for from := 0; ; {
			at := bytes.Index(w.pend[from:], needle)
			if at < 0 {
				break
			}
			for k := range needle {
				w.pend[from+at+k] = '*'
			}
			from += at + len(needle)
		}
	}
	keep := max(longest-1, 0)
	if eof {
		keep = 0
	}
	if n := len(w.pend) - keep; n > 0 {
		w.send(w.pend[:n])
		w.pend = w.pend[:copy(w.pend, w.pend[n:])]
	}
}

// finish ends the stream, whatever kind it was.
func (w *Writer) finish() {
	if w.wide != nil {
		w.endWide()
		return
	}
	w.endHead()
	s := &w.sniff
	if s.waiting() {
		w.settle()
	}
	switch {
	case !s.binary:
		w.endText()
	case w.set.cfg.Binary == BinaryMaskKnown:
		w.maskKnown(nil, true)
	case w.set.cfg.Binary == BinaryBlock:
		w.send([]byte("[atip-exec: " + decimal(s.blocked) + " bytes of binary output blocked]\n"))
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
