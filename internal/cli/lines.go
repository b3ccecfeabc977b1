package cli

import (
	"io"
	"os"
	"sync"
)

// lines keeps what we say apart from a line that the command has not finished: who reads
// line by line would else find neither.
type lines struct {
	mu   sync.Mutex
	open bool // the last byte that was written ends no line
}

// theirs passes on what the command writes.
func (l *lines) theirs(w io.Writer) io.Writer { return lineWriter{l, w, false} }

// ours begins a line if the command has left one open.
func (l *lines) ours(w io.Writer) io.Writer { return lineWriter{l, w, true} }

type lineWriter struct {
	*lines
	to  io.Writer
	own bool
}

func (w lineWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	w.mu.Lock()
	begin := w.own && w.open
	w.open = p[len(p)-1] != '\n'
	w.mu.Unlock()
	if begin {
		if _, err := io.WriteString(w.to, "\n"); err != nil {
			return 0, err
		}
	}
	return w.to.Write(p)
}

// oneStream reports whether standard output and standard error go to the same place.
func oneStream() bool {
	out, err := os.Stdout.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stderr.Stat()
	return err == nil && os.SameFile(out, other)
}
