package shims

import (
	"errors"
	"strconv"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Error says that a metadata file which a person wrote cannot be used. The
// command it describes does not run: its author wanted something said about it.
type Error struct {
	Code      string // E1101 to E1106
	File      string
	Pointer   string // JSON pointer into File, "" if the whole file is meant
	Line, Col int    // 1-based, 0 if unknown
	Msg       string
	Err       error
}

// Error implements error.
func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col)
	}
	text := "tool metadata " + where + ": " + e.Msg
	if e.Pointer != "" {
		text += " (at " + e.Pointer + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode is the stable code of the error.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails is the position in machine-readable form.
func (e *Error) FaultDetails() map[string]any {
	d := map[string]any{"file": e.File}
	if e.Line > 0 {
		d["line"], d["column"] = e.Line, e.Col
	}
	if e.Pointer != "" {
		d["pointer"] = e.Pointer
	}
	return d
}

// inFile gives a parser's error the file it belongs to.
func inFile(file string, err error) *Error {
	var de *atip.DocError
	if errors.As(err, &de) {
		return &Error{Code: de.Code, File: file, Pointer: de.Pointer, Line: de.Line, Col: de.Col, Msg: de.Msg, Err: err}
	}
	return &Error{Code: errcode.MetadataStructure, File: file, Msg: err.Error(), Err: err}
}
