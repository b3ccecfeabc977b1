package sandbox

import (
	"fmt"
	"syscall"
)

// StepError is a confinement step that failed; nothing ran.
type StepError struct {
	Step string
	Path string
	Code string // "" is E4102
	Err  error
}

// Error implements error.
func (e *StepError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("cannot confine: %s %s: %v", e.Step, e.Path, e.Err)
	}
	return fmt.Sprintf("cannot confine: %s: %v", e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *StepError) FaultCode() string {
	if e.Code != "" {
		return e.Code
	}
	return "E4102"
}

// FaultDetails implements fault.Coded.
func (e *StepError) FaultDetails() map[string]any {
	d := map[string]any{"step": e.Step}
	if e.Path != "" {
		d["path"] = e.Path
	}
	return d
}

// ExecError is an execve that failed; nothing ran.
type ExecError struct {
	Errno syscall.Errno
	Path  string
	Layer string // what refused: mode, noexec, landlock, interpreter, "" if not known
}

// Error implements error.
func (e *ExecError) Error() string { return fmt.Sprintf("cannot execute %s: %v", e.Path, e.Errno) }

// Unwrap returns the errno.
func (e *ExecError) Unwrap() error { return e.Errno }

// FaultCode implements fault.Coded.
func (e *ExecError) FaultCode() string {
	switch e.Errno {
	case syscall.ETXTBSY:
		return "E3301"
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return "E4003"
	}
	return "E3002"
}

// FaultDetails implements fault.Coded.
func (e *ExecError) FaultDetails() map[string]any {
	d := map[string]any{"path": e.Path, "errno": int(e.Errno)}
	if e.Layer != "" {
		d["layer"] = e.Layer
	}
	return d
}
