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

// TestProgramsOfInstallers: a hook or a recipe starts what pipx and uv have put into the home directory, by its name
// or by its path, and what pre-commit keeps in its cache.
func TestProgramsOfInstallers(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{".local/share/pipx/venvs", ".local/share/uv/tools"} {
		put(t, w.home, map[string]string{dir + "/tool/bin/tool": "#!/bin/sh\necho \"of $0\"\n"})
		if err := os.Chmod(filepath.Join(w.home, dir, "tool/bin/tool"), 0o755); err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(dir)
		if err := os.MkdirAll(filepath.Join(w.home, ".local/bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(w.home, dir, "tool/bin/tool"), filepath.Join(w.home, ".local/bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, w.home, map[string]string{".cache/pre-commit/env/check": "#!/bin/sh\necho of the cache\n", ".local/share/secret/bin/tool": "#!/bin/sh\necho secret\n"})
	for _, path := range []string{".cache/pre-commit/env/check", ".local/share/secret/bin/tool"} {
		if err := os.Chmod(filepath.Join(w.home, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, w.ws, map[string]string{".pre-commit-config.yaml": "repos: []\n", ".git/hooks/pre-commit": "#!/bin/sh\nvenvs; tools\n" +
		w.home + "/.local/share/uv/tools/tool/bin/tool\n" + w.home + "/.cache/pre-commit/env/check\n" + w.home + "/.local/share/secret/bin/tool; true\n"})
	if err := os.Chmod(filepath.Join(w.ws, ".git/hooks/pre-commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("-c", "git -c user.name=u -c user.email=u@x commit -q --allow-empty -m x")
	cmd.Env = append(cmd.Env, "PATH="+w.home+"/.local/bin:/usr/local/bin:/usr/bin:/bin:"+bin)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "of "+w.home) != 3 || !strings.Contains(string(out), "of the cache") || strings.Contains(string(out), "secret\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
