//go:build unix

package regular

import (
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
