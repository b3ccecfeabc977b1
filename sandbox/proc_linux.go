package sandbox

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/gate"
)

// Proc is a started process and its descendants.
type Proc struct {
	pid     int
	checked string
	stopped func(int, syscall.Signal)
	release chan<- struct{} // unparks the worker
	done    chan struct{}   // closed when the child is reaped

	// mu is held while a process is reaped or signalled, so that no signal can reach
	// a process id that has been given to somebody else.
	mu     sync.Mutex
	reaped bool
	exit   Exit
	err    error

	stage  *stageLink // with namespaces
	cgroup *cgroup
	oom    bool
	held   []*os.File // locks on the directories of this run

	listening listening
	trail     *trail
	ended     bool // the child is a zombie that its init keeps
	killed    bool // by KillTree
	keep      bool // what the child leaves behind goes on

	sweep      sync.Mutex
	tree       Tree
	guard      *protection
	settlement Settlement
}

// LostError is a child whose end nobody saw.
type LostError struct {
	Pid int
	Err error
}

// Error implements error.
func (e *LostError) Error() string { return "child lost: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *LostError) FaultCode() string { return errcode.LostChild }

// FaultDetails implements fault.Coded.
func (e *LostError) FaultDetails() map[string]any { return map[string]any{"pid": e.Pid} }

// Pid returns the process id of the child; it is also its process group.
func (p *Proc) Pid() int { return p.pid }

// Wait returns when the child has ended. What the child left running is Sweep's.
func (p *Proc) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Denials returns what the sandbox refused to an observed run; observed is false for any
// other, and where somebody else listens to its calls already. Call it after Sweep: when it
// returns, each start that the gate refused has been reported.
func (p *Proc) Denials() (list []Denial, observed bool) {
	if p.listening.ended != nil {
		select {
		case <-p.listening.ended:
		case <-time.After(sweepFor): // of a process that could not be killed
		}
	}
	if p.listening.observer == nil {
		p.trail.end()
		return nil, false
	}
	seen := p.listening.observer.denials()
	for _, d := range p.trail.denials(seen) {
		if len(seen) < maxDenials {
			seen = append(seen, d)
		}
	}
	return seen, true
}

// OutOfMemory reports whether the kernel ended a process of the run for passing its
// memory limit. It is known after Sweep.
func (p *Proc) OutOfMemory() bool {
	p.sweep.Lock()
	defer p.sweep.Unlock()
	return p.oom
}

// Done is closed when the child has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Signal sends sig to the child's process group.
func (p *Proc) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return unix.Kill(-p.pid, s)
}

// reap is the only place that waits while the child lives. As a subreaper this
// process also inherits orphans; they are reaped as they come.
func (p *Proc) reap() {
	for !p.reapOne() {
	}
	live.Store(false)
	close(p.release)
	close(p.done)
}

// reapOne waits for one event and reports whether the child is gone.
func (p *Proc) reapOne() bool {
	info, err := waitInfo(unix.P_ALL, 0, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT)
	if errors.Is(err, unix.EINTR) {
		return false
	}
	if err != nil {
		return p.lost(err)
	}
	pid := int(info.pid)
	if info.code == cldStopped || info.code == cldTrapped {
		// Consume the report, or waitid would return it for ever.
		_, _ = waitInfo(unix.P_PID, pid, unix.WSTOPPED|unix.WNOHANG)
		if p.listening.gate.Stopped(gate.Stop{PID: pid, Code: info.code, Status: info.status}) {
			return false
		}
		if pid == p.pid && info.code == cldStopped && p.stopped != nil {
			p.stopped(p.pid, syscall.Signal(info.status))
		}
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var ws unix.WaitStatus
	var ru unix.Rusage
	got, err := unix.Wait4(pid, &ws, 0, &ru)
	p.listening.gate.Stopped(gate.Stop{PID: pid, Code: info.code, Status: info.status})
	if pid != p.pid {
		return false
	}
	if err != nil || got != pid {
		return p.lost(err)
	}
	p.exit = exitOf(ws, &ru)
	p.exit.Checked = p.checked
	p.reaped = true
	return true
}

func (p *Proc) lost(err error) bool {
	p.err, p.reaped = &LostError{Pid: p.pid, Err: err}, true
	return true
}

func exitOf(ws unix.WaitStatus, ru *unix.Rusage) Exit {
	e := Exit{User: time.Duration(ru.Utime.Nano()), Sys: time.Duration(ru.Stime.Nano()), MaxRSSKB: int64(ru.Maxrss)}
	if ws.Signaled() {
		e.Signal, e.Core, e.Code = ws.Signal(), ws.CoreDump(), 128+int(ws.Signal())
	} else {
		e.Code = ws.ExitStatus()
	}
	return e
}

// The values of si_code for SIGCHLD (asm-generic/siginfo.h) that are not an end.
const (
	cldTrapped = 4
	cldStopped = 5
)

// childInfo is the part of siginfo_t that waitid fills, the same on all 64-bit Linux.
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
	uid                   uint32
	status                int32
	_                     [100]byte
}

func waitInfo(kind, id, options int) (childInfo, error) { return waitUsage(kind, id, options, nil) }

// waitUsage is waitid with what the C library hides: the resources used, also for a
// child that is left waitable.
func waitUsage(kind, id, options int, ru *unix.Rusage) (childInfo, error) {
	var info childInfo
	_, _, e := unix.Syscall6(unix.SYS_WAITID, uintptr(kind), uintptr(id), uintptr(unsafe.Pointer(&info)), uintptr(options), uintptr(unsafe.Pointer(ru)), 0)
	if e != 0 {
		return info, e
	}
	return info, nil
}
