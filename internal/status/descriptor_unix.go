//go:build unix

package status

import (
	"os"

	"golang.org/x/sys/unix"
)

func writable(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}
