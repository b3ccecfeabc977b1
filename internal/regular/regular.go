// Package regular reads files that somebody else may have put there: a workspace is written
// by what runs in it. A FIFO would hang its reader, a device never ends, and a file can be
// larger than memory, so that nothing but a regular file of bounded size is read.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNot says that a path leads to something else than a regular file.
var ErrNot = errors.New("is not a regular file")

// TooLargeError is a file of more bytes than its reader accepts.
type TooLargeError struct {
	Path string
	Max  int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: is larger than %d KiB", e.Path, e.Max>>10)
}

// Open opens a regular file for reading without ever waiting. Links are followed.
func Open(path string) (*os.File, error) { return open(path, true) }

// OpenNoFollow is Open for a path whose last component may be no link.
func OpenNoFollow(path string) (*os.File, error) { return open(path, false) }

// OpenOrPipe is Open for a path that may lead to a pipe as well, as a shell's <(…) does. A pipe
// does not wait for the other side to open it; its reader waits as long as there is nothing.
func OpenOrPipe(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeNamedPipe == 0 {
		return Open(path)
	}
	f, err := openNonblock(path, true)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	return f, nil
}

// OpenIn is Open below a directory that is held open.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	if info, err := root.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	f, err := root.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	return f, nil
}

// OpenDirIn is OpenDir below a directory that is held open.
func OpenDirIn(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|onlyDir|noWait, 0)
}

// OpenDir opens a directory, to list it. Anything else is an error and never waited for.
func OpenDir(path string) (*os.File, error) { return openDir(path) }

// Refused reports a file or a directory that this process may not open: it is outside of its sandbox, or,
// where a missing one may be hidden, may be.
func Refused(path string, hidden bool) bool {
	f, err := Open(path)
	if errors.Is(err, ErrNot) {
		f, err = OpenDir(path)
	}
	if err == nil {
		f.Close()
		return false
	}
	return errors.Is(err, fs.ErrPermission) || hidden && errors.Is(err, fs.ErrNotExist)
}

func open(path string, follow bool) (*os.File, error) {
	// Asked by name first: opening a device can have effects of its own.
	look := os.Stat
	if !follow {
		look = os.Lstat
	}
	if info, err := look(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	f, err := openNonblock(path, follow)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	return f, nil
}

// Read returns the content of a regular file of at most limit bytes. Links are followed.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return all(f, path, limit)
}

// ReadNoFollow is Read for a path whose last component may be no link.
func ReadNoFollow(path string, limit int64) ([]byte, error) {
	f, err := OpenNoFollow(path)
	if err != nil {
		return nil, err
	}
	return all(f, path, limit)
}

func all(f *os.File, path string, limit int64) ([]byte, error) {
	defer f.Close()
	// What the size says is not what a file in use holds.
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, &TooLargeError{Path: path, Max: limit}
	}
	return raw, nil
}
