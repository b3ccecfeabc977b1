//go:build unix

package gitrepo

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository has branches and tags, packed and not.
func repository(t *testing.T) (dir string, r Repository) {
	dir = temp(t)
	git(t, dir, "init", "-q", "-b", "main", ".")
	for _, message := range []string{"one", "two", "three"} {
		git(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	}
	git(t, dir, "branch", "other", "HEAD~2")
	git(t, dir, "tag", "-a", "-m", "annotated", "v1")
	git(t, dir, "pack-refs", "--all")
	git(t, dir, "branch", "loose/one", "HEAD~2")
	git(t, dir, "update-ref", "refs/heads/main", "HEAD~1")
	git(t, dir, "symbolic-ref", "refs/heads/same", "refs/heads/other")
	r, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

func sha(t *testing.T, dir, name string) string {
	return strings.TrimSpace(git(t, dir, "rev-parse", name))
}

func refsOf(t *testing.T, r Repository) *Refs {
	t.Helper()
	f, err := r.Refs()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRefs: we see the references that git sees.
func TestRefs(t *testing.T) {
	dir, r := repository(t)
	f := refsOf(t, r)
	want := map[string]string{}
	for line := range strings.Lines(git(t, dir, "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[name] = id
	}
	got := map[string]string{}
	for name := range f.all {
		into := map[string]string{}
		f.resolved(name, into)
		for _, value := range into {
			if ObjectID(value) {
				got[name] = value
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := r.Subject(sha(t, dir, "main")); got != "two" {
		t.Errorf("subject %q", got)
	}
	if got := r.Subject(sha(t, dir, "v1")); got != "annotated" {
		t.Errorf("subject of a tag %q", got)
	}
	// An object under a wrong name says nothing about the right one.
	main, other := sha(t, dir, "main"), sha(t, dir, "v1")
	object := func(id string) string { return filepath.Join(r.Common, "objects", id[:2], id[2:]) }
	raw, err := os.ReadFile(object(other))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(object(main)); err != nil {
		t.Fatal(err)
	}
	write(t, object(main), string(raw))
	if got := r.Subject(main); got != "" {
		t.Errorf("subject of a planted object %q", got)
	}
}

// TestRefsUnread: what git would follow and we do not is an error.
func TestRefsUnread(t *testing.T) {
	for name, plant := range map[string]func(dir string) error{
		"link":      func(dir string) error { return os.Symlink("/etc/hostname", dir+"/refs/heads/link") },
		"directory": func(dir string) error { return os.Symlink(dir+"/refs/tags", dir+"/refs/heads/link") },
		"HEAD":      func(dir string) error { return os.Symlink("/etc/hostname", dir+"/FETCH_HEAD") },
	} {
		_, r := repository(t)
		if err := plant(r.Common); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Refs(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, r := repository(t)
	write(t, r.Common+"/reftable/tables.list", "x")
	f, into := refsOf(t, r), map[string]string{}
	if err := f.Sent(Push{Specs: []string{"main"}}, into); err != nil || f.Named() || len(into) != 1 {
		t.Errorf("a reftable: %v, %v", into, err)
	}
}

// TestSent: what git sends is among what we say that it sends.
func TestSent(t *testing.T) {
	dir, r := repository(t)
	up := temp(t)
	git(t, up, "init", "-q", "--bare", ".")
	git(t, dir, "push", "-q", up, "other:refs/heads/main")
	f := refsOf(t, r)
	for _, row := range []struct {
		push  Push
		words []string // of options
		none  bool     // nothing is sent
	}{
		{push: Push{Specs: []string{"main"}}}, {push: Push{Specs: []string{"+refs/heads/main:refs/heads/x", "HEAD:refs/heads/y"}}}, {push: Push{Specs: []string{"@:refs/heads/x"}}},
		{push: Push{Specs: []string{"heads/main", "tag", "v1"}}}, {push: Push{Specs: []string{"v1:refs/heads/a", "same:refs/heads/b"}}}, {push: Push{Specs: []string{":"}}}, {push: Push{Specs: []string{"+:"}}},
		{push: Push{Specs: []string{"refs/heads/*:refs/heads/copy/*"}}}, {push: Push{Specs: []string{"refs/heads/lo*:refs/heads/x*", "^refs/heads/main"}}},
		{push: Push{Specs: []string{"refs/*:refs/all/*"}}}, {push: Push{Specs: []string{sha(t, dir, "other") + ":refs/heads/x"}}},
		{push: Push{All: true}, words: []string{"--all"}}, {push: Push{Mirror: true}, words: []string{"--mirror"}}, {push: Push{Tags: true}, words: []string{"--tags"}},
		{push: Push{Follow: true, Specs: []string{"HEAD~0:refs/heads/x"}}, words: []string{"--follow-tags"}}, {push: Push{Specs: []string{":main"}}, none: true}, {push: Push{Delete: true, Specs: []string{"main"}}, words: []string{"--delete"}, none: true},
	} {
		into := map[string]string{}
		if err := f.Sent(row.push, into); err != nil || row.none != (len(into) == 0) {
			t.Errorf("%+v: %v, %v", row.push, into, err)
		}
		sent := 0
		for line := range strings.Lines(git(t, dir, append(append(append([]string{"push", "--dry-run", "--porcelain"}, row.words...), up), row.push.Specs...)...)) {
			fields := strings.Split(line, "\t")
			if source, _, ok := strings.Cut(fields[min(1, len(fields)-1)], ":"); ok && source != "" && line[0] != '=' && len(fields) == 3 {
				sent++
				if id := sha(t, dir, source); !slices.Contains(slices.Collect(maps.Values(into)), id) {
					t.Errorf("%+v: git sends %s, %s, which is not among %v", row.push, source, id, into)
				}
			}
		}
		if sent == 0 && !row.none {
			t.Errorf("%+v: git sends nothing: the row proves nothing", row.push)
		}
	}
	for _, spec := range []string{":/one:refs/heads/x", "main@{0}:refs/heads/x", "@{u}:x", "HEAD:file:refs/heads/x", sha(t, dir, "main")[:7] + ":refs/heads/x", "v1-0-g" + sha(t, dir, "main")[:7] + ":refs/heads/x"} {
		if err := f.Sent(Push{Specs: []string{spec}}, map[string]string{}); !errors.Is(err, ErrRevision) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestFrozen: git sends the references as they were when they were read, whatever another run
// makes of them, and what it notes of the other side comes back where nothing else changed it.
func TestFrozen(t *testing.T) {
	dir, r := repository(t)
	up := temp(t)
	git(t, up, "init", "-q", "--bare", ".")
	git(t, dir, "remote", "add", "origin", up)
	git(t, dir, "push", "-q", "origin", "other", "other:gone", "other:changed")
	git(t, dir, "pack-refs", "--all")
	c, err := r.Config("")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := r.Settings(c, func(Setting) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	settings = settings.Frozen(refsOf(t, r))
	judged := sha(t, dir, "main")
	scratch := filepath.Join(temp(t), "copy")
	run, err := settings.Copy(scratch)
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "symbolic-ref", "HEAD", "refs/heads/evil")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "evil")
	git(t, dir, "update-ref", "refs/heads/main", "HEAD")
	git(t, dir, "update-ref", "refs/remotes/origin/changed", "HEAD") // as by a fetch
	var words []string
	for _, kv := range settings.Variables(scratch) {
		words = append(words, "--git-dir="+kv[1])
	}
	git(t, dir, append(words, "push", "-q", "-u", "origin", "HEAD:refs/heads/head", "main", ":gone", "+main:changed")...)
	for _, name := range []string{"head", "main", "changed"} {
		if got := sha(t, up, name); got != judged {
			t.Errorf("%s is %s at the other side, want %s", name, got, judged)
		}
	}
	// What no push changes does not come back.
	write(t, scratch+"/refs/heads/other", judged+"\n")
	if err := run.Return(); err == nil || !strings.Contains(err.Error(), "refs/remotes/origin/changed") || strings.Contains(err.Error(), "other") {
		t.Errorf("left behind: %v", err)
	}
	run.Remove()
	if got := sha(t, dir, "refs/remotes/origin/main"); got != judged {
		t.Errorf("noted %s, want %s", got, judged)
	}
	if sha(t, dir, "other") == judged || sha(t, dir, "refs/remotes/origin/changed") != sha(t, dir, "evil") {
		t.Error("a reference was changed that no push changes, or that a fetch has changed")
	}
	if got := git(t, dir, "for-each-ref", "refs/remotes/origin/gone"); got != "" {
		t.Errorf("not removed: %s", got)
	}
	if got := strings.TrimSpace(git(t, dir, "config", "branch.main.merge")); got != "refs/heads/main" {
		t.Errorf("upstream %q", got)
	}
	if got := git(t, dir, "reflog", "show", "--format=%gs", "refs/remotes/origin/main"); got != "update by push\n" {
		t.Errorf("log %q", got)
	}
}

// TestFrozenLinks: what comes back goes through no link, and nothing but upstreams comes back of
// the settings.
func TestFrozenLinks(t *testing.T) {
	for _, row := range []struct{ from, to string }{{"refs/remotes/origin", "../.."}, {"refs/remotes/origin", "../../hooks"}, {"refs/remotes", ".."}} {
		dir, r := repository(t)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(r.Common, row.from)), 0o755); err != nil {
			t.Fatal(err)
		}
		c, err := r.Config("")
		if err != nil {
			t.Fatal(err)
		}
		settings, err := r.Settings(c, func(Setting) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		scratch := filepath.Join(temp(t), "copy")
		run, err := settings.Frozen(refsOf(t, r)).Copy(scratch)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(r.Common, row.from))
		if err := os.Symlink(row.to, filepath.Join(r.Common, row.from)); err != nil {
			t.Fatal(err)
		}
		before := git(t, dir, "config", "--list", "--local")
		for _, name := range []string{"refs/remotes/origin/config", "refs/remotes/origin/origin/config"} {
			write(t, filepath.Join(scratch, name), sha(t, dir, "main")+"\n")
		}
		write(t, scratch+"/config", settings.Text()+"[user]\n\tname = x\n")
		if err := run.Return(); err == nil {
			t.Errorf("%v: nothing was left behind", row)
		}
		run.Remove()
		list, _ := filepath.Glob(r.Common + "/hooks/config")
		if after := git(t, dir, "config", "--list", "--local"); after != before || slices.Contains(list, r.Common+"/hooks/config") {
			t.Errorf("%v: %v\n%s", row, list, after)
		}
	}
}
