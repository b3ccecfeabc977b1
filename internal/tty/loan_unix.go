//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Loan is our controlling terminal while a command uses it. The command runs in a
// process group of its own, so that the keys ^C and ^Z reach it alone, and we do
// for it what a shell does for a job.
type Loan struct {
	fd    int
	own   int
	front bool
	saved *unix.Termios
}

// Lend prepares handing over the terminal f. It fails if f is not our controlling
// terminal, which must be known before a start that puts a group in front.
func Lend(f *os.File) (*Loan, error) {
	l := &Loan{fd: int(f.Fd()), own: unix.Getpgrp()}
	group, err := foreground(l.fd)
	if err != nil {
		return nil, &Error{Op: "tcgetpgrp", Err: err}
	}
	l.front = group == l.own
	if l.saved, err = modes(l.fd); err != nil {
		return nil, err
	}
	return l, nil
}

// Front reports whether we were in front at the time of Lend: only then is the
// terminal ours to give.
func (l *Loan) Front() bool { return l.front }

// Give puts the command's group in front, if we were. The command may have met the
// terminal before and been stopped for it, so it is continued.
func (l *Loan) Give(group int) error {
	if !l.front {
		return nil
	}
	if err := GiveForeground(l.fd, group); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return l.resume(group)
}

func (l *Loan) resume(group int) error {
	if err := unix.Kill(-group, unix.SIGCONT); err != nil && err != unix.ESRCH {
		return &Error{Op: "continue the command", Err: err}
	}
	return nil
}

// Stopped is called when sig has stopped the command's group, and returns when it
// has been continued: we take the terminal, stop with our whole job as the caller's
// shell expects, and give it again when the shell has put us in front.
func (l *Loan) Stopped(group int, sig syscall.Signal) error {
	if group <= 0 {
		// 0 would mean our own group to kill.
		return &Error{Op: "stop", Err: unix.EINVAL}
	}
	inFront, err := foreground(l.fd)
	if err != nil {
		// Without a terminal nobody could continue it.
		return l.resume(group)
	}
	if inFront == group && (sig == syscall.SIGTTIN || sig == syscall.SIGTTOU) {
		// It met the terminal before Give, and has it now.
		return l.resume(group)
	}
	var modesThen *unix.Termios
	if inFront == group {
		if modesThen, err = modes(l.fd); err != nil {
			return err
		}
		if err := TakeForeground(l.fd); err != nil {
			return err
		}
		if err := setModes(l.fd, l.saved); err != nil {
			return err
		}
	}
	if jobControl() {
		if err := stopJob(); err != nil {
			return err
		}
	}
	if inFront, err = foreground(l.fd); err == nil && inFront == l.own {
		l.front = true
		if err := GiveForeground(l.fd, group); err != nil {
			return err
		}
		if modesThen != nil {
			if err := setModes(l.fd, modesThen); err != nil {
				return err
			}
		}
	}
	return l.resume(group)
}

// stopJob stops every process of our group, as a pipeline stops as one, and returns
// when we have been continued. It sends SIGSTOP: for SIGTSTP a Go program that ever
// asked to be notified of it keeps a handler, and would run on.
func stopJob() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := unix.Kill(0, unix.SIGSTOP); err != nil {
		return &Error{Op: "stop", Err: err}
	}
	// kill may return before another processor has stopped this thread.
	<-continued
	return nil
}

// jobControl reports whether a shell could continue us after a stop: whether the
// nearest ancestor outside our group is in our session. Where there is none the
// kernel calls the group orphaned and discards SIGTSTP.
func jobControl() bool {
	session, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	own := unix.Getpgrp()
	for pid := unix.Getppid(); pid > 1; {
		if s, err := unix.Getsid(pid); err != nil || s != session {
			return false
		}
		group, err := unix.Getpgid(pid)
		if err != nil || group != own {
			return err == nil
		}
		if pid, err = parentOf(pid); err != nil {
			return false
		}
	}
	return false
}

// Return takes the terminal back at the end, if the command's group or what it put
// in front has it. After an end by signal the settings are restored too; a command
// that ends by itself may change them on purpose, as stty does.
func (l *Loan) Return(signalled bool) error {
	if !l.front {
		return nil
	}
	if group, err := foreground(l.fd); err != nil || group != l.own {
		if err != nil {
			return &Error{Op: "tcgetpgrp", Err: err}
		}
		if err := TakeForeground(l.fd); err != nil {
			return err
		}
	}
	if signalled {
		return setModes(l.fd, l.saved)
	}
	return nil
}
