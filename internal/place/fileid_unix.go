//go:build unix

package place

import (
	"os"
	"syscall"
)

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
