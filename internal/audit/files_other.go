//go:build !unix

package audit

import (
	"errors"
	"os"
	"time"
)

// privateDir trusts the directory: below the user's profile access lists keep
// others out.
func privateDir(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return errNotOurs
	}
	return nil
}

func openPrivate(p string, flags int) (*os.File, error) {
	f, err := os.OpenFile(p, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, errNotOurs
	}
	return f, nil
}

const (
	lockWait  = 10 * time.Second
	lockStale = time.Minute // far above any write: its owner is dead
)

// lockFile creates a file beside the lock file, the one exclusive act that the
// standard library offers on every system.
func lockFile(f *os.File) error {
	p := f.Name() + ".held"
	deadline := time.Now().Add(lockWait)
	for {
		held, err := os.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return held.Close()
		}
		if fi, serr := os.Lstat(p); serr == nil && time.Since(fi.ModTime()) > lockStale {
			os.Remove(p)
		}
		if time.Now().After(deadline) {
			return errLocked
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func unlockFile(f *os.File) { os.Remove(f.Name() + ".held") }

// tryLock would need a lock that ends with its process.
func tryLock(*os.File) error { return errors.ErrUnsupported }
