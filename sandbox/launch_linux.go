package sandbox

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
)

// stagePatience bounds how long a stage may take before it speaks.
const stagePatience = 10 * time.Second

// startStage starts the child through a stage: for namespaces, which a thread of the
// wrapper cannot enter, and for limits that would hit the wrapper itself.
func (w *worker) startStage() startResult {
	control, err := w.forkStage()
	if err != nil {
		return startResult{err: err}
	}
	return startResult{pid: control.pid, stage: control}
}

// stageLink is the wrapper's end of a stage.
type stageLink struct {
	fd  int
	pid int // of the stage, here
	ns  bool

	listening listening
}

// stageSlack is how late timers of a stage may come, in ns.
const stageSlack = 1000000

// forkStage runs on a locked thread that stays, as the stage dies with it.
func (w *worker) forkStage() (*stageLink, error) {
	ns := w.setup.tier == T3
	attr, err := w.stageAttributes(ns)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &StepError{Step: "stage socket", Err: err}
	}
	defer unix.Close(pair[1])
	link := &stageLink{fd: pair[0], ns: ns}
	fail := func(err error) (*stageLink, error) {
		unix.Close(pair[0])
		return nil, err
	}
	plan, err := w.stagePlan(len(attr.Files))
	if err != nil {
		return fail(&StepError{Step: "encode plan", Err: err})
	}
	if plan.Slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil {
		return fail(&StepError{Step: "timer slack", Err: err})
	}
	plan.Slack = max(1, plan.Slack) // 0 would be the stage's own
	memory, err := sealedPlan(plan)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(memory)
	first := ^uintptr(0)
	if plan.FD >= 0 {
		first = w.cmd.File.Fd()
	}
	control := len(attr.Files) + 1
	attr.Files = append(attr.Files, first, uintptr(pair[1]), uintptr(memory))
	if plan.Cgroup {
		attr.Files = append(attr.Files, w.cgroup.procs.Fd())
	}
	// For the Go runtime alone: the stage does one thing after the other, and threads that
	// wait for more cost it more than they bring.
	attr.Env = append([]string{"GOMAXPROCS=1"}, stageEnv...)
	// Its runtime looks after a thread that works alone fifty times in a millisecond, on the same processor if
	// no other one is free. With timers that may come late it does so once.
	if err := timerSlack(stageSlack); err != nil {
		return fail(err)
	}
	defer timerSlack(plan.Slack)
	if link.pid, err = syscall.ForkExec("/proc/self/exe", []string{stageName, strconv.Itoa(control)}, attr); err != nil {
		if fi, serr := os.Stat("/proc/self/exe"); ns && serr == nil && fi.Mode()&1 == 0 {
			// Before its ids are mapped, nothing overrides the mode of a file of somebody else.
			err = errors.New("the file of this program must be executable for all users (chmod a+rx)")
		}
		return fail(&StepError{Step: "start stage", Err: err})
	}
	if ns {
		if err := mapIDs(link.pid); err != nil {
			link.kill()
			return fail(err)
		}
	}
	link.tell()
	if w.trail != nil {
		w.trail.pid.Store(int32(link.pid))
	}
	if err := w.guardStage(link); err != nil {
		link.kill()
		return fail(err)
	}
	return link, nil
}

// stageAttributes are those of the process that becomes the stage; with ns it gets namespaces of its own.
func (w *worker) stageAttributes(ns bool) (*syscall.ProcAttr, error) {
	attr, err := w.attributes()
	if err != nil || !ns {
		return attr, err
	}
	// Its maps can be written only while this process is dumpable, and after an earlier
	// start, of which nothing lives any more, it is not.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return nil, &StepError{Step: "dumpable", Err: err}
	}
	attr.Sys = namespaces(w.setup.profile.Net.Mode)
	if len(w.layers) > 0 || w.try && len(w.setup.profile.Overlays) > 0 {
		// An overlay acts for its whole life with what its maker had, and makes its own
		// directories without any mode.
		attr.Sys.AmbientCaps = append(attr.Sys.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)
	}
	for c, keep := uintptr(0), keptCaps(w.setup.profile.Caps); c <= 63; c++ {
		if keep&(1<<c) != 0 {
			attr.Sys.AmbientCaps = append(attr.Sys.AmbientCaps, c)
		}
	}
	return attr, nil
}

// guardStage makes sure that the child cannot look into this process, who speaks on the socket of
// the stage, and that this process does not wait for it for ever.
func (w *worker) guardStage(link *stageLink) error {
	if !w.try { // a trial has no child
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return &StepError{Step: "dumpable", Err: err}
		}
	}
	if err := unix.SetsockoptInt(link.fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return &StepError{Step: "stage socket", Err: err}
	}
	timeout := unix.NsecToTimeval(int64(stagePatience))
	_ = unix.SetsockoptTimeval(link.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	return nil
}

