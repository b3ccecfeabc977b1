package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockUnused locks a private directory that no run has, until unlock is called. The directory above it, which no
// run can open, is locked as long, so that runs that start tell Clean from a leftover command.
func lockUnused(dir string) (unlock func(), free bool) {
	above, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return func() {}, false
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(above.Fd()), unix.LOCK_EX)
	}
	lock, err := lockPrivate(dir, unix.LOCK_EX)
	return func() { lock.Close(); above.Close() }, err == nil // closing nil does nothing
}

// cleanWait bounds how long a run waits for a Clean that has been stopped, say.
const cleanWait = 30 * time.Second

// awaitClean returns when no Clean renames a directory in dir. A run must not go on without a lock before
// that: Clean would take the directory it has just filled.
func awaitClean(dir string) error {
	above, err := os.Open(dir)
	if err != nil {
		return nil // it is made anew
	}
	defer above.Close()
	for end := time.Now().Add(cleanWait); ; time.Sleep(2 * time.Millisecond) {
		err := unix.Flock(int(above.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil // it cannot be locked, by Clean neither
		case time.Now().After(end):
			return &StepError{Step: "wait for sandbox clean", Path: dir, Err: err}
		}
	}
}
