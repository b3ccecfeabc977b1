//go:build unix

package place

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/owner"
)

// The calls below go to the kernel directly: a path has many components and
// os.FileInfo costs as much again.

// safeDir reports whether dir belongs to uid and others cannot write to it.
func safeDir(dir string, uid int) bool {
	st, err := lstat(dir)
	return err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR && st.Mode&0o002 == 0 && int(st.Uid) == uid
}

// belongsTo reports whether a directory is the user's, or root's, who made it for him.
func belongsTo(dir string, uid int) bool {
	st, err := lstat(dir)
	return err == nil && (int(st.Uid) == uid || owner.IsRoot(st.Uid, dir))
}

func lstat(p string) (st syscall.Stat_t, err error) {
	for {
		if err = syscall.Lstat(p, &st); err != syscall.EINTR {
			return st, err
		}
	}
}

// lookAt tells what p itself is.
func lookAt(p string) (link, missing bool) {
	st, err := lstat(p)
	return err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK, err != nil
}

// sameAsAny reports whether a path leads to the file that one of others leads to; ""
// leads nowhere.
func sameAsAny(p string, others ...string) bool {
	var x, y syscall.Stat_t
	if syscall.Stat(p, &x) != nil {
		return false
	}
	return slices.ContainsFunc(others, func(o string) bool { return o != "" && syscall.Stat(o, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino })
}

// writableByOthers says why somebody else than this user and root can have changed the file at
// path, or put another in its place; "" if nobody can.
func writableByOthers(path string) (string, error) {
	for _, p := range [...]string{path, filepath.Dir(path)} {
		var st syscall.Stat_t
		if err := syscall.Stat(p, &st); err != nil {
			return "", &os.PathError{Op: "stat", Path: p, Err: err}
		}
		sticky := st.Mode&syscall.S_IFMT == syscall.S_IFDIR && st.Mode&syscall.S_ISVTX != 0
		switch {
		case int(st.Uid) != os.Geteuid() && !owner.IsRoot(st.Uid, p):
			return p + " belongs to another user", nil
		case st.Mode&0o022 != 0 && !sticky:
			return p + " can be written by others", nil
		}
	}
	return "", nil
}

// linkedFile returns device and inode of a regular file that has more than one name.
func linkedFile(path string) (id [2]uint64, linked bool) {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Nlink < 2 {
		return id, false
	}
	return [2]uint64{uint64(st.Dev), uint64(st.Ino)}, true
}

// FileID returns the device and inode of a path, zeros if it cannot be read.
func FileID(path string) (dev, ino uint64) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino)
	}
	return 0, 0
}
