package main_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// pushing allows pushes without approval, so that a test sees what they then do.
const pushing = `{"version":1,"sandbox":{"tier":"%s"},"rules":[{"id":"push","decision":"allow","when":{"tool":"git","command":["push"],"host":["named","loopback"]},
 "grants":["network","remoteMutation","irreversible","destructive"]}]}`

// allowPush sets that policy, at the tier of the test.
func (a *attacked) allowPush() {
	a.t.Helper()
	tier := "T3"
	if strings.Contains(a.t.Name(), "T2") {
		tier = "T2"
	}
	put(a.t, a.home, map[string]string{".config/agent-tools/policy.json": fmt.Sprintf(pushing, tier)})
	a.own(a.home)
}

// noted is what a push leaves in a repository beside what it sends: the references of remotes
// with the messages of their logs, and upstreams.
func (a *attacked) noted(dir string) string {
	a.t.Helper()
	out := a.git(dir, "for-each-ref", "--format=%(refname) %(objectname) %(upstream)")
	config, _ := a.plain(dir, "git", "config", "--local", "--get-regexp", "^branch")
	root := dir + "/.git/logs/refs/remotes"
	_ = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				a.t.Fatal(err)
			}
			out += strings.TrimPrefix(path, root) + " " + regexp.MustCompile(` [0-9]+ \+0000`).ReplaceAllString(string(raw), "")
		}
		return nil
	})
	return out + config
}

