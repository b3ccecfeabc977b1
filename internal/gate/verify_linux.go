package gate

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errSwapped is a start whose words or file were changed after they had been read.
var errSwapped = errors.New("what was started is not what was decided")

// Stop is a state of a process that waitid(2) reports.
type Stop struct {
	PID    int
	Code   int32 // CLD_…
	Status int32
}

// cldTrapped is the si_code of a traced process that has stopped; the others are ends.
const cldTrapped = 4

// verified lets the call of n go on and compares what it becomes before the first
// instruction: CONTINUE makes the kernel read the words once more, and another thread may
// change them between (seccomp_unotify(2)). A program that differs is killed. No tracer
// remains, so that debuggers inside work.
func (g *Gate) verified(n *Notification, leader int, want image, t *turn) error {
	tid := int(n.PID)
	if leader == 0 {
		return unix.ESRCH
	}
	// A tracer is a thread, not a process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stops, done := g.follow(tid, leader, t)
	defer done()
	if err := ptrace(unix.PTRACE_SEIZE, tid, unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_EXITKILL); err != nil {
		switch traced := isTraced(tid); { // or Yama forbids it
		case traced && g.c.Traced:
			g.listener.Answer(Continue(n))
			return nil
		case traced:
			err = ErrTraced
		}
		g.listener.Answer(Refuse(n, unix.EACCES))
		return err
	}
	if err := ptrace(unix.PTRACE_INTERRUPT, tid, 0); err != nil {
		g.listener.Answer(Refuse(n, unix.EACCES))
		return err
	}
	g.listener.Answer(Continue(n))
	s, err := stops()
	switch {
	case err != nil:
		return err
	case s.Code != cldTrapped:
		return unix.ESRCH // it has ended
	case s.Status>>8 != unix.PTRACE_EVENT_EXEC:
		// The exec failed, and the thread is on its way back with the errno. A signal that
		// stopped it first is handed on.
		sig := uintptr(0)
		if s.Status>>8 == 0 {
			sig = uintptr(s.Status & 0xff)
		}
		_ = ptrace(unix.PTRACE_DETACH, s.PID, sig)
		return nil
	case !isImage(s.PID, want):
		_ = unix.Kill(s.PID, unix.SIGKILL)
		for s.Code == cldTrapped && err == nil {
			s, err = stops() // its parent hears of its end only after its tracer
		}
		return errSwapped
	}
	return ptrace(unix.PTRACE_DETACH, s.PID, 0)
}

func isTraced(tid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	_, rest, ok := strings.Cut(string(raw), "\nTracerPid:\t")
	return err == nil && ok && !strings.HasPrefix(rest, "0\n")
}

// isImage compares a process that was just executed and has done nothing.
func isImage(pid int, want image) bool {
	at := "/proc/" + strconv.Itoa(pid)
	if dev, ino, errno := rawFileOf(at + "/exe"); errno != 0 || dev != want.dev || ino != want.ino {
		return false
	}
	if want.fileOnly {
		return true
	}
	return isList(at+"/cmdline", want.argv) && isList(at+"/environ", want.env)
}

func isList(file string, want []string) bool {
	size := 0
	for _, word := range want {
		size += len(word) + 1
	}
	fd, errno := rawOpen(file, unix.O_RDONLY|unix.O_CLOEXEC)
	if errno != 0 {
		return false
	}
	defer rawClose(fd)
	got := make([]byte, 0, size+1) // one more would be another list
	for len(got) <= size {
		n, errno := rawRead(fd, got[len(got):size+1])
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n <= 0 {
			break
		}
		got = got[:len(got)+n]
	}
	if len(got) != size {
		return false
	}
	for _, word := range want {
		if string(got[:len(word)]) != word || got[len(word)] != 0 {
			return false
		}
		got = got[len(word)+1:]
	}
	return true
}

// ptrace makes one of the requests that have no address.
func ptrace(request uintptr, pid int, data uintptr) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, request, uintptr(pid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// follow returns a function that waits for the next stop of a thread or of its process,
// whose number an exec gives to the thread. Where the caller of this package reaps all
// children, stops come from there (Gate.Stopped), as two waiters would steal them.
func (g *Gate) follow(tid, leader int, t *turn) (next func() (Stop, error), done func()) {
	if !g.reaped {
		return func() (Stop, error) { return t.waitStop(tid, leader) }, func() {}
	}
	t.hand()
	ch := make(chan Stop, 4)
	g.mu.Lock()
	g.followers[tid], g.followers[leader] = ch, ch
	g.mu.Unlock()
	return func() (Stop, error) {
			select {
			case s := <-ch:
				return s, nil
			case <-time.After(Patience):
				_ = unix.Kill(leader, unix.SIGKILL)
				return Stop{}, unix.ETIMEDOUT
			}
		}, func() {
			g.mu.Lock()
			delete(g.followers, tid)
			delete(g.followers, leader)
			g.mu.Unlock()
		}
}

// Stopped hands over a stop or end that the reaper of the caller has seen, and reports
// whether it belonged to a start that is being verified.
func (g *Gate) Stopped(s Stop) bool {
	g.mu.Lock()
	ch := g.followers[s.PID]
	g.mu.Unlock()
	if ch == nil {
		return false
	}
	select {
	case ch <- s:
	default:
	}
	return true
}

// siginfo is the part of siginfo_t that waitid fills, the same on all 64-bit Linux.
type siginfo struct {
	_, _, code, _ int32
	pid           int32
	_             uint32
	status        int32
	_             [100]byte
}

// stopOf asks for the next stop or end of a thread or of its process, and waits for one if wait is set. Both
// numbers are asked, as the thread that executes takes over that of its process.
func stopOf(tid, leader int, wait bool) (s Stop, got bool, err error) {
	const flags = unix.WEXITED | unix.WSTOPPED | unix.WALL
	for _, pid := range [...]int{tid, leader} {
		var info siginfo
		var errno syscall.Errno
		if wait {
			_, _, errno = unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid), uintptr(unsafe.Pointer(&info)), flags, 0, 0)
		} else {
			_, _, errno = unix.RawSyscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid), uintptr(unsafe.Pointer(&info)), flags|unix.WNOHANG, 0, 0)
		}
		switch {
		case errno == 0 && info.pid != 0:
			return Stop{PID: int(info.pid), Code: info.code, Status: info.status}, true, nil
		case errno != 0 && errno != unix.EINTR && (errno != unix.ECHILD || tid == leader):
			return Stop{}, false, errno
		case tid == leader:
			return Stop{}, false, nil
		}
	}
	return Stop{}, false, nil
}

// An exec takes less than patient most often.
const patient = 4 * time.Millisecond

func (t *turn) waitStop(tid, leader int) (Stop, error) {
	began := time.Now()
	for time.Since(began) < patient {
		if s, got, err := stopOf(tid, leader, false); got || err != nil {
			return s, err
		}
		t.await(time.Millisecond)
	}
	t.hand()
	if tid == leader {
		for {
			if s, got, err := stopOf(tid, leader, true); got || err != nil {
				return s, err
			}
		}
	}
	for pause := 50 * time.Microsecond; time.Since(began) < Patience; pause = min(2*pause, time.Millisecond) {
		if s, got, err := stopOf(tid, leader, false); got || err != nil {
			return s, err
		}
		time.Sleep(pause)
	}
	_ = unix.Kill(leader, unix.SIGKILL)
	return Stop{}, unix.ETIMEDOUT
}
