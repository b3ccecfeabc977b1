package trust

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// settled is a file whose last change lies far enough back to be cached.
func settled(t testing.TB, dir string) string {
	t.Helper()
	tool := copyBinary(t, "true", filepath.Join(dir, "tool"))
	st, err := statPath(tool)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(time.Unix(0, st.ctime).Add(cacheSettle + 50*time.Millisecond)))
	return tool
}

func records(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}

func TestCache(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "state", "digest")
	o := Opener{CacheDir: store}
	fresh := copyBinary(t, "true", filepath.Join(dir, "fresh"))
	hit := func(o Opener, p string) bool {
		f := open(t, o, p, nil, "/")
		defer f.Close()
		if got, want := f.Identity().Digest, fileDigest(t, p); got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
		return f.Identity().CacheHit
	}
	if hit(o, fresh) || len(records(t, store)) != 0 {
		t.Error("a file changed just now was stored")
	}
	tool := settled(t, dir)
	if hit(o, tool) {
		t.Error("a hit before anything was stored")
	}
	if hit(Opener{CacheDir: store, ReadOnlyCache: true}, fresh); len(records(t, store)) != 1 {
		t.Errorf("records: %q", records(t, store))
	}
	if !hit(o, tool) || !hit(Opener{CacheDir: store, ReadOnlyCache: true}, tool) {
		t.Error("the second run read the file again")
	}
	if fi, err := os.Stat(store); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("directory %v, %v", fi.Mode(), err)
	}

	rec := records(t, store)[0]
	good, err := os.ReadFile(rec)
	if err != nil {
		t.Fatal(err)
	}
	restore := func() {
		os.Remove(rec)
		os.Remove(rec + ".link")
		if err := os.WriteFile(rec, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	// Each of these must be as if the record were absent, even though a lie in
	// its digest would otherwise be believed.
	lie := append([]byte(nil), good...)
	lie[len(lie)-2] ^= 1
	for _, row := range []struct {
		name   string
		damage func()
	}{
		{"mode 0644", func() { must(os.WriteFile(rec, lie, 0o600)); must(os.Chmod(rec, 0o644)) }},
		{"symlink", func() {
			must(os.Remove(rec))
			must(os.WriteFile(rec+".link", lie, 0o600))
			must(os.Symlink(rec+".link", rec))
		}},
		{"two links", func() { must(os.WriteFile(rec, lie, 0o600)); must(os.Link(rec, rec+".link")) }},
		{"FIFO", func() { must(os.Remove(rec)); must(unix.Mkfifo(rec, 0o600)) }},
		{"directory", func() { must(os.Remove(rec)); must(os.Mkdir(rec, 0o700)) }},
		{"short", func() { must(os.WriteFile(rec, lie[:len(lie)-1], 0o600)) }},
		{"long", func() { must(os.WriteFile(rec, append(lie, 0), 0o600)) }},
		{"other magic", func() { must(os.WriteFile(rec, append([]byte("X"), lie[1:]...), 0o600)) }},
		{"other key", func() {
			b := append([]byte(nil), lie...)
			b[20] ^= 1
			must(os.WriteFile(rec, b, 0o600))
		}},
		{"open directory", func() { must(os.WriteFile(rec, lie, 0o600)); must(os.Chmod(store, 0o755)) }},
	} {
		restore()
		row.damage()
		if hit(Opener{CacheDir: store, ReadOnlyCache: true}, tool) {
			t.Errorf("%s: believed", row.name)
		}
		must(os.Chmod(store, 0o700))
	}
	if os.Geteuid() == 0 {
		restore()
		must(os.WriteFile(rec, lie, 0o600))
		must(os.Chown(rec, 12345, 0))
		if hit(Opener{CacheDir: store, ReadOnlyCache: true}, tool) {
			t.Error("foreign owner: believed")
		}
	}
	// The control: the same lie in an intact record is believed, so each row
	// above was refused for its own reason.
	restore()
	must(os.WriteFile(rec, lie, 0o600))
	f := open(t, o, tool, nil, "/")
	if id := f.Identity(); !id.CacheHit || id.Digest == fileDigest(t, tool) {
		t.Error("the control was not believed")
	}
	f.Close()
	restore()
	// Same size, same times set back: the ctime tells.
	st, err := os.Stat(tool)
	must(err)
	data, err := os.ReadFile(tool)
	must(err)
	data[len(data)-1] ^= 1
	must(os.WriteFile(tool, data, 0o755))
	must(os.Chtimes(tool, st.ModTime(), st.ModTime()))
	if hit(o, tool) {
		t.Error("a rewritten file was taken from the cache")
	}
}

func TestLeaseLostWhileWaiting(t *testing.T) {
	dir := t.TempDir()
	tool := copyBinary(t, "true", filepath.Join(dir, "tool"))
	f := open(t, Opener{TmpDirs: []string{dir}}, tool, nil, "/")
	if f.Identity().Class != ClassLeased {
		t.Fatalf("class %v", f.Identity().Class)
	}
	f.parts[0].unlock()
	if err := f.Recheck(); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
	f.starting = false
	f.parts[0].unlock()
	w, err := os.OpenFile(tool, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := f.Recheck(); err == nil {
		t.Error("passed while it is open for writing")
	}
	w.Close()
	if err := f.Recheck(); err == nil {
		t.Error("passed although it was written")
	}
}

func TestPruneCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "digest")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	old := write(t, filepath.Join(dir, "old"), "x", 0o600)
	write(t, filepath.Join(dir, "new"), "x", 0o600)
	if err := os.Chtimes(old, now, now.Add(-pruneAge-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n, err := PruneCache(dir, now); n != 1 || err != nil || len(records(t, dir)) != 1 {
		t.Errorf("removed %d, %v, left %q", n, err, records(t, dir))
	}
	if n, err := PruneCache(filepath.Join(dir, "none"), now); n != 0 || err != nil {
		t.Errorf("a missing cache: %d, %v", n, err)
	}
}
