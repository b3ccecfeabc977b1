//go:build unix

package place

import (
	"os"
	"syscall"
)

// The calls below go to the kernel directly: a path has many components and
// os.FileInfo costs as much again.

// safeDir reports whether dir belongs to uid and others cannot write to it.
func safeDir(dir string, uid int) bool {
	st, err := lstat(dir)
	return err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR && st.Mode&0o002 == 0 && int(st.Uid) == uid
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
	for _, o := range others {
		if o != "" && syscall.Stat(o, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino {
			return true
		}
	}
	return false
}

func openNonblock(p string) (*os.File, error) {
	return os.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}
