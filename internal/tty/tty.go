// Package tty decides which terminal a command gets and works the one it got: a
// pseudo-terminal whose keys and size are relayed, or the caller's own, handed to
// the command's process group and taken back.
package tty

import "github.com/atip-dev/atip-exec/internal/errcode"

// Mode is the terminal of a command. The zero value is none.
type Mode uint8

// The modes of a command's terminal.
const (
	Detached Mode = iota // a session of its own, without a terminal
	Handoff              // the caller's terminal, with the command's group in front
	Pty                  // a terminal of its own, relayed
)

// String returns the name in the status file.
func (m Mode) String() string {
	switch m {
	case Handoff:
		return "handoff"
	case Pty:
		return "pty"
	}
	return "detached"
}

// Facts is what the mode depends on.
type Facts struct {
	Controlling bool // descriptor 0 is our controlling terminal
	Passed      bool // the command gets descriptor 0
	Asked       bool // -t
	Declared    bool // the metadata says that the command needs a terminal
	Screen      bool // descriptor 1 is a terminal
	Shell       bool // started as atip-sh, whose callers want pipes whatever the tool says
}

// Choose decides the mode. A tool that works on a terminal does something else where there
// is none: a pager copies, an editor gives up. With one of its own it would wait for keys
// that nobody can press.
func Choose(f Facts) Mode {
	switch {
	case f.Asked && !f.Shell:
		return Pty
	case f.Declared && f.Controlling && f.Screen && !f.Shell:
		return Pty
	case f.Controlling && f.Passed:
		return Handoff
	}
	return Detached
}

// Error says which step of working a terminal failed.
type Error struct {
	Op   string
	Code string // "" is E4102
	Err  error
}

func (e *Error) Error() string { return "terminal: " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode is E4102 for a failed start step, E4003 where the machine has no
// terminal left to give, E1002 where it has none at all.
func (e *Error) FaultCode() string {
	if e.Code == "" {
		return errcode.Confinement
	}
	return e.Code
}

// FaultDetails names the step.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"step": "terminal", "operation": e.Op}
}
