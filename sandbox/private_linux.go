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

// linkCaches makes the links of a profile, which lie in a directory that runs can write. So
// what one of them has put in their way goes, and leads nowhere.
func linkCaches(private string, links []link) error {
	if len(links) == 0 {
		return nil
	}
	root, err := os.OpenRoot(private)
	if err != nil {
		return &StepError{Step: "link cache", Path: private, Err: unwrapPath(err)}
	}
	defer root.Close()
	for _, l := range links {
		if now, err := root.Readlink(l.Name); err == nil && now == l.Target {
			continue
		}
		dir := filepath.Dir(l.Name)
		if fi, err := root.Lstat(dir); err == nil && !fi.IsDir() {
			_ = root.Remove(dir)
		}
		err := root.MkdirAll(dir, 0o700)
		if err == nil {
			err = root.RemoveAll(l.Name)
		}
		if err == nil {
			err = root.Symlink(l.Target, l.Name)
		}
		if err != nil && !errors.Is(err, os.ErrExist) { // made by a run at the same time
			return &StepError{Step: "link cache", Path: private + "/" + l.Name, Err: unwrapPath(err)}
		}
	}
	return nil
}

// HoldPrivate makes the directory for temporary files and caches of a workspace and locks
// it against Clean until the returned file is closed; that is nil where dir is "" and where
// Clean can lock it no more than we can. Its time says when it was last used.
func HoldPrivate(dir string) (*os.File, error) {
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
			// From here on nobody clears it away.
			if err := makeTemporary(dir); err != nil {
				lock.Close()
				return nil, err
			}
			return lock, nil
		case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.ENOENT):
			if try < privateTries {
				time.Sleep(2 * time.Millisecond)
				continue
			}
			// A command of an earlier run can hold on to it: it loses its protection from
			// being cleared, which is no reason not to run.
			return nil, makeTemporary(dir)
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil, makeTemporary(dir) // Clean cannot lock it either, and leaves it
		}
		return nil, &StepError{Step: "lock private directory", Path: dir, Err: err}
	}
}

// makePrivate creates the directory. Nobody else may own it: it is writable for the run
// and reused by the next one.
func makePrivate(dir string) error {
	if unix.UtimesNanoAt(unix.AT_FDCWD, dir, nil, unix.AT_SYMLINK_NOFOLLOW) != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return &StepError{Step: "create private directory", Path: dir, Err: errors.Unwrap(err)}
		}
	}
	return nil
}

// makeTemporary creates the directory for temporary files in it. What a run has put in its
// place goes, and is not followed.
func makeTemporary(dir string) error {
	tmp := filepath.Join(dir, "tmp")
	var st unix.Stat_t
	err := unix.Lstat(tmp, &st)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil
	}
	if err == nil {
		_ = unix.Unlink(tmp)
	}
	if err := unix.Mkdir(tmp, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return &StepError{Step: "create private directory", Path: tmp, Err: err}
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
