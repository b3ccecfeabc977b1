package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHooksRunAsElsewhere: a command of git that reaches no other machine runs the hooks of its repository, as code
// of the workspace, and what undo gives back asks no more than without them. git itself is the control.
func TestHooksRunAsElsewhere(t *testing.T) {
	w := newWorld(t)
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(w.command().Env, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	put(t, w.home, map[string]string{".gitconfig": "[user]\n\tname = u\n\temail = u@x\n[init]\n\tdefaultBranch = main\n"})
	origin := filepath.Join(w.ws, "origin")
	put(t, origin, map[string]string{"a": "one\n", "b": "one\n"})
	git(origin, "init", "-q")
	git(origin, "add", "-A")
	git(origin, "commit", "-qm", "one")
	git(origin, "branch", "side")
	put(t, origin, map[string]string{"a": "two\n"})
	git(origin, "commit", "-qam", "two")
	git(origin, "checkout", "-q", "side")
	put(t, origin, map[string]string{"b": "three\n"})
	git(origin, "commit", "-qam", "three")
	git(origin, "checkout", "-q", "main")
	for _, place := range []string{".git/hooks", ".husky/_"} {
		if place != ".git/hooks" {
			git(origin, "config", "core.hooksPath", place)
		}
		for _, name := range strings.Fields("commit-msg post-checkout post-commit post-index-change post-merge post-rewrite pre-commit pre-merge-commit pre-rebase prepare-commit-msg reference-transaction") {
			hook := filepath.Join(origin, place, name)
			put(t, origin, map[string]string{filepath.Join(place, name): "#!/bin/sh\necho " + name + " >>../log\n"})
			if err := os.Chmod(hook, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{
			"git commit -q --allow-empty -m message", "git commit -q --allow-empty -m message; git log -1; git status -s", "git commit -q --amend --no-edit", "git checkout -q side", "git switch -q side", "git checkout -q HEAD~1 -- a",
			"git merge -q --no-edit side", "git rebase -q side", "git cherry-pick side", "git revert --no-edit HEAD", "git reset -q --hard HEAD~1", "git branch more", "git tag more", "git stash",
		} {
			var ran [2]string
			var status [2]int
			for i := range ran {
				dir := filepath.Join(w.ws, "copy")
				for _, left := range []string{dir, filepath.Join(w.ws, "log")} {
					if err := os.RemoveAll(left); err != nil {
						t.Fatal(err)
					}
				}
				if out, err := exec.Command("cp", "-a", origin, dir).CombinedOutput(); err != nil {
					t.Fatal(err, string(out))
				}
				put(t, dir, map[string]string{"b": "changed\n"}) // for the stash
				if !strings.Contains(text, "stash") {
					git(dir, "-c", "core.hooksPath=/dev/null", "checkout", "-q", "b")
				}
				cmd := w.command("-c", "cd copy && "+text)
				if i == 0 {
					cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "cd copy && " + text}
				}
				out, err := cmd.CombinedOutput()
				if status[i] = cmd.ProcessState.ExitCode(); status[i] != 0 {
					t.Logf("%s: %v\n%s", text, err, out)
				}
				log, err := os.ReadFile(filepath.Join(w.ws, "log"))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				ran[i] = string(log)
			}
			if status[0] != status[1] || ran[0] == "" {
				t.Errorf("%s, %s: status %d, elsewhere %d", place, text, status[1], status[0])
			}
			for _, name := range strings.Fields(ran[0]) {
				if !strings.Contains(ran[1], name+"\n") {
					t.Errorf("%s, %s: the hook %s did not run", place, text, name)
				}
			}
		}
	}
}
