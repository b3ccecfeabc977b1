package proxy

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// socket is a connected socket that the runtime's poller waits for.
type socket struct{ f *os.File }

func newSocket(fd int) stream { return &socket{os.NewFile(uintptr(fd), "socket")} }

func (s *socket) Read(b []byte) (int, error)    { return s.f.Read(b) }
func (s *socket) Write(b []byte) (int, error)   { return s.f.Write(b) }
func (s *socket) Close() error                  { return s.f.Close() }
func (s *socket) SetDeadline(t time.Time) error { return s.f.SetDeadline(t) }

// CloseWrite sends the end of the stream and goes on reading.
func (s *socket) CloseWrite() error {
	raw, err := s.f.SyscallConn()
	if err == nil {
		var inner error
		err = raw.Control(func(fd uintptr) { inner = unix.Shutdown(int(fd), unix.SHUT_WR) })
		err = errors.Join(err, inner)
	}
	return err
}

// Reset has Close send a reset.
func (s *socket) Reset() error {
	raw, err := s.f.SyscallConn()
	if err == nil {
		var inner error
		err = raw.Control(func(fd uintptr) {
			inner = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		})
		err = errors.Join(err, inner)
	}
	return err
}

// acceptFrom waits for a connection. What only concerns one connection, and a lack of
// descriptors, which passes, do not end the service.
func acceptFrom(l *os.File) (stream, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	for {
		fd, errno := -1, error(nil)
		err := raw.Read(func(s uintptr) bool {
			fd, _, errno = unix.Accept4(int(s), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(errno, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return nil, err
		case errno == nil:
			return newSocket(fd), nil
		case errors.Is(errno, unix.ECONNABORTED), errors.Is(errno, unix.EINTR):
		case errors.Is(errno, unix.EMFILE), errors.Is(errno, unix.ENFILE), errors.Is(errno, unix.ENOMEM), errors.Is(errno, unix.ENOBUFS):
			time.Sleep(20 * time.Millisecond)
		default:
			return nil, errno
		}
	}
}

// connecting starts a connection and returns its socket.
func connecting(a ip.Addr, port, kind int) (*os.File, error) {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: port, Addr: a})
	if a.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte(a[12:])}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}

// dialPerAddress is how long one of several addresses may take.
const dialPerAddress = 5 * time.Second

func dialAddr(ctx context.Context, a ip.Addr, port int) (stream, error) {
	f, err := connecting(a, port, unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(dialPerAddress)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Now()) })
	if err = f.SetDeadline(until); err == nil {
		err = connected(f)
	}
	stop() // before the deadline is taken back
	if err == nil {
		err = f.SetDeadline(time.Time{})
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &socket{f}, nil
}

// connected waits until the connection is there or has failed.
func connected(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	result := error(nil)
	err = raw.Write(func(fd uintptr) bool {
		n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && n != 0 {
			err = unix.Errno(n)
		}
		if err == nil {
			_, err = unix.Getpeername(int(fd))
		}
		if errors.Is(err, unix.ENOTCONN) {
			return false
		}
		result = err
		return true
	})
	return errors.Join(err, result)
}

// datagramTo is a UDP socket that hears only the given server.
func datagramTo(a ip.Addr, port int) (stream, error) {
	f, err := connecting(a, port, unix.SOCK_DGRAM)
	if err != nil {
		return nil, err
	}
	return &socket{f}, nil
}

// ownAddrs lists the addresses of this machine. A service that listens on one of them may
// think that only its network can reach it.
func ownAddrs() ([]ip.Addr, error) {
	data, err := syscall.NetlinkRIB(unix.RTM_GETADDR, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return nil, err
	}
	var out []ip.Addr
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != unix.RTM_NEWADDR {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			continue
		}
		for _, a := range attrs {
			if a.Attr.Type != unix.IFA_ADDRESS && a.Attr.Type != unix.IFA_LOCAL {
				continue
			}
			switch len(a.Value) {
			case 4:
				out = append(out, ip.V4(a.Value[0], a.Value[1], a.Value[2], a.Value[3]))
			case 16:
				out = append(out, ip.Addr(a.Value))
			}
		}
	}
	return out, nil
}
