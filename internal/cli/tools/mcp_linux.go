package tools

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// protocolStreams takes standard input and output for the protocol. Whatever else prints
// to standard output from here on, reaches standard error.
func protocolStreams() (io.ReadCloser, io.WriteCloser, error) {
	out, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return nil, nil, err
	}
	return os.Stdin, os.NewFile(uintptr(out), "protocol"), nil
}
