package sandbox

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox/seccomp"
	"golang.org/x/sys/unix"
)

// stageName is argv[0] of the stage: this executable, started once more to do what
// cannot be done by a thread of the wrapper.
const stageName = "atip-exec:stage"

// init becomes the stage before most packages of the program initialise, which is the
// cheaper half of a second start. It also means that whatever program links this package,
// a test binary too, is a stage and nothing else under that name.
func init() {
	if len(os.Args) > 0 && os.Args[0] == stageName {
		stageMain()
	}
}

// exitProtocol is the status of a stage that was not started by a wrapper.
const exitProtocol = 70

// stage is the process between wrapper and child. Without namespaces it becomes the
// child; with them it is init of the child's process namespace.
type stage struct {
	control int
	plan    *stagePlan
	group   int // where a process writes to be in the control group of the run
}

// stageMain never returns.
func stageMain() {
	s, err := openStage()
	if err != nil {
		os.Stderr.WriteString("atip-exec: stage: " + err.Error() + "\n")
		os.Exit(exitProtocol)
	}
	// Before it starts anything: whoever is moved later has had children.
	if s.plan.Cgroup {
		err = join(s.group)
	}
	switch {
	case err != nil:
	case s.plan.Tier == T3:
		err = s.asInit()
	default:
		err = s.inPlace()
	}
	s.send(failure(err))
	os.Exit(1)
}

