package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettingsAreDecidedAsTheyAreKept: a setting of git that may be made stays after the run, one that
// would be put back is refused before it. git itself makes each of them.
func TestSettingsAreDecidedAsTheyAreKept(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.ws, ".git/config")
	initial, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	initial = append(initial, "[user]\n\tname = x\n[alias]\n\tst = status\n[branch \"old\"]\n\tmerge = refs/heads/main\n[commit]\n\tgpgsign = true\n"...)
	for _, row := range []struct {
		words string
		kept  bool
	}{
		{"core.abbrev 12", true}, {"Core.QuotePath off", true}, {"--local --bool core.fileMode false", true}, {"core.autocrlf input", true},
		{"core.pager cat", true}, {"core.pager less", false}, {"pager.log false", true}, {"pager.log ./x", false}, {"core.editor true", false},
		{"core.hooksPath .githooks", false}, {"core.hooksPath /dev/null", false}, {"core.fsmonitor false", false}, {"core.sshCommand ssh", false},
		{"commit.gpgsign false", true}, {"commit.gpgsign true", false}, {"--unset commit.gpgsign", false}, {"gpg.program gpg", false},
		{"user.name Bob", true}, {"--replace-all user.name Bob", true}, {"--unset user.name", true}, {"--unset-all user.name", true}, {"--remove-section user", true},
		{"diff.algorithm patience", true}, {"diff.external x", false}, {"diff.x.textconv cat", false}, {"diff.tool vimdiff", false},
		{"pull.rebase true", true}, {"pull.ff only", true}, {"pull.twohead mine", false}, {"push.default current", true}, {"push.gpgSign false", false},
		{"merge.ff false", true}, {"merge.conflictStyle diff3", true}, {"merge.x.driver true", false}, {"rerere.enabled true", true}, {"rebase.autosquash true", true},
		{"branch.main.description text", true}, {"branch.main.remote origin", true}, {"branch.main.remote ext::sh", false}, {"--remove-section branch.old", true},
		{"--rename-section branch.old branch.new", true}, {"--rename-section branch.old alias.x", false}, {"--remove-section alias", false}, {"--unset alias.st", false},
		{"alias.l log", false}, {"remote.o.url https://example.invalid/r", true}, {"remote.o.url ext::sh", false}, {"remote.o.mirror true", false}, {"remote.o.uploadpack x", false},
		{"blame.ignoreRevsFile .revs", true}, {"advice.detachedHead false", true}, {"color.diff.meta red", true}, {"i18n.commitEncoding utf-8", true}, {"init.defaultBranch main", true},
		{"gc.auto 0", true}, {"gc.recentObjectsHook x", false}, {"include.path x", false}, {"http.sslVerify false", false}, {"lfs.url https://example.invalid", false},
		{"lfs.customtransfer.x.path x", false}, {"extensions.worktreeConfig true", false}, {"--add my.own value", false}, {"submodule.s.update !x", false},
	} {
		words := strings.Fields(row.words)
		if err := os.WriteFile(file, initial, 0o644); err != nil {
			t.Fatal(err)
		}
		git := exec.Command("git", append([]string{"-C", w.ws, "config"}, words...)...)
		if out, err := git.CombinedOutput(); err != nil {
			t.Errorf("git config %s: %v: %s", row.words, err, out)
			continue
		}
		changed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := string(initial)
		if row.kept {
			want = string(changed)
		}
		if err := os.WriteFile(file, initial, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := w.command(append([]string{"--", "git", "config"}, words...)...).CombinedOutput()
		after, readErr := os.ReadFile(file)
		if readErr != nil || row.kept != (err == nil) || strings.Contains(string(out), "E4111") || string(after) != want {
			t.Errorf("git config %s: %v, %v, %.300s: %q", row.words, err, readErr, out, after)
		}
	}
}
