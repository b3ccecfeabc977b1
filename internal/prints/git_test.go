package prints

import (
	"strings"
	"testing"
)

func TestGitShape(t *testing.T) {
	for _, row := range []struct {
		words string
		want  bool
	}{
		{"rev-parse HEAD", true}, {"rev-parse --short=8 HEAD~1", true}, {"rev-parse --abbrev-ref HEAD", true}, {"rev-parse --git-dir", false}, {"rev-parse --sq-quote -x", false},
		{"merge-base HEAD main", true}, {"merge-base --fork-point main", true}, {"merge-base --is-ancestor a b", false},
		{"rev-list -n 1 v1", true}, {"rev-list --count HEAD", true}, {"rev-list --boundary a..b", false}, {"rev-list --objects HEAD", false}, {"rev-list --left-right a...b", false},
		{"describe --tags --abbrev=0", true}, {"describe --broken", false},
		{"symbolic-ref --short HEAD", true}, {"symbolic-ref -d HEAD", false},
		{"branch --show-current", true}, {"branch --format=%(refname:short)", true}, {"branch --list", false}, {"branch --merged main --format=%(refname:short)", true}, {"branch -m x --format=%(refname:short)", false}, {"branch --format=%(contents)", false},
		{"for-each-ref --format=%(refname:short) refs/heads", true}, {"for-each-ref --format=%(subject) refs/heads", false}, {"for-each-ref --format=%(refname)", false},
		{"for-each-ref --format=%(refname:short) refs/heads --merged main", true}, {"for-each-ref --format=%(refname:short) --sort=x", false}, {"for-each-ref --format=%(refname:short) refs/heads refs/tags", false},
		{"for-each-ref --format=%(refname:short) refs/heads */*", false}, {"tag -l v*", true}, {"tag --list --sort=-v:refname", true}, {"tag v1", false}, {"tag -l -n", false}, {"tag -l --format=%(contents)", false},
		{"log -1 --format=%H", true}, {"log --format=%ct -n 1 main.go", true}, {"log --format=%s", false}, {"log --oneline", false}, {"log --format=%H --stat", false},
		{"show -s --format=%H", false}, {"config user.name", false},
	} {
		w := strings.Fields(row.words)
		if got := gitShape(w[0], w[1:]); got != row.want {
			t.Errorf("git %s: %v", row.words, got)
		}
	}
}
