package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// hold keeps a lock until the run has ended.
func (w *worker) hold(lock *os.File) {
	if lock != nil {
		w.held = append(w.held, lock)
	}
}

func release(locks []*os.File) {
	for _, f := range locks {
		f.Close()
	}
}

// privateTries bounds how often a directory is made anew under somebody who clears it away.
const privateTries = 100

// holdPrivate makes the directory for temporary files and caches of a workspace and locks
// it against Clean. Its time says when it was last used.
func holdPrivate(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	for try := 0; ; try++ {
		if err := makePrivate(dir); err != nil {
			return nil, err
		}
		lock, err := lockPrivate(dir, unix.LOCK_SH)
		switch {
		case err == nil:
			return lock, nil
		case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.ENOENT):
			if try < privateTries {
				time.Sleep(2 * time.Millisecond)
				continue
			}
			// A command of an earlier run can hold on to it: it loses its protection from
			// being cleared, which is no reason not to run.
			return nil, nil
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil, nil // Clean cannot lock it either, and leaves it
		}
		return nil, &StepError{Step: "lock private directory", Path: dir, Err: err}
	}
}

// makePrivate creates the directory. Nobody else may own it: it is writable for the run
// and reused by the next one.
func makePrivate(dir string) error {
	for _, name := range [...]string{dir, filepath.Join(dir, "tmp")} {
		if unix.UtimesNanoAt(unix.AT_FDCWD, name, nil, 0) == nil {
			continue
		}
		if err := os.MkdirAll(name, 0o700); err != nil {
			return &StepError{Step: "create private directory", Path: name, Err: errors.Unwrap(err)}
		}
	}
	return nil
}

// lockPrivate locks the directory that stands at dir, or says that it is another by now.
func lockPrivate(dir string, how int) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var opened, named unix.Stat_t
	err = unix.Flock(fd, how|unix.LOCK_NB)
	if err == nil {
		err = unix.Fstat(fd, &opened)
	}
	if err == nil {
		err = unix.Lstat(dir, &named)
	}
	if err == nil && (opened.Ino != named.Ino || opened.Dev != named.Dev) {
		err = unix.ENOENT
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}
