package plan

import (
	"io/fs"
	"os"
)

// StdinKind names what a descriptor is: file, directory, pipe, socket or tty, and null for anything else.
func StdinKind(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return "null"
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeCharDevice != 0 && isTerminal(f):
		return "tty"
	}
	return "null"
}
