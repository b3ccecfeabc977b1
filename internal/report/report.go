// Package report renders audit records as one HTML page that needs nothing else: no
// network, no second file. Records are read once and never held: what belongs to a row
// goes to a temporary file, as data that no script is made of.
package report

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// blockRows is how many rows make one block of the page: a reader's browser unpacks one
// block to show one record.
const blockRows = 200

// Page collects the rows of one report.
type Page struct {
	quote func(argv []string) string
	spool *os.File
	out   *bufio.Writer
	err   error // of the spool; every later call returns it

	rows    []row
	records [][]json.RawMessage
	totals  Totals
}

// Totals counts what the rows of a page say.
type Totals struct {
	Rows       int
	Decided    map[Outcome]int
	Redactions int64
	Denials    int // sandbox denials and hosts that the proxy refused
	Refused    int // starts
	Deferred   int // starts that were decided when they happened
	First      string
	Last       string
}

// New returns an empty page. quote writes arguments as one command line. Close must be
// called.
func New(quote func(argv []string) string) (*Page, error) {
	spool, err := os.CreateTemp("", "atip-report-*") // 0600
	if err != nil {
		return nil, err
	}
	// No name: nothing is left behind, however this process ends. Windows keeps it until Close.
	_ = os.Remove(spool.Name())
	return &Page{quote: quote, spool: spool, out: bufio.NewWriterSize(spool, 1<<16), totals: Totals{Decided: map[Outcome]int{}}}, nil
}

// Close gives up what the page holds.
func (p *Page) Close() error {
	err := p.spool.Close()
	if rm := os.Remove(p.spool.Name()); rm != nil && !errors.Is(rm, os.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}

// Add adds a row for one run: its record, and its intent where that says more than the
// record does. The lines are copied.
func (p *Page) Add(record []byte, intent []byte) error {
	if p.err != nil {
		return p.err
	}
	r, err := p.rowOf(record, intent)
	if err != nil {
		return err
	}
	kept := []json.RawMessage{bytes.Clone(record)}
	if intent != nil {
		kept = append(kept, bytes.Clone(intent))
	}
	p.rows, p.records = append(p.rows, r), append(p.records, kept)
	p.count(r)
	if len(p.rows) == blockRows {
		return p.flush()
	}
	return nil
}

func (p *Page) count(r row) {
	t := &p.totals
	t.Rows++
	t.Decided[r.Outcome]++
	t.Redactions += r.Redactions
	t.Denials += r.Denials
	t.Refused += r.Refused
	t.Deferred += r.Deferred
	if t.First == "" || r.Time < t.First {
		t.First = r.Time
	}
	t.Last = max(t.Last, r.Time)
}

// flush writes one block: the rows as they are searched and listed, and the records packed.
func (p *Page) flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	rows, err := json.Marshal(p.rows)
	if err != nil {
		p.err = err
		return err
	}
	put := func(parts ...string) {
		for _, s := range parts {
			if p.err == nil {
				_, p.err = p.out.WriteString(s)
			}
		}
	}
	put(`<script type="application/json" class="rows">`, ascii(rows), "</script>\n", `<script type="application/json" class="records">"`)
	if p.err == nil {
		p.err = pack(p.out, p.records)
	}
	put("\"</script>\n")
	p.rows, p.records = p.rows[:0], p.records[:0]
	return p.err
}

// pack writes the records of a block as base64 of gzip: a tenth of their size, and no
// byte of a record can be read as markup.
func pack(w io.Writer, records [][]json.RawMessage) error {
	text := base64.NewEncoder(base64.StdEncoding, w)
	zip := gzip.NewWriter(text)
	enc := json.NewEncoder(zip)
	err := enc.Encode(records)
	return errors.Join(err, zip.Close(), text.Close())
}

// ascii writes every other character of a JSON text as an escape: marks that turn the
// direction of a line do nothing in the source of the page either.
func ascii(raw []byte) string {
	const digits = "0123456789abcdef"
	var b bytes.Buffer
	b.Grow(len(raw))
	unit := func(r rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[r>>shift&15])
		}
	}
	for _, r := range string(raw) {
		switch {
		case r < 0x7f:
			b.WriteByte(byte(r))
		case r < 0x10000:
			unit(r)
		default:
			r -= 0x10000
			unit(0xd800 + r>>10)
			unit(0xdc00 + r&0x3ff)
		}
	}
	return b.String()
}

// Write writes the whole page. Nothing can be added afterwards.
func (p *Page) Write(w io.Writer, about About) error {
	if p.err != nil {
		return p.err
	}
	if err := errors.Join(p.flush(), p.out.Flush()); err != nil {
		return err
	}
	p.err = errors.New("the page is written")
	if _, err := p.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := head(w, about, p.totals); err != nil {
		return err
	}
	if _, err := io.Copy(w, p.spool); err != nil {
		return err
	}
	return foot(w)
}
