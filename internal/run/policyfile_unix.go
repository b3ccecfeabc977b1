//go:build unix

package run

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/owner"
)

func openNonblock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC|syscall.O_NOCTTY, 0)
}

// foreignWriter says why somebody else may have written the file at path, "" if nobody can.
func foreignWriter(path string, info fs.FileInfo, uid int) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "has no owner we can read"
	}
	if int(st.Uid) != uid && !owner.IsRoot(st.Uid, path) {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o022 != 0 && !(info.IsDir() && info.Mode()&fs.ModeSticky != 0) {
		return "can be written by others"
	}
	return ""
}
