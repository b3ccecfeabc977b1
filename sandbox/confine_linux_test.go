package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// child is the job of running acts in the world.
func (w world) child(t *testing.T, p Profile, acts ...string) job {
	return job{Profile: p, Path: self(t), Argv: append([]string{"act", "act"}, acts...), Env: w.env()}
}

func (w world) env() []string {
	return []string{"TMPDIR=" + w.private + "/tmp", "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
}

// outcomes parses what actMain printed.
func outcomes(t *testing.T, out string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for line := range strings.Lines(out) {
		if name, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			m[name] = v
		}
	}
	return m
}

// unconfined runs acts without any sandbox: the control of each denial.
func (w world) unconfined(t *testing.T, acts ...string) map[string]string {
	t.Helper()
	cmd := exec.Command(self(t), append([]string{"act"}, acts...)...)
	cmd.Env = w.env()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(t, string(out))
}

func TestFilesOutsideAreDenied(t *testing.T) {
	needLandlock(t, truncateABI)
	denied := map[string]string{
		"create": "EACCES", "append": "EACCES", "truncate": "EACCES", "otrunc": "EACCES", "read": "EACCES",
		"list": "EACCES", "mkdir": "EACCES", "rmdir": "EACCES", "unlink": "EACCES", "renameout": "EACCES",
		"steal": "EACCES", "renamein": "EACCES", "link": "EACCES", "symlink": "EACCES", "mkfifo": "EACCES",
		"secret": "EACCES", "secretlink": "EACCES", "secretroot": "EACCES", "hosttmp": "EACCES",
	}
	w := newWorld(t)
	got := outcomes(t, confined(t, w.child(t, w.profile(t, nil), w.acts(denied)...)).Out)
	for name, errno := range denied {
		if got[name] != errno && !(got[name] == "EXDEV" && (name == "link" || name == "steal" || name == "renameout")) {
			t.Errorf("%s confined: %q, want %s", name, got[name], errno)
		}
		if got := newWorld(t).unconfinedOne(t, name); got != "ok" {
			t.Errorf("%s unconfined: %s", name, got)
		}
	}
	if data, err := os.ReadFile(w.out + "/file"); err != nil || string(data) != "content\n" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
}

// acts names each act of a table with the world as its argument.
func (w world) acts(table map[string]string) []string {
	var out []string
	for name := range table {
		out = append(out, name+":"+w.base)
	}
	return out
}

func (w world) unconfinedOne(t *testing.T, name string) string {
	return w.unconfined(t, name+":"+w.base)[name]
}

