//go:build unix

package signals

import (
	"os"
	"syscall"
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

// Number is the number of a signal, 0 for one of another system.
func Number(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// Interrupts reports a signal by which a person ends a command.
func Interrupts(sig os.Signal) bool { return sig == syscall.SIGINT || sig == syscall.SIGTERM }

// Continues reports the signal that lets a stopped job go on.
func Continues(sig os.Signal) bool { return sig == syscall.SIGCONT }

// Stops reports the signal of the key that stops a job.
func Stops(sig os.Signal) bool { return sig == syscall.SIGTSTP }

// StopSelf stops this process as the caller asked; it returns when continued.
func StopSelf() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
