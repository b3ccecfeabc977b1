//go:build unix

package audit

import (
	"os"
	"syscall"
	"time"
)

// privateDir makes sure that dir is a directory of ours that nobody else enters.
func privateDir(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || !fi.IsDir() || int(st.Uid) != os.Geteuid() {
		return errNotOurs
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// openPrivate opens a file of ours that has no other name and no other reader.
// O_NONBLOCK: a FIFO in its place must not block.
func openPrivate(p string, flags int) (*os.File, error) {
	f, err := os.OpenFile(p, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok || !fi.Mode().IsRegular() || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
			err = errNotOurs
		} else if fi.Mode().Perm()&0o077 != 0 {
			err = f.Chmod(0o600)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockWait bounds the wait for a writer that was stopped inside its few
// microseconds.
const lockWait = 10 * time.Second

// lockFile takes the exclusive flock. It tries rather than blocks, so that a
// stopped holder ends in an error and not in a hanging command.
func lockFile(f *os.File) error {
	deadline := time.Now().Add(lockWait)
	for pause := 50 * time.Microsecond; ; pause = min(pause*2, 2*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case err == syscall.EINTR:
			continue
		case err != syscall.EWOULDBLOCK:
			return err
		case time.Now().After(deadline):
			return errLocked
		}
		time.Sleep(pause)
	}
}

func unlockFile(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// tryLock takes the lock of a mark, which its descriptor keeps until it is closed.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
