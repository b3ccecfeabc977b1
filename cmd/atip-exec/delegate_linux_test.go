package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// token runs `atip delegate` and returns what it prints.
func (a asker) token(held string, flags ...string) string {
	a.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "atip"), append([]string{"delegate", "-o", "text"}, flags...)...)
	cmd.Dir, cmd.Env = a.ws, []string{"HOME=" + a.home, "ATIP_DELEGATION=" + held}
	out, err := cmd.CombinedOutput()
	if err != nil {
		a.t.Fatalf("delegate %v: %v: %s", flags, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (a asker) tryUnder(token string, args ...string) (int, refusal) {
	a.t.Helper()
	return a.try(func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_DELEGATION="+token) }, args...)
}

// TestDelegation: a token takes away, more blocks take away more, and what was
// tampered with lets nothing run.
func TestDelegation(t *testing.T) {
	a := newAsker(t)
	first := a.token("", "--tools", "git,ls,sh", "--deny-command", "git log", "--name", "reader")
	second := a.token(first, "--tools", "ls")
	parts := strings.Split(first, "~")
	other := "A" // a letter that does not stand in the signature there
	if parts[0][len(parts[0])-20] == 'A' {
		other = "B"
	}
	short := a.token("", "--tools", "ls", "--ttl", "1s")
	time.Sleep(1100 * time.Millisecond) // tokens end on whole seconds
	for _, row := range []struct {
		name, token string
		args        []string
		exit        int
		code        string
	}{
		{"permitted", first, []string{"--", "ls"}, 0, ""},
		{"permitted", first, []string{"--", "git", "status"}, 0, ""},
		{"not permitted", first, []string{"--", "cat", "/dev/null"}, 77, "E2001"},
		{"denied command", first, []string{"--", "git", "log"}, 77, "E2001"},
		{"denied inside a shell", first, []string{"--", "sh", "-c", "cat /dev/null"}, 77, "E2001"},
		{"one block more", second, []string{"--", "ls"}, 0, ""},
		{"one block more", second, []string{"--", "git", "status"}, 77, "E2001"},
		{"edited", parts[0][:len(parts[0])-20] + other + parts[0][len(parts[0])-19:] + "~" + parts[1], []string{"--", "ls"}, 77, "E2002"},
		{"cut", strings.Join(strings.Split(second, "~")[:1], "") + "~" + strings.Split(second, "~")[2], []string{"--", "ls"}, 77, "E2002"},
		{"nonsense", "x", []string{"--", "ls"}, 77, "E2002"},
		{"another order", strings.Join([]string{strings.Split(second, "~")[1], strings.Split(second, "~")[0], strings.Split(second, "~")[2]}, "~"), []string{"--", "ls"}, 77, "E2002"},
		{"ended", short, []string{"--", "ls"}, 77, "E2002"},
		// Without a token each of these runs.
		{"control", "", []string{"--", "cat", "/dev/null"}, 0, ""},
		{"control", "", []string{"--", "sh", "-c", "cat /dev/null"}, 0, ""},
	} {
		if code, e := a.tryUnder(row.token, row.args...); code != row.exit || e.Code != row.code {
			t.Errorf("%s: %v: exit %d %s, want %d %s: %s", row.name, row.args, code, e.Code, row.exit, row.code, e.text)
		}
	}
}

// TestDelegationRuns: `atip delegate … -- CMD` runs under the token, which dropping the
// variable inside does not undo: what the run was not granted stays out of reach.
func TestDelegationRuns(t *testing.T) {
	a := newAsker(t)
	run := func(args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "atip"), append([]string{"delegate"}, args...)...)
		cmd.Dir, cmd.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin:" + bin}
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode(), string(out)
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, string(out)
	}
	if code, out := run("--tools", "ls", "--", "ls"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := run("--tools", "ls", "--", "git", "status"); code != 77 || !strings.Contains(out, "delegat") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := run("--", "ls"); code != 64 {
		t.Errorf("a delegation that takes nothing away: exit %d: %s", code, out)
	}
	script := filepath.Join(a.ws, "x.py")
	if err := os.WriteFile(script, []byte("import os\ndel os.environ['ATIP_DELEGATION']\nopen('made', 'w')\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := filepath.Join(a.home, "spec.json")
	if err := os.WriteFile(spec, []byte(`{"version":1,"delegation":{"effectRestrictions":{"filesystem.write":false}}} // read only`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out := run("--spec", spec, "--", "python3", "x.py"); code == 0 {
		t.Errorf("wrote: %s", out)
	}
	if _, err := os.Stat(filepath.Join(a.ws, "made")); err == nil {
		t.Error("a file was made under a delegation without writing")
	}
	if code, e := a.try(nil, "--", "python3", "-c", "open('made','w')"); code != 0 {
		t.Errorf("control: exit %d: %s", code, e.text)
	}
}

// TestDelegationByDescriptor: a token may come over a descriptor, where no list of
// processes shows it.
func TestDelegationByDescriptor(t *testing.T) {
	a := newAsker(t)
	token := a.token("", "--tools", "ls")
	over := func(text string, args ...string) (int, refusal) {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		return a.try(func(c *exec.Cmd) {
			c.ExtraFiles = []*os.File{r}
			c.Env = append(c.Env, "ATIP_DELEGATION=fd:3")
		}, args...)
	}
	if code, e := over(token, "--", "ls"); code != 0 {
		t.Errorf("permitted: exit %d: %s", code, e.text)
	}
	if code, e := over(token+"\n", "--", "cat", "/dev/null"); code != 77 || e.Code != "E2001" {
		t.Errorf("not permitted: exit %d: %s", code, e.text)
	}
	if code, e := over("", "--", "ls"); code != 77 || e.Code != "E2002" {
		t.Errorf("nothing there: exit %d: %s", code, e.text)
	}
	for _, value := range []string{"fd:9", "fd:x", "fd:1", "fd:"} {
		if code, e := a.tryUnder(value, "--", "ls"); code != 77 || e.Code != "E2002" {
			t.Errorf("%s: exit %d: %s", value, code, e.text)
		}
	}
}

// TestDelegateAtOnce: the key of a user is made once, however many delegate for the first time
// together, and its public half comes back where it was lost.
func TestDelegateAtOnce(t *testing.T) {
	a := newAsker(t)
	tokens := make([]string, 6)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() { tokens[i] = a.token("", "--tools", "ls") })
	}
	wg.Wait()
	for _, token := range tokens {
		if code, e := a.tryUnder(token, "--", "ls"); code != 0 {
			t.Errorf("exit %d: %s", code, e.text)
		}
	}
	public := filepath.Join(a.home, ".config/agent-tools/delegation.pub")
	if err := os.Remove(public); err != nil {
		t.Fatal(err)
	}
	if code, e := a.tryUnder(tokens[0], "--", "ls"); code != 77 || e.Code != "E2002" {
		t.Errorf("without the public half: exit %d: %s", code, e.text)
	}
	again := a.token("", "--tools", "ls")
	for _, token := range []string{again, tokens[0]} {
		if code, e := a.tryUnder(token, "--", "ls"); code != 0 {
			t.Errorf("with it again: exit %d: %s", code, e.text)
		}
	}
}
