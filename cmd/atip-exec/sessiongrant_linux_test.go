package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
