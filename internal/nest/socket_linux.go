package nest

import (
	"cmp"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pair makes a socket pair that keeps messages apart when several processes write at the same
// time.
func pair() (from, to *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	// The kernel says of each message which process sent it.
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "records"), os.NewFile(uintptr(fds[1]), "records"), nil
}

// inherited takes over the inherited end of such a pair; nil if fd is none.
func inherited(fd int) *os.File {
	if !isPacketSocket(fd) || unix.SetNonblock(fd, true) != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "records")
}

func isPacketSocket(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_SEQPACKET
}

// answerSocket reports whether a descriptor that somebody sent is a socket on which an
// answer cannot block.
func answerSocket(f *os.File) bool { return f.Name() == "answer" }

// passable reports whether descriptors that somebody sent may become those of a command:
// something to read from, and two pipes.
func passable(files []*os.File) bool {
	for i, f := range files {
		var st unix.Stat_t
		var err error
		if conn, cerr := f.SyscallConn(); cerr != nil || conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }) != nil || err != nil {
			return false
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO:
		case unix.S_IFREG, unix.S_IFCHR:
			if i > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// sendNow sends a message if there is room for it, and does not wait for any.
func sendNow(to *os.File, raw []byte) {
	if conn, err := to.SyscallConn(); err == nil {
		_ = conn.Write(func(fd uintptr) bool {
			_ = unix.Sendmsg(int(fd), raw, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			return true
		})
	}
}

// maxFiles is how many descriptors a message may bring; the kernel closes what is more.
const maxFiles = 4

// send sends a message with descriptors.
func send(to *os.File, raw []byte, files ...*os.File) error {
	conn, err := to.SyscallConn()
	if err != nil {
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	var serr error
	if err := conn.Write(func(fd uintptr) bool {
		serr = unix.Sendmsg(int(fd), raw, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return serr != unix.EAGAIN
	}); err != nil {
		return err
	}
	return serr
}

// receive receives a message and the descriptors that came with it, the first under a
// name that says whether it is a socket of our kind. Of a message that was cut short the
// descriptors are closed. If it is not to wait, an empty queue is an error. pid is that of the
// process that sent it, 0 if that is not known.
func receive(from *os.File, buf []byte, wait bool) (n int, files []*os.File, pid int, err error) {
	conn, err := from.SyscallConn()
	if err != nil {
		return 0, nil, 0, err
	}
	oob := make([]byte, unix.CmsgSpace(4*maxFiles)+unix.CmsgSpace(unix.SizeofUcred))
	var oobn, flags int
	var rerr error
	if err := conn.Read(func(fd uintptr) bool {
		n, oobn, flags, _, rerr = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		return rerr != unix.EINTR && (rerr != unix.EAGAIN || !wait)
	}); err != nil {
		return 0, nil, 0, err
	}
	if rerr != nil {
		return 0, nil, 0, rerr
	}
	if n == 0 && oobn == 0 {
		return 0, nil, 0, os.ErrClosed
	}
	var fds []int
	messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			pid = int(cred.Pid)
		} else if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	for i, fd := range fds {
		switch {
		case flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0:
			unix.Close(fd)
		case i == 0 && isPacketSocket(fd) && unix.SetNonblock(fd, true) == nil:
			files = append(files, os.NewFile(uintptr(fd), "answer"))
		default:
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return n, files, pid, nil
}

// replaced are what connect took the place of: a file that is collected closes its descriptor, which is
// that of a new one by then.
var replaced []*os.File

// connect makes descriptors that were passed those of this process.
func connect(files []*os.File) error {
	if len(files) != 3 {
		return unix.EBADF
	}
	for i, to := range [...]**os.File{&os.Stdin, &os.Stdout, &os.Stderr} {
		f := files[i]
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		if cerr := conn.Control(func(fd uintptr) { err = unix.Dup3(int(fd), i, 0) }); err != nil || cerr != nil {
			return cmp.Or(err, cerr)
		}
		f.Close()
		replaced = append(replaced, *to)
		*to = os.NewFile(uintptr(i), (*to).Name()) // which looks once whether a descriptor is one that blocks
	}
	return nil
}

// helperAttributes keep a helper off our terminal and let it die with us.
func helperAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
