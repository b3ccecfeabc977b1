//go:build unix

package scan

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/owner"
)

// foreign says who else than root and this user could have written the file at path.
func foreign(path string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "of an owner that cannot be told"
	}
	uid := uint32(os.Geteuid())
	switch {
	case st.Uid != uid && !owner.IsRoot(st.Uid, path):
		return "owned by another user"
	case info.Mode()&0o002 != 0:
		return "writable by everybody"
	case info.Mode()&0o020 != 0 && st.Gid != st.Uid && st.Gid != 0:
		return "writable by a group"
	}
	return ""
}
