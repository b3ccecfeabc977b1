package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// Bounds of what is read.
const (
	maxConfig  = 1 << 20
	maxPointer = 4096 // a .git file, commondir, gitdir: one path
	maxIndex   = 64 << 20
)

// Read returns the content of a regular file of at most limit bytes. It does not block on
// a FIFO. A missing file is an error that fs.ErrNotExist matches.
func Read(path string, limit int64) ([]byte, error) {
	data, err := regular.Read(path, limit)
	return data, throughFile(path, err)
}

// open opens a regular file.
func open(path string) (*os.File, error) {
	f, err := regular.Open(path)
	return f, throughFile(path, err)
}

// throughFile says of a path that leads through a file, as through one, that nothing is there.
func throughFile(path string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
