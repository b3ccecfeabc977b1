package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherWorktreesStay: git inside a run does not take the other work trees of the
// repository for removed, and a run cannot lead them to another repository.
func TestOtherWorktreesStay(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		git := func(dir string, words ...string) string {
			cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.invalid"}, words...)...)
			cmd.Dir, cmd.Env = dir, []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v: %s", words, err, out)
			}
			return string(out)
		}
		other := filepath.Join(filepath.Dir(w.ws), "other")
		git(w.ws, "init", "-q")
		git(w.ws, "commit", "-q", "--allow-empty", "-m", "x")
		git(w.ws, "worktree", "add", "-q", other)
		before := git(w.ws, "worktree", "list")
		run := func(text string) (int, string, string) {
			return w.python("import subprocess, sys\nsys.exit(subprocess.call(['bash', '-c', '''" + text + "''']))")
		}
		if status, stdout, stderr := run("git worktree prune -v && git worktree list"); status != 0 || strings.Contains(stdout, "prunable") || strings.Contains(stderr, "Removing") {
			t.Errorf("%s: status %d, %q; %s", tier, status, stdout, stderr)
		}
		// One's own can be made and removed, and nothing is written into the other.
		if status, _, stderr := run("git worktree add -q own && git worktree remove own && ! touch " + other + "/x 2>/dev/null"); status != 0 || strings.Contains(stderr, "E411") {
			t.Errorf("%s, its own: status %d; %s", tier, status, stderr)
		}
		if status, _, stderr := run("echo ../../../evil >.git/worktrees/other/commondir; echo '[core]' >.git/worktrees/other/config.worktree"); status != 0 || strings.Count(stderr, "E4111")+strings.Count(stderr, "Read-only") != 2 {
			t.Errorf("%s, led elsewhere: status %d; %s", tier, status, stderr)
		}
		if after := git(w.ws, "worktree", "list"); after != before {
			t.Errorf("%s: %q, before %q", tier, after, before)
		}
		if status := git(other, "status", "--short"); status != "" {
			t.Errorf("%s: %s", tier, status)
		}
		// A file that does not lead back is none of a work tree, and stays hidden.
		put(t, w.home, map[string]string{"private/.git": "gitdir: /elsewhere/.git/worktrees/other\n"})
		if err := os.WriteFile(filepath.Join(w.ws, ".git/worktrees/other/gitdir"), []byte(w.home+"/private/.git\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, stdout, _ := run("ls " + w.home + "/private"); stdout != "" && tier == "T3" {
			t.Errorf("%s: %q is there", tier, stdout)
		}
	}
}
