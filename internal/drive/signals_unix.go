//go:build unix

package drive

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// raise sends this process a signal that is not caught any more.
func raise(sig os.Signal) { syscall.Kill(os.Getpid(), sig.(syscall.Signal)) }

// signalGroup signals a process group that is not our child's own.
func signalGroup(group int, sig os.Signal) bool {
	s, ok := sig.(syscall.Signal)
	return ok && group > 1 && syscall.Kill(-group, s) == nil
}

func stopSignal() os.Signal { return syscall.SIGSTOP }

// SignalName is the name of a signal, as in "SIGTERM".
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }
