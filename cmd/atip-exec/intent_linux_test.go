package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilledPushLeavesTheIntent: a push that a person permitted and whose wrapper is killed
// in the middle of it stands in the record, although nobody was left to write how it ended.
func TestKilledPushLeavesTheIntent(t *testing.T) {
	a := newAsker(t)
	a.register()
	bare := filepath.Join(a.home, "bare.git")
	for _, args := range [][]string{{"init", "-q", "--bare", bare}, {"-C", a.ws, "remote", "add", "origin", bare},
		{"-C", a.ws, "-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// The other side says that the push has reached it, and waits.
	hook := "#!/bin/sh\ntouch reached\nwhile ! test -e go; do sleep 0.05; done\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bare, "hooks/pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	a.userPolicy(`{"version":1,"sandbox":{"write":["` + bare + `"],"exec":["` + bare + `"],"read":["` + bare + `"]}}`)
	push := []string{"--", "git", "push", "-f", "origin", "HEAD:refs/heads/main"}
	a.approve(a.request(push...))
	cmd := a.command(push...)
	cmd.Env[1] = "PATH=" + filepath.Join(a.home, "stubs") + ":/usr/local/bin:/usr/bin:/bin"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reached := false
	for i := 0; i < 5000 && !reached; i++ {
		_, err := os.Stat(filepath.Join(bare, "reached"))
		reached = err == nil
		time.Sleep(20 * time.Millisecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := os.WriteFile(filepath.Join(bare, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if !reached {
		t.Fatalf("the push did not start: %s", stderr.String())
	}
	kinds := a.recorded(func(argv []string) bool { return strings.Join(argv, " ") == strings.Join(push[1:], " ") })
	if got := strings.Join(kinds, " "); got != "refused intent" {
		t.Errorf("records of the push: %s", got)
	}
	a.auditSummary()
	// The permission is spent: what was killed is not done once more by itself.
	if code, e := a.try(nil, push...); code != 77 {
		t.Errorf("again: exit %d: %s", code, e.text)
	}
}
