package filter

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits bounds one stream.
type Limits struct {
	Max int64 // bytes shown; 0: no bound
}

// Save says where the whole redacted stream is kept when the bound is passed.
type Save struct {
	Dir  string // created 0700; "" saves nothing
	Name string // "<run id>.stdout"
}

// maxSaved bounds one saved stream.
const maxSaved = 1 << 30

// Bound shows the head of a stream as it comes and its tail at the end, where
// errors stand. Between them it writes one line that says what is missing. It
// stands behind a Writer, so all it sees is redacted. The writer is never slowed
// or stopped at the limit.
type Bound struct {
	dst     io.Writer
	head    int64
	max     int64
	save    Save
	shown   int64
	first   []byte // the head again, for the saved file
	total   int64
	lines   int64
	over    bool
	ring    []byte // what follows the head, the last max-head bytes of it at least
	whole   []span // stretches of ring that are not to be cut
	omitted int64  // bytes cut from the front of ring
	lost    int64  // newlines among them
	masks   int64  // placeholders among them
	file    *os.File
	path    string
	saved   int64
	fault   string
	err     error
}

type span struct{ from, to int }

// BoundReport is what a Bound did.
type BoundReport struct {
	BytesTotal int64  `json:"bytes_total"`
	BytesShown int64  `json:"bytes_shown"`
	LinesTotal int64  `json:"lines_total"`
	File       string `json:"file,omitempty"`
	NotSaved   string `json:"not_saved,omitempty"` // why File is empty
}

// NewBound returns a Bound that writes to dst.
func NewBound(dst io.Writer, limits Limits, save Save) *Bound {
	return &Bound{dst: dst, max: limits.Max, head: limits.Max / 5, save: save}
}

// Write implements io.Writer.
func (b *Bound) Write(p []byte) (int, error) { return b.add(p, false) }

// WriteAtomic writes a piece that is shown whole or not at all.
func (b *Bound) WriteAtomic(p []byte) (int, error) { return b.add(p, true) }

func (b *Bound) add(p []byte, whole bool) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.total += int64(len(p))
	b.lines += int64(countLines(p))
	if b.max <= 0 {
		b.show(p)
		return b.done(len(p))
	}
	if whole {
		b.whole = append(b.whole, span{len(b.ring), len(b.ring) + len(p)})
	}
	b.ring = append(b.ring, p...)
	if !b.over {
		b.showHead()
		return b.done(len(p))
	}
	b.trim(2)
	return b.done(len(p))
}

func (b *Bound) done(n int) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return n, nil
}

// show writes to the destination.
func (b *Bound) show(p []byte) {
	if b.err != nil || len(p) == 0 {
		return
	}
	n, err := b.dst.Write(p)
	b.shown += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	b.err = err
}

// lastLines is how much before the end of the head only whole lines are shown,
// so that the cut can lie between two.
const lastLines = 1024

// showHead shows what belongs to the head. What is in the ring then is not shown.
func (b *Bound) showHead() {
	room := int(b.head - b.shown)
	if len(b.ring) <= room {
		n := len(b.ring)
		if b.total > b.head-min(lastLines, b.head/4) {
			n = lineCut(b.ring)
		}
		b.take(n)
		return
	}
	b.over = true
	n := lineCut(b.ring[:room])
	if n == 0 && b.shown == 0 {
		n = runeCut(b.ring, room)
		for _, s := range b.whole {
			if s.from < n && n < s.to {
				n = s.from
			}
		}
	}
	b.take(n)
}

// take moves n bytes from the ring to the head.
func (b *Bound) take(n int) {
	b.show(b.ring[:n])
	b.first = append(b.first, b.ring[:n]...)
	b.cut(n)
}

// cut forgets the first n bytes of the ring and returns how many placeholders
// went with them.
func (b *Bound) cut(n int) int64 {
	k := 0
	for k < len(b.whole) && b.whole[k].to <= n {
		k++
	}
	b.whole = slices.Delete(b.whole, 0, k)
	for i := range b.whole {
		b.whole[i].from -= n
		b.whole[i].to -= n
	}
	b.ring = b.ring[:copy(b.ring, b.ring[n:])]
	return int64(k)
}

// room is how much of the tail is shown.
func (b *Bound) room() int { return int(b.max - b.head) }

