package undo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shell runs a text in the workspace of a throw-away world, with nothing of ours in its
// environment, and only if it really stands there.
func shell(t testing.TB, p Place, text string) string {
	t.Helper()
	if !strings.Contains(p.Root, scratchName) || filepath.Base(p.Root) != "ws" {
		t.Fatalf("%s is no throw-away directory", p.Root)
	}
	home := filepath.Dir(p.Root)
	cmd := exec.Command("/bin/sh", "-c", `[ "$(pwd -P)" = "$WS" ] && [ "$HOME" != / ] || exit 97; `+text)
	cmd.Dir = p.Root
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "WS=" + p.Root, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// repository fills the workspace with history, a stash, a branch that nothing else reaches,
// a blob that only the index holds, ignored files and links.
func repository(t testing.TB, p Place) {
	t.Helper()
	shell(t, p, `git init -q -b main . && git config gc.auto 0 && mkdir -p src/deep
		printf '*.log\n.env\nbuild/\n' > .gitignore
		for i in 1 2 3 4 5; do echo "line $i" > src/f$i; echo "$i" >> src/all; git add -A; git commit -qm "c$i"; done
		git checkout -q -b x && echo only > src/onx && git add -A && git commit -qm onx && git checkout -q main
		echo stashed >> src/f1 && git stash -q
		echo staged > src/staged && git add src/staged && echo changed-after > src/staged
		echo K=1 > .env; echo log > a.log; mkdir -p untracked && echo u > untracked/u
		ln -s src/f1 link; ln src/f2 hard; chmod 755 src/f3; printf 'target:\n\techo\n' > Makefile; : > empty; mkdir emptydir; echo a > a; echo b > b`)
}

// state is what git says of a repository.
func state(t testing.TB, p Place) string {
	t.Helper()
	return shell(t, p, `git status --porcelain=v2 --ignored; git log --all --oneline --graph; git stash list; git reflog; git show-ref; git fsck --full --no-dangling 2>&1; git diff --cached --stat`)
}

// age makes every object look 30 days old, for gc to prune it.
func age(t testing.TB, p Place) {
	t.Helper()
	old := time.Now().Add(-30 * 24 * time.Hour)
	filepath.WalkDir(filepath.Join(p.Root, ".git", "objects"), func(f string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			os.Chtimes(f, old, old)
		}
		return nil
	})
}

