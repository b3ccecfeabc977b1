//go:build unix

package settle

import (
	"os"
	"path/filepath"
	"syscall"
)

// readOwn returns the content of a file that only this user can have written: regular, one
// name, no rights for others, in a directory of ours alone.
func readOwn(path string) ([]byte, bool) {
	// An *os.File would ask the poller about a file that it cannot watch: three calls of the
	// kernel more, half of what a cached verdict costs.
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Mode&0o077 != 0 ||
		int(st.Uid) != os.Geteuid() || st.Nlink != 1 || st.Size > maxRecord || !ownDir(filepath.Dir(path)) {
		return nil, false
	}
	raw := make([]byte, st.Size)
	for n := 0; n < len(raw); {
		m, err := syscall.Read(fd, raw[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m <= 0 {
			return nil, false
		}
		n += m
	}
	return raw, true
}

func ownDir(dir string) bool {
	var st syscall.Stat_t
	return syscall.Lstat(dir, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR && st.Mode&0o077 == 0 && int(st.Uid) == os.Geteuid()
}

// identity is what changes whenever a file does.
func identity(info os.FileInfo) (dev, ino, mtime, ctime uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, uint64(info.ModTime().UnixNano()), 0
	}
	return uint64(st.Dev), uint64(st.Ino), uint64(info.ModTime().UnixNano()), changed(st)
}