// lines sorts the lines of a text: which of two streams is copied first is left open.
func lines(text string) string {
	list := strings.Split(strings.TrimSpace(text), "\n")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestPushNotesAsOutside: what git notes of a push in the repository is what it notes without
// us, although the run can write nothing there.
func TestPushNotesAsOutside(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.allowPush()
		// Two clones of two copies of one repository: one for us, one for plain git.
		a.git(a.ws, "branch", "old")
		a.git(a.ws, "branch", "packed")
		a.git(a.ws, "push", "-q", "origin", "old", "packed")
		a.git(a.ws, "pack-refs", "--all")
		a.git(a.ws, "tag", "v1")
		outside := a.dir + "/outside"
		if out, err := exec.Command("cp", "-a", a.dir+"/up.git", a.dir+"/up2.git").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := exec.Command("cp", "-a", a.ws, outside).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		a.git(outside, "config", "remote.origin.url", a.url("up2.git"))
		for _, dir := range []string{a.ws, outside} {
			a.git(dir, "checkout", "-q", "-b", "topic")
			put(t, dir, map[string]string{"file": "two"})
			a.own(dir)
			if out, err := a.plain(dir, "env", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z", "git", "commit", "-qam", "two"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			a.git(dir, "worktree", "add", "-q", dir+"/tree", "-b", "side")
		}
		config, err := os.ReadFile(a.ws + "/.git/config")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			dir   string
			words []string
		}{
			{"", []string{"push", "-u", "origin", "HEAD"}},
			{"tree", []string{"push", "--set-upstream", "--repo=origin", "origin", "side"}},
			{"", []string{"-C", "tree", "push", "origin", "topic:refs/heads/new", "v1", ":packed", "+refs/heads/*:refs/heads/copies/*"}},
			{"", []string{"push", "origin", "--delete", "old"}},
			{"", []string{"push", "--mirror", "origin"}},
		} {
			want, err := a.plain(filepath.Join(outside, row.dir), "git", row.words...)
			if err != nil {
				t.Fatalf("plain git %v: %v\n%s", row.words, err, want)
			}
			out, err := a.run(filepath.Join(a.ws, row.dir), append([]string{"--", "git"}, row.words...)...)
			want = strings.ReplaceAll(want, "up2.git", "up.git")
			if err != nil || lines(out) != lines(want) {
				t.Errorf("git %v: %v\n%s\nplain git:\n%s", row.words, err, out, want)
			}
			if got, want := a.noted(a.ws), a.noted(outside); got != want {
				t.Errorf("git %v has noted\n%s\nplain git\n%s", row.words, got, want)
			}
		}
		if raw, err := os.ReadFile(a.ws + "/.git/config"); err != nil || !strings.HasPrefix(string(raw), string(config)) {
			t.Errorf("the settings, %v:\n%s\nbefore:\n%s", err, raw, config)
		}
		if left, _ := filepath.Glob(a.ws + "/.git/*.lock"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestPushSaysHooksOff: a hook that a push would have run is said not to run, once, and no other.
func TestPushSaysHooksOff(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.allowPush()
		const said = "hooks of this repository do not run"
		a.write(".git/hooks/pre-commit", a.program())
		if out, err := a.run(a.ws, "--", "git", "push", "origin", "HEAD:one"); err != nil || strings.Contains(out, said) {
			t.Errorf("with a hook of commits: %v\n%s", err, out)
		}
		a.write(".git/hooks/pre-push", a.program())
		out, err := a.run(a.ws, "--", "git", "push", "origin", "HEAD:two")
		if ran, _ := a.traces(); ran || err != nil || strings.Count(out, said) != 1 || !strings.Contains(out, ": pre-push") {
			t.Errorf("with a hook of pushes: ran %v, %v\n%s", ran, err, out)
		}
		if out, err = a.plain(a.ws, "git", "push", "origin", "HEAD:three"); err == nil {
			t.Errorf("plain git does not run it\n%s", out)
		}
		// Hooks of the account, for all its repositories.
		if err := os.Rename(a.ws+"/.git/hooks", a.home+"/hooks"); err != nil {
			t.Fatal(err)
		}
		a.append(a.home+"/.gitconfig", "[core]\n\thooksPath = ~/hooks\n")
		if out, err := a.run(a.ws, "--", "git", "push", "origin", "HEAD:four"); err != nil || strings.Count(out, said) != 1 {
			t.Errorf("with hooks of the account: %v\n%s", err, out)
		}
		if out, err = a.plain(a.ws, "git", "push", "origin", "HEAD:five"); err == nil {
			t.Errorf("plain git does not run those of the account\n%s", out)
		}
	})
}

// pusher is an asker whose workspace has commits and a remote behind git's own server.
func newPusher(t *testing.T, tier string) (asker, *attacked) {
	a := asker{world: newWorld(t), ran: new(atomic.Int64)}
	at := &attacked{world: a.world, dir: filepath.Dir(a.ws), uid: os.Getuid()}
	put(t, a.home, map[string]string{".gitconfig": "[user]\n\tname = x\n\temail = x@example.invalid\n[init]\n\tdefaultBranch = main\n"})
	at.git(at.dir, "init", "-q", "--bare", "up.git")
	at.serve()
	at.git(a.ws, "checkout", "-q", "-B", "main")
	at.git(a.ws, "remote", "add", "origin", at.url("up.git"))
	at.git(a.ws, "remote", "add", "here", at.dir+"/up.git")
	put(t, a.ws, map[string]string{"body": "one"})
	at.git(a.ws, "add", "body")
	for _, message := range []string{"first", "second", "third"} {
		at.git(a.ws, "commit", "-q", "--allow-empty", "-m", message)
	}
	at.git(a.ws, "tag", "v1", "HEAD~1")
	at.git(a.ws, "branch", "other", "HEAD~1")
	a.userPolicy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
	return a, at
}

// TestPushBindsWhatItSends: a request stands for the objects that the push sends. What changes
// those makes another request, anything else does not.
func TestPushBindsWhatItSends(t *testing.T) {
	t.Parallel()
	a, at := newPusher(t, "T3")
	at.git(a.ws, "worktree", "add", "-q", "tree", "-b", "side")
	at.git(a.ws, "clone", "-q", ".", "nested")
	main, tag, other, side := "refs/heads/main", "refs/tags/v1", "refs/heads/other", "refs/heads/side"
	nested := a.ws + "/nested"
	for _, row := range []struct {
		dir, line   string
		moved, kept []string // references of the repository of the row
		repository  string
	}{
		{line: "git push origin main", moved: []string{main}, kept: []string{other, tag}},
		{line: "git push origin HEAD:refs/heads/x", moved: []string{main}, kept: []string{other}},
		{line: "git push origin @:x", moved: []string{main}, kept: []string{other}},
		{line: "git push origin +main", moved: []string{main}, kept: []string{other}},
		{line: "git push origin main~1:refs/heads/x", moved: []string{main}, kept: []string{other}},
		{line: "git push origin v1", moved: []string{tag, "refs/heads/v1"}, kept: []string{main}},
		{line: "git push origin tag v1", moved: []string{tag}, kept: []string{main}},
		{line: "git push origin --tags", moved: []string{tag, "refs/tags/new"}, kept: []string{main}},
		{line: "git push origin --follow-tags main", moved: []string{tag, main}, kept: []string{other}},
		{line: "git push --all origin", moved: []string{main, other, "refs/heads/new"}, kept: []string{tag}},
		{line: "git push --al origin", moved: []string{main, other}},
		{line: "git push --mirror origin", moved: []string{main, tag, "refs/notes/x"}},
		{line: "git push origin 'refs/heads/o*:refs/heads/*'", moved: []string{other, "refs/heads/o/new"}, kept: []string{main, tag}},
		{line: "git push origin :", moved: []string{main, other}, kept: []string{tag}},
		{line: "git push origin --delete gone", kept: []string{main, other, tag}},
		{line: "git push origin :gone", kept: []string{main, other, tag}},
		{line: "git push --repo=origin", moved: []string{main}, kept: []string{other}},
		{line: "git push", moved: []string{main}, kept: []string{other}},
		{line: "git push here main", moved: []string{main}, kept: []string{other, tag}},
		{line: "sh -c 'git push origin main'", moved: []string{main}, kept: []string{other}},
		{line: "cd nested && git push ../../up.git HEAD:x", moved: []string{main}, repository: nested},
		{line: "git -C nested push " + at.url("up.git") + " HEAD:x", moved: []string{main}, repository: nested},
		{dir: "tree", line: "git push origin HEAD", moved: []string{side}, kept: []string{main}},
		{line: "git -C tree push origin HEAD:x", moved: []string{side}, kept: []string{main}},
		{line: "git push origin no-such-branch", moved: []string{"refs/heads/no-such-branch"}, kept: []string{main}},
	} {
		repository := row.repository
		if repository == "" {
			repository = a.ws
		}
		ask := func() string {
			code, e := a.try(func(c *exec.Cmd) { c.Dir = filepath.Join(a.ws, row.dir) }, "-c", row.line)
			if code != 77 || e.Code != "E2010" {
				t.Fatalf("%s: exit %d: %s", row.line, code, e.text)
			}
			return e.Details.RequestID
		}
		first := ask()
		move := func(name string) (back func()) {
			old, err := at.plain(repository, "git", "rev-parse", "--verify", "-q", name)
			at.git(repository, "update-ref", "--no-deref", name, "HEAD~2")
			return func() {
				if err != nil {
					at.git(repository, "update-ref", "-d", name)
				} else {
					at.git(repository, "update-ref", "--no-deref", name, strings.TrimSpace(old))
				}
			}
		}
		for _, name := range row.moved {
			back := move(name)
			if ask() == first {
				t.Errorf("%s: the request is the same after %s was moved", row.line, name)
			}
			back()
		}
		for _, name := range row.kept {
			back := move(name)
			if ask() != first {
				t.Errorf("%s: another request although only %s was moved", row.line, name)
			}
			back()
		}
		if ask() != first {
			t.Errorf("%s: another request although all is as it was", row.line)
		}
	}
	// What only git can find out is not asked about.
	id := strings.TrimSpace(at.git(a.ws, "rev-parse", "main"))
	for _, line := range []string{"git push origin main@{0}:x", "git push origin @{-1}:x", "git push origin " + id[:8] + ":refs/heads/x"} {
		if code, e := a.try(nil, "-c", line); code != 77 || e.Code != "E2001" || !strings.Contains(e.text, "whole id") {
			t.Errorf("%s: exit %d: %s", line, code, e.text)
		}
	}
	if code, e := a.try(nil, "--", "git", "push", "origin", id+":refs/heads/x"); code != 77 || e.Code != "E2010" {
		t.Errorf("a whole id: exit %d: %s", code, e.text)
	}
}

// TestPushGrant: with a person's permission exactly that is sent which they were shown.
func TestPushGrant(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			a, at := newPusher(t, tier)
			a.register()
			id := func(dir, name string) string { return strings.TrimSpace(at.git(dir, "rev-parse", name)) }
			up := at.dir + "/up.git"

			push := []string{"--", "git", "push", "-u", "origin", "main", "v1"}
			first, tag := id(a.ws, "main"), id(a.ws, "v1")
			shown := a.approve(a.request(push...))
			for _, want := range []string{"refs/heads/main  " + first[:12] + `  "third"`, "refs/tags/v1  " + tag[:12] + `  "second"`} {
				if !strings.Contains(shown, want) {
					t.Errorf("not shown: %s\n%s", want, shown)
				}
			}
			for name, old := range map[string]string{"refs/heads/main": first, "refs/tags/v1": tag} {
				at.git(a.ws, "update-ref", name, "HEAD~2")
				if code, e := a.try(nil, push...); code != 77 || e.Code != "E2011" || strings.Join(e.Details.Changed, " ") != "refs."+name {
					t.Errorf("%s was moved: exit %d: %s", name, code, e.text)
				}
				at.git(a.ws, "update-ref", name, old)
			}
			if code, e := a.try(nil, push...); code != 0 || id(up, "main") != first || id(up, "v1") != tag || id(a.ws, "main@{u}") != first {
				t.Errorf("unchanged: exit %d, sent %s and %s, upstream %s: %s", code, id(up, "main"), id(up, "v1"), id(a.ws, "main@{u}"), e.text)
			}
			if code, e := a.try(nil, push...); code != 77 {
				t.Errorf("once more: exit %d: %s", code, e.text)
			}
			// Plain git sends what is there now.
			at.git(a.ws, "commit", "-q", "--allow-empty", "-m", "fourth")
			at.git(a.ws, "push", "-q", "origin", "main")
			if id(up, "main") != id(a.ws, "main") {
				t.Error("plain git does not send the new commit: the rows prove nothing")
			}

			// A repository of this machine, without network.
			local := []string{"--", "git", "push", "here", "HEAD:refs/heads/local"}
			a.approve(a.request(local...))
			if code, e := a.try(nil, local...); code != 0 || id(up, "local") != id(a.ws, "main") || id(a.ws, "refs/remotes/here/local") != id(a.ws, "main") {
				t.Errorf("to %s: exit %d: %s", up, code, e.text)
			}

			body := []string{"--", "curl", "-sS", "-d", "@body", "http://127.0.0.1:1/"}
			code, shown := a.person([][2]string{{"Type yes", "yes"}, {"passphrase", passphrase}}, "approve", a.request(body...))
			if code != 0 || !strings.Contains(shown, a.ws+"/body  sha256:") || !strings.Contains(shown, ", 3 bytes") {
				t.Errorf("the file is not shown: %s", shown)
			}
			put(t, a.ws, map[string]string{"body": "two"})
			if code, e := a.try(nil, body...); code != 77 || e.Code != "E2011" || strings.Join(e.Details.Changed, " ") != "files."+a.ws+"/body" {
				t.Errorf("the file was changed: exit %d: %s", code, e.text)
			}
			put(t, a.ws, map[string]string{"body": "one"})
			if code, e := a.try(nil, body...); !unreached(code) {
				t.Errorf("the file as it was: exit %d: %s", code, e.text)
			}
		})
	}
}

// TestPushNowhere: a push that can only fail is refused before a person is asked about it.
func TestPushNowhere(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		a, at := newPusher(t, tier)
		hooked := at.dir + "/hooked.git"
		at.git(at.dir, "init", "-q", "--bare", "hooked.git")
		at.write(hooked+"/hooks/pre-receive", "#!/bin/sh\nexit 0\n")
		at.git(at.dir, "init", "-q", "--bare", a.home+"/.ssh/x.git")
		at.git(at.dir, "init", "-q", "--bare", a.home+"/.local/state/atip-exec/x.git")
		put(t, at.dir, map[string]string{"plain/file": "x"})
		for path, want := range map[string]string{at.dir + "/gone.git": "is not there", at.dir + "/plain": "is no repository", a.home + "/.ssh/x.git": "", a.home + "/.local/state/atip-exec/x.git": "", hooked: "hook pre-receive"} {
			at.git(a.ws, "remote", "add", "-f", "x", at.dir+"/up.git")
			at.git(a.ws, "remote", "set-url", "x", path)
			code, e := a.try(nil, "--", "git", "push", "x", "main:refs/heads/new")
			if code != 77 || e.Code != "E2001" || e.Details.RequestID != "" || !strings.Contains(e.text, want) {
				t.Errorf("%s to %s: exit %d: %s", tier, path, code, e.text)
			}
			if out, err := at.plain(a.ws, "git", "push", "x", "main:refs/heads/new"); (err == nil) == (strings.HasPrefix(want, "is ")) {
				t.Errorf("plain git to %s: %v: %s", path, err, out)
			}
			at.git(a.ws, "remote", "remove", "x")
		}
		if open, _ := filepath.Glob(a.state("requests/*.json")); len(open) != 0 {
			t.Errorf("%s: a person was asked: %v", tier, open)
		}
	}
}