func TestWorkspaceAndPrivateAreWritable(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	r := confined(t, w.child(t, w.profile(t, nil), "wswrite:"+w.base, "wsreplace:"+w.base, "tmpwrite", "fork", "socketpair"))
	for name, got := range outcomes(t, r.Out) {
		if got != "ok" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if r.Err != "" || r.Exit.Checked != "true" && r.Exit.Checked != "ended" || r.Receipt.Tier < T1 {
		t.Errorf("result %+v", r.brief())
	}
}

func TestReadOnlyRun(t *testing.T) {
	needLandlock(t, truncateABI)
	w := newWorld(t)
	p := w.profile(t, func(in *Input) { in.Granted, in.OrgBound = 0, true; in.Policy.Accept = nil })
	r := confined(t, w.child(t, p, "wswrite:"+w.base, "chmod:"+w.base, "tmpwrite"))
	got := outcomes(t, r.Out)
	if got["wswrite"] != "EACCES" || got["chmod"] != "EPERM" || got["tmpwrite"] != "ok" {
		t.Errorf("outcomes %v, %s", got, r.Err)
	}
	if len(r.Receipt.Gaps) != 0 {
		t.Errorf("a plain read run has gaps %v", r.Receipt.Gaps)
	}
	if got := w.unconfinedOne(t, "chmod"); got != "ok" {
		t.Errorf("chmod unconfined: %s", got)
	}
}

func TestNetworkIsDenied(t *testing.T) {
	needLandlock(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	w := newWorld(t)
	acts := []string{"tcp:" + l.Addr().String(), "udp", "tcp6", "netlink", "unix", "raw"}
	control := w.unconfined(t, acts...)
	for _, mode := range []NetMode{NetNone, NetLoopback} {
		r := confined(t, w.child(t, w.profile(t, func(in *Input) { in.Net.Mode = mode }), acts...))
		for name, got := range outcomes(t, r.Out) {
			// A user cannot make a raw socket anyway; the filter's errno is another.
			if got != "EAFNOSUPPORT" || control[name] == got {
				t.Errorf("%s %s: confined %s, unconfined %s", mode, name, got, control[name])
			}
		}
	}
	r := confined(t, w.child(t, w.profile(t, func(in *Input) { in.Net.Mode = NetFull }), acts...))
	got := outcomes(t, r.Out)
	if got["tcp"] != "ok" || got["udp"] != "ok" || got["raw"] != "EPERM" || got["unix"] != "EAFNOSUPPORT" {
		t.Errorf("full: %v", got)
	}
	r = confined(t, w.child(t, w.profile(t, func(in *Input) { in.Policy.Tier, in.Net = T2, Net{Mode: NetAllowlist, Allow: []string{"a"}} }), acts...))
	if r.Code != "E4101" {
		t.Errorf("allowlist: %+v", r.brief())
	}
}

func TestOtherProcesses(t *testing.T) {
	needLandlock(t, scopeABI)
	victim := exec.Command("/usr/bin/sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { victim.Process.Kill(); victim.Wait() }()
	pid := strconv.Itoa(victim.Process.Pid)
	w := newWorld(t)
	names := []string{"kill0", "environ", "prlimit", "setpriority", "ptrace"}
	var acts []string
	for _, n := range names {
		acts = append(acts, n+":"+pid)
	}
	r := confined(t, w.child(t, w.profile(t, nil), acts...))
	got, control := outcomes(t, r.Out), w.unconfined(t, acts...)
	for _, n := range names {
		want := "EPERM"
		if n == "environ" {
			want = "EACCES"
		}
		if got[n] != want || control[n] != "ok" {
			t.Errorf("%s: confined %s, want %s; unconfined %s", n, got[n], want, control[n])
		}
	}
}

// TestWrapperIsOutOfReach: the parked worker lies in the child's Landlock domain, so
// Landlock alone lets the child read and kill the wrapper through it.
func TestWrapperIsOutOfReach(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	for _, env := range [][]string{nil, {"GOMAXPROCS=1"}} {
		r := confined(t, w.child(t, w.profile(t, nil), "wrappermem", "wrapperenviron", "wrapperkill", "capabilities", "nnp"), env...)
		got := outcomes(t, r.Out)
		if got["wrappermem"] != "EACCES" || got["wrapperenviron"] != "EACCES" || got["wrapperkill"] != "EPERM" {
			t.Errorf("wrapper: %v %s", got, r.Err)
		}
		if got["capabilities"] != "ok" || got["nnp"] != "ok" {
			t.Errorf("privilege: %v", got)
		}
	}
	w2 := newWorld(t)
	if got := w2.unconfined(t, "wrapperenviron")["wrapperenviron"]; got != "ok" {
		t.Errorf("unconfined: %s", got)
	}
}

func TestOnlyTheWorkerIsConfined(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	for _, env := range [][]string{nil, {"GOMAXPROCS=1"}} {
		j := w.shell(w.profile(t, nil), "sleep 0.3")
		j.Inspect, j.Busy, j.Open = true, 60, w.home+"/.ssh/id_x"
		r := confined(t, j, env...)
		n := 0
		for _, mode := range r.Filters {
			if mode == "2" {
				n++
			}
		}
		// Control: this machine's sandbox of the test itself may already filter.
		if outer := statusField("/proc/self/status", "Seccomp:"); outer == "0" && (n != 1 || r.Main != "0") {
			t.Errorf("threads with a filter: %d, main %s", n, r.Main)
		}
		if r.Opened != "yes" {
			t.Errorf("the wrapper cannot open a file: %s %s", r.Opened, r.Err)
		}
	}
}

func TestWrapperKilled(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	j := w.child(t, w.profile(t, nil), "sleep")
	j.Announce = true
	cmd := wrapperCommand(t, j)
	cmd.Stderr = nil
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(line)
	if !alive(pid) {
		t.Fatalf("child %s does not run", pid)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for range 6000 {
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("child %s outlives its wrapper", pid)
}

func alive(pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(data, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// shell is the job of running a shell text.
func (w world) shell(p Profile, text string) job {
	return job{Profile: p, Path: "/usr/bin/bash", Argv: []string{"sh", "-c", text}, Env: w.env()}
}

func TestLeftoversAreSwept(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	p := w.profile(t, func(in *Input) { in.Exec = append(in.Exec, "/usr/bin/bash") })
	for name, text := range map[string]string{
		"same group":     `sleep 60 >/dev/null 2>&1 & echo $! >$TMPDIR/pid; `,
		"own session":    `setsid sh -c 'trap "" TERM INT HUP; echo $$ >$TMPDIR/pid; exec sleep 60' >/dev/null 2>&1 & `,
		"double forked":  `(setsid sh -c 'trap "" TERM; (trap "" TERM; setsid sleep 60 & echo $! >$TMPDIR/pid; wait) & wait' >/dev/null 2>&1 &); `,
		"nothing at all": "",
	} {
		if text != "" {
			text += "while [ ! -s $TMPDIR/pid ]; do sleep 0.01; done; cat $TMPDIR/pid; rm $TMPDIR/pid; "
		}
		r := confined(t, w.shell(p, text+"exit 5"))
		if r.Exit.Code != 5 || r.Err != "" {
			t.Errorf("%s: %+v", name, r.brief())
		}
		if pid := strings.TrimSpace(r.Out); (pid != "") != (r.Tree.Leftovers > 0) || pid != "" && alive(pid) {
			t.Errorf("%s: process %q, tree %+v", name, r.Out, r.Tree)
		}
		if r.Rest != "[]" || r.Tree.Survivors != 0 || r.Tree.Method == "" {
			t.Errorf("%s: left %s, tree %+v", name, r.Rest, r.Tree)
		}
	}
}

func TestKillTree(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	p := w.profile(t, nil)
	j := w.shell(p, `trap "" TERM; setsid bash -c 'echo >$TMPDIR/there; exec sleep 60' & sleep 61 & while [ ! -e $TMPDIR/there ]; do sleep 0.01; done; echo ready; while :; do sleep 1; done`)
	j.Kill, j.Grace = true, 100*time.Millisecond
	r := confined(t, j)
	if r.Exit.Signal != unix.SIGKILL || r.Exit.Code != 137 || r.Rest != "[]" || r.Tree.Leftovers == 0 {
		t.Errorf("ignoring TERM: %+v", r.brief())
	}
	j = w.shell(p, `trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done`)
	j.Kill, j.Grace = true, 10*time.Second
	if r = confined(t, j); r.Exit.Code != 9 || r.Rest != "[]" {
		t.Errorf("heeding TERM: %+v", r.brief())
	}
}

func TestExitStatus(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	p := w.profile(t, nil)
	for text, want := range map[string]int{"exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137, "true": 0} {
		r := confined(t, w.shell(p, text))
		if r.Exit.Code != want || (want > 128) != (r.Exit.Signal != 0) {
			t.Errorf("%s: %+v %s", text, r.Exit, r.Err)
		}
	}
}

func TestSubprocessNo(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	p := w.profile(t, func(in *Input) { in.Subprocess = 1 })
	r := confined(t, w.child(t, p, "fork", "wswrite:"+w.base))
	got := outcomes(t, r.Out)
	if !strings.Contains(got["fork"], "EPERM") && got["fork"] != "EACCES" || got["wswrite"] != "ok" {
		t.Errorf("outcomes %v %s", got, r.Err)
	}
	if got := w.unconfinedOne(t, "fork"); got != "ok" {
		t.Errorf("fork unconfined: %s", got)
	}
	if !slices.ContainsFunc(p.Exec, func(g Grant) bool { return g.Path == self(t) }) {
		t.Errorf("exec grants %v", p.Exec)
	}
}

// TestSeventeenthLayer: the kernel stacks sixteen Landlock layers, and the error says so.
func TestSeventeenthLayer(t *testing.T) {
	needLandlock(t, 1)
	abi, _, _ := landlockABI()
	rs, err := createRuleset(NetFull, abi)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(rs)
	done := make(chan error, 17)
	go offMain(func() { // the thread ends with its layers
		defer close(done)
		if err := noNewPrivs(); err != nil {
			done <- err
			return
		}
		for range 17 {
			done <- restrictSelf(rs, false)
		}
	})
	var last error
	n := 0
	for err := range done {
		if n++; err != nil && last == nil {
			last = err
		}
	}
	var step *StepError
	if !errors.As(last, &step) || step.FaultCode() != "E4107" || !strings.Contains(last.Error(), "nested too deep") {
		t.Errorf("after %d layers: %v", n, last)
	}
}
