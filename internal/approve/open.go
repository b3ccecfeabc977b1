package approve

import (
	"errors"
	"io/fs"
	"os"

	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// openOurs opens a regular file that only this user can have written. A link is not followed.
func openOurs(path string) (*os.File, error) {
	f, err := regular.OpenNoFollow(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = ours(info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// private checks that only this user can put files into dir.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("not a directory")
	}
	return ours(info)
}

// ours checks that nobody else can write what a file holds. Where owners cannot be told it is believed.
func ours(info fs.FileInfo) error {
	uid, _, told := owner.Of(info)
	switch {
	case !told:
	case uid != os.Geteuid():
		return errors.New("owned by another user")
	case info.Mode().Perm()&0o022 != 0:
		return errors.New("writable by others")
	}
	return nil
}
