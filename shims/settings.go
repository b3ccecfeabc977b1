package shims

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/atip-dev/atip-exec/atip"
)

const maxSettings = 256 << 10

// SettingsError says that a file of settings cannot be used.
type SettingsError struct {
	Code      string
	File      string
	Line, Col int // 1-based, 0 if unknown
	Msg       string
}

func (e *SettingsError) Error() string {
	if e.Line > 0 {
		return e.File + ":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col) + ": " + e.Msg
	}
	return e.File + ": " + e.Msg
}

// FaultCode implements fault.Coded.
func (e *SettingsError) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *SettingsError) FaultDetails() map[string]any {
	return map[string]any{"file": e.File, "line": e.Line, "column": e.Col}
}

// ReadSettings reads a JSON object with comments from a file that nobody else can write.
// It returns nil for a missing file; every error is a SettingsError with this code.
func ReadSettings(file, code string) (*atip.Node, error) {
	raw, err := ReadOwned(file, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var root *atip.Node
	if err == nil {
		root, err = atip.ParseTree(raw, atip.ParseOptions{Comments: true, MaxBytes: maxSettings})
	}
	out := &SettingsError{Code: code, File: file}
	var unsafe *Error
	var doc *atip.DocError
	switch {
	case errors.As(err, &unsafe):
		out.Msg = unsafe.Msg
	case errors.As(err, &doc):
		out.Line, out.Col, out.Msg = doc.Line, doc.Col, doc.Msg
	case err != nil:
		out.Msg = err.Error()
	case root.Kind != atip.KindObject:
		out.Line, out.Col, out.Msg = root.Line, root.Col, "is not an object"
	default:
		return root, nil
	}
	return nil, out
}
