package approvals

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush throws away what was typed and not yet read.
func flush(f *os.File) error { return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
