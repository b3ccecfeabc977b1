//go:build unix

package plan

import (
	"errors"
	"os"
	"syscall"
)

// createOwn makes sure that path is a regular file of ours with one name: nothing else
// may be reached through it.
func createOwn(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		return errors.New("it is not a file of our own")
	}
	return nil
}
