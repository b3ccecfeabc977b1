package errcode

// Error is an error with a code of the table, for errors that no caller tells apart by
// their type.
type Error struct {
	Code    string
	Msg     string
	Fix     string         // a better next step than that of the table, "" for none
	Details map[string]any // printed under "details"; nil for none
	Err     error          // the cause, if there is one
}

// InFile says what is wrong with a file.
func InFile(code, file, why string) *Error {
	return &Error{Code: code, Msg: file + ": " + why, Details: map[string]any{"file": file}}
}

func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any { return e.Details }

// FaultFix implements fault.Fixer.
func (e *Error) FaultFix() (fix, example string) { return e.Fix, "" }
