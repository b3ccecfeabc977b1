package undo

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// world is a workspace with a store beside it.
func world(t testing.TB) Place { return worldIn(t, scratch(t)) }

// scratchName begins with a dot: what a run of another test finds in the machine's /tmp under such a name it leaves alone.
const scratchName = ".atip-undo-test-"

func scratch(t testing.TB) string {
	t.Helper()
	made, err := os.MkdirTemp("", scratchName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(made) })
	return made
}

func worldIn(t testing.TB, dir string) Place {
	t.Helper()
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(top, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return Place{Root: ws, Base: filepath.Join(top, "store", "atip-exec", "undo"), UID: os.Getuid(), Limits: Defaults(), unsynced: true}
}

func open(t testing.TB, p Place) *Store {
	t.Helper()
	s, err := Open(p, true)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run is what a run does with the store: a checkpoint, the command, a look.
func run(t testing.TB, p Place, id string, command func()) *Checkpoint {
	t.Helper()
	s := open(t, p)
	c, err := s.Before(Run{Run: id, Cmd: id}, false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	command()
	s = open(t, p)
	defer s.Close()
	if _, err := s.After(id, c.Seq); err != nil {
		t.Fatal(err)
	}
	return c
}

func undo(t testing.TB, p Place, q Request) *Result {
	t.Helper()
	s := open(t, p)
	defer s.Close()
	if q.ID == "" {
		q.ID = fmt.Sprintf("undo%d", time.Now().UnixNano())
	}
	res, err := s.Undo(q)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// snapshot describes a tree without any code of this package.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	out, first := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			if first[st.Ino] == "" {
				first[st.Ino] = rel
			}
			text += fmt.Sprintf(" %q %d link=%s", raw, info.ModTime().UnixNano(), first[st.Ino])
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text += " -> " + to
		case info.IsDir() && !strings.Contains(p+"/", "/.git/"):
			text += fmt.Sprint(" ", info.ModTime().UnixNano())
		}
		out[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equal(t testing.TB, what string, want, have map[string]string) {
	t.Helper()
	n := 0
	for p, w := range want {
		if have[p] != w {
			if n++; n < 8 {
				t.Errorf("%s: %q was %.200s, is %.200s", what, p, w, have[p])
			}
		}
	}
	for p, h := range have {
		if want[p] == "" {
			if n++; n < 8 {
				t.Errorf("%s: %q was not there, is %.200s", what, p, h)
			}
		}
	}
}

// acts are what random programs are made of. They stay below top.
type acts struct {
	t   testing.TB
	r   *rand.Rand
	top string
}

func (a acts) path() string {
	names := []string{"a", "b", "c.txt", "d", "sub", "a.b", "x\ny", "\xff\xfe", strings.Repeat("n", 255)}
	p := a.top
	for range 1 + a.r.IntN(3) {
		p = filepath.Join(p, names[a.r.IntN(len(names))])
	}
	return p
}

func (a acts) text() []byte {
	n := a.r.IntN(200)
	if a.r.IntN(12) == 0 {
		n = bigSize + a.r.IntN(2*bigSize)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.r.IntN(4))
	}
	return b
}

// one does something; that it fails is part of it. None of it follows a link out: links
// point to names of this world, and files are opened without following.
func (a acts) one() {
	p, q := a.path(), a.path()
	write := func(flag int) {
		fd, err := unix.Open(p, flag|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, uint32([]int{0o644, 0o600, 0o755, 0o400}[a.r.IntN(4)]))
		if err == nil {
			unix.Write(fd, a.text())
			unix.Close(fd)
		}
	}
	switch a.r.IntN(13) {
	case 0, 1, 2:
		write(unix.O_CREAT | unix.O_TRUNC)
	case 3:
		write(0)
	case 4:
		write(unix.O_APPEND)
	case 5:
		unix.Rename(p, q)
	case 6:
		os.Remove(p)
	case 7:
		// RemoveAll opens the parent, and a FIFO would make it wait.
		if info, err := os.Lstat(filepath.Dir(p)); err == nil && info.IsDir() && a.r.IntN(3) == 0 {
			os.RemoveAll(p)
		}
	case 8:
		unix.Link(p, q)
	case 9:
		unix.Symlink([]string{"a", "../b", "sub/c.txt", "gone"}[a.r.IntN(4)], p)
	case 10:
		if st := (unix.Stat_t{}); unix.Lstat(p, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
			mode := uint32([]int{0o600, 0o644, 0o755, 0o700, 0o444, 0o2755, 0o500}[a.r.IntN(7)])
			if st.Mode&unix.S_IFMT == unix.S_IFDIR && os.Getuid() != 0 {
				mode |= 0o500 // else this test itself could not look into it
			}
			unix.Chmod(p, mode)
		}
	case 11:
		os.MkdirAll(p, 0o755)
	case 12:
		unix.Mkfifo(p, 0o644)
	}
}

// tries is how often something is tried: all of it with ATIP_TEST_WHOLE.
func tries(some, all int) int {
	if os.Getenv("ATIP_TEST_WHOLE") != "" {
		return all
	}
	return some
}

// TestRandomPrograms: whatever programs do, an undo restores what was there before them;
// and an undo of the undo what they had done. ATIP_TEST_WHOLE=1 has 1,000 programs.
func TestRandomPrograms(t *testing.T) {
	programs, seed := tries(100, 1000), rand.Uint64()
	if testing.Short() { // under the race detector it is not the programs that are tried
		programs = 20
	}
	t.Logf("seed %d", seed)
	const each = 20
	for n := 0; n < programs; n += each {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		p := world(t)
		a := acts{t, r, p.Root}
		for range 60 {
			a.one()
		}
		for k := range each {
			before := snapshot(t, p.Root)
			c := run(t, p, fmt.Sprint("run", k), func() {
				for range 1 + r.IntN(30) {
					a.one()
				}
			})
			if len(c.Losses) > 0 {
				t.Fatalf("program %d: not covered: %v", n+k, c.Losses)
			}
			after := snapshot(t, p.Root)
			res := undo(t, p, Request{Run: fmt.Sprint("run", k)})
			equal(t, fmt.Sprintf("program %d", n+k), before, snapshot(t, p.Root))
			if len(res.Conflicts)+len(res.Left) > 0 {
				t.Errorf("program %d: conflicts %v, left %v", n+k, res.Conflicts, res.Left)
			}
			if k%2 == 0 {
				undo(t, p, Request{Run: open1(t, p)})
				equal(t, fmt.Sprintf("program %d, undone twice", n+k), after, snapshot(t, p.Root))
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}

// open1 is the id of what was remembered last.
func open1(t testing.TB, p Place) string {
	s := open(t, p)
	defer s.Close()
	runs := s.Runs()
	return runs[len(runs)-1].Run
}
