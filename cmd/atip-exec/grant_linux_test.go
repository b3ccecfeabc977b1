package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestGrantRunsOnce: what a person permits runs, unchanged, a single time.
func TestGrantRunsOnce(t *testing.T) {
	a := newAsker(t)
	a.register()
	// A destructive call of a tool in the home directory.
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	id := a.request(args...)
	out := a.approve(id)
	for _, want := range []string{"gh repo delete o/r --yes", "destructive", a.ws, "one run within ten minutes"} {
		if !strings.Contains(out, want) {
			t.Errorf("the person was not shown %q: %s", want, out)
		}
	}
	// What other runs leave behind is no change of this one.
	for _, other := range [][]string{{"--", "ls"}, {"--", "git", "status"}, {"--", "python3", "-c", "import tempfile; tempfile.mkstemp()"}} {
		if code, e := a.try(nil, other...); code != 0 {
			t.Fatalf("%v: exit %d: %s", other, code, e.text)
		}
	}
	if code, e := a.try(nil, args...); code != 0 || a.runs() != 1 {
		t.Fatalf("with a grant: exit %d, %d runs: %s", code, a.runs(), e.text)
	}
	if code, e := a.try(nil, args...); code != 77 || e.Code != "E2010" || a.runs() != 1 {
		t.Errorf("a second time: exit %d, %d runs: %s", code, a.runs(), e.text)
	}
	cmd := exec.Command(filepath.Join(bin, "atip"), "audit", "show", "-o", "json")
	cmd.Env = []string{"HOME=" + a.home}
	if log, _ := cmd.Output(); !strings.Contains(string(log), `"approver":"person"`) {
		t.Error("the audit does not say who permitted the run")
	}
}

func TestGrantTwoAtOnce(t *testing.T) {
	a := newAsker(t)
	a.register()
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	a.approve(a.request(args...))
	var wg sync.WaitGroup
	codes := make([]int, 4)
	for i := range codes {
		wg.Go(func() { codes[i], _ = a.try(nil, args...) })
	}
	wg.Wait()
	ok := 0
	for _, c := range codes {
		if c == 0 {
			ok++
		} else if c != 77 {
			t.Errorf("exit %d", c)
		}
	}
	if ok != 1 || a.runs() != 1 {
		t.Errorf("%v: %d runs", codes, a.runs())
	}
}