// TestPushOfACommitThatIsMade: a commit that the command itself makes is in no approval by its
// number, which the request says, with the command that makes it. A push by itself names what it
// sends.
func TestPushOfACommitThatIsMade(t *testing.T) {
	t.Parallel()
	for turn, tier := range []string{"T2", "T3"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			a, at := newPusher(t, tier)
			a.register()
			put(t, a.ws, map[string]string{"run.py": "pass\n"})
			texts := map[string]string{
				"git commit -q --allow-empty -m made && git push origin main":           "what git commit -q --allow-empty -m made makes of it",
				"git push origin main; git reset -q --soft HEAD~1":                      "what git reset -q --soft HEAD~1 makes of it",
				"python3 run.py && git push origin main":                                "what python3 run.py makes of it",
				"git fetch -q origin && git merge -q origin/main; git push origin main": "what git merge -q origin/main makes of it",
				"sh -c 'git commit -q --allow-empty -m made; git push origin main'":     "what git commit",
				"git status --short && git push origin main":                            "",
				"git log -1 >/dev/null; touch x; git push origin main":                  "",
			}
			for n, text := range slices.Sorted(maps.Keys(texts)) {
				if !paired(n, turn) {
					continue
				}
				want := texts[text]
				shown := a.approve(a.request("-c", text))
				if said := strings.Contains(shown, "makes of it"); said != (want != "") || !strings.Contains(shown, want) {
					t.Errorf("%s: want %q\n%s", text, want, shown)
				}
			}
			first := strings.TrimSpace(at.git(a.ws, "rev-parse", "main"))
			_, e := a.try(nil, "-c", "git commit -q --allow-empty -m again && git push origin main")
			if !strings.Contains(e.text, "the push by itself") {
				t.Errorf("no other way is proposed: %s", e.text)
			}
			// Plain git sends the new commit, and not the one that was there.
			if out, err := at.plain(a.ws, "sh", "-c", "git commit -q --allow-empty -m again && git push -q origin main"); err != nil || strings.TrimSpace(at.git(at.dir+"/up.git", "rev-parse", "main")) == first {
				t.Errorf("plain git: %v %s", err, out)
			}
		})
	}
}
