package sandbox

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	w.logged = s.plan.Logged
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
			s.send(stageMessage{Kind: "exit", Status: waitStatus(info), UserNS: ru.Utime.Nano(), SysNS: ru.Stime.Nano(), MaxRSSKB: ru.Maxrss})
			return
		default:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
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
