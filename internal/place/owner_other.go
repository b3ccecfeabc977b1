//go:build !unix

package place

import "os"

// safeDir cannot see owners here; nothing confines a child here either.
func safeDir(dir string, uid int) bool { return isDir(dir) }

// lookAt tells what p itself is.
func lookAt(p string) (link, missing bool) {
	fi, err := os.Lstat(p)
	return err == nil && fi.Mode()&os.ModeSymlink != 0, err != nil
}

// sameAsAny reports whether a path leads to the file that one of others leads to; ""
// leads nowhere.
func sameAsAny(p string, others ...string) bool {
	x, err := os.Stat(p)
	if err != nil {
		return false
	}
	for _, o := range others {
		if o == "" {
			continue
		}
		if y, err := os.Stat(o); err == nil && os.SameFile(x, y) {
			return true
		}
	}
	return false
}

// writableByOthers sees no owners here.
func writableByOthers(path string) (string, error) {
	_, err := os.Lstat(path)
	return "", err
}

// belongsTo sees no owners here.
func belongsTo(dir string, uid int) bool { return true }

// FileID has no inode to tell here; the path alone names the directory.
func FileID(string) (dev, ino uint64) { return 0, 0 }
