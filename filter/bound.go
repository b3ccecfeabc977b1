package filter

import "io"

// Limits bounds one stream.
type Limits struct {
	Max int64 // bytes shown; 0: no bound
}

// Save says where the whole redacted stream is kept when the bound is passed.
type Save struct {
	Dir  string // created 0700; "" saves nothing
	Name string // "<run id>.stdout"
}

// Bound shows the head and the tail of a stream. It stands behind a Writer.
type Bound struct{ dst io.Writer }

// BoundReport is what a Bound did.
type BoundReport struct {
	BytesTotal int64  `json:"bytes_total"`
	BytesShown int64  `json:"bytes_shown"`
	LinesTotal int64  `json:"lines_total"`
	File       string `json:"file,omitempty"`
	NotSaved   string `json:"not_saved,omitempty"` // why File is empty
}

// NewBound returns a Bound that writes to dst.
func NewBound(dst io.Writer, limits Limits, save Save) *Bound { return &Bound{dst: dst} }

// Write implements io.Writer.
func (b *Bound) Write(p []byte) (int, error) {
	return 0, &Error{Code: "E5002", Reason: "no bound in this build"}
}

// WriteAtomic writes a piece that is shown whole or not at all.
func (b *Bound) WriteAtomic(p []byte) (int, error) { return b.Write(p) }

// Close writes the notice and the tail. The destination stays open.
func (b *Bound) Close() error { return nil }

// Report is complete after Close.
func (b *Bound) Report() BoundReport { return BoundReport{} }
