//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package approvals

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush throws away what was typed and not yet read.
func flush(f *os.File) error {
	const read = 1 // FREAD of <sys/fcntl.h>
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, read)
}