func (w *worker) stagePlan(next int) (*stagePlan, error) {
	c, s := w.cmd, w.setup
	plan := &stagePlan{V: wireVersion, Profile: s.profile, Tier: s.tier, ABI: s.host.ABI, Path: c.Path, FD: -1,
		Try: w.try, Held: s.tier == T3 && c.Before != nil, Cgroup: w.cgroup != nil, Observe: c.Observe, Gate: c.Gate != nil, Logged: w.trail != nil, Argv: c.Argv, Env: c.Env, Dir: c.Dir, DirID: c.DirID, Umask: c.Umask, Terminal: c.Terminal, Foreground: c.Foreground}
	plan.Profile.Limits = s.limits.ofProcess()
	if !w.try {
		plan.Profile.Overlays = w.layers
	}
	if c.ByDescriptor && c.File != nil {
		plan.FD = next
	}
	plan.Pass = slices.AppendSeq(plan.Pass, maps.Keys(c.Pass))
	if s.tier == T3 {
		// An inherited directory lies on a mount that the private root does not have.
		plan.Dir = w.directory()
		paths := []string{plan.Dir}
		for _, entry := range c.Env {
			if name, value, _ := strings.Cut(entry, "="); name == "HOME" || name == "PATH" {
				paths = append(paths, filepath.SplitList(value)...)
			}
		}
		plan.Links = rootLinks(paths)
		if !w.try {
			outer, err := json.Marshal(s.asOuter())
			if err != nil {
				return nil, err
			}
			plan.Outer = string(outer)
		}
	}
	return plan, nil
}

// directory is where the child starts.
func (w *worker) directory() string {
	if w.cmd.Dir != "" {
		return w.cmd.Dir
	}
	dir, _ := os.Getwd()
	return dir
}

// sealedPlan writes the plan into a memory file that nobody can change.
func sealedPlan(plan *stagePlan) (int, error) {
	data, err := encodePlan(plan)
	if err != nil {
		return -1, &StepError{Step: "encode plan", Err: err}
	}
	fd, err := unix.MemfdCreate("atip-exec plan", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, &StepError{Step: "plan memory", Err: err}
	}
	for rest := data; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil {
			unix.Close(fd)
			return -1, &StepError{Step: "write plan", Err: err}
		}
		rest = rest[n:]
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, allSeals); err != nil {
		unix.Close(fd)
		return -1, &StepError{Step: "seal plan", Err: err}
	}
	return fd, nil
}

// namespaces are the attributes of a stage with a private root. It shares the memory of the
// wrapper until it executes: to copy that for a process that throws it away costs a tenth of
// the start. So its ids are mapped while it begins, and it waits for that.
func namespaces(mode NetMode) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		// Otherwise a uid that is mapped to itself, or not yet, loses everything at execve.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP}}
	if mode != NetFull {
		sys.Cloneflags |= unix.CLONE_NEWNET
	}
	if os.Geteuid() == 0 {
		// Root is nobody yet when it executes. It reaches files of others, here and in overlays.
		sys.AmbientCaps = sys.AmbientCaps[:0]
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			sys.AmbientCaps = append(sys.AmbientCaps, c)
		}
	}
	return sys
}

// mapIDs gives a stage its ids: to a user the own ones, to root all that there are here, so
// that owners of files look as they are. A map is written at once (user_namespaces(7)).
func mapIDs(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	uids, gids := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	uids, gids = uids+" "+uids+" 1\n", gids+" "+gids+" 1\n"
	if os.Geteuid() == 0 {
		var err1, err2 error
		uids, err1 = identityMap("/proc/self/uid_map")
		gids, err2 = identityMap("/proc/self/gid_map")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
	}
	for _, f := range [...][2]string{{"setgroups", "deny"}, {"gid_map", gids}, {"uid_map", uids}} {
		if err := os.WriteFile(dir+f[0], []byte(f[1]), 0); err != nil {
			return &StepError{Step: "map ids", Path: f[0], Err: unwrapPath(err)}
		}
	}
	return nil
}

// identityMap is a map of every id that a map knows to itself.
func identityMap(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", &StepError{Step: "read id map", Path: path, Err: unwrapPath(err)}
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 {
			out.WriteString(f[0] + " " + f[0] + " " + f[2] + "\n")
		}
	}
	return out.String(), nil
}

// receive reads one message; io ends with errClosed.
func (l *stageLink) receive() (stageMessage, error) {
	buf := make([]byte, 16<<10)
	oob := make([]byte, unix.CmsgSpace(4*maxListeners)+unix.CmsgSpace(unix.SizeofUcred))
	for {
		n, oobn, _, _, err := unix.Recvmsg(l.fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return stageMessage{}, errors.New("the stage does not answer")
		case err != nil:
			return stageMessage{}, err
		case n == 0:
			return stageMessage{}, errClosed
		}
		fds, sender := passed(oob[:oobn])
		m, err := decodeMessage(buf[:n])
		m.pid = sender
		switch {
		case err == nil && m.Kind == "listener" && len(fds) == 1:
			m.fd = fds[0]
		case err == nil && len(fds) == len(m.Listeners):
			for i, fd := range fds {
				m.Listeners[i].File = os.NewFile(uintptr(fd), "listener")
			}
		default:
			for _, fd := range fds {
				unix.Close(fd)
			}
			return m, errors.Join(err, errors.New("the stage sent other descriptors than it names"))
		}
		return m, nil
	}
}