// TestLosses is a list of what people lost work by. Each is undone at once, and also after
// git has pruned what nothing reaches any more; without an undo the loss stays. Root and a user do one
// half of these each; ATIP_TEST_WHOLE=1 does all.
func TestLosses(t *testing.T) {
	rows := []struct {
		cmd  string
		keep bool // the repository is still one afterwards; if not, it is made one again for gc to run in it
	}{
		{`rm -rf src`, true},
		{`git reset -q --hard HEAD~3`, true},
		{`git clean -qfdx`, true},
		{`git checkout -q -- .`, true},
		{`git stash -q && git rebase -q --onto HEAD~3 HEAD~1 2>/dev/null || :`, true},
		{`git commit -q --amend -m other`, true},
		{`git branch -q -D x`, true},
		{`git stash drop -q`, true},
		{`git stash clear; git branch -q -D x; git rm -rqf --cached .; git reflog expire --expire=now --all`, true},
		{`sed -i s/line/LINE/ src/f1 src/f2`, true},
		{`mv a b`, true},
		{`: > src/all`, true},
		{`find . -mindepth 1 -path ./.git -prune -o -type f -print0 | xargs -0 rm -f`, true},
		{`find . -mindepth 1 -delete`, false},
		{`printf 'nuke:\n\trm -rf ./* .git\n' > Makefile; make -s nuke || { rm -rf ./* .git; }`, false},
		{`rm -rf .git/refs .git/HEAD .git/index`, false},
		{`python3 -c "
import os
for d, _, fs in os.walk('.'):
    for f in fs:
        os.chmod(os.path.join(d, f), 0o644) if not os.path.islink(os.path.join(d, f)) else None
        open(os.path.join(d, f), 'w').close()"`, false},
		{`git worktree add -q sub/tree x && cd sub/tree && git commit -q --allow-empty -m w`, true},
		{`git mv src/f1 src/f9 && git commit -qam moved && git tag t`, true},
		{`git update-ref -d refs/heads/x && rm -rf .git/logs/refs/heads/x`, true},
		{`git update-ref --no-deref HEAD HEAD~2`, true},
		{`FILTER_BRANCH_SQUELCH_WARNING=1 && export FILTER_BRANCH_SQUELCH_WARNING && git stash -q && git filter-branch -f --index-filter 'git rm -q --cached --ignore-unmatch src/all' -- --all >/dev/null 2>&1 && git for-each-ref --format='delete %(refname)' refs/original | git update-ref --stdin`, true},
		{`git worktree add -q sub/tree x && echo w >sub/tree/new && git worktree remove --force sub/tree && git branch -q -D x`, true},
		{`git symbolic-ref HEAD refs/heads/none && git pack-refs --all --prune && git reflog delete stash@{0}`, true},
		{`python3 -c "
import mmap, os
f = open('src/all', 'r+b')
m = mmap.mmap(f.fileno(), 0)
m[:] = bytes(len(m))
m.flush(); os.ftruncate(f.fileno(), 3)"`, true},
		{`printf over >t && mv -f t src/f2 && ln -f src/f3 src/f4 && echo through >>src/f4`, true},
		{`chmod 500 src/deep && mkdir -p untracked/d && mv src/f1 untracked/d && chmod 500 untracked/d untracked src && chmod 444 .env`, true},
		{`rm -rf src && mkfifo src && rm a && mkdir -p a/b/c && rm -rf untracked && ln -s /etc untracked`, true},
		{`truncate -s 1M .env && rm empty && cp /dev/null src/f5 && touch -d 2001-01-01 src/f5`, true},
		{`chmod -R a-w src && rm -rf src/f1; rm -f link && ln -s /etc/passwd link && rm -f hard && echo x > hard`, true},
	}
	for i, row := range rows {
		for j, pruned := range []bool{false, true} {
			if os.Getenv("ATIP_TEST_WHOLE") == "" && (i+j+min(os.Getuid(), 1))%2 != 0 {
				continue
			}
			if testing.Short() && i%3 != 0 {
				continue // with -race each row has the same threads
			}
			name := row.cmd
			if pruned {
				name += " and gc"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := world(t)
				repository(t, p)
				if pruned {
					age(t, p)
				}
				before, tree := state(t, p), snapshot(t, p.Root)
				c := run(t, p, "r1", func() { shell(t, p, row.cmd) })
				if len(c.Losses) > 0 {
					t.Fatalf("not covered: %v", c.Losses)
				}
				request := Request{}
				switch {
				case pruned && row.keep:
					shell(t, p, `git gc -q; git prune --expire=2.weeks.ago`)
				case pruned:
					shell(t, p, `find .git/objects -type f -size 0 -exec chmod u+w {} + 2>/dev/null; git init -q -b main . && { git gc -q; git prune --expire=2.weeks.ago; git gc -q --prune=now; } 2>/dev/null || :`)
					request.Force = true // git has written there after the run
				}
				lost := snapshot(t, p.Root)
				if same := len(lost) == len(tree); same {
					for k, v := range tree {
						same = same && lost[k] == v
					}
					if same {
						t.Fatal("the command changed nothing: the test proves nothing")
					}
				}
				res := undo(t, p, request)
				if len(res.Conflicts)+len(res.Left) > 0 && !request.Force {
					t.Errorf("conflicts %v, left %v", res.Conflicts, res.Left)
				}
				if after := state(t, p); after != before {
					t.Errorf("git says\n%s\nit was\n%s", after, before)
				}
				if pruned {
					before, after := strip(tree), strip(snapshot(t, p.Root))
					equal(t, "tree", before, after)
					return
				}
				after := snapshot(t, p.Root)
				for _, racy := range []string{".git/index"} { // git status above refreshed it
					delete(tree, racy)
					delete(after, racy)
				}
				equal(t, "tree", tree, after)
			})
		}
	}
}

// strip leaves out how git keeps its objects and refs.
func strip(tree map[string]string) map[string]string {
	for p := range tree {
		if strings.HasPrefix(p, ".git/") {
			delete(tree, p)
		}
	}
	return tree
}
