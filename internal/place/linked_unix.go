//go:build unix

package place

import "syscall"

// linkedFile returns device and inode of a regular file that has more than one name.
func linkedFile(path string) (id [2]uint64, linked bool) {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Nlink < 2 {
		return id, false
	}
	return [2]uint64{uint64(st.Dev), uint64(st.Ino)}, true
}
