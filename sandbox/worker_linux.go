package sandbox

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/sandbox/seccomp"
	"golang.org/x/sys/unix"
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
	slack           int    // of the child's timers, in ns; 0 for that of this thread
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
		return startResult{err: stateError("the main thread must not be confined")}
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

// place sets working directory, umask, timers and priority on this thread alone.
func (w *worker) place() error {
	if w.slack != 0 {
		if err := timerSlack(w.slack); err != nil {
			return err
		}
	}
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
			return nil, stateError("descriptor " + strconv.Itoa(fd) + " cannot be passed")
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
		return "", -1, stateError("no descriptor to execute")
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

// timerSlack sets how late timers of this thread may come, which what it starts inherits.
func timerSlack(ns int) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0); err != nil {
		return &StepError{Step: "timer slack", Err: err}
	}
	return nil
}

// keptCaps are the capabilities of names.
func keptCaps(names []string) (mask uint64) {
	for _, name := range names {
		switch name {
		case "chown":
			mask |= 1 << unix.CAP_CHOWN
		case "dac_override":
			mask |= 1 << unix.CAP_DAC_OVERRIDE
		case "fowner":
			mask |= 1 << unix.CAP_FOWNER
		case "fsetid":
			mask |= 1 << unix.CAP_FSETID
		case "setgid":
			mask |= 1 << unix.CAP_SETGID
		case "setuid":
			mask |= 1 << unix.CAP_SETUID
		}
	}
	return mask
}

// dropCapabilities empties every capability set of the calling thread, but for those that
// a policy keeps and the thread has. The raw calls are per thread, so the wrapper keeps
// what it had.
func dropCapabilities(keep uint64) error {
	for c := uintptr(0); c <= 63; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the last capability of this kernel
		}
		if errors.Is(err, unix.EPERM) {
			// Without CAP_SETPCAP the bounding set stays, but no_new_privs keeps an
			// execve from gaining anything out of it (security/commoncap.c).
			break
		}
		if err != nil {
			return &StepError{Step: "drop bounding set", Err: err}
		}
	}
	// EINVAL: a kernel without ambient capabilities.
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return &StepError{Step: "clear ambient capabilities", Err: err}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if keep != 0 {
		if err := unix.Capget(&header, &sets[0]); err != nil {
			return &StepError{Step: "capget", Err: err}
		}
		keep &= uint64(sets[0].Permitted) | uint64(sets[1].Permitted)<<32
	}
	for i := range sets {
		half := uint32(keep >> (32 * i))
		sets[i] = unix.CapUserData{Effective: half, Permitted: half, Inheritable: half}
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return &StepError{Step: "capset", Err: err}
	}
	for c := uintptr(0); c <= 63; c++ {
		if keep&(1<<c) == 0 {
			continue
		}
		// Otherwise only root has it after execve.
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
			return &StepError{Step: "keep capability", Err: err}
		}
	}
	return nil
}

func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &StepError{Step: "no_new_privs", Err: err}
	}
	return nil
}

// inherited is written by Init alone, before any other goroutine exists.
var inherited []int

// Init prepares the process; it is the first statement of main. It notes the
// descriptors the caller left open and closes them to children, because no sandbox
// revokes what is already open, and keeps core dumps off the disk.
func Init() {
	inherited = namedDescriptors(os.Args)
	// ENOSYS before Linux 5.9, EINVAL before 5.11.
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil {
		for _, fd := range openDescriptors() {
			unix.CloseOnExec(fd)
		}
	}
	// One byte, not zero: with zero a core handler behind a pipe is started still (core(5)).
	limitCore()
}

func limitCore() {
	var old syscall.Rlimit
	if syscall.Getrlimit(unix.RLIMIT_CORE, &old) == nil && old.Max > 1 {
		// Cannot fail: lowering needs no privilege.
		_ = syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Cur: 1, Max: 1})
	}
}

// InheritedFDs returns the descriptors from 3 up that the caller left open and the
// command line names, if only by having their number somewhere in a word. Nobody may
// ask for others, and to list all would cost a tenth of a start.
func InheritedFDs() []int { return inherited }

// namedDescriptors looks at each number in args.
func namedDescriptors(args []string) []int {
	var out []int
	for _, word := range args {
		for i := 0; i < len(word); i++ {
			fd := 0
			for ; i < len(word) && word[i] >= '0' && word[i] <= '9' && fd <= maxDescriptor; i++ {
				fd = fd*10 + int(word[i]-'0')
			}
			if fd >= 3 && fd <= maxDescriptor && left(fd) && !slices.Contains(out, fd) {
				out = append(out, fd)
			}
		}
	}
	return out
}

// maxDescriptor is above what fs.nr_open can be set to.
const maxDescriptor = 1 << 30

// left reports whether the caller left fd open to us: the Go runtime's own have CLOEXEC.
func left(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// openDescriptors lists what the caller left open.
func openDescriptors() []int {
	return slices.DeleteFunc(procstat.Numbers("/proc/self/fd"), func(fd int) bool { return fd < 3 || !left(fd) })
}
