//go:build unix

package plan

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

// linkedFile returns device and inode of a regular file that has more than one name.
func linkedFile(path string) (id [2]uint64, linked bool) {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Nlink < 2 {
		return id, false
	}
	return [2]uint64{uint64(st.Dev), uint64(st.Ino)}, true
}
