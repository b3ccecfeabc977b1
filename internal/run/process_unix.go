//go:build unix

package run

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

func processID() int { return os.Getpid() }

func sessionID() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return sid
}

// readOnlyPipe reports whether fd is a pipe that can only be read: anything that
// can be written would bypass the filter.
func readOnlyPipe(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY
}

// lockWithin waits for the lock of a file no longer than d.
func lockWithin(f *os.File, d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// lockExclusive waits for the lock of a file; closing the file gives it back.
func lockExclusive(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}
