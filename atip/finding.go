package atip

import "strconv"

// DocError says why a document was refused. Its code is one of
//
//	E1101 not strict JSON     E1103 wrong structure
//	E1102 over a limit        E1104 a protocol version this reader does not speak
type DocError struct {
	Code    string
	Pointer string // JSON pointer to the value, "" for the document
	Line    int
	Col     int // in bytes, from 1
	Msg     string
}

func (e *DocError) Error() string {
	s := e.Msg
	if e.Line > 0 {
		s = "line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Col) + ": " + s
	}
	if e.Pointer != "" {
		s += " (at " + e.Pointer + ")"
	}
	return s
}

// FaultCode returns the stable code.
func (e *DocError) FaultCode() string { return e.Code }

// FaultDetails returns where the error stands.
func (e *DocError) FaultDetails() map[string]any {
	return map[string]any{"pointer": e.Pointer, "line": e.Line, "column": e.Col}
}

// Severities of a Finding.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// Finding is one remark about a document.
type Finding struct {
	Pointer  string `json:"pointer"`
	Line     int    `json:"line,omitempty"`
	Col      int    `json:"column,omitempty"`
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}
