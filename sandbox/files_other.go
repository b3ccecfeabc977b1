//go:build !linux

package sandbox

import (
	"os"
	"path/filepath"
)

// HostFiles is the file system of this machine.
func HostFiles() Files { return hostFiles{} }

type hostFiles struct{}

// Resolve implements Files.
func (hostFiles) Resolve(path string) (string, bool, error) {
	canonical, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false, err
	}
	fi, err := os.Stat(canonical)
	if err != nil {
		return "", false, err
	}
	return canonical, fi.IsDir(), nil
}

// Directory is what a path leads to, without links.
func Directory(path string) (canonical string, id DirID, err error) {
	if canonical, err = filepath.EvalSymlinks(path); err == nil {
		_, err = os.ReadDir(canonical)
	}
	return canonical, id, err
}

// Loader implements Files.
func (hostFiles) Loader(path string) []string { return loaderOf(path) }
