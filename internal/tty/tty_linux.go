package tty

import (
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS

	// waitsForKeys says whether waitReadable waits.
	waitsForKeys = true
	// disabled in a control character stands for none (_POSIX_VDISABLE).
	disabled = 0
)

// withoutTTOU runs f on a thread on which SIGTTOU is blocked: then changing the
// terminal from the background succeeds instead of stopping us. Blocked, and not
// ignored, because what is ignored stays so in every child.
func withoutTTOU(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old unix.Sigset_t
	const bit = int(unix.SIGTTOU) - 1
	set.Val[bit/wordBits] |= 1 << (bit % wordBits)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		return err
	}
	err := f()
	if restore := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); restore != nil && err == nil {
		err = restore
	}
	return err
}

// wordBits is the width of a word of a signal set: 32 or 64.
const wordBits = 32 << (^uint(0) >> 63)

// waitReadable waits until in has something to read and reports false when wake
// has. A read without it would swallow a key that belongs to whoever comes next.
func waitReadable(in, wake int) bool {
	fds := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
		case err != nil || fds[1].Revents != 0:
			return false
		case fds[0].Revents != 0:
			return true
		}
	}
}

// parentOf returns the parent of another process.
func parentOf(pid int) (int, error) {
	s, err := procstat.Of(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(s.Fields[procstat.Parent])
}
