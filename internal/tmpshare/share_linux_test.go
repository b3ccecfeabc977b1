package tmpshare

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

type sides struct {
	*testing.T
	share Share
}

func newSides(t *testing.T) sides {
	dir := t.TempDir()
	s := sides{t, Share{Host: dir + "/host", Inside: dir + "/inside", Books: dir + "/books", ID: "a", UID: os.Getuid(),
		Secret: func(path string) bool { return filepath.Base(path) == "id_rsa" },
		Skip:   func(path string) bool { return filepath.Base(path) == "workspace" }}}
	for _, d := range []string{s.share.Host, s.share.Inside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s sides) put(path, text string) {
	s.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
}

func (s sides) host(name string) string   { return filepath.Join(s.share.Host, name) }
func (s sides) inside(name string) string { return filepath.Join(s.share.Inside, name) }

// is fails unless the file holds the text; "-" is a file that is not there.
func (s sides) is(path, want string) {
	s.Helper()
	raw, err := os.ReadFile(path)
	got := string(raw)
	if err != nil {
		got = "-"
	}
	if got != want {
		s.Errorf("%s: %q, want %q", strings.TrimPrefix(path, filepath.Dir(s.share.Host)), got, want)
	}
}

func (s sides) in() {
	s.Helper()
	if err := s.share.In(); err != nil {
		s.Fatal(err)
	}
}

func (s sides) out(granted ...string) []string {
	s.Helper()
	left, err := s.share.Out(func(path string) bool { return slices.Contains(granted, path) }, nil)
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, l := range left {
		names = append(names, l.Name)
	}
	return names
}

func TestBothDirections(t *testing.T) {
	s := newSides(t)
	s.put(s.host("in"), "1")
	s.put(s.host("dir/in"), "1")
	s.in()
	s.is(s.inside("in"), "1")
	s.is(s.inside("dir/in"), "1")
	if !s.share.Copies(s.host("dir/in")) || !s.share.Copies(s.host("dir")) || s.share.Copies(s.host("id_rsa")) {
		t.Error("Copies")
	}
	s.put(s.inside("out"), "2")
	s.put(s.inside("made/deep/out"), "2")
	s.out()
	s.is(s.host("out"), "2")
	s.is(s.host("made/deep/out"), "2")
	// Both go on with what the other side has written.
	s.put(s.host("in"), "33")
	s.put(s.host("out"), "33")
	s.in()
	s.is(s.inside("in"), "33")
	s.is(s.inside("out"), "33")
	s.put(s.inside("made/deep/out"), "44")
	s.out()
	s.is(s.host("made/deep/out"), "44")
	// What either side removes is gone on both.
	os.Remove(s.host("in"))
	os.RemoveAll(s.inside("made"))
	s.in()
	s.out()
	s.is(s.inside("in"), "-")
	s.is(s.host("made/deep/out"), "-")
	if _, err := os.Lstat(s.host("made")); err == nil {
		t.Error("an empty directory is left")
	}
	s.in()
	s.is(s.inside("made/deep/out"), "-")
	if err := os.Mkdir(s.host("empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.in()
	s.put(s.inside("empty/x"), "x")
	s.out()
	s.is(s.host("empty/x"), "x")
}

// TestOnlyTouched: what the machine removes does not come back because a run has changed its mode or moved it
// to and fro; what the run has written does.
func TestOnlyTouched(t *testing.T) {
	s := newSides(t)
	s.put(s.host("mode"), "machine's")
	s.put(s.host("moved"), "machine's")
	s.put(s.host("written"), "machine's")
	s.in()
	for _, name := range []string{"mode", "moved", "written"} {
		if err := os.Remove(s.host(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(s.inside("mode"), 0o600), os.Rename(s.inside("moved"), s.inside("other")), os.Rename(s.inside("other"), s.inside("moved"))); err != nil {
		t.Fatal(err)
	}
	s.put(s.inside("written"), "the run's")
	s.out()
	s.is(s.host("mode"), "-")
	s.is(s.host("moved"), "-")
	s.is(s.host("written"), "the run's")
	s.in()
	s.is(s.inside("mode"), "-")
}

// TestRemovedMeanwhile: what the machine removes while a run goes on does not come back with it.
func TestRemovedMeanwhile(t *testing.T) {
	s := newSides(t)
	s.put(s.host("dir/deep/in"), "1")
	s.put(s.host("other/in"), "1")
	s.in()
	os.RemoveAll(s.host("dir"))
	os.RemoveAll(s.host("other"))
	s.put(s.inside("other/made"), "2")
	s.out()
	if _, err := os.Lstat(s.host("dir")); err == nil {
		t.Error("a directory that was removed is there again")
	}
	s.is(s.host("other/in"), "-")
	s.is(s.host("other/made"), "2")
}

// TestNotLookedAtIsNotGone: what lies in a directory that is left alone, cannot be read or is too
// full was not removed by the run.
// TestDirectoryBehindTheLimit: a directory that is older than as many bytes as are copied in is known if a file
// of it was copied, so that it does not come back after it was removed during the run.
func TestDirectoryBehindTheLimit(t *testing.T) {
	s := newSides(t)
	s.put(s.host("dir/file"), "new")
	for _, name := range []string{"a", "b", "c"} {
		s.put(s.host(name), strings.Repeat("x", maxIn-1))
	}
	for i, name := range []string{"dir", "c", "b", "a", "dir/file"} {
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(s.host(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	s.in()
	s.is(s.inside("dir/file"), "new")
	s.is(s.inside("c"), "-")
	if err := os.RemoveAll(s.host("dir")); err != nil {
		t.Fatal(err)
	}
	s.out()
	if _, err := os.Lstat(s.host("dir")); err == nil {
		t.Error("the directory that was removed meanwhile is there again")
	}
}

func TestNotLookedAtIsNotGone(t *testing.T) {
	s := newSides(t)
	for _, name := range []string{"later/x", "shut/x", "kept"} {
		s.put(s.inside(name), "1")
	}
	s.out()
	skip := s.share.Skip
	s.share.Skip = func(path string) bool { return path == s.host("later") }
	if err := os.Chmod(s.inside("shut"), 0); err != nil {
		t.Fatal(err)
	}
	s.out()
	s.is(s.host("later/x"), "1")
	s.is(s.host("shut/x"), "1")
	os.Chmod(s.inside("shut"), 0o700)
	s.share.Skip = skip
	s.put(s.inside("many/.0"), "")
	for i := range maxNames {
		if err := os.Link(s.inside("many/.0"), s.inside("many/."+strconv.Itoa(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	os.Rename(s.inside("kept"), s.inside("zzz"))
	s.out()
	s.is(s.host("kept"), "1")
}

// TestBooks: what was written is read again; a book that is cut off anywhere, or goes on, is refused.
func TestBooks(t *testing.T) {
	s := newSides(t)
	b, err := s.share.open("in")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]entry{
		"a": {Host: identity{1, 2, 3, 4}, Inside: identity{1 << 63, 6, -7, 8}, Ours: true}, "dir/\n\xff": {Apart: true, Large: 9}, "": {},
	}
	for name, e := range want {
		b.set(name, e)
	}
	b.publish("p", identity{1, 2, 3, 4})
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	if b, err = s.share.open("in"); err != nil {
		t.Fatal(err)
	}
	for name, e := range want {
		if b.names[name] == nil || b.known(name) != e {
			t.Errorf("%q: %+v, want %+v", name, b.known(name), e)
		}
	}
	if p := b.published["p"]; len(b.names) != len(want) || p == nil || p.published != (published{"a", identity{1, 2, 3, 4}}) {
		t.Errorf("%v, %v", b.names, p)
	}
	b.set("a", want["a"])
	if b.namesChanged || b.publishedChanged {
		t.Error("nothing has changed")
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(b.path(s.share.ID))
	all, _ := os.ReadFile(b.path(everyone))
	for n := range raw {
		if got, ok := readNames(raw[:n]); ok {
			t.Errorf("%d of %d bytes count: %v", n, len(raw), got)
		}
	}
	for n := range all {
		if got, ok := readPublished(all[:n]); ok {
			t.Errorf("%d of %d bytes count: %v", n, len(all), got)
		}
	}
	if _, ok := readNames(append(raw, 0)); ok {
		t.Error("what follows a book counts")
	}
}

// TestDamagedBook: with a record that says nothing for certain neither side changes, the record
// itself stays, and the error says which it is and what to do. Without it, everything goes on.
func TestDamagedBook(t *testing.T) {
	for _, book := range []string{"a", everyone} {
		for what, damage := range map[string]func(path string) error{
			"empty":           func(path string) error { return os.Truncate(path, 0) },
			"cut off":         func(path string) error { return os.Truncate(path, 9) },
			"another version": func(path string) error { return os.WriteFile(path, []byte{98, 0}, 0o600) },
			"text":            func(path string) error { return os.WriteFile(path, []byte("{}\n"), 0o600) },
			"too large":       func(path string) error { return os.Truncate(path, maxBook+1) },
			"a link": func(path string) error {
				return errors.Join(os.Rename(path, path+".old"), os.Symlink(path+".old", path))
			},
			"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			"a FIFO":      func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		} {
			t.Run(book+" "+what, func(t *testing.T) {
				s := newSides(t)
				s.put(s.host("user"), "user")
				s.put(s.host("gone"), "gone")
				s.in()
				s.put(s.inside("left"), "left")
				if _, err := s.share.Out(nil, nil); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(s.share.Books, book+".book")
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
				before, err := os.Lstat(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(s.host("gone")); err != nil {
					t.Fatal(err)
				}
				s.put(s.host("new"), "new")
				s.put(s.inside("later"), "later")
				refused := func(err error) {
					t.Helper()
					if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
						t.Errorf("%v", err)
					}
				}
				refused(s.share.In())
				_, err = s.share.Out(nil, nil)
				refused(err)
				for path, want := range map[string]string{
					s.host("user"): "user", s.host("left"): "left", s.host("new"): "new", s.host("later"): "-", s.host("gone"): "-",
					s.inside("user"): "user", s.inside("left"): "left", s.inside("new"): "-", s.inside("later"): "later", s.inside("gone"): "gone",
				} {
					s.is(path, want)
				}
				if now, err := os.Lstat(path); err != nil || now.Mode() != before.Mode() || now.Size() != before.Size() {
					t.Errorf("the record has changed: %v", err)
				}
				if err := os.Rename(path, path+".away"); err != nil {
					t.Fatal(err)
				}
				s.in()
				if _, err := s.share.Out(nil, nil); err != nil {
					t.Fatal(err)
				}
				s.is(s.inside("new"), "new")
				s.is(s.host("later"), "later")
			})
		}
	}
}

func TestNamesThatAreTaken(t *testing.T) {
	s := newSides(t)
	s.put(s.host("user"), "user")
	s.in()
	s.put(s.inside("user"), "changed by a run")
	if left := s.out(); len(left) != 1 || left[0] != "user" {
		t.Errorf("left: %q", left)
	}
	s.is(s.host("user"), "user")
	if left := s.out(); left != nil {
		t.Errorf("said again: %q", left)
	}
	s.in() // the next run finds what this one has left
	s.is(s.inside("user"), "changed by a run")
	os.Remove(s.inside("user"))
	s.out()
	s.is(s.host("user"), "user")
	s.in()
	s.is(s.inside("user"), "-")
	// A command that was permitted to write that very file does.
	s.put(s.host("named"), "1")
	s.in()
	s.put(s.inside("named"), "22")
	if left := s.out(s.host("named")); left != nil {
		t.Errorf("left: %q", left)
	}
	s.is(s.host("named"), "22")
	// Unless somebody else wrote it meanwhile.
	s.in()
	s.put(s.inside("named"), "of the run")
	s.put(s.host("named"), "of another program")
	s.out(s.host("named"))
	s.is(s.host("named"), "of another program")
}

func TestWhatStaysApart(t *testing.T) {
	s := newSides(t)
	for _, side := range []func(string) string{s.host, s.inside} {
		s.put(side("id_rsa"), "x")
		s.put(side("key"), "-----BEGIN OPENSSH PRIVATE KEY-----\n")
		s.put(side(".hidden"), "x")
		s.put(side("workspace/file"), "x")
		if err := syscall.Mkfifo(side("pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", side("link")); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mknod(side("socket"), syscall.S_IFSOCK|0o600, 0); err != nil {
			t.Fatal(err)
		}
		// The other side must not be reached through a link on the way.
		if err := os.Symlink("/etc", side("etc")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"id_rsa", "key", ".hidden", "workspace", "pipe", "link", "socket", "etc"} {
		for _, from := range []string{"host", "inside"} {
			t := newSides(t)
			src, dst := t.host(name), t.inside(name)
			if from == "inside" {
				src, dst = dst, src
			}
			old := s.host(name)
			if err := os.Rename(old, src); err != nil {
				if err := os.Rename(s.inside(name), src); err != nil {
					t.Fatal(err)
				}
			}
			t.in()
			t.out()
			if _, err := os.Lstat(dst); err == nil {
				t.Errorf("%s of %s was copied", name, from)
			}
		}
	}
	// A hard link may be another name of a secret.
	s = newSides(t)
	s.put(s.host("../elsewhere"), "x")
	if err := os.Link(s.host("../elsewhere"), s.host("hard")); err != nil {
		t.Fatal(err)
	}
	s.in()
	s.is(s.inside("hard"), "-")
	if os.Getuid() == 0 {
		s.put(s.host("others"), "x")
		if err := os.Chown(s.host("others"), 1234, 1234); err != nil {
			t.Fatal(err)
		}
		s.in()
		s.is(s.inside("others"), "-")
	}
	// What another workspace has left is no file of the user's tools.
	s.put(s.inside("mine"), "x")
	s.out()
	s.is(s.host("mine"), "x")
	other := s
	other.share.ID, other.share.Inside = "b", s.share.Inside+"2"
	other.in()
	other.is(other.inside("mine"), "-")
	other.put(other.inside("mine"), "y")
	other.out()
	s.is(s.host("mine"), "x")
}

func TestLargeDirectoriesAreLookedAtOnce(t *testing.T) {
	s := newSides(t)
	for i := range maxTree + 1 {
		s.put(s.host("large/"+strings.Repeat("x", i+1)), "x")
	}
	s.put(s.host("small"), "x")
	s.in()
	s.is(s.inside("large/x"), "-")
	s.is(s.inside("small"), "x")
	s.in()
	s.is(s.inside("large/x"), "-")
}

// TestInsideIsALink: a run may put a link in the place of the directory, which leads nowhere.
func TestInsideIsALink(t *testing.T) {
	s := newSides(t)
	s.put(s.host("in"), "1")
	outside := s.share.Inside + "-outside"
	s.put(outside+"/theirs", "x")
	if err := os.Remove(s.share.Inside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, s.share.Inside); err != nil {
		t.Fatal(err)
	}
	s.out()
	s.is(s.host("theirs"), "-")
	s.in()
	s.is(outside+"/in", "-")
	s.is(s.inside("in"), "1")
}

// BenchmarkUnchanged is what a run pays for names that no side has changed.
func BenchmarkUnchanged(b *testing.B) {
	for _, names := range []int{10, 800} {
		b.Run(strconv.Itoa(names), func(b *testing.B) {
			dir := b.TempDir()
			s := Share{Host: dir + "/host", Inside: dir + "/inside", Books: dir + "/books", ID: "a", UID: os.Getuid()}
			for i := range names {
				name := filepath.Join(s.Host, strconv.Itoa(i))
				if i%10 == 9 {
					name += "/below"
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("x"), 0o600)); err != nil {
					b.Fatal(err)
				}
			}
			run := func() {
				_, err := s.Out(nil, nil)
				if err = errors.Join(s.In(), err); err != nil {
					b.Fatal(err)
				}
			}
			run()
			for b.Loop() {
				run()
			}
		})
	}
}

// TestInCutShort: what a pass has copied in and could not record, since it was killed or the disk
// was full, is no file of a run: once the machine has removed it, nothing brings it back.
func TestInCutShort(t *testing.T) {
	names := []string{"file", "dir/in", "dir/deep/in", "changed"}
	for _, records := range []int{0, 1} { // how many writes of the record succeed
		s := newSides(t)
		s.put(s.host("changed"), "0")
		s.in()
		for _, name := range names {
			s.put(s.host(name), "1"+name)
		}
		s.put(s.inside("made"), "by a run that was killed")
		written := 0
		writing = func() error {
			if written++; written > records {
				return errors.New("cut short")
			}
			return nil
		}
		err := s.share.In()
		writing = nil
		if err == nil {
			t.Fatal("nothing failed: the test proves nothing")
		}
		if _, err := os.Lstat(s.inside("dir/in")); (err == nil) != (records == 1) {
			t.Errorf("%d records: %v", records, err)
		}
		for _, name := range names {
			os.Remove(s.host(name))
		}
		os.RemoveAll(s.host("dir"))
		s.out() // of another run of this workspace, which was under way
		for _, name := range append(names, "dir") {
			if _, err := os.Lstat(s.host(name)); err == nil {
				t.Errorf("%d records: %s is back", records, name)
			}
		}
		s.is(s.host("made"), "by a run that was killed")
		s.in()
		s.out()
		for _, name := range append(names, "dir") {
			for _, path := range []string{s.host(name), s.inside(name)} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%d records: %s is there", records, path)
				}
			}
		}
	}
}

// TestInKilled is the same with kills at any moment.
func TestInKilled(t *testing.T) {
	if dir := os.Getenv("ATIP_TEST_SHARE"); dir != "" {
		s := sides{t, Share{Host: dir + "/host", Inside: dir + "/inside", Books: dir + "/books", ID: "a", UID: os.Getuid()}}
		for {
			s.in()
		}
	}
	s := newSides(t)
	s.share.Secret, s.share.Skip = nil, nil
	dir := filepath.Dir(s.share.Host)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInKilled$")
		cmd.Env = append(os.Environ(), "ATIP_TEST_SHARE="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			s.put(s.host("d"+strconv.Itoa(i/50)+"/f"+strconv.Itoa(i)), "1")
		}
		time.Sleep(time.Duration(rand.IntN(12)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(s.share.Host)
		if err := os.Mkdir(s.share.Host, 0o700); err != nil {
			t.Fatal(err)
		}
		s.out()
		if list, err := os.ReadDir(s.share.Host); err != nil || len(list) > 0 {
			t.Fatalf("back are %v, %v", list, err)
		}
	}
}

// TestLargeOnceSmall: a directory that was copied while it was small goes with the machine's.
func TestLargeOnceSmall(t *testing.T) {
	s := newSides(t)
	s.put(s.host("dir/sub/in"), "1")
	s.put(s.host("later/in"), "1")
	fill := func(dir string) {
		for i := range maxTree + 1 {
			s.put(s.host(dir+"/"+strconv.Itoa(i)), "1")
		}
	}
	fill("later")
	s.in()
	fill("dir")
	os.RemoveAll(s.host("later"))
	s.put(s.host("later/in"), "1")
	s.in()
	s.is(s.inside("later/in"), "1")
	os.RemoveAll(s.host("dir"))
	os.RemoveAll(s.host("later"))
	s.in()
	s.out()
	for _, path := range []string{s.host("dir"), s.inside("dir"), s.host("later"), s.inside("later")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	// A run has removed the directory, and the machine adds to it.
	s.put(s.host("again/a"), "1")
	s.in()
	os.RemoveAll(s.inside("again"))
	s.out()
	s.put(s.host("again/b"), "1")
	s.in()
	s.is(s.inside("again/b"), "1")
	os.RemoveAll(s.host("again"))
	s.in()
	s.out()
	for _, path := range []string{s.host("again"), s.inside("again")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
}

// TestListsAreNotTrustedTooLong changes what lies in directories in every way after their names were kept.
func TestListsAreNotTrustedTooLong(t *testing.T) {
	defer func(was int64) { settledFor = was }(settledFor)
	settledFor = 0
	s := newSides(t)
	kept := func(side, name string) {
		t.Helper()
		if l := readLists(filepath.Join(s.share.Books, s.share.ID+"-"+side+".book")); l.dirs[name] == nil {
			t.Errorf("%s: the names in %s are not kept", side, name)
		}
	}
	s.put(s.host("d/e/one"), "1")
	s.put(s.host("d/two"), "2")
	time.Sleep(20 * time.Millisecond)
	for range 2 {
		s.in()
		kept("in", "d")
		kept("in", "d/e")
	}
	s.is(s.inside("d/e/one"), "1")
	s.put(s.host("d/e/one"), "a file changes without its directory")
	s.in()
	s.is(s.inside("d/e/one"), "a file changes without its directory")
	s.put(s.host("d/e/three"), "3")
	s.in()
	s.is(s.inside("d/e/three"), "3")
	if err := os.Remove(s.host("d/e/one")); err != nil {
		t.Fatal(err)
	}
	s.in()
	s.is(s.inside("d/e/one"), "-")
	// Another directory under the name, with the times of the first.
	fi, err := os.Stat(s.host("d/e"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.host("d/e"), s.host("f")); err != nil {
		t.Fatal(err)
	}
	s.put(s.host("d/e/four"), "4")
	if err := os.Chtimes(s.host("d/e"), fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	s.in()
	s.is(s.inside("d/e/four"), "4")
	s.is(s.inside("d/e/three"), "-")
	s.is(s.inside("f/three"), "3")

	time.Sleep(20 * time.Millisecond)
	for range 2 {
		s.out()
		kept("out", "d/e")
	}
	s.put(s.inside("d/e/left"), "5")
	s.out()
	s.is(s.host("d/e/left"), "5")
	time.Sleep(20 * time.Millisecond)
	s.out()
	kept("out", "d/e")
	s.put(s.inside("d/e/left"), "changed in place")
	s.out()
	s.is(s.host("d/e/left"), "changed in place")
	// A run puts a link where a directory was whose names are kept.
	s.put(filepath.Join(filepath.Dir(s.share.Host), "elsewhere/left"), "another's")
	if err := os.Rename(s.inside("d/e"), s.inside("d/moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../elsewhere", s.inside("d/e")); err != nil {
		t.Fatal(err)
	}
	s.out()
	s.is(s.host("d/e/left"), "-")
	s.is(s.host("d/moved/left"), "changed in place")
	// A list that says nothing is none.
	for _, side := range []string{"in", "out"} {
		s.put(filepath.Join(s.share.Books, s.share.ID+"-"+side+".book"), "no list")
	}
	s.put(s.host("d/last"), "6")
	s.in()
	s.out()
	s.is(s.inside("d/last"), "6")
}
