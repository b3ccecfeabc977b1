//go:build unix

package owner

import (
	"io/fs"
	"syscall"
)

// ForeignWriter says why somebody else may have written the file at path, "" if nobody can.
func ForeignWriter(path string, info fs.FileInfo, uid int) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "has no owner we can read"
	}
	if int(st.Uid) != uid && !IsRoot(st.Uid, path) {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o022 != 0 && !(info.IsDir() && info.Mode()&fs.ModeSticky != 0) {
		return "can be written by others"
	}
	return ""
}
