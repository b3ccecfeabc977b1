//go:build unix

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/tty"
)

const exeSuffix = ""

func replaceProcess(path string, argv, env []string) error { return unix.Exec(path, argv, env) }

// unbroken writes to the file of w under another number. A write to a closed pipe then
// only fails: for descriptors 1 and 2 the os package ends the process with SIGPIPE.
func unbroken(w io.Writer) io.Writer {
	under, ok := w.(interface{ Underlying() *os.File })
	if !ok {
		return w
	}
	f := under.Underlying()
	// Not Fd, which would make a descriptor that was shared as non-blocking blocking.
	conn, err := f.SyscallConn()
	if err != nil {
		return w
	}
	dup := -1
	if conn.Control(func(fd uintptr) { dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3) }) != nil || err != nil {
		return w
	}
	return tty.Steady(os.NewFile(uintptr(dup), f.Name()))
}
