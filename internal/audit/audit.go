// Package audit keeps the log of runs: one JSON line per record in daily files,
// each line naming the SHA-256 of the line before it, across files. Writers need
// no daemon: one flock and one write per record.
package audit

import (
	"errors"
	"fmt"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Error says that the log cannot be written or read. Before the start of a
// command it means that the command must not start.
type Error struct {
	Op, Path string
	Err      error
}

func (e *Error) Error() string { return fmt.Sprintf("audit: %s %q: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded. Exit status 73.
func (e *Error) FaultCode() string { return errcode.AuditWrite }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"op": e.Op, "path": e.Path, "cause": fmt.Sprint(e.Err)}
}

// Limits of the log.
const (
	maxLine    = 64 << 10 // a record, with its newline
	fieldLimit = 4 << 10  // what remains of a string that had to be cut
	lockName   = "lock"
	suffix     = ".jsonl"
	dayLen     = len("20060102")
	firstPrev  = "" // prev of the very first line
	kindTorn   = "torn"
)

var (
	errClosed    = errors.New("the log is closed")
	errNotOurs   = errors.New("not a private regular file of this user")
	errLocked    = errors.New("another process holds the lock for too long")
	errNotObject = errors.New("the record is not a JSON object")
	errTooLong   = errors.New("the record exceeds 64 KiB even with its fields cut")
)

// dayName reports whether name is a daily file.
func dayName(name string) bool {
	if len(name) != dayLen+len(suffix) || name[dayLen:] != suffix {
		return false
	}
	return digits(name[:dayLen])
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) == dayLen
}
