package tty

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; state and parent follow the last.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0, unix.EINVAL
	}
	return strconv.Atoi(fields[1])
}
