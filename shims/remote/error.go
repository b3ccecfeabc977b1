package remote

import "github.com/atip-dev/atip-exec/internal/errcode"

// Error is a registry that gave no usable answer.
type Error struct {
	Code     string // E4202 unavailable, E4203 offline, E4204 answer refused
	Registry string
	Msg      string
	Err      error

	withdraws bool // what the registry said before is not used any longer either
}

// Error implements error. It never holds a token.
func (e *Error) Error() string {
	if e.Registry == "" {
		return e.Msg
	}
	return "registry " + e.Registry + ": " + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	if e.Registry == "" {
		return nil
	}
	return map[string]any{"registry": e.Registry}
}

func (r *Registry) unavailable(msg string, err error) error {
	return &Error{Code: errcode.RegistryUnavailable, Registry: r.URL, Msg: msg, Err: err}
}

func (r *Registry) refused(msg string) error {
	return &Error{Code: errcode.RegistryAnswer, Registry: r.URL, Msg: msg}
}

// withdrawn refuses an answer and what came before it.
func (r *Registry) withdrawn(msg string) error {
	return &Error{Code: errcode.RegistryAnswer, Registry: r.URL, Msg: msg, withdraws: true}
}
