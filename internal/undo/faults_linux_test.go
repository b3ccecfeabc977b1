package undo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTorn: a file that changes while it is copied is named as not covered, and nothing else is lost by it.
func TestTorn(t *testing.T) {
	for range 20 {
		p := world(t)
		busy := put(t, strings.Repeat("x", 8<<20), p.Root, "busy")
		put(t, "quiet", p.Root, "quiet")
		f, err := os.OpenFile(busy, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := 0; !stop.Load(); n++ {
				f.WriteAt([]byte(fmt.Sprint(n)), int64(n%1000))
			}
		}()
		s := open(t, p)
		c, err := s.Before(Run{Run: "r"}, false)
		s.Close()
		stop.Store(true)
		<-done
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Losses) == 0 {
			continue // it was quick enough, or the writer had no processor
		}
		if len(c.Losses) != 1 || c.Losses[0].Path != busy || c.Losses[0].Why != Torn {
			t.Fatalf("%v", c.Losses)
		}
		now, err := os.ReadFile(busy)
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(p.Root, "quiet"), nil, 0o644)
		undo(t, p, Request{Run: "r", Force: true})
		have(t, "quiet", p.Root, "quiet")
		if again, err := os.ReadFile(busy); err != nil || !bytes.Equal(again, now) {
			t.Errorf("what no checkpoint holds was changed: %v", err)
		}
		return
	}
	t.Error("no copy was ever torn")
}

// TestOtherKinds: what became a file was a directory, and the other way round; a sparse file stays one.
func TestOtherKinds(t *testing.T) {
	p := world(t)
	put(t, "1", p.Root, "dir/sub/f")
	put(t, "2", p.Root, "file")
	sparse := filepath.Join(p.Root, "holes")
	if err := errors.Join(os.WriteFile(sparse, []byte("x"), 0o644), os.Truncate(sparse, 1<<20)); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, p.Root)
	run(t, p, "r", func() {
		os.RemoveAll(filepath.Join(p.Root, "dir"))
		put(t, "now a file", p.Root, "dir")
		os.Remove(filepath.Join(p.Root, "file"))
		put(t, "now below a directory", p.Root, "file/deep/f")
		os.Remove(sparse)
	})
	if res := undo(t, p, Request{}); len(res.Left)+len(res.Conflicts) > 0 {
		t.Errorf("%+v", res)
	}
	equal(t, "tree", before, snapshot(t, p.Root))
	var st unix.Stat_t
	if err := unix.Stat(sparse, &st); err != nil || st.Size != 1<<20 || st.Blocks*512 > 256<<10 {
		t.Errorf("%d blocks of %d bytes, %v", st.Blocks, st.Size, err)
	}
}

