//go:build !linux

package sandbox

import "os"

// lockUnused finds every directory unused: without a sandbox, none is made.
func lockUnused(dir string) (lock *os.File, free bool) {
	lock, err := os.Open(dir)
	return lock, err == nil
}
