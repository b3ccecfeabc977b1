package undo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func put(t testing.TB, text string, parts ...string) string {
	t.Helper()
	p := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func have(t testing.TB, want string, parts ...string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(parts...))
	if err != nil || string(got) != want {
		t.Errorf("%s is %q (%v), want %q", filepath.Join(parts...), got, err, want)
	}
}

// TestLinkInTheWay: a directory that became a link to somewhere else is put back, and nothing
// is written, removed or read through it.
func TestLinkInTheWay(t *testing.T) {
	p := world(t)
	outside := filepath.Join(filepath.Dir(p.Root), "outside")
	put(t, "theirs", outside, "a")
	put(t, "mine", p.Root, "src", "a")
	put(t, "mine too", p.Root, "src", "deep", "b")
	run(t, p, "r1", func() {
		os.RemoveAll(filepath.Join(p.Root, "src"))
		os.Symlink(outside, filepath.Join(p.Root, "src"))
	})
	have(t, "theirs", p.Root, "src", "a") // the control: the link leads there
	res := undo(t, p, Request{})
	if len(res.Left)+len(res.Conflicts) > 0 {
		t.Error(res.Left, res.Conflicts)
	}
	have(t, "mine", p.Root, "src", "a")
	have(t, "mine too", p.Root, "src", "deep", "b")
	have(t, "theirs", outside, "a")
	if _, err := os.Lstat(filepath.Join(outside, "deep")); err == nil {
		t.Error("something was written outside")
	}
}

// TestSwappedMeanwhile swaps a directory for a link between the plan and the act.
func TestSwappedMeanwhile(t *testing.T) {
	p := world(t)
	outside := filepath.Join(filepath.Dir(p.Root), "outside")
	put(t, "theirs", outside, "a")
	put(t, "mine", p.Root, "src", "a")
	run(t, p, "r1", func() { os.Remove(filepath.Join(p.Root, "src", "a")) })
	s := open(t, p)
	defer s.Close()
	target, err := s.load(1)
	if err != nil {
		t.Fatal(err)
	}
	r := &restorer{store: s, target: target, res: &Result{}}
	defer r.close()
	if r.now, _, err = s.checkpoint(true); err != nil {
		t.Fatal(err)
	}
	r.others(s.Runs(), 0)
	r.plan(nil)
	os.RemoveAll(filepath.Join(p.Root, "src"))
	os.Symlink(outside, filepath.Join(p.Root, "src"))
	r.apply()
	have(t, "theirs", outside, "a")
	if len(r.res.Left) == 0 {
		t.Error("nothing says that a file was not restored")
	}
}

