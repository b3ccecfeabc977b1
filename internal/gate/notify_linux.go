package gate

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a system call as a filter sees it: struct seccomp_data.
type Call struct {
	Nr   int32
	Arch uint32
	IP   uint64
	Args [6]uint64
}

// Notification is a call that waits for an answer: struct seccomp_notif.
type Notification struct {
	ID    uint64
	PID   uint32 // of the thread, as seen from here
	Flags uint32
	Call  Call
}

// Response is the answer to a Notification: struct seccomp_notif_resp.
type Response struct {
	ID    uint64
	Val   int64
	Error int32 // a negative errno
	Flags uint32
}

// Continue lets the call of n go on as it is.
func Continue(n *Notification) Response {
	return Response{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
}

// Refuse makes the call of n fail with errno.
func Refuse(n *Notification, errno unix.Errno) Response {
	return Response{ID: n.ID, Error: -int32(errno)}
}

// Listener is the descriptor of a filter's notifications.
type Listener int

// Valid reports whether the caller still waits, so that what was read of it was its own.
func (l Listener) Valid(n *Notification) bool {
	id := n.ID
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// Answer sends r. A caller that was killed meanwhile needs none.
func (l Listener) Answer(r Response) { _ = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) }

// wakeHere asks the kernel to wake an answered process on the processor that answered it, which waits for the
// next start by then (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, since Linux 6.6). An older kernel refuses, which changes nothing else.
func (l Listener) wakeHere() {
	_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

func (l Listener) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), request, uintptr(arg))
		if errno != unix.EINTR {
			return errno
		}
	}
}

// Serve hands each notification to handle, one after the other, until no process is left
// under the filter. It does not close the listener: handlers may still answer.
func (l Listener) Serve(handle func(*Notification)) {
	for {
		n := new(Notification)
		if !l.next(n) {
			return
		}
		handle(n)
	}
}

// next waits for a notification. There is none once no process is left.
func (l Listener) next(n *Notification) bool {
	for {
		poll := [...]unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll[:], -1); err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		if got, ended := l.take(n); got || ended {
			return got
		}
	}
}

// take receives a notification if there is one. It has ended once no process is left. Two must not
// take at once.
func (l Listener) take(n *Notification) (got, ended bool) {
	for {
		events, errno := l.poll(0)
		switch {
		case errno == unix.EINTR, errno == 0 && events == unix.POLLERR:
			// A signal came while the kernel waited for its lock on the filter, which it says by POLLERR.
		case errno != 0:
			return false, true
		case events&unix.POLLIN != 0:
			*n = Notification{}
			if l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)) == 0 {
				return true, false
			} // ENOENT: the caller was killed meanwhile
		default:
			return false, events&(unix.POLLHUP|unix.POLLNVAL) != 0
		}
	}
}

// poll waits that long for a notification.
func (l Listener) poll(wait time.Duration) (events int16, errno unix.Errno) {
	poll := [...]unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
	timeout := unix.NsecToTimespec(int64(wait))
	_, _, errno = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	return poll[0].Revents, errno
}

// Flags of seccomp(2) with SET_MODE_FILTER.
const (
	newListener      = 1 << 3
	waitKillableRecv = 1 << 5 // since Linux 5.19
)

// ErrOther says that another listener serves this process already, as a run inside a
// gated run finds it.
var ErrOther = errors.New("the calls of this process have a listener already")

// Install adds to the calling thread a filter that asks about execve and execveat of the
// native ABI, and returns its listener. Without WAIT_KILLABLE_RECV each signal would
// restart the question, so a kernel that lacks it gives EINVAL. no_new_privs must be set.
func Install() (Listener, error) {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_EXECVE, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_EXECVEAT, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, newListener|waitKillableRecv, uintptr(unsafe.Pointer(&fprog)))
	switch errno {
	case 0:
		return Listener(fd), nil
	case unix.EBUSY:
		return -1, ErrOther
	}
	return -1, errno
}

// Supported reports whether the kernel knows what the gate needs, without installing
// anything: a filter at address 0 is refused with EFAULT only after its flags.
func Supported() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, newListener|waitKillableRecv, 0)
	return errno == unix.EFAULT
}
