package plan

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// snapshot is what a directory held, so that what a text did there does not decide
// what the next one reads.
type snapshot struct {
	root    string
	entries map[string]*kept
	order   []string // parents first
}

type kept struct {
	mode    fs.FileMode
	content []byte
	link    string
	stamp   stamp
}

// stamp tells whether somebody touched a file since.
type stamp struct {
	size   int64
	inode  uint64
	mode   fs.FileMode
	change time.Time
}

func stampOf(info fs.FileInfo) stamp {
	st := info.Sys().(*syscall.Stat_t)
	return stamp{info.Size(), st.Ino, info.Mode(), time.Unix(st.Ctim.Unix())}
}

func takeSnapshot(t testing.TB, root string) *snapshot {
	t.Helper()
	s := &snapshot{root: root, entries: map[string]*kept{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		k := &kept{mode: info.Mode(), stamp: stampOf(info)}
		switch {
		case info.Mode().IsRegular():
			k.content, err = os.ReadFile(path)
		case info.Mode()&fs.ModeSymlink != 0:
			k.link, err = os.Readlink(path)
		}
		s.entries[path] = k
		s.order = append(s.order, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// restore puts everything back and says whether something had changed.
func (s *snapshot) restore(t testing.TB) (changed bool) {
	t.Helper()
	var extra []string
	seen := map[string]bool{}
	filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			// A directory that cannot be read was made so.
			os.Chmod(path, 0o755)
			changed = true
			return nil
		}
		seen[path] = true
		k := s.entries[path]
		if k == nil || k.mode.Type() != d.Type() {
			extra = append(extra, path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	for _, path := range extra {
		changed = true
		delete(seen, path)
		filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				os.Chmod(p, 0o755)
			}
			return nil
		})
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range s.order {
		k := s.entries[path]
		if info, err := os.Lstat(path); err == nil && (k.mode.IsDir() && info.Mode() == k.mode || stampOf(info) == k.stamp) {
			continue
		}
		changed = true
		s.put(t, path, k)
	}
	return changed
}

func (s *snapshot) put(t testing.TB, path string, k *kept) {
	t.Helper()
	var err error
	switch {
	case k.mode.IsDir():
		if err = os.MkdirAll(path, 0o755); err == nil {
			err = os.Chmod(path, k.mode.Perm())
		}
	case k.mode&fs.ModeSymlink != 0:
		os.Remove(path)
		err = os.Symlink(k.link, path)
	default:
		os.Remove(path)
		if err = os.WriteFile(path, k.content, 0o600); err == nil {
			err = os.Chmod(path, k.mode.Perm())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	k.stamp = stampOf(info)
}

// TestRestore holds the reset itself: whatever is done to a world, it is undone.
func TestRestore(t *testing.T) {
	w := newCorpusWorld(t)
	s := takeSnapshot(t, w.Home)
	if s.restore(t) {
		t.Error("a world that nobody touched has changed")
	}
	before := listing(t, w.Home)
	for _, do := range []func() error{
		func() error { return os.Remove(filepath.Join(w.Dir, "README.md")) },
		func() error { return os.RemoveAll(filepath.Join(w.Dir, "src")) },
		func() error { return os.WriteFile(filepath.Join(w.Dir, "main.go"), []byte("x"), 0o644) },
		func() error { return os.MkdirAll(filepath.Join(w.Dir, "new", "deep"), 0o700) },
		func() error { return os.Mkdir(filepath.Join(w.Dir, "closed"), 0) },
		func() error { return os.Rename(filepath.Join(w.Dir, "docs"), filepath.Join(w.Dir, "moved")) },
		func() error { return os.Chmod(filepath.Join(w.Dir, "x.sh"), 0o600) },
		func() error { return os.Chmod(filepath.Join(w.Dir, "sub"), 0o500) },
		func() error {
			os.Remove(filepath.Join(w.Dir, "src", "a"))
			return os.Symlink("/etc/passwd", filepath.Join(w.Dir, "src", "a"))
		},
		func() error {
			os.RemoveAll(filepath.Join(w.Dir, "dist"))
			return os.WriteFile(filepath.Join(w.Dir, "dist"), nil, 0o644)
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if !s.restore(t) {
			t.Error("a change was not seen")
		}
		if now := listing(t, w.Home); !slices.Equal(now, before) {
			t.Fatalf("not as it was: %v", now)
		}
	}
}

func listing(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := path + " " + info.Mode().String()
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + sum(raw)
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
