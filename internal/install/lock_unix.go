//go:build unix

package install

import (
	"io/fs"
	"os"
	"syscall"
)

// lock holds a directory against other installations; same says that it is still the one of
// this name.
func lock(dir string) (unlock func(), same bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, false, err
	}
	held, err := f.Stat()
	now, err2 := os.Stat(dir)
	return func() { f.Close() }, err == nil && err2 == nil && os.SameFile(held, now), nil
}

// mine reports whether a file belongs to this user.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