// TestClockSetBack: what is remembered from the future is used and kept like any other.
func TestClockSetBack(t *testing.T) {
	p := world(t)
	f := put(t, "1", p.Root, "f")
	future := time.Now().Add(30 * 24 * time.Hour)
	os.Chtimes(f, future, future)
	s := open(t, p)
	c, err := s.Before(Run{Run: "r1", Cmd: "r1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(s.dir, "manifest", seqName(c.Seq))
	// What the clock said then: of the manifest's file, of the run.
	runs, err := os.ReadFile(filepath.Join(s.dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	then := bytes.ReplaceAll(runs, []byte(`"t":"`+time.Now().UTC().Format("2006-01")), []byte(`"t":"`+future.UTC().Format("2006-01")))
	if err := errors.Join(os.WriteFile(filepath.Join(s.dir, "runs"), then, 0o600), os.Chtimes(manifest, future, future)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	os.WriteFile(f, []byte("2"), 0o644)
	s = open(t, p)
	if _, err := s.After("r1", c.Seq); err != nil {
		t.Fatal(err)
	}
	s.Tidy(time.Now())
	s.Close()
	run(t, p, "r2", func() { os.WriteFile(f, []byte("3"), 0o644) })
	undo(t, p, Request{Run: "r2"})
	have(t, "2", p.Root, "f")
	undo(t, p, Request{Run: "r1", Force: true})
	have(t, "1", p.Root, "f")
}

// mountsEnv makes the test binary the process with mounts of its own.
const mountsEnv = "ATIP_TEST_UNDO_MOUNTS"

// TestFullDisk: a store on a disk that is full, or out of inodes, makes no checkpoint or one that says what it
// lacks, and is whole afterwards; a workspace on another file system than its store is copied.
func TestFullDisk(t *testing.T) {
	if os.Getenv(mountsEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), mountsEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			t.Skip("no user namespaces here: ", err)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	tmpfs := func(dir, options string, flags uintptr) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("small", func(t *testing.T) {
		p := world(t)
		tmpfs(p.Base, "size=1m,mode=700", 0)
		defer unix.Unmount(p.Base, unix.MNT_DETACH)
		f := put(t, "1", p.Root, "f")
		s := open(t, p)
		defer s.Close()
		c, err := s.Before(Run{Run: "r"}, false)
		if err != nil || len(c.Losses) != 1 || c.Losses[0].Path != f || c.Losses[0].Why != OverLimit {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("inodes", func(t *testing.T) {
		p := world(t)
		tmpfs(p.Base, "size=200m,mode=700,nr_inodes=9", 0)
		defer unix.Unmount(p.Base, unix.MNT_DETACH)
		put(t, "1", p.Root, "f")
		put(t, strings.Repeat("2", bigSize), p.Root, "big")
		before := snapshot(t, p.Root)
		s := open(t, p)
		if _, err := s.Before(Run{Run: "r"}, false); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("%v", err)
		}
		s.Close()
		filepath.WalkDir(p.Base, func(at string, d os.DirEntry, err error) error {
			if err == nil && (strings.HasSuffix(at, ".tmp") || strings.HasSuffix(at, ".new")) {
				t.Errorf("%s is left", at)
			}
			return nil
		})
		tmpfs(p.Base, "nr_inodes=200", unix.MS_REMOUNT)
		run(t, p, "r2", func() { os.RemoveAll(filepath.Join(p.Root, "f")); os.Remove(filepath.Join(p.Root, "big")) })
		undo(t, p, Request{Run: "r2"})
		equal(t, "tree", before, snapshot(t, p.Root))
	})
	t.Run("other file system", func(t *testing.T) {
		p := world(t)
		tmpfs(p.Root, "size=20m,mode=755", 0)
		defer unix.Unmount(p.Root, unix.MNT_DETACH)
		put(t, "1", p.Root, "d/f")
		put(t, strings.Repeat("2", 2*bigSize), p.Root, "big")
		if err := os.Link(filepath.Join(p.Root, "d/f"), filepath.Join(p.Root, "hard")); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, p.Root)
		run(t, p, "r", func() {
			for _, name := range []string{"d", "big", "hard"} {
				os.RemoveAll(filepath.Join(p.Root, name))
			}
		})
		undo(t, p, Request{})
		equal(t, "tree", before, snapshot(t, p.Root))
		// What is mounted in the workspace is another one, and is said so.
		tmpfs(filepath.Join(p.Root, "mounted"), "size=1m", 0)
		defer unix.Unmount(filepath.Join(p.Root, "mounted"), unix.MNT_DETACH)
		put(t, "1", p.Root, "mounted/f")
		s := open(t, p)
		defer s.Close()
		if c, err := s.Before(Run{Run: "r3"}, false); err != nil || len(c.Losses) != 1 || c.Losses[0].Why != OtherFilesystem {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// TestManyFiles: ATIP_TEST_WHOLE=1 does it with 100,000.
func TestManyFiles(t *testing.T) {
	count := tries(3000, 100_000)
	p := world(t)
	for i := range count {
		name := filepath.Join(p.Root, fmt.Sprint("d", i/500), fmt.Sprint("f", i))
		if i%500 == 0 {
			if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name, []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, p.Root)
	c := run(t, p, "r", func() {
		for i := range count / 500 {
			if i%2 == 0 {
				os.RemoveAll(filepath.Join(p.Root, fmt.Sprint("d", i)))
			}
		}
	})
	if !c.Whole || len(c.Losses) > 0 {
		t.Fatalf("%+v", c)
	}
	undo(t, p, Request{})
	equal(t, "tree", before, snapshot(t, p.Root))
}

// TestWalkEnds: a walk that ends early closes what it opened, and one of two roots sees both.
func TestWalkEnds(t *testing.T) {
	p := world(t)
	other := filepath.Join(filepath.Dir(p.Root), "git")
	p.GitDirs = []string{other}
	for i := range 300 {
		put(t, "x", p.Root, fmt.Sprint("d", i%20), fmt.Sprint("e", i%60), fmt.Sprint("f", i))
		put(t, "x", other, fmt.Sprint("d", i%7), fmt.Sprint("f", i))
	}
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := open()
	whole, _, err := walk(&p, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 20 + 60 + 300 + 1 + 7 + 300; !whole.Whole || len(whole.entries) != want || !slices.IsSortedFunc(whole.entries, func(a, b entry) int { return compare(a.path, b.path) }) {
		t.Errorf("%d entries, not %d in order", len(whole.entries), want)
	}
	for limit := range 60 {
		p.Limits.Entries = 11 * limit
		m, _, err := walk(&p, whole, limit%2 == 0)
		if err != nil || m.Whole {
			t.Errorf("limit %d: %v, whole %v", p.Limits.Entries, err, m.Whole)
		}
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}
