//go:build !unix

package regular

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Opening a file does not wait here.
const noWait, onlyDir = 0, 0

func openNonblock(path string, _ bool) (*os.File, error) { return os.Open(path) }

func openDir(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return os.Open(path)
}

// CreateOwn is for hosts that start a POSIX shell.
func CreateOwn(string) error { return errors.New("not on this system") }
