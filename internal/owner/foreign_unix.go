//go:build unix

package owner

import (
	"io/fs"
	"syscall"
)

// Of returns whose a file is, false where that cannot be told.
func Of(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// ForeignWriter says why somebody else may have written the file at path, "" if nobody can.
func ForeignWriter(path string, info fs.FileInfo, uid int) string {
	owner, _, ok := Of(info)
	if !ok {
		return "has no owner we can read"
	}
	if owner != uid && !IsRoot(uint32(owner), path) {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o022 != 0 && !(info.IsDir() && info.Mode()&fs.ModeSticky != 0) {
		return "can be written by others"
	}
	return ""
}
