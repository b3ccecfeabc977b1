package shelltext

import (
	"cmp"
	"fmt"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// SyntaxError says that a text is no shell text.
type SyntaxError struct {
	File      string // "" for a text that has no file
	Line, Col int    // 1-based; 0 if the whole text is meant
	Msg       string
	Fix       string // "" for the table's
}

// Error implements error.
func (e *SyntaxError) Error() string {
	where := e.File
	where = cmp.Or(where, "shell text")
	if e.Line == 0 {
		return where + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", where, e.Line, e.Col, e.Msg)
}

// FaultCode is the code of the error table.
func (e *SyntaxError) FaultCode() string { return errcode.ShellText }

// FaultDetails is the position.
func (e *SyntaxError) FaultDetails() map[string]any {
	d := map[string]any{"line": e.Line, "col": e.Col}
	if e.File != "" {
		d["file"] = e.File
	}
	return d
}

// FaultFix says what to do about it.
func (e *SyntaxError) FaultFix() (fix, example string) { return e.Fix, "" }

// printError says that the printed form of a text reads differently from itself:
// what was judged would not be what runs. It is a bug of ours.
func printError(why string) error {
	return &errcode.Error{Code: errcode.Internal, Msg: "shell text: " + why}
}
