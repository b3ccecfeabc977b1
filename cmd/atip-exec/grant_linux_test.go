package main_test

import (
	"encoding/json"
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
	if log, _ := cmd.Output(); !strings.Contains(string(log), `"approver":"person"`) || !strings.Contains(string(log), `"level":1`) {
		t.Error("the audit does not say who permitted the run, and what that word is worth")
	}
}

// TestGrantOutlivesTmp: a run at T2 may read the files of the user in /tmp, and what others put there
// between the permission and the run is no change of what was permitted.
func TestGrantOutlivesTmp(t *testing.T) {
	a := newAsker(t)
	a.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	a.register()
	a.approve(a.request("--", "gh", "repo", "delete", "o/r", "--yes"))
	f, err := os.CreateTemp("/tmp", "others-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	f.Close()
	if code, e := a.try(nil, "--", "gh", "repo", "delete", "o/r", "--yes"); code != 0 || a.runs() != 1 {
		t.Errorf("with a grant: exit %d, %d runs: %s", code, a.runs(), e.text)
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

// TestGrantMaxAge: a policy can let grants of every kind count for less than their time; the
// person is told, and signs that.
func TestGrantMaxAge(t *testing.T) {
	a := newAsker(t)
	a.register()
	a.userPolicy(`{"version":1,"approval":{"maxAge":"4m"}}`)
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	if out := a.approve(a.request(args...)); !strings.Contains(out, "no grant counts longer than 4m0s here") {
		t.Errorf("the person is not told: %s", out)
	}
	files, _ := filepath.Glob(a.state("grants/*.json"))
	if len(files) != 1 {
		t.Fatalf("grants: %v", files)
	}
	var grant struct{ Created, Expires time.Time }
	if raw, err := os.ReadFile(files[0]); err != nil || json.Unmarshal(raw, &grant) != nil || grant.Expires.Sub(grant.Created) != 4*time.Minute {
		t.Errorf("%v: %s to %s", err, grant.Created, grant.Expires)
	}
	if code, e := a.try(nil, args...); code != 0 || a.runs() != 1 {
		t.Errorf("a young one: exit %d, %d runs: %s", code, a.runs(), e.text)
	}
}
