//go:build unix

package effects

import (
	"os"
	"syscall"
)

// ownedBy reports whether a file belongs to a user.
func ownedBy(info os.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}