// TestOddFiles: FIFOs, sockets, devices and unreadable places neither block nor lie.
func TestOddFiles(t *testing.T) {
	p := world(t)
	put(t, "x", p.Root, "plain")
	if err := unix.Mkfifo(filepath.Join(p.Root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	sparse := filepath.Join(p.Root, "sparse")
	if f, err := os.Create(sparse); err != nil {
		t.Fatal(err)
	} else {
		f.WriteAt([]byte("end"), 8<<20)
		f.Close()
	}
	big := filepath.Join(p.Root, "big")
	if err := os.Truncate(put(t, "", big), 100<<20); err != nil {
		t.Fatal(err)
	}
	done := make(chan *Checkpoint, 1)
	go func() {
		done <- run(t, p, "r1", func() {
			for _, n := range []string{"plain", "fifo", "sparse", "big"} {
				os.Remove(filepath.Join(p.Root, n))
			}
		})
	}()
	select {
	case c := <-done:
		if len(c.Losses) != 1 || c.Losses[0].Path != big || c.Losses[0].Why != TooLarge {
			t.Errorf("losses: %v", c.Losses)
		}
	case <-time.After(time.Minute):
		t.Fatal("the checkpoint waits")
	}
	res := undo(t, p, Request{})
	if len(res.Left) != 1 || res.Left[0].Path != big {
		t.Errorf("left: %v", res.Left)
	}
	var st unix.Stat_t
	if err := unix.Lstat(sparse, &st); err != nil || st.Blocks*512 > 1<<20 {
		t.Errorf("the holes are filled: %d blocks, %v", st.Blocks, err)
	}
	if err := unix.Lstat(filepath.Join(p.Root, "fifo"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		t.Error("the FIFO is not back")
	}
}

// TestStoreOfOthers: a store that is a link, open to others or another user's is refused.
func TestStoreOfOthers(t *testing.T) {
	for name, spoil := range map[string]func(base string) error{
		"open": func(base string) error { return os.Chmod(base, 0o770) },
		"below": func(base string) error {
			list, err := os.ReadDir(base)
			if err != nil || len(list) != 1 {
				return errors.Join(err, errors.New("no store"))
			}
			return os.Chmod(filepath.Join(base, list[0].Name()), 0o720)
		},
		"another user's": nil,
		"link": func(base string) error {
			return errors.Join(os.Rename(base, base+"2"), os.Symlink(base+"2", base))
		},
	} {
		p := world(t)
		open(t, p).Close()
		if spoil == nil {
			p.UID++
		} else if err := spoil(p.Base); err != nil {
			t.Fatal(err)
		}
		_, err := Open(p, true)
		var e *Error
		if !errors.As(err, &e) || !e.Refused() {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := Survey(p); err == nil {
			t.Errorf("%s: surveyed", name)
		}
	}
}

// TestDamaged: a checkpoint that is not whole is never answered by an older one.
func TestDamaged(t *testing.T) {
	p := world(t)
	put(t, "one", p.Root, "a")
	run(t, p, "r1", func() { put(t, "two", p.Root, "a") })
	run(t, p, "r2", func() { put(t, "three", p.Root, "a") })
	s := open(t, p)
	runs := s.Runs()
	m := filepath.Join(s.dir, "manifest", seqName(runs[1].Before))
	raw, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{raw[:len(raw)/2], bytes.Replace(raw, []byte("walk"), []byte("wolk"), 1), nil} {
		os.WriteFile(m, bad, 0o600)
		if _, err := s.Undo(Request{Run: "r2", ID: "u"}); err == nil {
			t.Fatalf("%d bytes of a manifest are taken for one", len(bad))
		}
		have(t, "three", p.Root, "a")
	}
	s.Close()
	os.WriteFile(m, raw, 0o600)
	undo(t, p, Request{Run: "r2"})
	have(t, "two", p.Root, "a")
}

// TestOthers: what was changed by no run is left and listed, unless --force takes it.
func TestOthers(t *testing.T) {
	p := world(t)
	put(t, "one", p.Root, "a")
	put(t, "one", p.Root, "b")
	run(t, p, "r1", func() { put(t, "two", p.Root, "a"); put(t, "two", p.Root, "b") })
	run(t, p, "r2", func() { put(t, "three", p.Root, "a") })
	run(t, p, "r3", func() { put(t, "new", p.Root, "c") })
	put(t, "by hand", p.Root, "b")
	put(t, "by hand", p.Root, "d")
	res := undo(t, p, Request{Run: "r1"})
	have(t, "one", p.Root, "a")
	have(t, "by hand", p.Root, "b")
	have(t, "by hand", p.Root, "d")
	if len(res.Conflicts) != 2 || len(res.Later) != 2 {
		t.Errorf("conflicts %v, later %v", res.Conflicts, res.Later)
	}
	undo(t, p, Request{})
	have(t, "three", p.Root, "a")
	have(t, "by hand", p.Root, "b")
	undo(t, p, Request{Run: "r1", Force: true})
	have(t, "one", p.Root, "b")
	if _, err := os.Lstat(filepath.Join(p.Root, "d")); err == nil {
		t.Error("d is still there")
	}
}

// TestOverlap: what a run did while another ran is its own, and no change of others.
func TestOverlap(t *testing.T) {
	p := world(t)
	put(t, "one", p.Root, "a")
	put(t, "one", p.Root, "b")
	put(t, "one", p.Root, "d")
	run(t, p, "long", func() {
		put(t, "two", p.Root, "a")
		run(t, p, "first", func() { put(t, "two", p.Root, "b") })
		run(t, p, "second", func() { put(t, "three", p.Root, "b"); put(t, "new", p.Root, "c") })
	})
	put(t, "by hand", p.Root, "d")
	run(t, p, "last", func() { put(t, "four", p.Root, "b") })
	res := undo(t, p, Request{Run: "long"})
	have(t, "one", p.Root, "a")
	have(t, "one", p.Root, "b")
	have(t, "by hand", p.Root, "d")
	if _, err := os.Lstat(filepath.Join(p.Root, "c")); err == nil {
		t.Error("c is still there")
	}
	if len(res.Conflicts) != 1 || len(res.Later) != 3 {
		t.Errorf("conflicts %v, later %v", res.Conflicts, res.Later)
	}
}

// TestLook: a checkpoint that is made at once after a survey keeps the state that the survey saw.
func TestLook(t *testing.T) {
	p := world(t)
	put(t, "one", p.Root, "a")
	put(t, "one", p.Root, "b")
	first := run(t, p, "first", func() { put(t, "two", p.Root, "a") })
	for _, row := range []struct {
		name  string
		after func() // the survey
		now   bool   // b is what it is before the run
	}{
		{"at once", func() {}, false},
		{"changed meanwhile, and copied then", func() { put(t, "by hand", p.Root, "b") }, true},
		{"another run meanwhile", func() { run(t, p, "between", func() { put(t, "between", p.Root, "b") }) }, true},
		{"after a while", func() { time.Sleep(lookLasts); put(t, "late", p.Root, "b") }, true},
	} {
		put(t, "one", p.Root, "b")
		put(t, row.name, p.Root, "a")
		_, look, err := Survey(p)
		if err != nil {
			t.Fatal(err)
		}
		row.after()
		now, err := os.ReadFile(filepath.Join(p.Root, "b"))
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, p)
		s.Take(look)
		c, err := s.Before(Run{Run: row.name, Cmd: row.name}, false)
		s.Close()
		look.Drop()
		if err != nil || c.Seq <= first.Seq || len(c.Losses) > 0 {
			t.Fatalf("%s: %+v, %v", row.name, c, err)
		}
		put(t, "destroyed", p.Root, "a")
		put(t, "destroyed", p.Root, "b")
		s = open(t, p)
		if _, err := s.After(row.name, c.Seq); err != nil {
			t.Fatal(err)
		}
		s.Close()
		undo(t, p, Request{Run: row.name})
		have(t, row.name, p.Root, "a")
		want := "one"
		if row.now {
			want = string(now)
		}
		have(t, want, p.Root, "b")
	}
}

// TestOnly restores one path and nothing else.
func TestOnly(t *testing.T) {
	p := world(t)
	put(t, "one", p.Root, "a")
	put(t, "one", p.Root, "dir", "b")
	run(t, p, "r1", func() { put(t, "two", p.Root, "a"); put(t, "two", p.Root, "dir", "b") })
	undo(t, p, Request{Only: []string{filepath.Join(p.Root, "dir")}})
	have(t, "two", p.Root, "a")
	have(t, "one", p.Root, "dir", "b")
}

// TestBusy: a repository that git holds is not touched.
func TestBusy(t *testing.T) {
	p := world(t)
	repository(t, p)
	run(t, p, "r1", func() { shell(t, p, "git branch -q -D x") })
	put(t, "", p.Root, ".git", "index.lock")
	s := open(t, p)
	_, err := s.Undo(Request{ID: "u"})
	s.Close()
	var e *Error
	if !errors.As(err, &e) || e.FaultCode() != codeBusy {
		t.Fatalf("%v", err)
	}
	os.Remove(filepath.Join(p.Root, ".git", "index.lock"))
	undo(t, p, Request{})
	if out := shell(t, p, "git branch --list x; ls .git"); !bytes.Contains([]byte(out), []byte("  x\n")) || bytes.Contains([]byte(out), []byte(".lock")) {
		t.Error(out)
	}
}

// leaveLock leaves a lock in a repository as an undo that is killed does; dir is another store, if any.
func leaveLock(t *testing.T, p Place, name, dir string) {
	t.Helper()
	at, err := unix.Open(filepath.Join(p.Root, ".git"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	s := open(t, p)
	defer s.Close()
	if dir != "" {
		s.dir = dir
	}
	if err := s.lockAt(at, name, false); err != nil {
		t.Fatal(err)
	}
}

// TestOwnLockLeft: a lock that an undo which was killed left in a repository is taken over by the next
// one, one of another store is not.
func TestOwnLockLeft(t *testing.T) {
	p := world(t)
	repository(t, p)
	run(t, p, "r1", func() { shell(t, p, "git branch -q -D x") })
	leave := func(dir string) { leaveLock(t, p, "index.lock", dir) }
	leave("/another/store")
	s := open(t, p)
	_, err := s.Undo(Request{ID: "u"})
	s.Close()
	var e *Error
	if !errors.As(err, &e) || e.FaultCode() != codeBusy {
		t.Fatalf("%v", err)
	}
	os.Remove(filepath.Join(p.Root, ".git", "index.lock"))
	leave("")
	undo(t, p, Request{})
	if out := shell(t, p, "git branch --list x; ls .git"); !bytes.Contains([]byte(out), []byte("  x\n")) || bytes.Contains([]byte(out), []byte(".lock")) {
		t.Error(out)
	}
	// A run that began while the lock lay there: its undo does not bring the lock back.
	leave("")
	run(t, p, "r2", func() { put(t, "two", p.Root, "a") })
	if res := undo(t, p, Request{}); len(res.Left) > 0 {
		t.Errorf("%+v", res.Left)
	}
	if out := shell(t, p, "ls . .git"); bytes.Contains([]byte(out), []byte(".lock")) || bytes.Contains([]byte(out), []byte("two")) {
		t.Error(out)
	}
}

// TestDryRun: a dry run says what an undo then does, and changes nothing but the store.
func TestDryRun(t *testing.T) {
	lock := func(name, dir string) func(*testing.T, Place) {
		return func(t *testing.T, p Place) { leaveLock(t, p, name, dir) }
	}
	write := func(text string, at ...string) func(*testing.T, Place) {
		return func(t *testing.T, p Place) { put(t, text, append([]string{p.Root}, at...)...) }
	}
	sh := func(script string) func(*testing.T, Place) {
		return func(t *testing.T, p Place) { shell(t, p, script) }
	}
	for name, c := range map[string]struct {
		before func(*testing.T, Place)
		runs   []func(*testing.T, Place)
		after  func(*testing.T, Place) // by no run
		q      Request
		limit  int64
		busy   bool
	}{
		"files":              {runs: []func(*testing.T, Place){sh("rm -r src; echo new >new; chmod 600 README; ln -s README l")}},
		"history":            {runs: []func(*testing.T, Place){sh("git branch -q -D x; git commit -q --allow-empty -m later")}},
		"later runs":         {runs: []func(*testing.T, Place){write("1", "a"), write("2", "a"), sh("git branch -q -D x; rm a")}, q: Request{Run: "r0"}},
		"in the middle":      {runs: []func(*testing.T, Place){write("1", "a"), write("2", "a"), write("3", "b")}, q: Request{Run: "r1"}},
		"some":               {runs: []func(*testing.T, Place){sh("rm README; echo new >new; echo x >src/a.go")}, q: Request{Only: []string{"src"}}},
		"changed since":      {runs: []func(*testing.T, Place){write("1", "a"), write("2", "b")}, after: write("mine", "a"), q: Request{Run: "r0"}},
		"changed since, all": {runs: []func(*testing.T, Place){write("1", "a"), write("2", "b")}, after: write("mine", "a"), q: Request{Run: "r0", Force: true}},
		"too large":          {before: write(strings.Repeat("x", 5000), "large"), runs: []func(*testing.T, Place){sh("rm large README")}, limit: 4096},
		"too large now":      {runs: []func(*testing.T, Place){sh("rm README; head -c 5000 /dev/zero >large")}, limit: 4096},
		"kinds":              {before: sh("mkdir d; mkfifo f"), runs: []func(*testing.T, Place){sh("rmdir d; rm f; echo x >d; mkdir f; touch f/x")}},
		"unreadable":         {before: sh("mkdir d; echo x >d/f; echo y >s"), runs: []func(*testing.T, Place){sh("rm README; echo z >d/f; echo z >s; chmod 0 d s")}},
		"own lock":           {runs: []func(*testing.T, Place){sh("git branch -q -D x")}, after: lock("index.lock", "")},
		"own locks":          {runs: []func(*testing.T, Place){sh("rm README")}, after: func(t *testing.T, p Place) { lock("index.lock", "")(t, p); lock("HEAD.lock", "")(t, p) }},
		"own lock before":    {before: lock("index.lock", ""), runs: []func(*testing.T, Place){sh("rm README")}},
		"own lock then gone": {before: lock("HEAD.lock", ""), runs: []func(*testing.T, Place){sh("rm README .git/HEAD.lock")}},
		"own lock, half made": {runs: []func(*testing.T, Place){sh("rm README")}, after: func(t *testing.T, p Place) {
			s := open(t, p)
			defer s.Close()
			put(t, "undo", p.Root, ".git", s.unfinished("HEAD.lock"))
		}},
		"lock of another":     {runs: []func(*testing.T, Place){sh("rm README")}, after: lock("HEAD.lock", "/another/store"), busy: true},
		"lock of git":         {runs: []func(*testing.T, Place){sh("rm README")}, after: write("", ".git", "index.lock"), busy: true},
		"lock of git, a link": {runs: []func(*testing.T, Place){sh("rm README")}, after: sh("ln -s nowhere .git/index.lock"), busy: true},
		"another lock of git": {runs: []func(*testing.T, Place){sh("rm README")}, after: write("", ".git", "refs", "heads", "x.lock")},
		"repository removed":  {runs: []func(*testing.T, Place){sh("rm -rf .git")}},
		"repository new":      {before: sh("rm -rf .git"), runs: []func(*testing.T, Place){sh("git init -q; git add -A; git commit -q -m new")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := world(t)
			if c.limit > 0 {
				p.Limits.File = c.limit
			}
			repository(t, p)
			shell(t, p, "mkdir src; echo a >src/a.go; echo read >README; git add -A; git commit -q -m files")
			if c.before != nil {
				c.before(t, p)
			}
			for i, f := range c.runs {
				run(t, p, fmt.Sprint("r", i), func() { f(t, p) })
			}
			if c.after != nil {
				c.after(t, p)
			}
			for i, o := range c.q.Only {
				c.q.Only[i] = filepath.Join(p.Root, o)
			}
			ask := func(dry bool) (*Result, error) {
				s := open(t, p)
				defer s.Close()
				q := c.q
				q.ID, q.DryRun = "u", dry
				return s.Undo(q)
			}
			look := func() string { return shell(t, p, "ls -laR --time-style=full-iso --ignore=.. . 2>/dev/null || :") }
			is := look()
			said, err := ask(true)
			if now := look(); now != is {
				t.Errorf("a dry run made\n%s\nto\n%s", is, now)
			}
			did, didErr := ask(false)
			if c.busy {
				var a, b *Error
				if !errors.As(err, &a) || !errors.As(didErr, &b) || a.FaultCode() != codeBusy || b.FaultCode() != codeBusy {
					t.Fatalf("%v; %v", err, didErr)
				}
				return
			}
			if err != nil || didErr != nil {
				t.Fatalf("%v; %v", err, didErr)
			}
			if len(did.Changes)+len(did.Conflicts)+len(did.Left) == 0 {
				t.Error("nothing was done")
			}
			if !reflect.DeepEqual(said, did) {
				t.Errorf("said %+v\ndid %+v", said, did)
			}
		})
	}
}

// TestMoved: a workspace that was moved keeps its runs.
func TestMoved(t *testing.T) {
	p := world(t)
	put(t, "one", p.Root, "a")
	run(t, p, "r1", func() { put(t, "two", p.Root, "a") })
	to := filepath.Join(filepath.Dir(p.Root), "elsewhere")
	if err := os.Rename(p.Root, to); err != nil {
		t.Fatal(err)
	}
	p.Root = to
	undo(t, p, Request{Run: "r1"})
	have(t, "one", to, "a")
}

// TestTidy drops the oldest runs and their contents, and what is left restores.
func TestTidy(t *testing.T) {
	p := world(t)
	p.Limits.Runs = 3
	for i := range 64 {
		put(t, strings.Repeat("x", i), p.Root, "many", strconv.Itoa(i))
	}
	for i := range 8 {
		put(t, string(bytes.Repeat([]byte{'a' + byte(i)}, bigSize+i)), p.Root, "a")
		time.Sleep(2 * tick)
		run(t, p, string(rune('0'+i))+"run", func() { put(t, "x", p.Root, "b", string(rune('0'+i))) })
	}
	s := open(t, p)
	before := size(s.dir)
	s.Tidy(time.Now().Add(2 * time.Hour))
	if runs := s.Runs(); len(runs) != 3 || runs[0].Run != "5run" {
		t.Errorf("%v", runs)
	}
	if err := s.verify(); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(s.seqs(), func(seq uint64) bool { h, _, err := s.read(seq); return err == nil && h.Base != 0 }) {
		t.Error("no state is kept as a difference: that its base stays is not shown")
	}
	if after := size(s.dir); after >= before-3*bigSize {
		t.Errorf("%d bytes, before %d", after, before)
	}
	s.Close()
}

func TestDiffText(t *testing.T) {
	want := "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n"
	if got := diffText("f", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), []byte("1\n2\n3\nfour\n5\n6\n7\n8\n9\n")); got != want {
		t.Errorf("%s", got)
	}
	if got := diffText("f", nil, []byte("a\x00b")); got != "diff --git a/f b/f\nnew file\nBinary files differ: 0 bytes, then 3\n" {
		t.Errorf("%s", got)
	}
}
