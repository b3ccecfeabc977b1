package sandbox

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/errcode"
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
	switch {
	case e.Code != "":
		return e.Code
	case scarce(e.Err):
		return errcode.OutOfResources
	}
	return errcode.Confinement
}

// scarce reports that there was not enough of something at this moment, which says nothing
// about what the machine can do.
func scarce(err error) bool {
	for _, errno := range [...]syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EFBIG, syscall.EDQUOT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
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
	// Interpreter is the missing program that Path needs, of layer "interpreter".
	Interpreter string
}

// Error implements error.
func (e *ExecError) Error() string {
	switch {
	case e.Interpreter != "":
		return fmt.Sprintf("cannot execute %s: its interpreter %s is missing", e.Path, e.Interpreter)
	case e.Layer == "landlock":
		return fmt.Sprintf("cannot execute %s: it or its interpreter is outside the executable paths of the sandbox", e.Path)
	case e.Errno == syscall.ENOEXEC:
		return fmt.Sprintf("cannot execute %s: it is neither a program nor a script with a #! line", e.Path)
	}
	return fmt.Sprintf("cannot execute %s: %v", e.Path, e.Errno)
}

// Unwrap returns the errno.
func (e *ExecError) Unwrap() error { return e.Errno }

// FaultCode implements fault.Coded.
func (e *ExecError) FaultCode() string {
	switch e.Errno {
	case syscall.ETXTBSY:
		return errcode.ExecutableBusy
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return errcode.OutOfResources
	}
	return errcode.NotExecutable
}

// FaultDetails implements fault.Coded.
func (e *ExecError) FaultDetails() map[string]any {
	d := map[string]any{"path": e.Path, "errno": int(e.Errno)}
	if e.Layer != "" {
		d["layer"] = e.Layer
	}
	if e.Interpreter != "" {
		d["interpreter"] = e.Interpreter
	}
	return d
}

// ForbiddenError is a policy that grants what no run may write.
type ForbiddenError struct{ Path, Pos, Rule, Why string }

// Error implements error.
func (e *ForbiddenError) Error() string {
	pos := e.Pos
	if pos != "" {
		pos += ": "
	}
	return fmt.Sprintf("%ssandbox must not grant %s: %s", pos, e.Path, e.Why)
}

// FaultCode implements fault.Coded.
func (e *ForbiddenError) FaultCode() string { return errcode.PolicyOwnState }

// FaultDetails implements fault.Coded.
func (e *ForbiddenError) FaultDetails() map[string]any {
	return map[string]any{"path": e.Path, "position": e.Pos, "rule": e.Rule, "why": e.Why}
}

// TooLargeError is a profile with more rules than a start can carry.
type TooLargeError struct {
	What       string
	Count, Max int
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("sandbox profile has %d %s, at most %d can be enforced", e.Count, e.What, e.Max)
}

// FaultCode implements fault.Coded.
func (e *TooLargeError) FaultCode() string { return errcode.TooManyPaths }

// FaultDetails implements fault.Coded.
func (e *TooLargeError) FaultDetails() map[string]any {
	return map[string]any{"what": e.What, "count": e.Count, "max": e.Max}
}

// GapError is a guarantee that is needed and cannot be given here.
type GapError struct {
	Tier Tier // the tier asked for by policy, or the best there is
	Gaps []Gap
}

// Error implements error.
func (e *GapError) Error() string {
	text := "this machine cannot enforce"
	for i, g := range e.Gaps {
		if i > 0 {
			text += ","
		}
		text += " " + string(g.Guarantee) + " (" + g.Why + ")"
	}
	return text
}

// FaultCode implements fault.Coded.
func (e *GapError) FaultCode() string { return errcode.GuaranteeMissing }

// FaultDetails implements fault.Coded.
func (e *GapError) FaultDetails() map[string]any {
	return map[string]any{"tier": e.Tier.String(), "gaps": e.Gaps}
}

// UnconfinedError is a run that nothing would confine and no policy permits so.
type UnconfinedError struct{ Why string }

// Error implements error.
func (e *UnconfinedError) Error() string {
	return "nothing here can confine the command, and policy does not permit that: " + e.Why
}

// FaultCode implements fault.Coded.
func (e *UnconfinedError) FaultCode() string { return errcode.Unconfined }

// FaultDetails implements fault.Coded.
func (e *UnconfinedError) FaultDetails() map[string]any { return map[string]any{"why": e.Why} }

// LimitError is a limit that cannot be kept here.
type LimitError struct{ Limit, Why string }

// Error implements error.
func (e *LimitError) Error() string { return "limit " + e.Limit + " cannot be kept: " + e.Why }

// FaultCode implements fault.Coded.
func (e *LimitError) FaultCode() string { return errcode.LimitUnenforced }

// FaultDetails implements fault.Coded.
func (e *LimitError) FaultDetails() map[string]any {
	return map[string]any{"limit": e.Limit, "why": e.Why}
}
