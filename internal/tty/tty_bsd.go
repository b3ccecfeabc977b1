//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA

	// waitsForKeys says whether waitReadable waits.
	waitsForKeys = false
	// disabled in a control character stands for none (_POSIX_VDISABLE).
	disabled = 0xff
)

// withoutTTOU runs f with SIGTTOU ignored. These systems give Go no signal mask of
// one thread; no child is started meanwhile that could inherit it.
func withoutTTOU(f func() error) error {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	return f()
}

// waitReadable does not wait: poll does not know terminals on macOS, so the read
// itself blocks.
func waitReadable(in, wake int) bool { return true }

// parentOf does not know: a parent in our own group counts as one without job
// control, so that the command goes on instead of stopping for good.
func parentOf(int) (int, error) { return 0, unix.ENOSYS }