// trim drops from the ring what can no longer be shown, once it holds slack times
// as much as is shown.
func (b *Bound) trim(slack int) {
	if len(b.ring) <= slack*b.room() {
		return
	}
	cut := len(b.ring) - b.room()
	if slack == 1 {
		cut = b.niceCut(cut)
	}
	for _, s := range b.whole {
		if s.from < cut && cut < s.to {
			cut = s.to
		}
	}
	b.spill(b.ring[:cut])
	b.omitted += int64(cut)
	b.lost += int64(countLines(b.ring[:cut]))
	b.masks += b.cut(cut)
}

// niceCut moves a cut forward to the next line, or to a rune in a long line.
func (b *Bound) niceCut(cut int) int {
	if cut == 0 || b.ring[cut-1] == '\n' {
		return cut
	}
	if nl := bytes.IndexByte(b.ring[cut:], '\n'); nl >= 0 && nl < b.room()/2 {
		return cut + nl + 1
	}
	for cut < len(b.ring) && !utf8.RuneStart(b.ring[cut]) {
		cut++
	}
	return cut
}

func lineCut(p []byte) int { return bytes.LastIndexByte(p, '\n') + 1 }

func runeCut(p []byte, n int) int {
	for k := n; k > 0 && n-k < utf8.UTFMax; k-- {
		if utf8.RuneStart(p[k]) {
			return k
		}
	}
	return n
}

// spill saves bytes of the stream. The file is made when the first byte is about
// to be left out; a failure never touches the run.
func (b *Bound) spill(p []byte) {
	if b.fault != "" || b.save.Dir == "" {
		if b.fault == "" {
			b.fault = "no directory"
		}
		return
	}
	if b.file == nil {
		if err := b.open(); err != nil {
			b.drop(err)
			return
		}
	}
	if b.saved+int64(len(p)) > maxSaved {
		b.drop(errors.New("larger than 1 GiB"))
		return
	}
	n, err := b.file.Write(p)
	b.saved += int64(n)
	if err != nil {
		b.drop(err)
	}
}

// drop gives up saving.
func (b *Bound) drop(err error) {
	var perr *os.PathError
	if errors.As(err, &perr) {
		err = perr.Err
	}
	b.fault = err.Error()
	if b.file != nil {
		b.file.Close()
		os.Remove(b.path)
	}
}

func (b *Bound) open() error {
	if err := privateDir(b.save.Dir); err != nil {
		return err
	}
	prune(b.save.Dir)
	if b.save.Name == "" || filepath.Base(b.save.Name) != b.save.Name || strings.HasPrefix(b.save.Name, ".") {
		return errors.New("unusable file name")
	}
	b.path = filepath.Join(b.save.Dir, b.save.Name)
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	b.file = f
	n, err := f.Write(b.first)
	b.saved = int64(n)
	return err
}

// Close writes the notice and the tail. The destination stays open.
func (b *Bound) Close() error {
	if b.max <= 0 || b.err != nil {
		return b.err
	}
	b.trim(1)
	if b.omitted > 0 {
		b.spill(b.ring)
		if b.file != nil && b.fault == "" {
			if err := b.file.Close(); err != nil {
				b.drop(err)
			}
		}
		head := b.shown
		if n := len(b.first); n > 0 && b.first[n-1] != '\n' {
			b.notice("\n")
		}
		where := "full redacted output: " + b.path
		if b.fault != "" {
			where = "not saved: " + b.fault
		}
		b.notice("[atip-exec: " + decimal(b.omitted) + " bytes (" + decimal(b.lost) + " lines) omitted; shown " + decimal(head) +
			" head + " + decimal(int64(len(b.ring))) + " tail of " + decimal(b.total) + "; " + where + "; " +
			decimal(b.masks) + " redactions]\n")
	}
	b.show(b.ring)
	b.ring, b.whole = nil, nil
	return b.err
}

// notice writes words of ours, which do not count as shown.
func (b *Bound) notice(text string) {
	before := b.shown
	b.show([]byte(text))
	b.shown = before
}

// Report is complete after Close.
func (b *Bound) Report() BoundReport {
	r := BoundReport{BytesTotal: b.total, BytesShown: b.shown, LinesTotal: b.lines}
	if b.omitted > 0 {
		if r.NotSaved = b.fault; b.fault == "" {
			r.File = b.path
		}
	}
	return r
}
