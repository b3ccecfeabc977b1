package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockUnused locks a private directory that no run has.
func lockUnused(dir string) (lock *os.File, free bool) {
	lock, err := lockPrivate(dir, unix.LOCK_EX)
	return lock, err == nil
}
