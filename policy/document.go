package policy

// Source is the text of one policy document and where it stands.
type Source struct {
	File    string
	Raw     []byte
	Layer   Layer
	Trusted bool // a project's document that a person has trusted, unchanged since
}

// ParseError says what is wrong with a document and where. Line and Col are 1-based.
type ParseError struct {
	Code string // E2040 malformed, E2042 failing example, E2043 loosens where it may not
	File string
	Line int
	Col  int
	Msg  string
}

// Error implements error.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return position(e.File, e.Line, e.Col) + ": " + e.Msg
}

// FaultCode is the stable code of the error table.
func (e *ParseError) FaultCode() string { return e.Code }

// FaultDetails implements the error table's interface.
func (e *ParseError) FaultDetails() map[string]any {
	return map[string]any{"file": e.File, "line": e.Line, "col": e.Col}
}