func openStage() (*stage, error) {
	if len(os.Args) != 2 {
		return nil, errors.New("it is started by atip-exec only")
	}
	control, err := strconv.Atoi(os.Args[1])
	if err != nil || control < 3 {
		return nil, errors.New("no control socket")
	}
	unix.CloseOnExec(control)
	unix.CloseOnExec(control + 1)
	unix.CloseOnExec(control + 2)
	s := &stage{control: control, group: control + 2}
	if !s.heard() {
		return nil, errors.New("the launcher gave no start signal")
	}
	peer, err := unix.GetsockoptUcred(control, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || int(peer.Uid) != os.Getuid() {
		return nil, errors.New("the control socket is not ours")
	}
	data, err := readSealed(control + 1)
	if err != nil {
		return nil, err
	}
	if s.plan, err = decodePlan(data); err != nil {
		return nil, err
	}
	return s, nil
}

const allSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// readSealed reads a memory file that nobody can change any more.
func readSealed(fd int) ([]byte, error) {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&allSeals != allSeals {
		return nil, errors.New("the plan is not sealed")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size > maxPlan {
		return nil, errors.New("the plan has no proper size")
	}
	data := make([]byte, st.Size)
	n, err := unix.Pread(fd, data, 0)
	unix.Close(fd)
	if err != nil || n != len(data) {
		return nil, errors.New("the plan cannot be read")
	}
	return data, nil
}

// tripwire lets a test make the n-th step fail; it is nil in programs.
var tripwire func(step string) error

// stageEnv is what a test adds to the environment of a stage.
var stageEnv []string

func tripped(step string) error {
	if tripwire == nil {
		return nil
	}
	return tripwire(step)
}

func (s *stage) send(m stageMessage) {
	_, _ = unix.Write(s.control, m.encode()) // a wrapper that is gone ends us by death signal
}

// sendListener hands the listener of this run's filter to the wrapper; -1 says that there
// is none.
func (s *stage) sendListener(fd int) error {
	m := stageMessage{Kind: "listener"}
	var rights []byte
	if fd >= 0 {
		defer unix.Close(fd)
		rights = unix.UnixRights(fd)
	}
	if err := unix.Sendmsg(s.control, m.encode(), rights, nil, 0); err != nil {
		return &StepError{Step: "hand out listener", Err: err}
	}
	return nil
}

// failure tells the wrapper what it would have returned itself.
func failure(err error) stageMessage {
	m := stageMessage{Kind: "fail", Text: err.Error()}
	var step *StepError
	var exec *ExecError
	var errno syscall.Errno
	if errors.As(err, &errno) {
		m.Errno = int(errno)
	}
	switch {
	case errors.As(err, &exec):
		m.Step = "execute"
	case errors.As(err, &step):
		m.Step, m.Path, m.Code, m.Text = step.Step, step.Path, step.Code, step.Err.Error()
	}
	return m
}

func (s *stage) setup() *Setup {
	return &Setup{tier: s.plan.Tier, valid: true, profile: s.plan.Profile, host: Host{ABI: s.plan.ABI, Seccomp: true}}
}

// inPlace confines the main thread and becomes the child. The other threads of this
// process end with the execve.
func (s *stage) inPlace() error {
	p := s.plan
	if err := s.place(); err != nil {
		return err
	}
	if err := childLimits(p.Profile.Limits); err != nil {
		return err
	}
	rs, err := buildRuleset(&p.Profile, p.ABI, s.terminal())
	if err != nil {
		return err
	}
	choice, ticket := s.setup().filter(), uint32(0)
	if !choice.Fork {
		if ticket, err = newTicket(); err != nil {
			return err
		}
	}
	wrapper := os.Getppid()
	progs, _, _, err := seccomp.Load(choice, wrapper, wrapper, ticket)
	if err != nil {
		return err
	}
	if err := timerSlack(p.Slack); err != nil {
		return err
	}
	path, argv, env := s.path(), p.Argv, p.Env
	if err := errors.Join(dropCapabilities(keptCaps(p.Profile.Caps)), noNewPrivs(), restrictSelf(rs, p.Logged)); err != nil {
		return err
	}
	if p.Observe || p.Gate {
		var listener int
		if listener, err = seccomp.InstallListened(progs, p.Observe, p.Gate); err == nil {
			err = s.sendListener(listener)
		}
	} else {
		err = seccomp.Install(progs)
	}
	if err != nil {
		return err
	}
	err = syscall.Exec(path, argv, env)
	var errno syscall.Errno
	errors.As(err, &errno)
	return &ExecError{Errno: errno, Path: p.Path}
}

func (s *stage) path() string {
	if s.plan.FD >= 0 {
		unix.CloseOnExec(s.plan.FD)
		return "/proc/self/fd/" + strconv.Itoa(s.plan.FD)
	}
	return s.plan.Path
}

// terminal is the terminal of the run; descriptor 0 in every mode that has one.
func (s *stage) terminal() []*os.File {
	if s.plan.Terminal == Detached {
		return nil
	}
	return []*os.File{os.Stdin}
}

func (s *stage) place() error {
	if s.plan.Dir != "" {
		fd, err := unix.Open(s.plan.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(fd)
			err = unix.Fchdir(fd)
		}
		if err != nil {
			return &StepError{Step: "change directory", Path: s.plan.Dir, Err: err}
		}
		if err := s.plan.DirID.check(fd, s.plan.Dir); err != nil {
			return err
		}
	}
	if s.plan.Umask != 0 {
		old := unix.Umask(0o777)
		unix.Umask(old | s.plan.Umask&0o777)
	}
	if nice := s.plan.Profile.Limits.Nice; nice > 0 {
		now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, min(19, 20-now+nice))
		}
		if err != nil {
			return &StepError{Step: "set priority", Err: err}
		}
	}
	return nil
}

