//go:build unix

package shims

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/flock"
	"github.com/atip-dev/atip-exec/internal/owner"
)

// readSafe returns the content of a metadata file and whether root owns it. An
// absent file gives fs.ErrNotExist. Whoever else could write the file could
// decide what a tool is believed to do, so only files that nobody but this user
// and root can change are read; the checks are made on the opened descriptor.
func readSafe(file string) (raw []byte, rootOwned bool, err error) {
	return readSafeUpTo(file, maxFile)
}

func readSafeUpTo(file string, limit int64) (raw []byte, rootOwned bool, err error) {
	f, err := openSafe(file, limit)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	raw, err = f.all()
	return raw, f.rootOwned, err
}

// safeFile is a file that has passed the checks of readSafe and is still open.
type safeFile struct {
	*os.File
	path      string
	stat      syscall.Stat_t
	rootOwned bool
}

func openSafe(file string, limit int64) (*safeFile, error) {
	// O_NONBLOCK keeps a FIFO from stopping us here; O_NOFOLLOW because the
	// directory check below speaks of this directory, not of a link's target.
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return nil, fs.ErrNotExist
	case errors.Is(err, syscall.ELOOP):
		return nil, unsafeFile(file, "is a symbolic link", err)
	case err != nil:
		return nil, unsafeFile(file, "cannot be opened: "+err.Error(), err)
	}
	f := &safeFile{File: os.NewFile(uintptr(fd), file), path: file}
	if err := f.check(limit); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *safeFile) check(limit int64) error {
	st := &f.stat
	if err := syscall.Fstat(int(f.Fd()), st); err != nil {
		return unsafeFile(f.path, "cannot be examined: "+err.Error(), err)
	}
	uid := os.Geteuid()
	switch {
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return unsafeFile(f.path, "is not a regular file", nil)
	case st.Nlink != 1:
		return unsafeFile(f.path, "has more than one hard link", nil)
	case int(st.Uid) != uid && !owner.IsRoot(st.Uid, f.path):
		return unsafeFile(f.path, "belongs to another user", nil)
	case writableByOthers(st):
		return unsafeFile(f.path, "is writable by others", nil)
	case st.Size > limit:
		return &Error{Code: errcode.MetadataLimit, File: f.path, Msg: "larger than " + strconv.FormatInt(limit>>20, 10) + " MiB"}
	}
	var dir syscall.Stat_t
	if err := syscall.Stat(filepath.Dir(f.path), &dir); err != nil {
		return unsafeFile(f.path, "its directory cannot be examined: "+err.Error(), err)
	}
	parent := filepath.Dir(f.path)
	if writableByOthers(&dir) || int(dir.Uid) != uid && !owner.IsRoot(dir.Uid, parent) {
		return unsafeFile(f.path, "its directory is writable by others", nil)
	}
	f.rootOwned = owner.IsRoot(st.Uid, f.path) && owner.IsRoot(dir.Uid, parent)
	return nil
}

// all reads the file, which must not change meanwhile.
func (f *safeFile) all() ([]byte, error) {
	raw := make([]byte, 0, f.stat.Size+1)
	for {
		n, err := f.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return raw, nil
		}
		if err != nil {
			return nil, unsafeFile(f.path, "cannot be read: "+err.Error(), err)
		}
		if len(raw) == cap(raw) {
			// Longer than fstat said: somebody is writing it in place.
			return nil, unsafeFile(f.path, "changed while it was read", nil)
		}
	}
}

// writableByOthers allows the group bit only for a user-private group, which by
// convention has the number of its user (umask 002 of Red Hat and Debian).
func writableByOthers(st *syscall.Stat_t) bool {
	return st.Mode&0o002 != 0 || st.Mode&0o020 != 0 && st.Gid != st.Uid
}

// lockFile waits until no other process holds the lock.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock.Exclusive(f); err != nil {
		f.Close()
		return nil, err
	}
	// The lock ends with the descriptor; the file stays, since removing it would let
	// two processes hold a lock of the same name.
	return func() { f.Close() }, nil
}
