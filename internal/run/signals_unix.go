//go:build unix

package run

import (
	"os"
	"syscall"
)

// forwarded lists the signals that concern the child. SIGPIPE is caught so that a
// closed output is an error of a write and not our end.
func forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGPIPE}
}

// ends reports whether a signal that arrives before the start cancels the run.
func ends(sig os.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

func interrupts(sig os.Signal) bool { return sig == syscall.SIGINT || sig == syscall.SIGTERM }

// silent reports whether a signal is only caught, never passed on.
func silent(sig os.Signal) bool { return sig == syscall.SIGPIPE }

func continues(sig os.Signal) bool { return sig == syscall.SIGCONT }

// signalGroup signals a process group that is not our child's own.
func signalGroup(group int, sig os.Signal) bool {
	s, ok := sig.(syscall.Signal)
	return ok && group > 1 && syscall.Kill(-group, s) == nil
}

func stops(sig os.Signal) bool { return sig == syscall.SIGTSTP }

// stopSelf stops this process as the caller asked; it returns when continued.
func stopSelf() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

func stopSignal() os.Signal { return syscall.SIGSTOP }
