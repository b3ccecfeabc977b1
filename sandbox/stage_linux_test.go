package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/require"
)

func needNamespaces(t testing.TB) {
	t.Helper()
	needLandlock(t, scopeABI)
	if h := try(""); !h.Namespaces {
		require.Feature(t, "userns", errors.New(h.NSWhy))
	}
}

// third is the profile of the world with tier T3.
func (w world) third(t testing.TB, change func(*Input)) Profile {
	t.Helper()
	return w.profile(t, func(in *Input) {
		in.Policy.Tier = T3
		in.Exec = append(in.Exec, "/usr/bin/bash")
		if change != nil {
			change(in)
		}
	})
}

func TestPrivateRoot(t *testing.T) {
	needNamespaces(t)
	denied := map[string]string{
		"create": "ENOENT", "append": "ENOENT", "truncate": "ENOENT", "otrunc": "ENOENT", "read": "ENOENT", "list": "ENOENT",
		"mkdir": "ENOENT", "rmdir": "ENOENT", "unlink": "ENOENT", "renameout": "ENOENT", "steal": "ENOENT", "renamein": "ENOENT",
		"link": "ENOENT", "symlink": "ENOENT", "mkfifo": "ENOENT", "chmod": "ENOENT", "secret": "ENOENT", "secretlink": "ENOENT",
		"secretroot": "ENOENT",
	}
	w := newWorld(t)
	r := confined(t, w.child(t, w.third(t, nil), w.acts(denied)...))
	got := outcomes(t, r.Out)
	for name, errno := range denied {
		if got[name] != errno || r.Receipt.Tier != T3 {
			t.Errorf("%s: %q, want %s; %s %s", name, got[name], errno, r.Receipt.Tier, r.Err)
		}
		if got := newWorld(t).unconfinedOne(t, name); got != "ok" {
			t.Errorf("%s unconfined: %s", name, got)
		}
	}
	w = newWorld(t)
	r = confined(t, w.child(t, w.third(t, nil), "wswrite:"+w.base, "wsreplace:"+w.base, "tmpwrite", "hosttmp", "fork", "socketpair", "unix", "capabilities", "nnp"))
	got = outcomes(t, r.Out)
	for name, v := range got {
		if v != "ok" {
			t.Errorf("%s: %s", name, v)
		}
	}
	if len(got) != 9 || r.Err != "" || r.Tree.Method != "namespace" {
		t.Errorf("%+v", r.brief())
	}
	// The temporary file went to the private directory.
	if _, err := os.Stat(w.ws + "/made"); err != nil {
		t.Error(err)
	}
}