// asInit builds the private root, starts the child by a worker thread, as the wrapper
// would, and stays as init of the namespace: when it ends, the kernel ends all others.
func (s *stage) asInit() error {
	if err := shieldInit(); err != nil {
		return err
	}
	if err := errors.Join(tripped("loopback"), loopbackUp(s.plan.Profile.Net.Mode)); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	if s.plan.Held && !s.heard() {
		os.Exit(1)
	}
	if err := makeRoot(s.plan); err != nil {
		return err
	}
	if s.plan.Try {
		s.send(stageMessage{Kind: "ready"})
		os.Exit(0)
	}
	if err := errors.Join(tripped("dumpable"), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)); err != nil {
		return &StepError{Step: "dumpable", Err: err}
	}
	if err := errors.Join(tripped("limits"), childLimits(s.plan.Profile.Limits)); err != nil {
		return err
	}
	setup := s.setup()
	setup.profile.Write = insideGrants(&setup.profile)
	w := &worker{cmd: s.command(), setup: setup, ruleset: -1, dir: -1, started: make(chan startResult, 1), release: make(chan struct{})}
	w.logged, w.slack = s.plan.Logged, s.plan.Slack
	if s.plan.Observe || s.plan.Gate {
		w.listen, w.gated, w.observed = s.sendListener, s.plan.Gate, s.plan.Observe
	}
	var err error
	if w.cmd.Dir != "" {
		if w.dir, err = unix.Open(w.cmd.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return &StepError{Step: "open working directory", Path: w.cmd.Dir, Err: err}
		}
		if err := s.plan.DirID.check(w.dir, w.cmd.Dir); err != nil {
			return err
		}
	}
	rules := setup.profile
	if rules.Net.Mode != NetNone {
		rules.Net.Mode = NetFull // the namespace bounds it, not Landlock's idea of TCP
	}
	if w.ruleset, err = buildRuleset(&rules, s.plan.ABI, s.terminal()); err != nil {
		return err
	}
	go offMain(w.run)
	r := <-w.started
	if r.err != nil {
		return r.err
	}
	if err := s.letGo(); err != nil {
		return err
	}
	// The kernel translates the number of the child: the wrapper has another one for it.
	about := unix.UnixCredentials(&unix.Ucred{Pid: int32(r.pid), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())})
	m := stageMessage{Kind: "started"}
	if err := unix.Sendmsg(s.control, m.encode(), about, nil, 0); err != nil {
		return &StepError{Step: "tell the child", Err: err}
	}
	// Until the wrapper has seen the child, its process id must not be reaped.
	if !s.heard() {
		os.Exit(1)
	}
	s.watch(r.pid)
	// The child stays a zombie until the wrapper is done with its process id.
	s.heard()
	s.send(stageMessage{Kind: "left", Left: len(othersAlive(r.pid))})
	os.Exit(0)
	return nil
}

// letGo closes what belongs to the child: a reader of its output waits until the last
// copy is closed.
func (s *stage) letGo() error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &StepError{Step: "open", Path: os.DevNull, Err: err}
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return &StepError{Step: "close descriptor", Err: err}
		}
	}
	unix.Close(null)
	for _, fd := range s.plan.Pass {
		unix.Close(fd)
	}
	if s.plan.FD >= 0 {
		unix.Close(s.plan.FD)
	}
	return nil
}

