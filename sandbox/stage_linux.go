package sandbox

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/sandbox/seccomp"
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
