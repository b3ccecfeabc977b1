//go:build unix

package regular

import (
	"errors"
	"os"
	"syscall"
)

const (
	noWait  = syscall.O_NONBLOCK | syscall.O_NOCTTY
	onlyDir = syscall.O_DIRECTORY
)

func openNonblock(path string, follow bool) (*os.File, error) {
	flags := os.O_RDONLY | noWait
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	return os.OpenFile(path, flags, 0)
}

func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|onlyDir|noWait, 0)
}

// CreateOwn makes sure that path is a regular file of ours with one name: nothing else
// may be reached through it.
func CreateOwn(path string) error {
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
