package filter

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// IdleAfter is how long a stream with held bytes may pause before Idle is called.
const IdleAfter = 25 * time.Millisecond

const (
	// history is how many judged bytes stay for looks to the left.
	history = 256
	// piece is how much of a large write is judged at once.
	piece = 64 << 10
)

// Writer cleans one stream. It is used by one goroutine at a time.
//
// After each Write all bytes before the earliest possible secret are out. If
// Held is greater than zero after a Write, the caller arms a timer of IdleAfter
// and calls Idle when no further bytes came.
type Writer struct {
	set    *Set
	dst    io.Writer
	atomic interface{ WriteAtomic([]byte) (int, error) }
	stream Stream

	e        engine
	out      int   // raw bytes before are written or dropped
	base     int64 // of view.raw[0] in the stream
	lines    int64 // newlines before base
	pend     []byte
	colours  []byte // sequences of the open region
	moves    []byte
	wide     bool // it is written in UTF-16
	flushed  bool // the bytes before the open region are out
	regionAt int64
	text     bool // never binary
	keep     bool
	sniff    sniffer
	head     wideHead
	err      error // of dst
	failed   error // of the engine
	closed   bool
	idled    bool // no byte came since Idle

	report   Report
	findings []Finding
	counts   map[ruleTag]*int64
	over     map[string]*int64 // by rule, of the tags that are not counted
	tags     tagger
	holder   []byte // the placeholder under way
}

func newWriter(s *Set, dst io.Writer, stream Stream) *Writer {
	w := new(Writer)
	w.init(s, dst, stream)
	return w
}

// init makes an empty Writer one of a set.
func (w *Writer) init(s *Set, dst io.Writer, stream Stream) {
	w.set, w.dst, w.stream, w.keep = s, dst, stream, s.cfg.KeepFindings
	w.atomic, _ = dst.(interface{ WriteAtomic([]byte) (int, error) })
	w.e.set, w.e.terminal = s, stream == PTY
}

