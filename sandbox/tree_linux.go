package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"golang.org/x/sys/unix"
)

// sweepFor bounds how long killed processes may take to go; one in an uninterruptible
// system call can outlive it and is then reported as a survivor.
const sweepFor = 2 * time.Second

// KillTree ends the whole tree: politely, and after grace without mercy.
func (p *Proc) KillTree(grace time.Duration) Tree {
	if !p.EndTree(grace) {
		return Tree{Method: "group", Leftovers: 1, Survivors: 1}
	}
	return p.Sweep()
}

// EndTree is KillTree without the sweep, which ends every process that has come to this one:
// for a caller who has further children, and sweeps when they have ended. It reports whether
// the child has ended.
func (p *Proc) EndTree(grace time.Duration) bool {
	if grace > 0 {
		p.group(unix.SIGTERM)
		p.group(unix.SIGCONT) // a stopped process cannot handle SIGTERM
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
	}
	p.mu.Lock()
	p.killed = true
	if p.stage != nil && !p.reaped {
		_ = unix.Kill(p.stage.pid, unix.SIGKILL) // all of its namespace go with it
	}
	p.mu.Unlock()
	// Stopped first, a group that forks faster than it dies stands still.
	p.group(unix.SIGSTOP)
	p.group(unix.SIGKILL)
	timer := time.NewTimer(sweepFor)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// group signals the child's process group while the child pins its number.
func (p *Proc) group(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.pid, sig) // ESRCH: everybody has ended
	}
}

// Sweep ends what the child left behind and puts protected names back. Orphans come to this process, its
// subreaper, also those that made a session of their own. Call it after Wait.
func (p *Proc) Sweep() Tree {
	p.sweep.Lock()
	defer p.sweep.Unlock()
	if p.tree.Method != "" && p.tree.Survivors == 0 {
		return p.tree
	}
	switch {
	case p.stage != nil:
		p.tree = p.sweepStage()
	case p.keep && !p.killed:
		reapEnded()
		left := len(children())
		p.tree = Tree{Method: "group", Leftovers: left, Kept: left}
		p.oom = p.cgroup.outOfMemory()
	default:
		p.tree = p.sweepOrphans()
		p.oom = p.cgroup.outOfMemory()
		p.cgroup.remove()
		p.cgroup = nil
	}
	if p.guard != nil {
		// Now that the tree is dead: what still ran could undo it.
		p.settlement = p.guard.settle()
		p.guard = nil
	}
	release(p.held)
	p.held = nil
	return p.tree
}

// Settlement is what became of the protected names. Sweep compares them.
func (p *Proc) Settlement() Settlement {
	p.sweep.Lock()
	defer p.sweep.Unlock()
	return p.settlement
}

