//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Steady writes to a file that whoever shares it may make non-blocking at any time, as Node
// does with its pipes. The flag is theirs and stays; a full pipe is waited for.
func Steady(f *os.File) io.Writer { return steady{f} }

type steady struct{ file *os.File }

// Underlying is the file that is written to.
func (s steady) Underlying() *os.File { return s.file }

func (s steady) Write(b []byte) (n int, err error) {
	for {
		m, err := s.file.Write(b[n:])
		n += m
		if !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
		if err := s.wait(); err != nil {
			return n, err
		}
	}
}

// wait returns once something can be written, or once a write would say why not.
func (s steady) wait() error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	var perr error
	err = raw.Control(func(fd uintptr) {
		for {
			if _, perr = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); !errors.Is(perr, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, perr)
}
