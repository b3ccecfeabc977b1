package gitrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnalias(t *testing.T) {
	home := t.TempDir()
	settings := "[alias]\n\tst = status -s\n\tlg = log --oneline\n\tl = lg -2\n\tpf = push --force\n\tsh = !echo\n\tq = log --format=\\\"%h %s\\\"\n\tlog = push\n\tloop = loop2\n\tloop2 = loop\n\tempty =\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	own := func(name string) bool { return name == "log" || name == "status" || name == "push" }
	for words, want := range map[string]string{
		"git st": "git status -s", "git st src": "git status -s src", "git -C a -c x=y --no-pager l -3": "git -C a -c x=y --no-pager log --oneline -2 -3",
		"git pf": "git push --force", "git sh x": "git sh x", "git q": "git q", "git log -1": "git log -1", "git empty": "git empty", "git ST": "git status -s",
		"git": "git", "git nosuch": "git nosuch", "git --git-dir x st": "git --git-dir x st", "git --exec-path=x st": "git --exec-path=x status -s", "git \x00 st": "git \x00 st",
	} {
		if got := strings.Join(Unalias(strings.Split(words, " "), home, own), " "); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	if got := Unalias([]string{"git", "loop"}, home, own); len(got) != 2 {
		t.Errorf("a circle: %q", got)
	}
	words := []string{"git", "st", "src"}
	if Unalias(words, home, own); words[1] != "st" {
		t.Errorf("the words of the caller were changed: %q", words)
	}
}
