//go:build unix

package drive

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Endings lists the signals that cancel a run or are passed to its child. A closed
// output raises none: see cli, which writes through descriptors of its own.
func Endings() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
}

// Forwarded lists the other signals that concern the child.
func Forwarded() []os.Signal {
	return []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// raise sends this process a signal that is not caught any more.
func raise(sig os.Signal) { syscall.Kill(os.Getpid(), sig.(syscall.Signal)) }

// ends reports whether a signal that arrives before the start cancels the run.
func ends(sig os.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// SignalNumber is the number of a signal, 0 for one of another system.
func SignalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// Interrupts reports a signal by which a person ends a command.
func Interrupts(sig os.Signal) bool { return sig == syscall.SIGINT || sig == syscall.SIGTERM }

// Continues reports the signal that lets a stopped job go on.
func Continues(sig os.Signal) bool { return sig == syscall.SIGCONT }

// signalGroup signals a process group that is not our child's own.
func signalGroup(group int, sig os.Signal) bool {
	s, ok := sig.(syscall.Signal)
	return ok && group > 1 && syscall.Kill(-group, s) == nil
}

// Stops reports the signal of the key that stops a job.
func Stops(sig os.Signal) bool { return sig == syscall.SIGTSTP }

// StopSelf stops this process as the caller asked; it returns when continued.
func StopSelf() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

func stopSignal() os.Signal { return syscall.SIGSTOP }

// SignalName is the name of a signal, as in "SIGTERM".
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }
