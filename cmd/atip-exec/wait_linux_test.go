package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
	if e := <-done; e.Code != "E2001" || !strings.Contains(e.text, "denied: the user refused") {
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