// TestGrantChanged: one thing that was decided differs, and the grant is for naught.
func TestGrantChanged(t *testing.T) {
	a := newAsker(t)
	a.register()
	for _, d := range []string{"sub", ".agent-tools"} {
		if err := os.Mkdir(filepath.Join(a.ws, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	input, script := filepath.Join(a.ws, "input"), filepath.Join(a.ws, "job.py")
	write(input, "one\n")
	write(script, "print(1)\n")
	stdin := func(cmd *exec.Cmd) {
		f, err := os.Open(input)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		cmd.Stdin = f
	}
	gh := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	for _, row := range []struct {
		name   string
		args   []string
		base   func(*exec.Cmd)
		change func()
		run    func(*exec.Cmd)
		want   string
	}{
		{name: "nothing", args: gh, base: stdin},
		{name: "stdin", args: gh, base: stdin, change: func() { write(input, "two\n") }, want: "stdin"},
		{name: "script", args: []string{"--", "sudo", "python3", "job.py"}, change: func() { write(script, "print(2)\n") }, want: "files." + script},
		{name: "cwd", args: gh, run: func(c *exec.Cmd) { c.Dir = filepath.Join(a.ws, "sub") }, want: "cwd"},
		{name: "environment", args: gh, base: func(c *exec.Cmd) { c.Env = append(c.Env, "MODE=a") }, run: func(c *exec.Cmd) { c.Env = append(c.Env, "MODE=b") }, want: "env.MODE"},
		{name: "variable more", args: gh, run: func(c *exec.Cmd) { c.Env = append(c.Env, "MODE=b") }, want: "env.MODE"},
		{name: "session", args: gh, run: func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_SESSION_ID=x") }, want: "session"},
		{name: "policy", args: gh, change: func() {
			write(filepath.Join(a.ws, ".agent-tools", "policy.json"), `{"version":1,"rules":[{"id":"no-x","decision":"deny","when":{"tool":"x"}}]}`)
		}, want: "policy"},
		{name: "binary", args: gh, change: func() { a.tool("gh", `echo run; cat; :`) }, want: "steps[0].sha256"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := a
			a.t = t
			a.tool("sudo", `echo run; "$@"`)
			code, e := a.try(row.base, row.args...)
			if code != 77 || e.Code != "E2010" {
				t.Fatalf("exit %d: %s", code, e.text)
			}
			a.elsewhere(e.Details.RequestID)
			a.approve(e.Details.RequestID)
			before := a.runs()
			if row.change != nil {
				row.change()
			}
			run := row.run
			if run == nil {
				run = row.base
			}
			code, e = a.try(run, row.args...)
			if row.want == "" {
				if code != 0 || a.runs() != before+1 {
					t.Errorf("exit %d: %s", code, e.text)
				}
				return
			}
			if code != 77 || e.Code != "E2011" || a.runs() != before || !strings.Contains(strings.Join(e.Details.Changed, " "), row.want) || e.Details.RequestID == "" {
				t.Errorf("exit %d, changed %v, want %s: %s", code, e.Details.Changed, row.want, e.text)
			}
			// The grant would still count for what it was given for.
			if err := os.RemoveAll(a.state("grants")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestApproveRefuses: whoever is not a person at a terminal of their own gets no grant.
func TestApproveRefuses(t *testing.T) {
	a := newAsker(t)
	a.register()
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	id := a.request(args...)
	last := a.digest(id)
	last = last[len(last)-4:]
	yes := [][2]string{{"to approve: ", last}, {"passphrase", passphrase}}
	refused := func(name string, code int, out string) {
		t.Helper()
		if files, _ := filepath.Glob(a.state("grants") + "/*.json"); code != 77 || len(files) != 0 {
			t.Errorf("%s: exit %d, grants %v: %s", name, code, files, out)
		}
	}
	code, out := a.personWith(func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_EXEC_SANDBOX=T2") }, yes, "approve", id)
	refused("inside a sandbox", code, out)
	code, out = a.personWith(func(c *exec.Cmd) { c.Stdin = strings.NewReader(last + "\n"); c.SysProcAttr.Setctty = false }, nil, "approve", id)
	refused("without a terminal", code, out)
	code, out = a.personWith(func(c *exec.Cmd) {
		c.Stdin, c.SysProcAttr.Ctty = strings.NewReader(last+"\n"), 1
	}, nil, "approve", id)
	refused("piped", code, out)
	code, e := a.try(nil, "--", filepath.Join(bin, "atip"), "approve", id)
	refused("by a command under the wrapper", code, e.text)
	code, out = a.person([][2]string{{"to approve: ", "yes"}}, "approve", id)
	refused("yes where the digest is asked for", code, out)
	code, out = a.person([][2]string{{"to approve: ", ""}}, "approve", id)
	refused("an empty answer", code, out)
	code, out = a.person([][2]string{{"to approve: ", last}, {"passphrase", "wrong"}, {"passphrase", "wrong"}, {"passphrase", "wrong"}}, "approve", id)
	refused("a wrong passphrase", code, out)
	code, out = a.person(yes, "approve", "--times", "3", id)
	if code != 64 {
		t.Errorf("--times for a destructive command: exit %d: %s", code, out)
	}
	// The agent asks again; now the request says truly where it comes from.
	if err := os.Remove(filepath.Join(a.state("requests"), id+".json")); err != nil {
		t.Fatal(err)
	}
	if _, e := a.try(nil, args...); e.Details.RequestID != id {
		t.Fatalf("another request: %s", e.text)
	}
	code, out = a.person(yes, "approve", id)
	refused("started by what asks", code, out)
	if !strings.Contains(out, "also started the command that asks") {
		t.Errorf("refused for another reason: %s", out)
	}
	// A key that nobody registered.
	a.elsewhere(id)
	if err := os.Remove(filepath.Join(a.home, ".config/agent-tools/approvers.json")); err != nil {
		t.Fatal(err)
	}
	code, out = a.person(yes, "approve", id)
	refused("an unregistered key", code, out)
}

// TestApproveShowsAll: what cannot be seen is written out, and nothing is cut.
func TestApproveShowsAll(t *testing.T) {
	a := newAsker(t)
	a.register()
	long := strings.Repeat("x", 10_000)
	id := a.request("--", "gh", "repo", "delete", "a\u202eb\u200bc\x1b[2J", long)
	_, out := a.person([][2]string{{"to approve: ", ""}}, "approve", id)
	for _, want := range []string{long, `a\u202eb\u200bc\x1b[2J`} {
		if !strings.Contains(out, want) {
			t.Errorf("not shown: %.40q in %.2000q", want, out)
		}
	}
	if strings.ContainsAny(out, "\x1b\u202e\u200b") {
		t.Error("a control character reached the terminal")
	}
}

// TestDeny: a "no" ends a wait and answers the same question for a while.
func TestDeny(t *testing.T) {
	a := newAsker(t)
	args := []string{"--wait", "30s", "--", "gh", "repo", "delete", "o/r", "--yes"}
	id := a.request(args[2:]...)
	done := make(chan refusal, 1)
	go func() { _, e := a.try(nil, args...); done <- e }()
	cmd := exec.Command(filepath.Join(bin, "atip"), "deny", id)
	cmd.Env = []string{"HOME=" + a.home}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if e := <-done; e.Code != "E2001" || !strings.Contains(e.text, "a person said no") {
		t.Errorf("%s", e.text)
	}
	if code, e := a.try(nil, args[2:]...); code != 77 || e.Code != "E2001" {
		t.Errorf("asked again: exit %d: %s", code, e.text)
	}
}

// TestWait: the answer comes while the command waits, or it does not come.
func TestWait(t *testing.T) {
	a := newAsker(t)
	a.register()
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	if code, e := a.try(nil, append([]string{"--wait", "300ms"}, args...)...); code != 77 || e.Code != "E2012" {
		t.Errorf("nobody answers: exit %d: %s", code, e.text)
	}
	// In CI nobody is there to wait for.
	began := time.Now()
	if code, e := a.try(func(c *exec.Cmd) { c.Env = append(c.Env, "CI=1") }, append([]string{"--wait", "10m"}, args...)...); code != 77 || e.Code != "E2010" || time.Since(began) > time.Minute {
		t.Errorf("in CI: exit %d: %s", code, e.text)
	}
	id := a.request(args...)
	done := make(chan int, 1)
	go func() {
		code, e := a.try(nil, append([]string{"--wait", "60s"}, args...)...)
		if code != 0 {
			t.Errorf("exit %d: %s", code, e.text)
		}
		done <- code
	}()
	a.approve(id)
	if code := <-done; code != 0 || a.runs() != 1 {
		t.Errorf("exit %d, %d runs", code, a.runs())
	}
}

// unreached reports what curl says of a service that is not there: 7 is a refused
// connection, 52 and 56 one that ends at once, as the forwarded port of a run does that has
// a loopback of its own.
func unreached(code int) bool { return code == 7 || code == 52 || code == 56 }

// TestGrantTimes: an idempotent call without harm may be granted several times.
func TestGrantTimes(t *testing.T) {
	a := newAsker(t)
	a.register()
	args := []string{"--", "curl", "-sS", "http://127.0.0.1:1/"}
	id := a.request(args...)
	code, out := a.person([][2]string{{"yes to approve: ", "yes"}, {"passphrase", passphrase}}, "approve", "--times", "2", id)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	for i := range 3 {
		code, e := a.try(nil, args...)
		if ran := unreached(code); ran != (i < 2) || !ran && code != 77 {
			t.Errorf("run %d: exit %d: %s", i+1, code, e.text)
		}
	}
}

// TestNotify: a new request is told once, by the command of the user's policy; a
// project's policy can name none.
func TestNotify(t *testing.T) {
	a := newAsker(t)
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	put := func(dir, text string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "policy.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(a.ws, ".agent-tools"), `{"version":1,"approval":{"command":"touch $HOME/project"}}`)
	put(filepath.Join(a.home, ".config/agent-tools"), `{"version":1,"approval":{"command":"cat >$HOME/asked.new; mv $HOME/asked.new $HOME/asked"}}`)
	id := a.request(args...)
	var raw []byte
	for i := 0; i < 1500 && len(raw) == 0; i++ {
		time.Sleep(20 * time.Millisecond)
		raw, _ = os.ReadFile(filepath.Join(a.home, "asked"))
	}
	var r struct{ ID string }
	if err := json.Unmarshal(raw, &r); err != nil || r.ID != id {
		t.Errorf("the command was given %v: %.200s", err, raw)
	}
	if _, err := os.Stat(filepath.Join(a.home, "project")); err == nil {
		t.Error("the project's command was started")
	}
}

// TestProjectTrust: a project's policy loosens after a person has read it, and no
// longer when a byte of it changes; what it denies always holds.
func TestProjectTrust(t *testing.T) {
	a := newAsker(t)
	a.userPolicy(`{"version":1,"ceiling":{"allow":["write","delete","network","execOpaque"],"switches":["package_install","loopback","url_fetch"]}}`)
	file := filepath.Join(a.ws, ".agent-tools", "policy.json")
	put := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const policy = `{"version":1,"switches":{"url_fetch":true},"rules":[{"id":"no-ls","decision":"deny","when":{"tool":"ls"}}]}`
	fetch := []string{"--", "curl", "-sS", "https://host.invalid/"}
	// Of curl, by itself and through the proxy of the run.
	const couldNotResolve, proxyCouldNot = 6, 56
	expect := func(name string, fetched, listed int) {
		t.Helper()
		if code, e := a.try(nil, fetch...); code != fetched && (fetched != couldNotResolve || code != proxyCouldNot) {
			t.Errorf("%s: curl: exit %d, want %d: %s", name, code, fetched, e.text)
		}
		if code, e := a.try(nil, "--", "ls"); code != listed {
			t.Errorf("%s: ls: exit %d, want %d: %s", name, code, listed, e.text)
		}
	}
	expect("without a policy", 77, 0)
	put(policy)
	expect("not trusted", 77, 77)
	if code, out := a.person([][2]string{{"to trust them: ", "no"}}, "policy", "trust"); code != 77 {
		t.Fatalf("exit %d: %s", code, out)
	}
	expect("refused", 77, 77)
	code, out := a.person([][2]string{{"to trust them: ", "yes"}}, "policy", "trust")
	if code != 0 || !strings.Contains(out, "url_fetch") {
		t.Fatalf("exit %d: %s", code, out)
	}
	expect("trusted", couldNotResolve, 77)
	put(policy + "\n")
	expect("a byte more", 77, 77)
	put(policy)
	expect("as it was", couldNotResolve, 77)
	if err := os.MkdirAll(filepath.Join(a.ws, ".agent-tools", "policy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.ws, ".agent-tools", "policy", "more.json"), []byte(`{"version":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	expect("a file more", 77, 77)
}

// TestLock: in CI a signed lock lets the locked plan run, wherever it is checked out;
// a key that only the project names signs nothing.
func TestLock(t *testing.T) {
	a := newAsker(t)
	a.register()
	public, err := os.ReadFile(a.state("approver/id_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys := fmt.Sprintf(`{"version":1,"approval":{"lockKeys":[%q]}}`, strings.TrimSpace(string(public)))
	ci := func(c *exec.Cmd) { c.Env = append(c.Env, "CI=1", "GITHUB_REPOSITORY=o/r") }
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	code, e := a.try(ci, args...)
	if code != 77 || e.Details.LockDigest == "" {
		t.Fatalf("exit %d: %s", code, e.text)
	}
	a.userPolicy(keys)
	if _, e = a.try(ci, args...); e.Code != "E2010" {
		t.Fatalf("without a lock: %s", e.text)
	}
	add := exec.Command(filepath.Join(bin, "atip"), "policy", "lock", "add", e.Details.LockDigest, "--reason", "release")
	add.Dir, add.Env = a.ws, []string{"HOME=" + a.home}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, e := a.try(ci, args...); code != 78 || e.Code != "E2044" {
		t.Errorf("a lock without a signature: exit %d: %s", code, e.text)
	}
	if code, out := a.person([][2]string{{"to sign: ", "yes"}, {"passphrase", passphrase}}, "policy", "lock", "sign"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, e := a.try(ci, args...); code != 0 || a.runs() != 1 {
		t.Errorf("a signed lock: exit %d, %d runs: %s", code, a.runs(), e.text)
	}
	if code, e := a.try(nil, args...); code != 77 || e.Code != "E2010" {
		t.Errorf("outside CI: exit %d: %s", code, e.text)
	}
	if code, e := a.try(ci, "--", "gh", "repo", "delete", "o/other", "--yes"); code != 77 || e.Code != "E2010" {
		t.Errorf("another command: exit %d: %s", code, e.text)
	}
	moved := a.ws + "-moved"
	if err := os.Rename(a.ws, moved); err != nil {
		t.Fatal(err)
	}
	a.ws = moved
	if code, e := a.try(ci, args...); code != 0 || a.runs() != 2 {
		t.Errorf("in another checkout: exit %d: %s", code, e.text)
	}
	// The same key, named by the project only.
	a.userPolicy(`{"version":1}`)
	if err := os.WriteFile(filepath.Join(a.ws, ".agent-tools", "policy.json"), []byte(keys), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, e := a.try(ci, args...); code != 77 || e.Code != "E2010" {
		t.Errorf("a key of the project: exit %d: %s", code, e.text)
	}
}

// TestSessionGrant: within a session a person may permit what a command does, and not
// only one plan: other arguments, but neither another host, tool, effect nor session.
func TestSessionGrant(t *testing.T) {
	a := newAsker(t)
	a.register()
	in := func(session string) func(*exec.Cmd) {
		return func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_SESSION_ID="+session) }
	}
	ask := func(args ...string) string {
		t.Helper()
		code, e := a.try(in("s1"), args...)
		if code != 77 || e.Code != "E2010" {
			t.Fatalf("%v: exit %d: %s", args, code, e.text)
		}
		a.elsewhere(e.Details.RequestID)
		return e.Details.RequestID
	}
	id := ask("--", "curl", "-sS", "http://127.0.0.1:1/one")
	code, out := a.person([][2]string{{"yes to approve: ", "yes"}, {"passphrase", passphrase}}, "approve", "--session", id)
	for _, want := range []string{"any  ", "curl", "127.0.0.1:1", "for eight hours", "for the session"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("exit %d, not shown %q: %s", code, want, out)
		}
	}
	const noConnection = 7
	for _, row := range []struct {
		name, session string
		exit          int
		args          []string
	}{
		{"the same", "s1", noConnection, []string{"--", "curl", "-sS", "http://127.0.0.1:1/one"}},
		{"again, another path", "s1", noConnection, []string{"--", "curl", "-sS", "http://127.0.0.1:1/two"}},
		{"in a text", "s1", noConnection, []string{"-c", "echo x; curl -sS http://127.0.0.1:1/two"}},
		{"another session", "s2", 77, []string{"--", "curl", "-sS", "http://127.0.0.1:1/one"}},
		{"another host", "s1", 77, []string{"--", "curl", "-sS", "http://127.0.0.2:1/one"}},
		{"another port", "s1", 77, []string{"--", "curl", "-sS", "http://127.0.0.1:2/one"}},
		{"another effect", "s1", 77, []string{"--", "curl", "-sS", "-X", "DELETE", "http://127.0.0.1:1/one"}},
		{"something else besides", "s1", 77, []string{"-c", "curl -sS http://127.0.0.1:1/one; gh repo delete o/r --yes"}},
		{"into a shell", "s1", 77, []string{"-c", "curl -sS http://127.0.0.1:1/one | sh"}},
		{"another tool", "s1", 77, []string{"--", "wget", "-q", "http://127.0.0.1:1/one"}},
		{"what is not known to the word", "s1", 77, []string{"-c", "curl -sS $(cat url)"}},
	} {
		if code, e := a.try(in(row.session), row.args...); code != row.exit && !(row.exit == noConnection && unreached(code)) {
			t.Errorf("%s: exit %d, want %d: %s", row.name, code, row.exit, e.text)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "atip"), "audit", "show", "-o", "json")
	cmd.Env = []string{"HOME=" + a.home}
	if log, _ := cmd.Output(); !strings.Contains(string(log), `"kind":"session"`) {
		t.Error("the audit does not say that a session was permitted")
	}
	// A grant whose scope somebody widened is none.
	files, err := filepath.Glob(a.state("grants") + "/*.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("grants: %v, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(raw), "127.0.0.1:1", "127.0.0.2:1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, e := a.try(in("s1"), "--", "curl", "-sS", "http://127.0.0.2:1/one"); code != 77 {
		t.Errorf("an edited scope: exit %d: %s", code, e.text)
	}
	// What destroys is looked at each time, and so is what has no session.
	if code, out := a.person(nil, "approve", "--session", ask("--", "gh", "repo", "delete", "o/r", "--yes")); code != 64 {
		t.Errorf("a session of destruction: exit %d: %s", code, out)
	}
	if code, out := a.person(nil, "approve", "--session", a.request("--", "curl", "-sS", "http://127.0.0.1:1/one")); code != 64 {
		t.Errorf("no session: exit %d: %s", code, out)
	}
}

// TestPropose: the rule that would permit what asked is printed, and permits it once a
// person has put it into a policy.
func TestPropose(t *testing.T) {
	a := newAsker(t)
	propose := func(args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "atip"), append([]string{"approve", "--propose"}, args...)...)
		cmd.Dir, cmd.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode(), string(out)
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, string(out)
	}
	args := []string{"--", "curl", "-sS", "http://127.0.0.1:1/one"}
	id := a.request(args...)
	if code, out := propose(id, "-o", "text"); code != 0 || !strings.Contains(out, `+  {"id":"curl","decision":"allow","when":{"host":["127.0.0.1"],"tool":"curl"},"grants":["network"]`) {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, e := a.try(nil, args...); code != 77 {
		t.Errorf("a proposal permits nothing: exit %d: %s", code, e.text)
	}
	code, out := propose(id, "-o", "json")
	var doc struct{ Rules json.RawMessage }
	if err := json.Unmarshal([]byte(out), &doc); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	a.userPolicy(`{"version":1,"rules":` + string(doc.Rules) + `}`)
	if code, e := a.try(nil, args...); !unreached(code) {
		t.Errorf("under the proposed rule: exit %d: %s", code, e.text)
	}
	if code, e := a.try(nil, "--", "curl", "-sS", "http://127.0.0.2:1/one"); code != 77 {
		t.Errorf("another host: exit %d: %s", code, e.text)
	}
	a.tool("mystery", "echo run")
	if code, out := propose(a.request("--", "mystery", "--now")); code != 64 {
		t.Errorf("a tool nobody knows: exit %d: %s", code, out)
	}
}

// TestKeyOfAgent: a key that an SSH agent holds signs too, and is worth little: the
// agent asks nobody.
func TestKeyOfAgent(t *testing.T) {
	a := newAsker(t)
	key := filepath.Join(a.home, "agentkey")
	for _, args := range [][]string{{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "agent", "-f", key}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	socket := filepath.Join(a.home, "agent.sock")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	with := func(c *exec.Cmd) { c.Env = append(c.Env, "SSH_AUTH_SOCK="+socket) }
	for i := 0; i < 250; i++ {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	add := exec.Command("ssh-add", key)
	add.Env = []string{"SSH_AUTH_SOCK=" + socket, "HOME=" + a.home}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if code, out := a.personWith(with, nil, "approve", "--init", "--key", key+".pub"); code != 0 || !strings.Contains(out, "level 0") {
		t.Fatalf("exit %d: %s", code, out)
	}
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	approve := func() (int, string) {
		id := a.request(args...)
		return a.personWith(with, [][2]string{{"to approve: ", a.digest(id)[len(a.digest(id))-4:]}}, "approve", "--key", key+".pub", id)
	}
	if code, out := approve(); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, e := a.try(nil, args...); code != 0 || a.runs() != 1 {
		t.Errorf("exit %d: %s", code, e.text)
	}
	doctor := exec.Command(filepath.Join(bin, "atip"), "doctor", "-o", "text")
	doctor.Dir, doctor.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "weakest of level 0") {
		t.Errorf("doctor: %s", out)
	}
	a.userPolicy(`{"version":1,"approval":{"minLevel":{"destructive":1}}}`)
	if code, out := approve(); code != 77 || !strings.Contains(out, "below the 1") {
		t.Errorf("where a passphrase is demanded: exit %d: %s", code, out)
	}
	doctor = exec.Command(filepath.Join(bin, "atip"), "doctor", "-o", "text")
	doctor.Dir, doctor.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "demands level 1 for destructive") {
		t.Errorf("doctor: %s", out)
	}
}
