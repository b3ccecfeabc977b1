package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// rootName is the name of the file system that a private root is.
const rootName = "atip-exec"

// FindOuter says which run this process is inside of, nil for none. It believes a file
// only where nobody inside of a sandbox can put one, on a file system that is read-only, in
// memory, and has the name of ours; and only in a process that is confined for good.
func FindOuter() *Outer {
	fd, err := unix.Open(outerDir+"/outer.json", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	filter, err1 := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	kept, err2 := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err1 != nil || err2 != nil || filter != unix.SECCOMP_MODE_FILTER || kept != 1 {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxPlan || !onPrivateRoot(fd) {
		return nil
	}
	data := make([]byte, st.Size)
	if n, err := unix.Pread(fd, data, 0); err != nil || n != len(data) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var o Outer
	if d.Decode(&o) != nil || o.V != outerVersion || o.Tier != T3 {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return &o
}

// onPrivateRoot reports whether an open file lies on the root of a private root.
func onPrivateRoot(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil || st.Type != unix.TMPFS_MAGIC || st.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	// The name is in the list of mounts only. The descriptor says which one it is.
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	_, rest, ok := strings.Cut("\n"+string(info), "\nmnt_id:")
	id, _, _ := strings.Cut(rest, "\n")
	if err != nil || !ok {
		return false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mounts)) {
		mount, options, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if !ok || strings.Fields(mount)[0] != strings.TrimSpace(id) {
			continue
		}
		f := strings.Fields(options)
		return len(f) > 1 && f[0] == "tmpfs" && f[1] == rootName
	}
	return false
}

// sayOuter leaves word for the runs inside. A directory of the host that was granted there
// stays as it is.
func (r *privateRoot) sayOuter(text string) {
	if text == "" {
		return
	}
	r.step("say what is outside", outerDir, func() error {
		if err := r.directory(outerDir); err != nil {
			if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
				return nil // runs inside then know less, and say so
			}
			return err
		}
		fd, err := unix.Open(r.base+outerDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var here, root unix.Stat_t
		if err := errors.Join(unix.Fstat(fd, &here), unix.Stat(r.base, &root)); err != nil {
			return err
		}
		if here.Dev != root.Dev {
			return nil // it came with a directory of the host
		}
		file, err := unix.Openat(fd, "outer.json", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(file), "outer.json")
		_, err = f.WriteString(text)
		return errors.Join(unwrapPath(err), unwrapPath(f.Close()))
	})
}
