package approve

import "github.com/atip-dev/atip-exec/internal/errcode"

// FileError says that a list of approvers or a lock file cannot be relied on. Whoever could
// change it could approve, so nothing that needs a person runs until it is put right.
type FileError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *FileError) FaultCode() string { return errcode.ApproverFile }

// FaultDetails implements fault.Coded.
func (e *FileError) FaultDetails() map[string]any { return map[string]any{"file": e.Path} }
