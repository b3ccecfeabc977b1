//go:build unix

package filter

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// readTagKey reads the key file if nobody else could have written or read it.
func readTagKey(path, boot string, ends bool) (k TagKey, stale bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return k, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return k, false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return k, false, err
	}
	if !info.Mode().IsRegular() || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return k, false, errors.New("not a private file of this user")
	}
	if err := checkOwn(filepath.Dir(path)); err != nil {
		return k, false, err
	}
	buf := make([]byte, len(k)+len(boot)+1)
	n, _ := f.Read(buf)
	if n < len(k) {
		return k, true, nil
	}
	copy(k[:], buf)
	if ends && (string(buf[len(k):n]) != boot || time.Since(info.ModTime()) > keyAge) {
		return k, true, nil
	}
	return k, false, nil
}

// checkOwn reports a directory that others may use.
func checkOwn(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return errors.New("the directory is not private to this user")
	}
	return nil
}