func TestPrivateNetworkAndProcesses(t *testing.T) {
	needNamespaces(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	victim := exec.Command("/usr/bin/sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { victim.Process.Kill(); victim.Wait() }()
	w := newWorld(t)
	acts := []string{"tcp:" + l.Addr().String(), "udp", "raw", "self", "kill0:" + itoa(victim.Process.Pid)}
	r := confined(t, w.child(t, w.third(t, func(in *Input) { in.Net.Mode = NetLoopback }), acts...))
	got := outcomes(t, r.Out)
	// The host's service is not reached, a server of its own is.
	if got["tcp"] != "ECONNREFUSED" || got["udp"] != "ok" || got["raw"] != "EPERM" || got["self"] != "ok" || got["kill0"] != "ESRCH" {
		t.Errorf("loopback: %v %s", got, r.Err)
	}
	r = confined(t, w.child(t, w.third(t, nil), acts...))
	if got = outcomes(t, r.Out); got["tcp"] != "EAFNOSUPPORT" || got["udp"] != "EAFNOSUPPORT" || got["self"] != "EAFNOSUPPORT" {
		t.Errorf("none: %v %s", got, r.Err)
	}
	r = confined(t, w.child(t, w.third(t, func(in *Input) { in.Net.Mode = NetFull }), acts...))
	if got = outcomes(t, r.Out); got["tcp"] != "ok" || got["kill0"] != "ESRCH" {
		t.Errorf("full: %v %s", got, r.Err)
	}
}

func TestPrivateRootDetails(t *testing.T) {
	needNamespaces(t)
	for text, want := range map[string]string{
		"echo $$": "", // small, checked below
		"cat /proc/sys/kernel/hostname >/dev/null && echo x >/proc/sys/kernel/hostname": "denied",
		"touch /x": "denied", "touch /etc/x": "denied", "touch /usr/x": "denied",
		"ls /home /root /run; ls -A " + "/dev/shm": "", "ls / >/dev/null && echo listed": "listed",
		"echo x >/dev/shm/f && cat /dev/shm/f": "x",
		"cat /proc/kcore":                      "",
		"id -u":                                itoa(os.Getuid()),
		"exit 7":                               "",
		"stat -c %u /usr":                      "",
		"echo $PWD; pwd":                       "",
		"ps -e 2>/dev/null | wc -l":            "",
		"echo a | cat; (exit 3) || echo b":     "a\nb",
		"python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1]))'":                                                                                                           "[1]",
		"tty=$(python3 -c 'import os; m,s=os.openpty(); print(os.ttyname(s))') && echo $tty":                                                                                                 "/dev/pts/0",
		"for s in $(seq 64); do kill -$s 1; done 2>/dev/null; echo alive":                                                                                                                    "alive",
		"python3 -c 'import os,ctypes\nc=ctypes.CDLL(None)\nfor t in os.listdir(\"/proc/1/task\"):\n for s in range(1,65): c.syscall(" + itoa(unix.SYS_TGKILL) + ",1,int(t),s)'; echo alive": "alive",
		"bash -c 'sleep 9 & kill %1; wait; echo done'":                                                                                                                                       "done",
		"setsid bash -c 'trap \"\" TERM; sleep 60' >/dev/null 2>&1 & sleep 0.1; echo swept":                                                                                                  "swept",
		"git init -q . && git -c user.email=a -c user.name=a commit -q --allow-empty -m x; git log --format=%s":                                                                              "x",
	} {
		w := newWorld(t)
		p := w.third(t, func(in *Input) { in.Exec = append(in.Exec, "/usr/bin/bash") })
		j := w.shell(p, "cd "+w.ws+"; "+text)
		j.Env = append(j.Env, "HOME="+w.home)
		r := confined(t, j)
		out := strings.TrimSpace(r.Out)
		switch want {
		case "denied":
			if r.Exit.Code == 0 || r.Err != "" {
				t.Errorf("%s: status %d, %q %s", text, r.Exit.Code, out, r.Err)
			}
		case "":
			if r.Err != "" || strings.Contains(out, "denied") {
				t.Errorf("%s: %q %s", text, out, r.Err)
			}
		default:
			if out != want || r.Err != "" {
				t.Errorf("%s: %q, want %q; %d %s", text, out, want, r.Exit.Code, r.Err)
			}
		}
		if text == "exit 7" && r.Exit.Code != 7 || strings.HasSuffix(text, "swept") && r.Tree.Leftovers == 0 {
			t.Errorf("%s: %+v %+v", text, r.Exit, r.Tree)
		}
		if r.Rest != "[]" {
			t.Errorf("%s: left %s", text, r.Rest)
		}
	}
}

func TestPrivateTreeEndsWithTheWrapper(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	mark := "6" + itoa(os.Getpid())
	j := w.shell(w.third(t, nil), "setsid sleep "+mark+" & sleep "+mark)
	j.Announce = true
	cmd := wrapperCommand(t, j)
	cmd.Stderr = nil
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	running := func() int {
		out, _ := exec.Command("pgrep", "-fx", "sleep "+mark).Output()
		return len(strings.Fields(string(out)))
	}
	for range 6000 {
		if running() == 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := running(); n != 2 {
		t.Errorf("%d processes run", n)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for range 6000 {
		if running() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d processes outlive the wrapper", running())
}

func TestPrivateKillTreeAndSignals(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	j := w.shell(w.third(t, nil), `trap "" TERM; setsid sleep 60 & echo ready; while :; do sleep 1; done`)
	j.Kill, j.Grace = true, 100*time.Millisecond
	if r := confined(t, j); r.Exit.Signal != unix.SIGKILL || r.Rest != "[]" || r.Err != "" {
		t.Errorf("ignoring TERM: %+v", r.brief())
	}
	j = w.shell(w.third(t, nil), `trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done`)
	j.Kill, j.Grace = true, 10*time.Second
	if r := confined(t, j); r.Exit.Code != 9 || r.Rest != "[]" {
		t.Errorf("heeding TERM: %+v", r.brief())
	}
	if r := confined(t, w.shell(w.third(t, nil), "kill -TERM $$")); r.Exit.Code != 143 {
		t.Errorf("own TERM: %+v", r.brief())
	}
}

func TestLimitsThroughTheStage(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	text := "cd " + w.ws + "; ulimit -f; ulimit -t; head -c 3000000 /dev/zero >big; echo $?"
	for _, tier := range []Tier{T2, T3} {
		if tier == T3 {
			needNamespaces(t)
		}
		p := w.profile(t, func(in *Input) {
			in.Policy.Tier, in.Policy.Limits = tier, Limits{FileSize: 1 << 20, CPU: 50}
		})
		r := confined(t, w.shell(p, text))
		if got := strings.Fields(r.Out); len(got) < 3 || got[0] != "2048" || got[1] != "50" || got[len(got)-1] != "153" {
			t.Errorf("%s: %q %s", tier, r.Out, r.Err)
		}
		j := w.child(t, p, "argv", "environment", "fds", "where", "exe", "secret:"+w.base, "fork", "udp", "capabilities", "nnp", "wrappermem", "wrapperkill")
		j.Argv = append(j.Argv, "", "\xff")
		j.Env, j.Dir, j.Umask, j.Pass = []string{"X=\xff", "GORACE=atexit_sleep_ms=0"}, w.ws, 0o77, map[int]string{63: w.ws + "/mine"}
		for _, j.ByDescriptor = range []bool{false, true} {
			r = confined(t, j)
			got := outcomes(t, r.Out)
			if got["fds"] != "0,1,2,63" || got["where"] != w.ws+" 0077" || got["exe"] != self(t) || got["fork"] != "ok" ||
				!strings.HasSuffix(got["argv"], `"" "\xff"]`) || !strings.HasPrefix(got["environment"], `["X=\xff"`) ||
				got["secret"] == "ok" || got["udp"] != "EAFNOSUPPORT" || got["capabilities"] != "ok" || got["nnp"] != "ok" ||
				got["wrappermem"] == "ok" ||
				// The kernel drops what a namespace sends to its init; that init lived on shows.
				(got["wrapperkill"] == "ok") != (tier == T3) {
				t.Errorf("%s: %v %s", tier, got, r.Err)
			}
		}
		r = confined(t, job{Profile: p, Path: w.out + "/file", Argv: []string{"x"}})
		if r.Code != "E3002" || r.Rest != "[]" {
			t.Errorf("%s: not executable: %+v", tier, r.brief())
		}
	}
}

// TestStageByHand: nobody but a wrapper gets anything out of it.
func TestStageByHand(t *testing.T) {
	for _, args := range [][]string{{stageName}, {stageName, "3"}, {stageName, "x"}, {stageName, "3", "4"}} {
		cmd := exec.Command(self(t))
		cmd.Args = args
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{null, null}
		_ = cmd.Run()
		null.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitProtocol {
			t.Errorf("%v: status %d", args, code)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	data, err := encodePlan(&stagePlan{V: wireVersion, Tier: T2, Argv: []string{"a"}, Path: "/bin/true", FD: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, data); err != nil {
		t.Fatal(err)
	}
	socket, plan := os.NewFile(uintptr(pair[1]), "socket"), os.NewFile(uintptr(fd), "plan")
	for _, want := range []string{"sealed", "start signal"} {
		if want == "sealed" {
			if _, err := unix.Write(pair[0], []byte{1}); err != nil {
				t.Fatal(err)
			}
		} else if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self(t))
		cmd.Args = []string{stageName, "3"}
		cmd.ExtraFiles = []*os.File{socket, plan}
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitProtocol || !strings.Contains(string(out), want) {
			t.Errorf("%s: status %d %s", want, code, out)
		}
	}
	unix.Close(pair[0])
}

func TestProtectedNamesArePinned(t *testing.T) {
	needNamespaces(t)
	w, p := repository(t)
	p.Forced = T3
	r := confined(t, w.shell(p, "cd "+w.ws+`; echo evil >.git/hooks/x; mv .git g; echo evil >.claude/settings.json; rm -r .claude
		git config a.b c; echo y >new; mv new src/; echo z >>.git/config; ls -d .git/hooks .claude`))
	for _, name := range []string{".git/hooks/pre-commit", ".claude/settings.json", "src/new", ".git/config"} {
		if _, err := os.Stat(w.ws + "/" + name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{".git/hooks/x", "g"} {
		if _, err := os.Lstat(w.ws + "/" + name); err == nil {
			t.Errorf("%s was made: %s", name, r.Out)
		}
	}
	if data, _ := os.ReadFile(w.ws + "/.claude/settings.json"); string(data) != "{}" || r.Err != "" {
		t.Errorf("settings %q, %s", data, r.Err)
	}
}

func TestMaskedFiles(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	if err := os.WriteFile(w.ws+"/.env", []byte("KEY=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	change := func(in *Input) { in.Hidden = []string{w.ws + "/.env"} }
	r := confined(t, w.shell(w.third(t, change), "cd "+w.ws+"; cat .env; echo x >.env; mv .env e; rm -f .env; ls -A"))
	if strings.Contains(r.Out, "KEY") || !strings.Contains(r.Out, ".env\n") || r.Err != "" {
		t.Errorf("masked: %q %s", r.Out, r.Err)
	}
	if data, _ := os.ReadFile(w.ws + "/.env"); string(data) != "KEY=1" {
		t.Errorf("the file is %q", data)
	}
	r = confined(t, w.shell(w.profile(t, change), "cat "+w.ws+"/.env"))
	if r.Out != "KEY=1" || !strings.Contains(strings.Join(r.Receipt.Reduced, " "), ".env: readable") {
		t.Errorf("T2 does not say that it is readable: %q %v", r.Out, r.Receipt.Reduced)
	}
}

// TestStageHoldsNoOutput: output ends with the child, not with the init of its namespace.
func TestStageHoldsNoOutput(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	j := w.shell(w.third(t, nil), "echo out; exec sleep 0 </dev/null")
	j.Drain = true
	if r := confined(t, j); r.Out != "out\n" || r.Err != "" {
		t.Errorf("%q %s", r.Out, r.Err)
	}
}

// TestQuickChildWithOrphans: a child that ends at once leaves its own children to the
// init of the namespace, where the wrapper then finds several.
func TestQuickChildWithOrphans(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	p := w.third(t, nil)
	for range 8 {
		r := confined(t, w.shell(p, "sleep 60 >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 & exit 5"))
		if r.Err != "" || r.Exit.Code != 5 {
			t.Fatalf("%+v", r.brief())
		}
	}
}

// TestEveryStepCanFail: whichever step of a private root fails, nothing runs and nothing
// is left.
func TestEveryStepCanFail(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	if err := os.MkdirAll(w.ws+"/.git/hooks", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.ws+"/.env", []byte("KEY=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.third(t, func(in *Input) { in.Net.Mode, in.Hidden = NetLoopback, []string{w.ws + "/.env"} })
	steps := map[string]bool{}
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for n := 1; ; n += stride {
		j := w.child(t, p, "wswrite:"+w.base)
		j.Fail = n
		r := confined(t, j)
		if r.Err == "" {
			if outcomes(t, r.Out)["wswrite"] != "ok" || n < 40 {
				t.Errorf("after %d steps: %+v", n-1, r.brief())
			}
			break
		}
		step, _ := r.Details["step"].(string)
		steps[step] = true
		if r.Code != "E4102" || step == "" || r.Out != "" || r.Rest != "[]" {
			t.Errorf("step %d %q: %+v", n, step, r.brief())
		}
		if _, err := os.Stat(w.ws + "/made"); err == nil {
			t.Fatalf("step %d %q: the child ran", n, step)
		}
	}
	for _, step := range []string{"loopback", "make mounts private", "copy mount", "mount root", "mount", "link", "make directory", "cover", "make mask", "make directory of its own", "make read-only",
		"enter root", "pivot root", "detach old root", "verify read-only", "dumpable", "limits", "capabilities", "no_new_privs", "landlock_restrict_self", "seccomp"} {
		if !steps[step] && stride == 1 {
			t.Errorf("step %q was never tried", step)
		}
	}
	t.Logf("%d kinds of steps", len(steps))
}

// TestPinsAreBounded: more submodules than can be pinned are counted, and compared all the same.
func TestPinsAreBounded(t *testing.T) {
	needNamespaces(t)
	w, p := repository(t)
	p.Forced = T3
	for i := range maxPins {
		dir := w.ws + "/.git/modules/m" + itoa(i)
		for _, name := range []string{"/hooks/h", "/HEAD", "/config"} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(dir+name), 0o755), os.WriteFile(dir+name, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	j := w.shell(p, "cd "+w.ws+"; for d in .git/modules/m*; do echo evil >$d/hooks/new && echo made; done 2>/dev/null; grep -c "+w.ws+" /proc/self/mountinfo")
	j.State = t.TempDir()
	r := confined(t, j)
	words := strings.Fields(r.Out)
	mounts, err := strconv.Atoi(words[len(words)-1])
	if made := len(words) - 1; err != nil || mounts > maxPins+16 || made == 0 || made >= maxPins || r.Settlement.Unpinned == 0 {
		t.Errorf("%d mounts, %d planted, unpinned %d: %s", mounts, made, r.Settlement.Unpinned, r.Err)
	}
	if left, _ := filepath.Glob(w.ws + "/.git/modules/m*/hooks/new"); len(left) != 0 {
		t.Errorf("%d plants are left", len(left))
	}
}
