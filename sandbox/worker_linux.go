package sandbox

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/sandbox/seccomp"
)

// worker is the one thread that is confined. It forks the child, so that the child
// inherits the confinement and the rest of the wrapper keeps its rights.
type worker struct {
	cmd             *Cmd
	setup           *Setup
	ruleset         int
	dir             int
	null            *os.File
	guard           *protection
	cgroup          *cgroup
	layers          []Overlay          // with the directories that are kept for this run
	held            []*os.File         // locks on them
	listen          func(fd int) error // takes the listener of an observed or gated run
	gated, observed bool
	staged          bool   // through a stage
	logged          bool   // the kernel records what it refuses
	trail           *trail // reads these records
	try             bool   // make the root, start nothing
	started         chan startResult
	release         <-chan struct{} // closed when the child is reaped
}

type startResult struct {
	pid     int
	checked string
	err     error
	stage   *stageLink
}

func (w *worker) close() {
	for _, fd := range [...]int{w.ruleset, w.dir} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if w.null != nil {
		w.null.Close()
	}
	w.trail.end()
	w.guard.settle() // nothing ran
	w.cgroup.remove()
	release(w.held)
}

// run never unlocks its thread: when it returns, the runtime ends the thread and with
// it the confinement. It returns only after the child was reaped, since the death
// signal of a child fires when the thread that forked it ends (golang/go#27505).
func (w *worker) run() {
	start := w.start
	if w.staged {
		start = w.startStage
	}
	r := start()
	w.started <- r
	if r.pid != 0 {
		<-w.release
	}
}

// offMain runs f on a thread that ends with it and is not the main thread: that one
// cannot end, and once confined it would stay so for good. Where the runtime has chosen it,
// it is held until another has been taken.
func offMain(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	taken := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(taken)
		f()
	}()
	<-taken
	runtime.UnlockOSThread()
}

func (w *worker) start() startResult {
	if unix.Gettid() == unix.Getpid() {
		return startResult{err: &StateError{Why: "the main thread must not be confined"}}
	}
	if err := w.place(); err != nil {
		return startResult{err: err}
	}
	attr, err := w.attributes()
	if err != nil {
		return startResult{err: err}
	}
	path, file, err := w.path(len(attr.Files), attr.Files)
	if err != nil {
		return startResult{err: err}
	}
	if file >= 0 {
		defer unix.Close(file)
	}
	if w.setup.tier != T0 {
		ticket, err := w.confine()
		if err != nil {
			return startResult{err: err}
		}
		// The upper half reaches the filter and is dropped by the kernel's clone.
		attr.Sys.Cloneflags = uintptr(ticket) << 32
	}
	pid, err := fork(path, w.cmd.Argv, attr)
	if err != nil {
		return startResult{err: w.execError(err)}
	}
	r := startResult{pid: pid, checked: "unknown"}
	if w.cmd.Check != nil {
		r.checked, r.err = w.cmd.Check(pid)
	}
	return r
}

// fork retries while somebody still writes the file: a compiler that has just been
// closed by its parent may have a forked child holding the descriptor for an instant.
func fork(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	for try := 0; ; try++ {
		pid, err := syscall.ForkExec(path, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) || try == 2 {
			return pid, err
		}
		time.Sleep(16 * time.Millisecond)
	}
}

// place sets working directory, umask and priority on this thread alone.
func (w *worker) place() error {
	if w.dir >= 0 || w.cmd.Umask != 0 {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return &StepError{Step: "unshare file system attributes", Err: err}
		}
	}
	if w.dir >= 0 {
		if err := unix.Fchdir(w.dir); err != nil {
			return &StepError{Step: "change directory", Path: w.cmd.Dir, Err: err}
		}
	}
	if w.cmd.Umask != 0 {
		old := unix.Umask(0o777)
		unix.Umask(old | w.cmd.Umask&0o777)
	}
	if nice := w.setup.profile.Limits.Nice; nice > 0 {
		// The raw call counts from 40 down; a relative raise needs the present value.
		now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), min(19, 20-now+nice))
		}
		if err != nil {
			return &StepError{Step: "set priority", Err: err}
		}
	}
	return nil
}

