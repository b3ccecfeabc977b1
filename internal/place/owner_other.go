//go:build !unix

package place

import "os"

// safeDir cannot see owners here; nothing confines a child here either.
func safeDir(dir string, uid int) bool { return isDir(dir) }

func openNonblock(p string) (*os.File, error) { return os.Open(p) }

// lookAt tells what p itself is.
func lookAt(p string) (link, missing bool) {
	fi, err := os.Lstat(p)
	return err == nil && fi.Mode()&os.ModeSymlink != 0, err != nil
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
