package sandbox

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/require"
)

// TestMain lets the test binary also be the wrapper and the confined child: a
// confined start changes its process for good, so none happens in the test itself.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "act":
		actMain(os.Args[2:])
	case os.Getenv("SANDBOX_TEST_JOB") != "":
		wrapperMain()
	}
	os.Exit(m.Run())
}

const failEnv = "ATIP_TEST_FAIL"

// A stage runs before any init of this package's tests, but not before their variables.
var _ = func() bool {
	n, err := strconv.Atoi(os.Getenv(failEnv))
	if err != nil {
		return false
	}
	tripwire = func(step string) error {
		if n--; n == 0 {
			return &StepError{Step: step, Err: errors.New("tripped")}
		}
		return nil
	}
	return true
}()

// job is what a wrapper process is to start.
type job struct {
	Profile      Profile
	ABI          int // forced down, 0 as probed
	Path         string
	ByDescriptor bool
	Argv, Env    []string
	Dir          string
	Umask        int
	Pass         map[int]string // opened read-only
	Stdin        string         // file, "" is /dev/null
	Inspect      bool           // report the wrapper's own threads while the child runs
	Busy         int            // goroutines blocked in reads
	Open         string         // a file the wrapper opens while the child runs
	Kill         bool           // the tree, when the child has said its first word
	Grace        time.Duration
	Announce     bool // print the child's pid on stderr
	CheckFails   bool
	Prepare      bool
	Home         string
	State        string
	Drain        bool   // wait for the end of the output before the child is waited for
	Pty          bool   // a terminal on standard input and output
	Fail         int    // the step of the stage that fails, from 1
	Cgroup       string // where groups can be made, "" to look
	Proxy        *proxy.Config
	Forward      map[int]string // port inside, service outside
	Refuse       string         // the last word of starts that a gate refuses, "" for no gate
}

// result is what the wrapper saw.
type result struct {
	Out        string
	Exit       Exit
	Tree       Tree
	Receipt    Receipt
	Err        string
	Code       string
	Details    map[string]any
	Filters    []string // "Seccomp" of each thread but the main one
	Main       string
	Opened     string
	Settlement Settlement
	Rest       string // children left after the sweep
	Proxy      proxy.Report
	Holds      int      // listening sockets of the wrapper
	Exposed    []string // those of them that are in the machine's own network
	Refused    []string // by the gate
}

// brief is the result without its receipt.
func (r result) brief() result {
	r.Receipt = Receipt{Tier: r.Receipt.Tier, Gaps: r.Receipt.Gaps}
	return r
}

func wrapperMain() {
	var j job
	raw, err := hex.DecodeString(os.Getenv("SANDBOX_TEST_JOB"))
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(raw)).Decode(&j)
	}
	if err != nil {
		panic(err)
	}
	Init()
	r := wrapper(j)
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func wrapper(j job) (r result) {
	fail := func(err error) result {
		r.Err = err.Error()
		var coded interface {
			FaultCode() string
			FaultDetails() map[string]any
		}
		if errors.As(err, &coded) {
			r.Code, r.Details = coded.FaultCode(), coded.FaultDetails()
		}
		return r
	}
	h, err := Probe(Cache{Dir: j.State})
	if err != nil {
		return fail(err)
	}
	if j.ABI != 0 {
		if h.ABI = j.ABI; h.tier() < j.Profile.Forced {
			j.Profile.Forced = T0
		}
	}
	h.cgroup = j.Cgroup
	if j.Fail > 0 {
		stageEnv = []string{failEnv + "=" + strconv.Itoa(j.Fail)}
	}
	s, err := Select(j.Profile, h)
	if err != nil {
		return fail(err)
	}
	r.Receipt = s.Receipt()
	for range j.Busy {
		pr, _, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		go func() { _, _ = unix.Read(int(pr.Fd()), make([]byte, 1)) }()
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	c := Cmd{Path: j.Path, ByDescriptor: j.ByDescriptor, Argv: j.Argv, Env: j.Env, Dir: j.Dir, Umask: j.Umask, Stdout: pw, Stderr: pw}
	if j.Stdin != "" {
		if c.Stdin, err = os.Open(j.Stdin); err != nil {
			return fail(err)
		}
	}
	if j.Refuse != "" {
		var mu sync.Mutex
		c.Gate = &gate.Rules{
			Decide: func(s gate.Start) gate.Verdict {
				return gate.Verdict{Go: s.Argv[len(s.Argv)-1] != j.Refuse, Words: true}
			},
			Refused: func(n gate.Report) {
				mu.Lock()
				defer mu.Unlock()
				r.Refused = append(r.Refused, strings.Join(n.Start.Argv, " "))
			},
		}
	}
	if j.ByDescriptor {
		if c.File, err = os.Open(j.Path); err != nil {
			return fail(err)
		}
		c.Path = "/nonexistent"
	}
	for fd, name := range j.Pass {
		f, err := os.Open(name)
		if err != nil {
			return fail(err)
		}
		if c.Pass == nil {
			c.Pass = map[int]*os.File{}
		}
		c.Pass[fd] = f
	}
	if j.Pty {
		master, slave, err := openPty()
		if err != nil {
			return fail(err)
		}
		c.Stdin, c.Stdout, c.Ctty, c.Terminal = slave, slave, slave, Pty
		defer slave.Close()
		pr = master // ends when the last terminal descriptor is closed
	}
	if j.Prepare {
		c.Prepared = Prepare(j.Home, []string{"/usr/bin"})
	}
	c.Check = func(pid int) (string, error) {
		if j.CheckFails {
			return "replaced", errors.New("the file was replaced")
		}
		exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "ended", nil
		case err != nil:
			return "", err
		case !j.ByDescriptor && exe != j.Path:
			return "replaced", nil // a shell that has already executed its last command
		}
		return "true", nil
	}
	if j.Proxy != nil {
		rules, err := proxy.Compile(*j.Proxy)
		if err != nil {
			return fail(err)
		}
		server := proxy.New(rules)
		defer func() { r.Proxy = server.Close() }()
		c.Serve = func(list []Listener) {
			for _, l := range list {
				switch l.Service {
				case "http":
					server.ServeHTTP(l.File)
				case "socks":
					server.ServeSOCKS(l.File)
				case "direct":
					server.ServeDirect(l.File, l.Host, l.Port)
				default:
					if err := server.ServeForward(l.File, j.Forward[l.Port]); err != nil {
						panic(err)
					}
				}
			}
		}
	}
	p, err := Start(context.Background(), j.Profile, s, c)
	pw.Close()
	if j.Pty {
		c.Ctty.Close()
	}
	if err != nil {
		r.Rest = fmt.Sprint(children())
		return fail(err)
	}
	if j.Proxy != nil {
		r.Holds, r.Exposed = heldListeners()
	}
	if j.Announce {
		fmt.Fprintln(os.Stderr, p.Pid())
	}
	if j.Inspect {
		r.Main, r.Filters = threadFilters()
	}
	if j.Open != "" {
		r.Opened = "yes"
		if _, err := os.ReadFile(j.Open); err != nil {
			r.Opened = err.Error()
		}
	}
	out, spoken := make(chan string, 1), make(chan struct{})
	go func() {
		first := make([]byte, 1)
		n, _ := pr.Read(first)
		close(spoken)
		data, _ := io.ReadAll(pr)
		out <- string(first[:n]) + string(data)
	}()
	if j.Drain {
		r.Out = <-out
		out <- r.Out
	}
	if j.Kill {
		<-spoken
		r.Tree = p.KillTree(j.Grace)
	}
	if r.Exit, err = p.Wait(); err != nil {
		return fail(err)
	}
	if !j.Kill {
		r.Tree = p.Sweep()
	}
	r.Settlement = p.Settlement()
	if c.Gate != nil {
		_, _ = p.Denials() // then the reports of the gate are there
	}
	r.Out = <-out
	r.Rest = fmt.Sprint(children())
	return r
}