// Write cleans p. It takes all of p or fails. It does not fail when the engine
// does: then the rest of the stream is dropped, so that the child can finish what
// it is doing, and Close says so.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.closed {
		return 0, errClosed
	}
	if w.failed != nil {
		return len(p), nil
	}
	defer func() {
		if w.recovered(recover()) {
			n, err = len(p), nil
		}
	}()
	w.idled = false
	w.report.BytesIn += int64(len(p))
	if w.set.cfg.Disabled {
		w.send(p)
		return len(p), w.err
	}
	for rest := p; len(rest) > 0 && w.err == nil; {
		part := rest[:min(len(rest), piece)]
		rest = rest[len(part):]
		w.route(part)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

var errClosed = errors.New("filter: write after close")

// recovered turns a panic of the engine into an error that stays: nothing raw
// leaves after it.
func (w *Writer) recovered(r any) bool {
	if r == nil {
		return false
	}
	w.failed = &Error{Code: errcode.FilterFailed, Reason: "internal failure, the rest of this stream is dropped"}
	return true
}

// clean judges text and writes what is free to go.
func (w *Writer) clean(p []byte) {
	w.e.view.add(p)
	w.run(false)
	w.compact()
}

// run judges what is there and writes what is free to go.
func (w *Writer) run(eof bool) {
	w.e.snap = w.set.current()
	for w.e.advance(eof) == closed {
		w.closeRegion()
	}
	w.release()
}

// release writes everything before the first open position.
func (w *Writer) release() {
	e := &w.e
	v := &e.view
	if e.mode != scanning {
		w.openRegion()
		keep := v.rawEnd(len(v.vis))
		if e.mode == inArmour {
			keep = v.rawEnd(e.arm.bodyEnd)
		}
		w.collect(keep)
		w.flush()
		return
	}
	to := len(v.raw)
	if h := e.hold(); h < len(v.vis) {
		to = v.rawAt(h)
	}
	w.emit(to)
	w.flush()
}

// emit writes raw bytes up to to.
func (w *Writer) emit(to int) {
	if to <= w.out {
		return
	}
	b := w.e.view.raw[w.out:to]
	w.out = to
	w.e.floor = max(w.e.floor, w.e.view.visAt(to))
	if len(w.pend) == 0 {
		w.send(b)
		return
	}
	w.pend = append(w.pend, b...)
}

func (w *Writer) flush() {
	if len(w.pend) > 0 {
		w.send(w.pend)
		w.pend = w.pend[:0]
	}
}

// send hands bytes to the destination.
func (w *Writer) send(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	n, err := w.dst.Write(b)
	w.report.BytesOut += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	w.err = err
}

// sendWhole hands over a piece that must not be cut.
func (w *Writer) sendWhole(b []byte) {
	if w.atomic == nil {
		w.pend = append(w.pend, b...)
		return
	}
	w.flush()
	if w.err != nil {
		return
	}
	n, err := w.atomic.WriteAtomic(b)
	w.report.BytesOut += int64(n)
	w.err = err
}

// Held is the number of bytes that wait for the rest of a possible secret, and 0
// once Idle has looked at them and kept them: another Idle would change nothing.
func (w *Writer) Held() int {
	if w.idled || w.err != nil || w.failed != nil || w.closed {
		return 0
	}
	if w.sniff.waiting() {
		return len(w.sniff.kept)
	}
	if h := &w.head; !h.done && len(h.buf) > 0 && !(h.sent && len(h.buf) == 1) {
		return len(h.buf)
	}
	if w.e.mode != scanning {
		return 0
	}
	return max(len(w.e.view.raw)-w.out, 0)
}

// Idle tells the Writer that the stream pauses: what is unlikely to be a secret
// is written, such as a prompt. The judgement goes on when bytes come.
func (w *Writer) Idle() (err error) {
	if w.err != nil || w.failed != nil || w.closed {
		return w.err
	}
	defer func() {
		w.recovered(recover())
		w.idled = true
	}()
	if h := &w.head; !h.done && len(h.buf) > 0 && !(h.sent && len(h.buf) == 1) {
		w.endHead()
	}
	if w.sniff.waiting() {
		w.settle()
	}
	for w.err == nil && w.Held() > 0 {
		e := &w.e
		if e.open.outcome != more {
			break
		}
		if e.region.open {
			// A complete region waits for a candidate that starts in its last bytes.
			if !e.open.loose || e.holdAt < e.region.end-2 {
				break
			}
			e.cursor = e.region.end
			w.closeRegion()
			w.run(false)
			continue
		}
		to := e.looseTo()
		if to == len(e.view.vis) {
			w.emit(len(e.view.raw))
		} else {
			w.emit(e.view.rawAt(to))
		}
		w.flush()
		break
	}
	return w.err
}

// Close ends the stream. The destination stays open. An *Error with E5002 means
// that the engine failed and the rest of the stream was dropped.
func (w *Writer) Close() (err error) {
	if !w.closed && w.err == nil && w.failed == nil {
		defer func() {
			if w.recovered(recover()) {
				err = w.failed
			}
		}()
		w.closed = true
		w.finish()
	}
	w.closed = true
	if w.failed != nil {
		return w.failed
	}
	return w.err
}

// EndRecord ends a document: what follows is judged afresh.
func (w *Writer) EndRecord() (err error) {
	if w.err != nil || w.failed != nil || w.closed || w.e.view.wide != narrow || w.sniff.inside {
		return w.err
	}
	defer func() {
		if w.recovered(recover()) {
			err = nil
		}
	}()
	w.endHead()
	if w.sniff.waiting() {
		w.settle()
	}
	w.endText()
	if w.keep {
		w.lines += int64(countLines(w.e.view.raw))
	}
	w.reset()
	return w.err
}

// endText judges what is left as the end of the stream.
func (w *Writer) endText() {
	w.run(true)
	if w.e.region.open {
		w.e.cursor = w.e.region.end
		w.closeRegion()
	}
	w.emit(len(w.e.view.raw))
	w.flush()
}

// Report says what was done; complete after Close.
func (w *Writer) Report() Report {
	r := w.report
	r.BinaryBytes, r.Blocked = w.sniff.total, w.set.cfg.Binary == BinaryBlock
	r.Redacted = !w.set.cfg.Disabled && !r.Binary
	for k, n := range w.counts {
		r.Redactions = append(r.Redactions, Redaction{Rule: k.rule, Tag: k.tag, Count: *n, Stream: w.stream.String()})
	}
	slices.SortFunc(r.Redactions, func(a, b Redaction) int {
		if c := strings.Compare(a.Rule, b.Rule); c != 0 {
			return c
		}
		return strings.Compare(a.Tag, b.Tag)
	})
	r.Findings = w.findings
	return r
}

// Failed reports whether an error of a stream is a failure of the filter itself, which
// discards the stream, and not of the output.
func Failed(err error) bool {
	var f *Error
	return errors.As(err, &f) && f.Code == errcode.FilterFailed
}

// Stream names the stream a Writer cleans.
type Stream uint8

// The streams of a run. A PTY is one stream with the echo in it.
const (
	Stdout Stream = iota
	Stderr
	PTY
)

// String returns the name used in reports.
func (s Stream) String() string { return [...]string{"stdout", "stderr", "pty"}[s] }

// Finding is one replaced region. It never holds a byte of the value, and its
// offsets are for `atip redact --report` only: an audit record must not have them.
type Finding struct {
	Rule  string `json:"rule"`
	Layer string `json:"layer"` // known, armour, prefix, context
	Tag   string `json:"tag,omitempty"`
	Start int64  `json:"start"` // offset in the input
	End   int64  `json:"end"`
	Line  int64  `json:"line"` // 1-based
}

// Unfiltered says what of a stream was not filtered as text, "" if all was.
func (r *Report) Unfiltered() string {
	if !r.Binary || r.Blocked {
		return ""
	}
	return decimal(r.BinaryBytes) + " bytes are binary; only known values, keys and tokens were looked for in them"
}

// Redaction counts the findings of one rule and tag in one stream.
type Redaction struct {
	Rule   string `json:"rule"`
	Tag    string `json:"tag,omitempty"`
	Count  int64  `json:"count"`
	Stream string `json:"stream"`
}

// Report is what a Writer did.
type Report struct {
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`
	Binary   bool  `json:"binary"` // a stretch of it was
	// BinaryBytes is how much of the stream lay in binary stretches, in which only known
	// values, keys and tokens are looked for.
	BinaryBytes int64       `json:"binary_bytes,omitempty"`
	Redacted    bool        `json:"redacted"` // false: a part of the stream was not filtered as text
	Redactions  []Redaction `json:"redactions"`
	// Blocked says that policy kept binary stretches from being shown.
	Blocked bool `json:"-"`
	// Findings is filled only if Config.KeepFindings is set.
	Findings []Finding `json:"-"`
}
