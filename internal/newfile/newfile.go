// Package newfile puts files in place whole: a reader sees all of the old text or all
// of the new one, also after a crash.
package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Pattern is the name of what is not in place yet, as filepath.Match knows it.
const Pattern = ".new-*"

// Replace writes the file at path, in the place of one that is there.
func Replace(path string, raw []byte, mode fs.FileMode) error {
	return put(path, raw, mode, os.Rename)
}

// Create writes the file at path where none is; fs.ErrExist if there is one.
func Create(path string, raw []byte, mode fs.FileMode) error {
	return put(path, raw, mode, os.Link)
}

func put(path string, raw []byte, mode fs.FileMode, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), Pattern) // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if mode != 0o600 {
		err = f.Chmod(mode)
	}
	_, writing := f.Write(raw)
	if err = errors.Join(err, writing, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}