// heldListeners looks at the listening sockets that this process holds.
func heldListeners() (held int, exposed []string) {
	tables := ""
	for _, name := range []string{"tcp", "tcp6", "unix"} {
		data, _ := os.ReadFile("/proc/net/" + name)
		tables += string(data)
	}
	for fd := range 1024 {
		if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on != 1 {
			continue
		}
		held++
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || slices.Contains(strings.Fields(tables), strconv.FormatUint(st.Ino, 10)) {
			exposed = append(exposed, strconv.Itoa(fd))
		}
	}
	return held, exposed
}

// openPty makes a terminal; a package for it would be a second importer.
func openPty() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return os.NewFile(uintptr(fd), "/dev/ptmx"), slave, err
}

// threadFilters reads the filter mode of each thread of this process.
func threadFilters() (mainThread string, others []string) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		mode := statusField("/proc/self/task/"+t.Name()+"/status", "Seccomp:")
		if t.Name() == strconv.Itoa(os.Getpid()) {
			mainThread = mode
		} else {
			others = append(others, mode)
		}
	}
	return mainThread, others
}

func statusField(path, field string) string {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, field); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// wrapperCommand is the command of a wrapper process for j.
func wrapperCommand(t *testing.T, j job, env ...string) *exec.Cmd {
	t.Helper()
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(j); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t))
	// A race-instrumented program sleeps a second before it exits.
	cmd.Env = append(append(os.Environ(), env...), "GORACE=atexit_sleep_ms=0", "SANDBOX_TEST_JOB="+hex.EncodeToString(buf.Bytes()))
	cmd.Stderr = os.Stderr
	return cmd
}

// confined runs j in a wrapper process of its own.
func confined(t *testing.T, j job, env ...string) result {
	t.Helper()
	out, err := wrapperCommand(t, j, env...).Output()
	if err != nil {
		t.Fatalf("wrapper: %v\n%s", err, out)
	}
	var r result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("wrapper printed %q: %v", out, err)
	}
	return r
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// world is a workspace beside things that no run may touch.
type world struct{ base, ws, out, home, private string }

func newWorld(t testing.TB) world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{base, base + "/ws", base + "/out", base + "/home", base + "/private"}
	for _, d := range []string{w.ws, w.out + "/dir", w.out + "/empty", w.home + "/.ssh", w.private + "/tmp"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{w.ws + "/mine", w.out + "/file", w.out + "/dir/file", w.out + "/other", w.home + "/.ssh/id_x"} {
		if err := os.WriteFile(f, []byte("content\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// profile is the derived default profile of the world at tier T2, with more grants of
// effects.
func (w world) profile(t testing.TB, change func(*Input)) Profile {
	t.Helper()
	in := Input{Workspace: w.ws, Cwd: w.ws, Home: w.home, Private: w.private, PathDirs: []string{"/usr/bin"},
		Exec: []string{self(t)}, Root: os.Getuid() == 0, Names: tableNames(), Judge: func(string, bool) string { return "" }, Policy: PolicyProfile{Accept: append(BuiltinAccept(), WSCheck)}}
	in.Policy.Tier = T2
	in.Granted = in.Granted.With(1) // write
	if change != nil {
		change(&in)
	}
	p, err := Derive(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func needLandlock(t testing.TB, abi int) {
	t.Helper()
	if have, _, _ := landlockABI(); have < abi {
		require.Feature(t, "landlock", fmt.Errorf("the kernel has version %d", have))
	}
}
