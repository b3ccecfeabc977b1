package trust

import (
	"fmt"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// NotFoundError says that a word names no executable file.
type NotFoundError struct {
	Word    string
	Skipped []string // PATH entries that were passed over
	Err     error    // nil after a PATH search
}

func (e *NotFoundError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("command %q not found: %v", e.Word, e.Err)
	}
	return fmt.Sprintf("command %q not found in PATH", e.Word)
}

// Unwrap returns the error of the system, if any.
func (e *NotFoundError) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *NotFoundError) FaultCode() string { return errcode.CommandNotFound }

// FaultDetails implements fault.Coded.
func (e *NotFoundError) FaultDetails() map[string]any {
	d := map[string]any{"command": e.Word}
	if len(e.Skipped) > 0 {
		d["skipped_path"] = e.Skipped
	}
	return d
}

// NotExecutableError says that a file is there but cannot be executed.
type NotExecutableError struct {
	Word, Path string
	Why        string
	Err        error
}

func (e *NotExecutableError) Error() string {
	s := fmt.Sprintf("cannot execute %q: %s", e.Path, e.Why)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the error of the system, if any.
func (e *NotExecutableError) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *NotExecutableError) FaultCode() string { return errcode.NotExecutable }

// FaultDetails implements fault.Coded.
func (e *NotExecutableError) FaultDetails() map[string]any {
	return map[string]any{"command": e.Word, "path": e.Path, "why": e.Why}
}

// BusyError says that somebody has the executable open for writing.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("executable %q is open for writing", e.Path)
}

// FaultCode implements fault.Coded.
func (e *BusyError) FaultCode() string { return errcode.ExecutableBusy }

// FaultDetails implements fault.Coded.
func (e *BusyError) FaultDetails() map[string]any {
	return map[string]any{"reason": "executable_busy", "path": e.Path}
}

// ChangedError says that an executable is no longer the one that was identified.
type ChangedError struct{ Path, Why string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("executable %q changed after it was identified: %s", e.Path, e.Why)
}

// FaultCode implements fault.Coded.
func (e *ChangedError) FaultCode() string { return errcode.ExecutableChanged }

// FaultDetails implements fault.Coded.
func (e *ChangedError) FaultDetails() map[string]any {
	return map[string]any{"reason": "executable_changed", "path": e.Path, "why": e.Why}
}
