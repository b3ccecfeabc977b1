//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"golang.org/x/sys/unix"
)

// IsTerminal reports whether fd is a terminal.
func IsTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), getTermios)
	return err == nil
}

// IsControlling reports whether fd is the controlling terminal of this process.
func IsControlling(fd int) bool {
	_, err := foreground(fd)
	return err == nil
}

// TakeForeground puts our own process group in front of the terminal.
func TakeForeground(fd int) error { return GiveForeground(fd, unix.Getpgrp()) }

// GiveForeground puts the group pgid in front of the terminal.
func GiveForeground(fd, pgid int) error {
	if pgid <= 0 {
		return &Error{Op: "tcsetpgrp", Err: unix.EINVAL}
	}
	err := withoutTTOU(func() error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, pgid) })
	if err != nil {
		return &Error{Op: "tcsetpgrp", Err: err}
	}
	return nil
}

// foreground returns the group in front. It fails for what is not our controlling
// terminal.
func foreground(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) }

// modes returns the settings of a terminal.
func modes(fd int) (*unix.Termios, error) {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, &Error{Op: "tcgetattr", Err: err}
	}
	return t, nil
}

// setModes changes them at once: waiting for output to drain would hang on a
// terminal that was stopped with ^S.
func setModes(fd int, t *unix.Termios) error {
	err := withoutTTOU(func() error { return unix.IoctlSetTermios(fd, setTermios, t) })
	if err != nil {
		return &Error{Op: "tcsetattr", Err: err}
	}
	return nil
}

// Reopen opens the terminal f a second time, for reading only. A tool that holds
// the terminal for writing prints past the filter, and most would: a shell starts
// its commands with one description on 0, 1 and 2. If it cannot be opened again,
// f itself is returned and false.
func Reopen(f *os.File) (*os.File, bool) {
	for _, dir := range []string{"/proc/self/fd/", "/dev/fd/"} {
		fd, err := unix.Open(dir+strconv.Itoa(int(f.Fd())), unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		// On some systems this duplicates the descriptor, mode and all.
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY && IsTerminal(uintptr(fd)) {
			return os.NewFile(uintptr(fd), f.Name()), true
		}
		_ = unix.Close(fd)
	}
	return f, false
}

// code tells a machine without resources from a failed step.
func code(err error) string {
	for _, errno := range []error{unix.EAGAIN, unix.ENOSPC, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, errno) {
			return errcode.OutOfResources
		}
	}
	return ""
}

// Steady writes to a file that whoever shares it may make non-blocking at any time, as Node
// does with its pipes. The flag is theirs and stays; a full pipe is waited for.
func Steady(f *os.File) io.Writer { return steady{f} }

type steady struct{ file *os.File }

// Underlying is the file that is written to.
func (s steady) Underlying() *os.File { return s.file }

func (s steady) Write(b []byte) (n int, err error) {
	for {
		m, err := s.file.Write(b[n:])
		n += m
		if !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
		if err := s.wait(); err != nil {
			return n, err
		}
	}
}

// wait returns once something can be written, or once a write would say why not.
func (s steady) wait() error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	var perr error
	err = raw.Control(func(fd uintptr) {
		for {
			if _, perr = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); !errors.Is(perr, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, perr)
}
