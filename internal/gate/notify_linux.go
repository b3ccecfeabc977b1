package gate

import (
	"errors"
	"sync"
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

func (l Listener) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l), request, uintptr(arg))
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
		switch got, ended := l.take(n, -1); {
		case ended:
			return
		case got:
			handle(n)
		}
	}
}

// take receives a notification if one comes within wait milliseconds, -1 for any time. It has ended
// once no process is left. Two must not wait at once: the one that comes second would not hear of
// the end.
func (l Listener) take(n *Notification, wait int) (got, ended bool) {
	for {
		poll := [...]unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
		_, err := unix.Poll(poll[:], wait)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, true
		case poll[0].Revents&unix.POLLIN != 0:
			*n = Notification{}
			if l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)) == 0 {
				return true, false
			} // ENOENT: the caller was killed meanwhile
		case poll[0].Revents != 0:
			return false, true
		case err == nil && wait == 0:
			return false, false
		}
	}
}

// queue is a listener for which several threads wait. The kernel wakes one of them with each
// notification, the one that slept last; a lock that they hand on would wake a second one with each, which
// costs more than the answer.
type queue struct {
	Listener
	taking sync.Mutex
	epoll  int
	over   int // readable at the end
}

func (l Listener) queue() (*queue, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	over, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err == nil {
		if err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, over, &unix.EpollEvent{Events: unix.EPOLLIN}); err == nil {
			err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, int(l), edge())
		}
	}
	q := &queue{Listener: l, epoll: epoll, over: over}
	if err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func edge() *unix.EpollEvent { return &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET} }

// next waits for a notification. It is false once no process is left.
func (q *queue) next(n *Notification) bool {
	for {
		q.taking.Lock()
		got, ended := q.take(n, 0)
		if got {
			poll := [...]unix.PollFd{{Fd: int32(q.Listener), Events: unix.POLLIN}}
			if k, _ := unix.Poll(poll[:], 0); k > 0 {
				// What came together woke one thread only, and this one is busy from now on.
				_ = unix.EpollCtl(q.epoll, unix.EPOLL_CTL_MOD, int(q.Listener), edge())
			}
		}
		q.taking.Unlock()
		switch {
		case got:
			return true
		case ended:
			_, _ = unix.Write(q.over, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			return false
		}
		if _, err := unix.EpollWait(q.epoll, make([]unix.EpollEvent, 1), -1); err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

func (q *queue) close() {
	for _, fd := range [...]int{q.epoll, q.over, int(q.Listener)} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
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