// heard waits for a word of the wrapper; false is its end.
func (s *stage) heard() bool {
	var b [1]byte
	for {
		n, err := unix.Read(s.control, b[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n == 1
	}
}

// watch reports what becomes of the child until it has ended, and reaps orphans.
func (s *stage) watch(child int) {
	for {
		var ru unix.Rusage
		info, err := waitUsage(unix.P_ALL, 0, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, &ru)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		pid := int(info.pid)
		switch {
		case info.code == cldStopped || info.code == cldTrapped:
			_, _ = waitInfo(unix.P_PID, pid, unix.WSTOPPED|unix.WNOHANG)
			if pid == child && info.code == cldStopped {
				s.send(stageMessage{Kind: "stopped", Signal: int(info.status)})
			}
		case pid == child:
			m := stageMessage{Kind: "exit", Status: waitStatus(info), UserNS: ru.Utime.Nano(), SysNS: ru.Stime.Nano(), MaxRSSKB: ru.Maxrss}
			if s.plan.Profile.Net.Mode == NetLoopback {
				m.Unrouted = unrouted()
			}
			s.send(m)
			return
		default:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// unrouted counts what was meant for a host in a network namespace with a loopback and nothing else: packets without
// a route, and datagrams to a resolver of the machine that is not there. The kernel counts them all the same.
func unrouted() int {
	data, _ := os.ReadFile("/proc/self/net/snmp")
	total, names := 0, map[string][]string{}
	for line := range strings.Lines(string(data)) {
		values := strings.Fields(line)
		if len(values) == 0 {
			continue
		}
		for i, name := range names[values[0]] {
			if i >= len(values) {
				break
			}
			if n, err := strconv.Atoi(values[i]); err == nil && (name == "OutNoRoutes" || name == "NoPorts") {
				total += n
			}
		}
		names[values[0]] = values
	}
	return total
}

// waitStatus puts siginfo together to what wait4 would have returned.
func waitStatus(info childInfo) uint32 {
	const cldExited, cldDumped = 1, 3
	switch info.code {
	case cldExited:
		return uint32(info.status) & 0xff << 8
	case cldDumped:
		return uint32(info.status)&0x7f | 0x80
	}
	return uint32(info.status) & 0x7f
}

// othersAlive lists what still runs in the namespace beside this process and the child.
func othersAlive(child int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == child || pid == os.Getpid() {
			continue
		}
		if state := processState(pid); state != 'Z' && state != 'X' && state != 0 {
			out = append(out, pid)
		}
	}
	return out
}

// shieldInit takes the handlers of the Go runtime away. The kernel drops every signal to
// the init of a namespace that has none, but for SIGKILL from outside and its own faults
// (pid_namespaces(7)); to take each one over by os/signal instead would cost two switches
// of threads, and what the runtime asks of its own threads by SIGURG is a courtesy.
func shieldInit() error {
	var byDefault [4]uint64 // struct sigaction of the kernel: handler, flags, restorer, mask
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig == uintptr(unix.SIGKILL) || sig == uintptr(unix.SIGSTOP) || signal.Ignored(syscall.Signal(sig)) {
			continue // nohup is inherited through us
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		if errno != 0 {
			return &StepError{Step: "shield init", Path: "signal " + strconv.Itoa(int(sig)), Err: errno}
		}
	}
	return nil
}

// command is the child as the worker starts it. Descriptors have their final numbers.
func (s *stage) command() *Cmd {
	p := s.plan
	c := &Cmd{Path: p.Path, Argv: p.Argv, Env: p.Env, Dir: p.Dir, Umask: p.Umask, Terminal: p.Terminal,
		Foreground: p.Foreground, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if p.FD >= 0 {
		unix.CloseOnExec(p.FD)
		c.ByDescriptor, c.File = true, os.NewFile(uintptr(p.FD), p.Path)
	}
	if p.Terminal == Handoff {
		c.Ctty = os.Stdin
	}
	for _, fd := range p.Pass {
		if c.Pass == nil {
			c.Pass = make(map[int]*os.File)
		}
		c.Pass[fd] = os.NewFile(uintptr(fd), "fd "+strconv.Itoa(fd))
	}
	return c
}

// loopbackUp turns on lo, the only interface of a new network namespace.
func loopbackUp(mode NetMode) error {
	if mode == NetFull || mode == NetNone {
		return nil
	}
	// Any socket belongs to the namespace. One of IP would look like a connection to whoever
	// traces a start: the test of the machine comes here too.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &StepError{Step: "loopback", Err: err}
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err == nil {
		req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
	}
	if err != nil {
		return &StepError{Step: "loopback", Err: err}
	}
	runtime.KeepAlive(req)
	return nil
}

// live guards against a second child: subreaper, death signals and the terminal
// belong to the whole process.
var live atomic.Bool

// Start runs c under p with the mechanisms of s, which must have been selected for p.
// If it fails, nothing ran: the error is a *StepError, an *ExecError, or says why the
// start was refused. An error of c.Check is returned as it is, after the tree was killed.
func Start(ctx context.Context, p Profile, s Setup, c Cmd) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.valid {
		return nil, stateError("no sandbox setup was selected")
	}
	if !reflect.DeepEqual(p, s.profile) {
		return nil, stateError("the sandbox setup was selected for another profile")
	}
	if s.tier == T0 && p.Confine != ConfineNone {
		return nil, Unconfined("no tier was selected")
	}
	if p.Net.Mode == NetAllowlist && s.tier != T0 && (s.tier != T3 || c.Serve == nil) {
		return nil, stateError("the run has no proxy for its hosts")
	}
	if len(c.Argv) == 0 {
		return nil, &ExecError{Errno: syscall.EINVAL, Path: c.Path}
	}
	if !live.CompareAndSwap(false, true) {
		return nil, stateError("a child of this process is running")
	}
	proc, err := startWorker(&s, &c)
	if err != nil {
		live.Store(false)
		var exec *ExecError
		if s.tier != T0 && !errors.As(err, &exec) {
			// The machine may have changed under the answer of the probe; the next run asks anew.
			Forget(Cache{Dir: s.host.state})
		}
		return nil, err
	}
	return proc, nil
}

// startWorker opens all that the worker cannot open once it is confined, then hands over.
func startWorker(s *Setup, c *Cmd) (*Proc, error) {
	w := &worker{cmd: c, setup: s, ruleset: -1, dir: -1, started: make(chan startResult, 1)}
	defer w.close()
	if err := w.open(); err != nil {
		return nil, err
	}
	release := make(chan struct{})
	w.release = release
	go offMain(w.run)
	r := <-w.started
	if r.pid == 0 {
		return nil, r.err
	}
	if w.staged {
		if r.stage.ns && c.Before != nil {
			c.Before()
			r.stage.tell()
		}
		if r.pid, r.err = r.stage.await(w); r.pid == 0 {
			r.stage.kill()
			unix.Close(r.stage.fd)
			close(release)
			return nil, r.err
		}
		r.checked = "unknown"
		if c.Check != nil {
			r.checked, r.err = c.Check(r.pid)
		}
	}
	proc := w.handOver(r, release)
	if r.err != nil {
		proc.KillTree(0)
		return nil, r.err
	}
	return proc, nil
}

// open opens and makes what a start needs. What is open when it fails is closed with the worker.
func (w *worker) open() error {
	s, c := w.setup, w.cmd
	private, err := HoldPrivate(s.profile.Private)
	if err != nil {
		return err
	}
	w.hold(private)
	if err := linkCaches(s.profile.Private, s.profile.Links); err != nil {
		return err
	}
	if w.guard, err = guardNames(s.profile, s.host.state); err != nil {
		return err
	}
	if w.guard != nil && s.tier == T3 {
		s.profile.Pins = w.guard.pins(&s.profile, c.Regenerable)
	}
	if err := applyLimits(s.profile.Limits); err != nil {
		return err
	}
	if c.Dir != "" {
		fd, err := unix.Open(c.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &StepError{Step: "open working directory", Path: c.Dir, Err: err}
		}
		w.dir = fd
		if err := c.DirID.check(fd, c.Dir); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return &StepError{Step: "child subreaper", Err: err}
	}
	if s.overlays() {
		var lock *os.File
		if lock, w.layers, err = takeLayers(s.profile.Layers, s.profile.Overlays); err != nil {
			return err
		}
		w.hold(lock)
	}
	w.staged = s.staged() || (c.Observe || c.Inside || c.Gate != nil) && s.tier != T0
	if c.Observe && s.tier != T0 {
		w.trail = followTrail(s.host.ABI)
	}
	if s.limits.cgroup != "" {
		if w.cgroup, err = makeCgroup(s.limits.cgroup, s.limits.max); err != nil {
			return err
		}
	}
	if s.tier != T0 && !w.staged {
		return w.openRuleset()
	}
	return nil
}

// openRuleset makes the rules that the worker itself will be under.
func (w *worker) openRuleset() (err error) {
	s, c := w.setup, w.cmd
	if rs, rest, ok := c.Prepared.take(&s.profile, s.host.ABI); ok {
		w.ruleset, err = fillRuleset(rs, rest, s.host.ABI, terminalFiles(c))
	} else {
		w.ruleset, err = buildRuleset(&s.profile, s.host.ABI, terminalFiles(c))
	}
	if err != nil {
		return err
	}
	// The worker lies in the child's Landlock domain, which lets the child trace it.
	// Not dumpable closes mem, environ, fd and ptrace; exec resets it for the child.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return &StepError{Step: "dumpable", Err: err}
	}
	return nil
}

// handOver gives what the worker holds to the process that was started, and begins to reap that.
func (w *worker) handOver(r startResult, release chan struct{}) *Proc {
	proc := &Proc{keep: w.setup.profile.KeepLeftovers, held: w.held, pid: r.pid, checked: r.checked, stopped: w.cmd.Stopped, release: release, guard: w.guard, cgroup: w.cgroup,
		trail: w.trail, done: make(chan struct{})}
	w.guard, w.cgroup, w.held, w.trail = nil, nil, nil, nil
	switch {
	case r.stage == nil:
		go proc.reap()
	case r.stage.ns:
		proc.listening, proc.stage = r.stage.listening, r.stage
		proc.stage.tell()
		go proc.reapStage()
	default:
		proc.listening = r.stage.listening
		unix.Close(r.stage.fd)
		go proc.reap()
	}
	return proc
}

// staged reports whether a thread of the wrapper cannot do it.
func (s *Setup) staged() bool {
	l := s.profile.Limits
	return s.tier == T3 || s.tier != T0 && (l.CPU != 0 || l.FileSize != 0 || l.Memory != 0 || s.limits.cgroup != "")
}

// terminalFiles are the terminal nodes of this run; all other terminals are the user's.
func terminalFiles(c *Cmd) []*os.File {
	switch {
	case c.Terminal == Detached:
		return nil
	case c.Ctty != nil:
		return []*os.File{c.Ctty}
	case c.Stdin != nil:
		return []*os.File{c.Stdin}
	}
	return nil
}

// Prepared is the part of a start that hardly depends on a decision: the default paths
// are looked up, and their rules stand in a ruleset. It is made while policy decides.
type Prepared struct {
	looked chan struct{} // files and grants are there
	done   chan struct{} // so is the ruleset, or none will be
	choice chan bool
	chosen sync.Once

	files   Files
	abi     int
	grants  []Grant // what the ruleset allows
	ruleset int     // -1 is none
}

// Prepare begins to look up the default paths. Hand Files to Derive and the result to
// Start through Cmd.Prepared. Nothing is confined by it, and a start that was decided
// otherwise does not use it.
func Prepare(home string, pathDirs []string) *Prepared {
	p := &Prepared{looked: make(chan struct{}), done: make(chan struct{}), choice: make(chan bool, 1), files: HostFiles(), ruleset: -1}
	go func() {
		defer close(p.done)
		d := deriver{in: Input{Home: home, Root: os.Getuid() == 0, Files: p.files}}
		d.system()
		d.home()
		p.grants = d.set.compact()
		// Looked up only: what is granted of PATH is judged, and one rule that the profile does not
		// have makes all of them useless.
		for _, dir := range pathDirs {
			d.pathEntry(dir, true)
		}
		close(p.looked)
		if subprocessNo, wanted := <-p.choice; wanted {
			p.build(subprocessNo)
		}
	}()
	return p
}

// Rules begins to build the rules of the default paths. Whether the run may start other
// programs is the one thing that they depend on; a wrong guess costs time only.
func (p *Prepared) Rules(subprocessNo bool) {
	p.chosen.Do(func() { p.choice <- subprocessNo })
}

// build makes the ruleset. If that fails there is none, and the start builds its own and
// reports the error.
func (p *Prepared) build(subprocessNo bool) {
	if p.abi, _, _ = landlockABI(); p.abi == 0 {
		return
	}
	if subprocessNo {
		for i := range p.grants {
			p.grants[i].Rights &^= Exec
		}
	}
	if rs, err := buildRuleset(&Profile{Read: p.grants}, p.abi, nil); err == nil {
		p.ruleset = rs
	}
}

// Files is the file system with what Prepare has looked up.
func (p *Prepared) Files() Files {
	<-p.looked
	return p.files
}

// Close frees what no start has taken.
func (p *Prepared) Close() {
	p.chosen.Do(func() { close(p.choice) })
	<-p.done
	if p.ruleset >= 0 {
		unix.Close(p.ruleset)
		p.ruleset = -1
	}
}

// take returns the ruleset and the grants of profile that are not in it, if it allows
// nothing that the profile does not and handles what the profile needs handled.
func (p *Prepared) take(profile *Profile, abi int) (ruleset int, rest []Grant, ok bool) {
	if p == nil || profile.Net.Mode == NetFull {
		return -1, nil, false
	}
	p.Rules(profile.SubprocessNo || profile.Ceiling == ExecClosed)
	<-p.done
	if p.ruleset < 0 || p.abi != abi {
		return -1, nil, false
	}
	all := profile.grants()
	for _, g := range p.grants {
		var have Rights
		for _, a := range all {
			if a.Path == g.Path || a.Dir && subpath.Within(g.Path, a.Path) {
				have |= a.Rights
			}
		}
		if !covered(have, g.Rights) {
			return -1, nil, false
		}
	}
	for _, a := range all {
		if !p.has(a) {
			rest = append(rest, a)
		}
	}
	ruleset, p.ruleset = p.ruleset, -1
	return ruleset, rest, true
}

func (p *Prepared) has(a Grant) bool {
	return slices.ContainsFunc(p.grants, func(g Grant) bool { return g.Path == a.Path && g.Dir == a.Dir && covered(g.Rights, a.Rights) })
}