var errClosed = errors.New("the stage has ended")

// kill ends the stage and, with it, its namespace.
func (l *stageLink) kill() {
	_ = unix.Kill(l.pid, unix.SIGKILL)
	for {
		_, err := unix.Wait4(l.pid, nil, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// await waits until the child runs. In place, that is when execve closes the socket.
func (l *stageLink) await(w *worker) (child int, err error) {
	m, err := l.receive()
	for err == nil && (m.Kind == "listening" || m.Kind == "listener") {
		switch {
		case m.Kind == "listening" && w.cmd.Serve != nil:
			w.cmd.Serve(m.Listeners)
		case m.fd >= 0:
			// Served at once: the next thing that the stage does is an execve, which waits for it.
			if l.listening, err = w.answer(gate.Listener(m.fd)); err != nil {
				return 0, err
			}
		case m.Kind == "listener" && w.cmd.Gate != nil:
			return 0, &StepError{Step: "gate", Err: gate.ErrOther}
		}
		m, err = l.receive()
	}
	switch {
	case !l.ns && errors.Is(err, errClosed):
		return l.pid, nil
	case err != nil:
		return 0, &StepError{Step: "stage", Err: err}
	case m.Kind == "started" && l.ns:
		none := unix.Timeval{}
		_ = unix.SetsockoptTimeval(l.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &none)
		if m.pid > 1 && m.pid != l.pid {
			return m.pid, nil
		}
		return 0, &StepError{Step: "find child", Err: errors.New("the stage does not say which process it is")}
	case m.Kind == "fail" && m.Step == "execute":
		return 0, w.execError(syscall.Errno(m.Errno))
	}
	return 0, m.failed()
}

// ready is the answer to a trial.
func (l *stageLink) ready() error {
	m, err := l.receive()
	if err != nil {
		return err
	}
	if m.Kind == "ready" {
		return nil
	}
	return m.failed()
}

// failed is the error that a message stands for.
func (m stageMessage) failed() error {
	if m.Kind != "fail" {
		return &StepError{Step: "stage", Err: errors.New("unexpected " + m.Kind)}
	}
	cause := error(syscall.Errno(m.Errno))
	if m.Errno == 0 {
		cause = errors.New(m.Text)
	}
	return &StepError{Step: m.Step, Path: m.Path, Code: m.Code, Err: cause}
}

// tell writes one byte, which is all that the wrapper has to say.
func (l *stageLink) tell() { _, _ = unix.Write(l.fd, []byte{1}) }

// reapStage follows the child of a stage with namespaces until it has ended.
func (p *Proc) reapStage() {
	defer close(p.done)
	for {
		m, err := p.stage.receive()
		p.mu.Lock()
		switch {
		case err != nil && p.killed:
			p.exit, p.reaped = Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL, Checked: p.checked}, true
		case err != nil:
			p.err, p.reaped = p.errLost(err), true
		case m.Kind == "exit":
			ru := unix.Rusage{Utime: unix.NsecToTimeval(m.UserNS), Stime: unix.NsecToTimeval(m.SysNS), Maxrss: m.MaxRSSKB}
			p.exit = exitOf(unix.WaitStatus(m.Status), &ru)
			p.exit.Checked, p.exit.Unrouted = p.checked, m.Unrouted
			p.ended = true
		}
		done := p.reaped || p.ended
		p.mu.Unlock()
		if done {
			return
		}
		if m.Kind == "stopped" && p.stopped != nil {
			p.stopped(p.pid, syscall.Signal(m.Signal))
		}
	}
}

// sweepStage ends the namespace with its init. The kernel kills what is left in it.
func (p *Proc) sweepStage() Tree {
	t := Tree{Method: "namespace"}
	if p.err == nil && !p.killed {
		timeout := unix.NsecToTimeval(int64(sweepFor))
		_ = unix.SetsockoptTimeval(p.stage.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
		p.stage.tell()
		if m, err := p.stage.receive(); err == nil && m.Kind == "left" {
			t.Leftovers = m.Left
		}
	}
	p.mu.Lock()
	p.reaped = true // the process id is free once the stage is gone
	p.mu.Unlock()
	p.stage.kill()
	unix.Close(p.stage.fd)
	p.oom = p.cgroup.outOfMemory()
	p.cgroup.remove()
	live.Store(false)
	close(p.release)
	return t
}