func (p *Proc) sweepOrphans() Tree {
	t := Tree{Method: "group"}
	killed := make(map[int]bool)
	pause := 50 * time.Microsecond
	for deadline := time.Now().Add(sweepFor); ; {
		if reapEnded() {
			t.Leftovers = len(killed)
			return t
		}
		alive := children()
		for _, pid := range alive {
			if !killed[pid] {
				killed[pid] = true
				// An orphan in the child's group pins the group's number.
				if group, err := unix.Getpgid(pid); err == nil && group == p.pid {
					_ = unix.Kill(-group, unix.SIGSTOP)
					_ = unix.Kill(-group, unix.SIGKILL)
				}
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			t.Leftovers, t.Survivors = len(killed), len(alive)
			return t
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// reapEnded reaps all children that have ended and reports whether none is left.
func reapEnded() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		}
	}
}

// children lists the direct children of this process, ended or not. They cannot be
// recycled, as only the caller reaps.
func children() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var out []int
	for _, task := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if errors.Is(err, os.ErrNotExist) {
			if _, err := os.Stat("/proc/self/task/" + task.Name()); err == nil {
				return childrenByParent() // built without CONFIG_PROC_CHILDREN
			}
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// childrenByParent looks at every process.
func childrenByParent() []int {
	self := strconv.Itoa(os.Getpid())
	return slices.DeleteFunc(procstat.Numbers("/proc"), func(pid int) bool {
		s, err := procstat.Of(pid)
		return err != nil || s.Fields[procstat.Parent] != self
	})
}

// processState is the letter of ps(1), 0 for no process.
func processState(pid int) byte {
	s, err := procstat.Of(pid)
	if err != nil {
		return 0
	}
	return s.Fields[procstat.State][0]
}

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

// errLost is a child whose end was not seen.
func (p *Proc) errLost(err error) error {
	return &errcode.Error{Code: errcode.LostChild, Msg: "child lost: " + err.Error(), Details: map[string]any{"pid": p.pid}, Err: err}
}

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
		if g := p.listening.gate; g != nil && g.Stopped(gate.Stop{PID: pid, Code: info.code, Status: info.status}) {
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
	if g := p.listening.gate; g != nil {
		g.Stopped(gate.Stop{PID: pid, Code: info.code, Status: info.status})
	}
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
	p.err, p.reaped = p.errLost(err), true
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

// applyLimits sets on the wrapper what may be set there and is inherited. The syscall
// package must do it: the Go runtime raised the soft limit of open files and would
// restore the old value in the child.
func applyLimits(l Limits) error {
	if l.OpenFiles == 0 {
		return nil
	}
	if l.OpenFiles < minOpenFiles {
		return limitError("openFiles", "64 is the least a run works with")
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		return limitError("openFiles", err.Error())
	}
	n := min(l.OpenFiles, old.Max)
	if err := syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return limitError("openFiles", err.Error())
	}
	return nil
}

const minOpenFiles = 64

// childLimits sets limits that would hit the wrapper's own writes if it set them.
func childLimits(l Limits) error {
	for _, r := range [...]struct {
		name     string
		resource int
		max      uint64
	}{
		{"cpu", unix.RLIMIT_CPU, l.CPU}, {"fileSize", unix.RLIMIT_FSIZE, l.FileSize},
		{"memory", unix.RLIMIT_DATA, l.Memory}, {"processes", unix.RLIMIT_NPROC, l.Processes},
	} {
		if r.max == 0 {
			continue
		}
		// The caller's own limit may be the lower one.
		var old unix.Rlimit
		err := unix.Getrlimit(r.resource, &old)
		if err == nil {
			soft := min(r.max, old.Max)
			hard := soft
			if r.resource == unix.RLIMIT_CPU && hard < old.Max {
				hard++ // at the soft limit SIGXCPU, which says why; at the hard one SIGKILL
			}
			err = unix.Setrlimit(r.resource, &unix.Rlimit{Cur: soft, Max: hard})
		}
		if err != nil {
			return limitError(r.name, err.Error())
		}
	}
	return nil
}

// cgroup is a control group made for one run. A group counts what a limit of a process
// cannot: all processes of root, and memory of the whole tree.
type cgroup struct {
	dir   string
	procs *os.File // a process that writes 0 to it is in it
}

// findCgroup returns the directory in which a group with these controllers can be made:
// our own group, or, as a group with processes cannot hand controllers down
// (cgroup-v2.rst, "No Internal Process Constraint"), the one above it.
func findCgroup(controllers []string) (dir, why string) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "our control group is not known: " + err.Error()
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "control groups are not known: " + err.Error()
	}
	own, top := ownCgroup(string(membership), string(mounts))
	if own == "" {
		return "", "no control group of version 2 is mounted here"
	}
	why = "no control group is delegated to us"
	for _, dir := range [...]string{own, filepath.Dir(own)} {
		if !subpath.Within(dir, top) || unix.Access(dir, unix.W_OK) != nil || unix.Access(dir+"/cgroup.procs", unix.W_OK) != nil {
			continue
		}
		handed, err := os.ReadFile(dir + "/cgroup.subtree_control")
		if err != nil {
			continue
		}
		missing := ""
		for _, c := range controllers {
			if !strings.Contains(" "+strings.TrimSpace(string(handed))+" ", " "+c+" ") {
				missing = c
			}
		}
		if missing == "" {
			return dir, ""
		}
		why = "the control group " + dir + " does not hand down the controller " + missing
	}
	return "", why
}

// ownCgroup is the directory of our group and that of the mount it is seen through.
func ownCgroup(membership, mounts string) (own, top string) {
	path := ""
	for line := range strings.Lines(membership) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path = p
		}
	}
	if path == "" {
		return "", ""
	}
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		i := 6 // optional fields end with "-" (proc_pid_mountinfo(5))
		for i < len(f) && f[i] != "-" {
			i++
		}
		if i+1 >= len(f) || f[i+1] != "cgroup2" {
			continue
		}
		root, point := f[3], f[4]
		if subpath.Within(path, root) {
			return filepath.Clean(point + "/" + strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), point
		}
	}
	return "", ""
}

// cgroupMemory and cgroupProcesses are the files that hold the limits.
const (
	cgroupMemory    = "memory.max"
	cgroupProcesses = "pids.max"
)

// makeCgroup makes a group for one run below parent, with its limits set.
func makeCgroup(parent string, limits map[string]uint64) (*cgroup, error) {
	dir, err := os.MkdirTemp(parent, "atip-")
	if err != nil {
		return nil, limitError("cgroup", err.Error())
	}
	g := &cgroup{dir: dir}
	for file, max := range limits {
		if err := writeExisting(filepath.Join(dir, file), strconv.FormatUint(max, 10)); err != nil {
			g.remove()
			return nil, limitError(file, err.Error())
		}
	}
	if g.procs, err = os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0); err != nil {
		g.remove()
		return nil, limitError("cgroup", err.Error())
	}
	return g, nil
}

func writeExisting(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// outOfMemory reports whether the kernel ended a process of the group for want of memory.
func (g *cgroup) outOfMemory() bool {
	if g == nil {
		return false
	}
	events, _ := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	for line := range strings.Lines(string(events)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return count != "0"
		}
	}
	return false
}

// remove ends whatever is in the group and removes it.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	if g.procs != nil {
		g.procs.Close()
	}
	_ = writeExisting(filepath.Join(g.dir, "cgroup.kill"), "1") // since Linux 5.14
	// What was killed leaves the group only when it is gone.
	for deadline := time.Now().Add(sweepFor); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err := unix.Rmdir(g.dir); !errors.Is(err, unix.EBUSY) {
			return
		}
	}
}

// join moves this process into the group behind fd.
func join(fd int) error {
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("0")); err != nil {
		return &StepError{Step: "enter control group", Err: err}
	}
	return nil
}
