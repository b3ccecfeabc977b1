package run

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// recordPair makes a socket pair that keeps records apart, whoever writes at the same
// time.
func recordPair() (from, to *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "records"), os.NewFile(uintptr(fds[1]), "records"), nil
}

// recordSocket takes over the inherited end of such a pair; nil if fd is none.
func recordSocket(fd int) *os.File {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return nil
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET || unix.SetNonblock(fd, true) != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "records")
}
