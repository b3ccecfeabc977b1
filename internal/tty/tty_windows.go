package tty

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// IsTerminal reports whether fd is a console.
func IsTerminal(fd uintptr) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(fd), &mode) == nil
}

// IsControlling is false: consoles have no process groups in front.
func IsControlling(int) bool { return false }

var errNone = errors.New("not on this system")

// Pair is a pseudo-terminal; there is none here.
type Pair struct{ Master, Slave *os.File }

// OpenPty refuses.
func OpenPty(*os.File) (*Pair, error) {
	return nil, &Error{Op: "open", Code: errcode.FlagValue, Err: errNone}
}

// OpenScreen fails.
func OpenScreen(*os.File) (*Pair, error) { return OpenPty(nil) }

// HasOuter is false.
func (*Pair) HasOuter() bool { return false }

// Relay refuses.
func (*Pair) Relay(*os.File) error { return &Error{Op: "relay", Code: errcode.FlagValue, Err: errNone} }

// Read refuses.
func (*Pair) Read([]byte) (int, error) {
	return 0, &Error{Op: "read", Code: errcode.FlagValue, Err: errNone}
}

// Foreground is 0.
func (*Pair) Foreground() int { return 0 }

// Pause does nothing.
func (*Pair) Pause() error { return nil }

// Resume does nothing.
func (*Pair) Resume() error { return nil }

// Close does nothing.
func (*Pair) Close() error { return nil }

// Loan is a terminal handed over; there is none here.
type Loan struct{}

// Lend refuses.
func Lend(*os.File) (*Loan, error) {
	return nil, &Error{Op: "lend", Code: errcode.FlagValue, Err: errNone}
}

// Front is false.
func (*Loan) Front() bool { return false }

// Give does nothing.
func (*Loan) Give(int) error { return nil }

// Stopped does nothing.
func (*Loan) Stopped(int, syscall.Signal) error { return nil }

// Return does nothing.
func (*Loan) Return(bool) error { return nil }

// Reopen returns f.
func Reopen(f *os.File) (*os.File, bool) { return f, false }

// TakeForeground refuses.
func TakeForeground(int) error { return &Error{Op: "tcsetpgrp", Code: errcode.FlagValue, Err: errNone} }

// GiveForeground refuses.
func GiveForeground(int, int) error {
	return &Error{Op: "tcsetpgrp", Code: errcode.FlagValue, Err: errNone}
}

// Steady is the file: there is no such flag.
func Steady(f *os.File) io.Writer { return f }
