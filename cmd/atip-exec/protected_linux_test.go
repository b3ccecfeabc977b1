package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilledWrapperIsSettled: what a run planted is put back by the next run there if the
// wrapper was killed, and no stub of ours ever stands in the workspace.
func TestKilledWrapperIsSettled(t *testing.T) {
	const plant = `
import time
open(".mcp.json", "w").write("planted")
try:
    open(".git/hooks/pre-commit", "w").write("evil")
except OSError:
    pass  # pinned
open("ready", "w").close()
time.sleep(60)
`
	for _, tier := range []string{"T2", "T3"} {
		w := newWorld(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		hook := filepath.Join(w.ws, ".git/hooks/pre-commit")
		if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.ws, "plant.py"), []byte(plant), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.command("--", "python3", "plant.py")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n++ {
			if _, err := os.Stat(filepath.Join(w.ws, "ready")); err == nil {
				break
			}
			if n > 2000 {
				t.Fatal("the run never came so far")
			}
			time.Sleep(10 * time.Millisecond)
		}
		names := func() string {
			var out []string
			for _, dir := range []string{w.ws, filepath.Join(w.ws, ".git/hooks")} {
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					if !strings.HasSuffix(e.Name(), ".sample") {
						out = append(out, e.Name())
					}
				}
			}
			return strings.Join(out, " ")
		}
		const want = ".git .mcp.json plant.py ready pre-commit"
		if got := names(); got != want {
			t.Errorf("%s: while it runs: %s", tier, got)
		}
		cmd.Process.Kill()
		_ = cmd.Wait()
		if got := names(); got != want {
			t.Errorf("%s: after SIGKILL: %s", tier, got)
		}
		next := w.command("--", "python3", "-c", "pass")
		out, err := next.CombinedOutput()
		if err != nil || !strings.Contains(string(out), ".mcp.json") || !strings.Contains(string(out), "E4111") {
			t.Errorf("%s: the next run: %v: %s", tier, err, out)
		}
		if got := names(); got != ".git plant.py ready pre-commit" {
			t.Errorf("%s: after the next run: %s", tier, got)
		}
		fi, err := os.Stat(hook)
		text, rerr := os.ReadFile(hook)
		if err != nil || rerr != nil || fi.Mode().Perm() != 0o755 || string(text) != "#!/bin/sh\n" {
			t.Errorf("%s: the hook is %v %q", tier, fi, text)
		}
	}
}

// TestGitWithPinnedNames: in a private root the hooks stand fast, and so does what holds
// them; ordinary work with git goes on.
func TestGitWithPinnedNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	hook := filepath.Join(w.ws, ".git/hooks/pre-commit")
	put(t, w.ws, map[string]string{".git/hooks/pre-commit": "#!/bin/sh\nexit 0\n", "file": "text\n"})
	const try = `import os
def tried(f):
    try: f()
    except OSError as e: return e.strerror
    return 'done'
print(tried(lambda: os.rename('.git', 'g')), tried(lambda: open('.git/hooks/pre-commit', 'w')), tried(lambda: open('.git/hooks/x', 'w')), sep=', ')
`
	if status, stdout, stderr := w.python(try); status != 0 || stdout != "Device or resource busy, Read-only file system, Read-only file system" {
		t.Errorf("inside: status %d, %q; %s", status, stdout, stderr)
	}
	for _, words := range [][]string{
		{"git", "config", "user.name", "x"}, {"git", "config", "user.email", "x@example.invalid"}, {"git", "add", "file"},
		{"git", "commit", "-q", "-m", "first"}, {"git", "checkout", "-q", "-b", "other"}, {"git", "worktree", "add", "-q", "tree"},
		{"git", "remote", "add", "o", "https://example.invalid/r"}, {"git", "log", "--oneline"},
	} {
		if out, err := w.command(append([]string{"--"}, words...)...).CombinedOutput(); err != nil || strings.Contains(string(out), "E411") {
			t.Errorf("%v: %v: %s", words, err, out)
		}
	}
	// What would make git start a program is not written by code of the project. A program that
	// spells it out is not even started.
	if out, _ := w.command("--", "python3", "-c", "import subprocess; c = 'con' + 'fig'; subprocess.run(['git', c, 'core.fsmonitor', 'evil'], check=True)").CombinedOutput(); !strings.Contains(string(out), "could not write config file") {
		t.Errorf("fsmonitor: %s", out)
	}
	config, err := os.ReadFile(filepath.Join(w.ws, ".git/config"))
	if err != nil || strings.Contains(string(config), "evil") || !strings.Contains(string(config), "example.invalid/r") {
		t.Errorf("%v: %s", err, config)
	}
	// Outside, all of it can be done.
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Error(err)
	}
	if err := os.Rename(filepath.Join(w.ws, ".git"), filepath.Join(w.ws, "g")); err != nil {
		t.Error(err)
	}
}
