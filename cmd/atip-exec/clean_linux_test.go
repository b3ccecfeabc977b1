package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cleaned is atip-exec.sandbox-clean/1.
type cleaned struct {
	DryRun        bool
	Bytes         int64
	Removed, Kept []struct {
		Path, Why string
		Files     int
	}
}

func (w world) clean(args ...string) (doc cleaned) {
	w.t.Helper()
	line := typed(strings.Join(append([]string{filepath.Join(bin, "atip"), "sandbox", "clean", "-o", "json"}, args...), " ") + " 2>/dev/null")
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/bin:/bin", "SHELL=/bin/sh"}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &doc)
	}
	if err != nil {
		w.t.Fatalf("clean %v: %v: %s", args, err, out)
	}
	return doc
}

// TestClean: what runs leave in the cache directory is removed on request, with all that
// they may have put there, and never under a run.
func TestClean(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		outside := filepath.Join(w.home, "outside")
		put(t, outside, map[string]string{"file": "kept\n"})
		put(t, w.ws, map[string]string{"go.mod": "module example.invalid/m\n"})
		put(t, w.home, map[string]string{".cache/go-build/README": "cache", ".cache/atip-exec/ws/notes": "no directory of ours"})
		if doc := w.clean(); len(doc.Removed)+len(doc.Kept) != 0 {
			t.Errorf("%s: nothing has run: %+v", tier, doc)
		}
		// A link out, a directory that nobody can write, a name that is no text.
		closed := fmt.Sprintf("atip-exec-test-closed-%s-%d", tier, os.Getpid())
		t.Cleanup(func() { os.RemoveAll("/tmp/" + closed) })
		const leave = `import os
t = os.environ['TMPDIR'].encode()
os.symlink('` + "OUTSIDE" + `', t + b'/link')
os.makedirs(t + b'/closed/\xff/deep')
open(t + b'/closed/\xff/deep/file', 'w').write('x' * 5000)
os.chmod(t + b'/closed/\xff/deep', 0o500)
os.chmod(t + b'/closed/\xff', 0)
`
		if status, _, stderr := w.python(strings.NewReplacer("OUTSIDE", outside, "closed", closed).Replace(leave)); status != 0 {
			t.Fatalf("%s: status %d: %s", tier, status, stderr)
		}
		dirs, _ := filepath.Glob(w.home + "/.cache/atip-exec/ws/????????????????")
		if len(dirs) != 1 {
			t.Fatalf("%s: %v", tier, dirs)
		}

		// Not under a run.
		name := "sleep 84." + strconv.Itoa(os.Getpid())
		cmd := w.command("--", "sleep", strings.TrimPrefix(name, "sleep "))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 2000 && !alive(name); n++ {
			time.Sleep(10 * time.Millisecond)
		}
		doc := w.clean()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gone(t, name)
		if len(doc.Removed) != 0 || len(doc.Kept) != 1 || doc.Kept[0].Why != "a run uses it" {
			t.Errorf("%s: under a run: %+v", tier, doc)
		}

		if doc := w.clean("--older-than", "1d"); len(doc.Removed) != 0 || len(doc.Kept) != 1 || doc.Kept[0].Why != "it was used since" {
			t.Errorf("%s: used today: %+v", tier, doc)
		}
		if doc := w.clean("--dry-run"); !doc.DryRun || len(doc.Removed) != 1 || doc.Removed[0].Path != dirs[0] {
			t.Errorf("%s: dry run: %+v", tier, doc)
		}
		if _, err := os.Stat(dirs[0] + "/tmp"); err != nil {
			t.Errorf("%s: dry run: %v", tier, err)
		}
		old := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(dirs[0], old, old); err != nil {
			t.Fatal(err)
		}
		if doc := w.clean("--older-than", "1d"); len(doc.Removed) != 1 || len(doc.Kept) != 0 {
			t.Errorf("%s: two days old: %+v", tier, doc)
		}
		if left, err := os.ReadDir(filepath.Join(w.home, ".cache/atip-exec/ws")); err != nil || len(left) != 1 || left[0].Name() != "notes" {
			t.Errorf("%s: left: %v, %v", tier, left, err)
		}
		if raw, err := os.ReadFile(filepath.Join(outside, "file")); err != nil || string(raw) != "kept\n" {
			t.Errorf("%s: outside: %v, %q", tier, err, raw)
		}
		// The next run makes its own.
		if status, _, stderr := w.python("import os; open(os.environ['TMPDIR'] + '/x', 'w')"); status != 0 {
			t.Errorf("%s: the next run: status %d: %s", tier, status, stderr)
		}
	}
}

// TestCleanUnderRuns: runs that start while their directory is removed time and again all
// have one.
func TestCleanUnderRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			line := typed(filepath.Join(bin, "atip") + " sandbox clean -o json")
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/bin:/bin", "SHELL=/bin/sh"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("clean: %v: %s", err, out)
			}
		}
	}()
	name := fmt.Sprintf("atip-exec-test-clean-%d", os.Getpid())
	t.Cleanup(func() { os.Remove("/tmp/" + name) })
	put(t, w.ws, map[string]string{"tmp.py": "import os\nname = os.environ['TMPDIR'] + '/" + name + "'\nopen(name, 'w').write('x')\nprint(open(name).read())\n"})
	// What the user's own programs have put into /tmp is there in each of them, too.
	shared := fmt.Sprintf("/tmp/atip-exec-test-shared-%d", os.Getpid())
	t.Cleanup(func() { os.Remove(shared) })
	if err := os.WriteFile(shared, []byte("shared\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if out, err := w.command("--", "cat", shared).CombinedOutput(); err != nil || string(out) != "shared\n" {
			t.Errorf("%v: %s", err, out)
		}
		if out, err := w.command("--", "python3", "tmp.py").CombinedOutput(); err != nil || string(out) != "x\n" {
			t.Errorf("%v: %s", err, out)
		}
	}
	close(stop)
	<-done
}