// confine applies the layers from the outside in: capabilities while they can still be
// dropped, then no_new_privs, which the other two require, and the filter last, as it
// would judge the calls before.
func (w *worker) confine() (ticket uint32, err error) {
	if err := errors.Join(tripped("capabilities"), dropCapabilities(keptCaps(w.setup.profile.Caps))); err != nil {
		return 0, err
	}
	if err := errors.Join(tripped("no_new_privs"), noNewPrivs()); err != nil {
		return 0, err
	}
	choice := w.setup.filter()
	if !choice.Fork {
		if ticket, err = newTicket(); err != nil {
			return 0, err
		}
	}
	progs, _, _, err := seccomp.Load(choice, unix.Getpid(), unix.Gettid(), ticket)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(tripped("landlock_restrict_self"), restrictSelf(w.ruleset, w.logged), tripped("seccomp")); err != nil {
		return 0, err
	}
	if w.listen == nil {
		return ticket, seccomp.Install(progs)
	}
	listener, err := seccomp.InstallListened(progs, w.observed, w.gated)
	if err == nil {
		err = w.listen(listener)
	}
	return ticket, err
}

// newTicket is the number our own fork presents to a filter that refuses all others.
func newTicket() (uint32, error) {
	var b [4]byte
	for {
		if n, err := unix.Getrandom(b[:], 0); err != nil || n != len(b) {
			return 0, &StepError{Step: "fork ticket", Err: errors.Join(err, errors.New("no randomness"))}
		}
		if t := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24; t != 0 {
			return t, nil
		}
	}
}

// attributes lays out descriptors and session of the child.
func (w *worker) attributes() (*syscall.ProcAttr, error) {
	c := w.cmd
	sys := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	switch c.Terminal {
	case Handoff:
		sys.Setpgid = true
		if c.Foreground && c.Ctty != nil {
			sys.Foreground, sys.Ctty = true, int(c.Ctty.Fd())
		}
	case Pty:
		sys.Setsid, sys.Setctty, sys.Ctty = true, true, 0
	default:
		sys.Setsid = true
	}
	last := 2
	for fd := range c.Pass {
		last = max(last, fd)
	}
	files := make([]uintptr, last+1)
	for i := range files {
		files[i] = ^uintptr(0) // closed
	}
	for i, f := range [...]*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f == nil {
			var err error
			if f, err = w.devNull(); err != nil {
				return nil, err
			}
		}
		files[i] = f.Fd()
	}
	for fd, f := range c.Pass {
		if fd < 3 || f == nil {
			return nil, &StateError{Why: "descriptor " + strconv.Itoa(fd) + " cannot be passed"}
		}
		files[fd] = f.Fd()
	}
	return &syscall.ProcAttr{Env: c.Env, Files: files, Sys: sys}, nil
}

func (w *worker) devNull() (*os.File, error) {
	if w.null == nil {
		f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, &StepError{Step: "open", Path: os.DevNull, Err: errors.Unwrap(err)}
		}
		w.null = f
	}
	return w.null, nil
}

// path is what to execute. By descriptor, a copy is made above every number that the
// child's descriptors are shuffled through, or the shuffle would close it.
func (w *worker) path(count int, files []uintptr) (string, int, error) {
	if !w.cmd.ByDescriptor {
		return w.cmd.Path, -1, nil
	}
	if w.cmd.File == nil {
		return "", -1, &StateError{Why: "no descriptor to execute"}
	}
	top := count
	for _, fd := range files {
		if fd != ^uintptr(0) {
			top = max(top, int(fd))
		}
	}
	fd, err := unix.FcntlInt(w.cmd.File.Fd(), unix.F_DUPFD_CLOEXEC, top+count+16)
	if err != nil {
		return "", -1, &StepError{Step: "duplicate descriptor", Path: w.cmd.Path, Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), fd, nil
}
