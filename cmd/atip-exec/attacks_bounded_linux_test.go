package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

const (
	// soon is more than a loaded machine needs for one run, and less than what waits for a
	// FIFO or reads a device takes.
	soon = time.Minute
	// muchMemory is what no run of a command that does nothing needs, in KiB.
	muchMemory = 400 << 10
)

// plants are what a run can leave where a reader expects a file.
var plants = map[string]func(path string) error{
	"fifo":      func(p string) error { return syscall.Mkfifo(p, 0o644) },
	"zero":      func(p string) error { return os.Symlink("/dev/zero", p) },
	"directory": func(p string) error { return os.Mkdir(p, 0o755) },
	"loop":      func(p string) error { return os.Symlink(filepath.Base(p), p) },
	"sparse": func(p string) error {
		f, err := os.Create(p)
		if err == nil {
			err = errors.Join(f.Truncate(1<<30), f.Close())
		}
		return err
	},
}

// plant puts something in the place of a file, of which nothing is left.
func (w world) plant(what, path string) {
	w.t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755), plants[what](path)); err != nil {
		w.t.Fatal(err)
	}
}

// ends runs the wrapper and reports what became of it. It fails the test if the wrapper itself
// neither ends nor stays small.
func (w world) ends(name string, args ...string) (code int, stderr string) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), soon)
	defer stop()
	// A process that this one starts begins with the peak of this one, so a small one stands between.
	peak := filepath.Join(w.t.TempDir(), "peak")
	const measure = "import resource, subprocess, sys\nr = subprocess.run(sys.argv[2:])\n" +
		"open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\nsys.exit(r.returncode & 255)\n"
	cmd := exec.CommandContext(ctx, "python3", append([]string{"-c", measure, peak, filepath.Join(bin, "atip-exec")}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	like := w.command()
	cmd.Dir, cmd.Env, cmd.WaitDelay = like.Dir, like.Env, time.Second
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	if ctx.Err() != nil {
		w.t.Errorf("%s: %q did not end: %s", name, args, out.String())
		return -1, ""
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	raw, err := os.ReadFile(peak)
	if err != nil {
		w.t.Fatalf("%s: %v: %v: %s", name, err, cmd.ProcessState, out.String())
	}
	if used, err := strconv.Atoi(string(raw)); err != nil || used > muchMemory {
		w.t.Errorf("%s: %q took %s KiB", name, args, raw)
	}
	if strings.Contains(out.String(), "E5001") || strings.Contains(out.String(), "goroutine ") {
		w.t.Errorf("%s: %q: %s", name, args, out.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// TestAttackPlantedFiles: what a run leaves in the place of a file that the wrapper reads makes
// no later run hang or grow.
func TestAttackPlantedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fifo := filepath.Join(w.ws, "control")
	w.plant("fifo", fifo)
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if exec.CommandContext(ctx, "cat", fifo).Run(); ctx.Err() == nil {
		t.Fatal("control: cat of a FIFO ended")
	}
	os.Remove(fifo)
	for row, c := range []struct {
		file string
		args []string
	}{
		{".git/config", []string{"--", "true"}},
		{".git/HEAD", []string{"--", "git", "status"}},
		{".git/index", []string{"--", "ls"}},
		{".gitmodules", []string{"--", "git", "fetch", "origin"}},
		{".gitignore", []string{"--", "ls"}},
		{".agent-tools/policy.json", []string{"--", "true"}},
		{"package.json", []string{"--dry-run", "--", "npm", "test"}}, // npm itself grows
		{"Makefile", []string{"--", "make", "-n"}},
		{".env", []string{"--", "ls"}},
		{"run.sh", []string{"--", "sh", "run.sh"}},
		{"run.sh", []string{"script", "run.sh"}},
		{"run.sh", []string{"--", "./run.sh"}},
		{"p.json", []string{"--policy", "p.json", "--", "true"}},
		{"in", []string{"--stdin", "in", "--", "true"}},
		{"Cargo.toml", []string{"--", "cargo", "metadata"}},
		{"go.mod", []string{"--", "go", "env", "GOOS"}},
		{".tool-versions", []string{"--", "true"}},
	} {
		t.Run(strings.Join(append(c.args, c.file), " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for n, what := range slices.Sorted(maps.Keys(plants)) {
				if !whole() && (n+row)%2 != 0 {
					continue
				}
				name := c.file + " as " + what
				kept := filepath.Join(t.TempDir(), "kept")
				path := filepath.Join(w.ws, c.file)
				had := os.Rename(path, kept) == nil
				w.plant(what, path)
				// The command may wait for its file, and is ended then: the wrapper waits for nothing.
				code, stderr := w.ends(name, append([]string{"--timeout", "2s", "--kill-after", "500ms"}, c.args...)...)
				if code != 0 && stderr == "" && what != "directory" {
					t.Errorf("%s: exit %d, and nothing says why", name, code)
				}
				if strings.Contains(stderr, "the plan of the command was not made") {
					t.Errorf("%s: planning waited for it: %s", name, stderr)
				}
				if (c.args[0] == "--policy" || c.args[0] == "--stdin") && code == 0 && what != "sparse" || c.file == ".agent-tools/policy.json" && code == 0 {
					t.Errorf("%s: it was taken for a file: %s", name, stderr)
				}
				os.RemoveAll(path)
				if had {
					if err := os.Rename(kept, path); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// settled waits until all threads of a process have waited for something for half a second: one that
// only has to wait for a processor does not sleep.
func settled(t *testing.T, pid int) {
	t.Helper()
	asleep := 0
	for began := time.Now(); asleep < 25; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatal("it never waits for anything")
		}
		asleep++
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			if s, err := procstat.Of(tid); err != nil || s.Fields[procstat.State] != "S" {
				asleep = 0
			}
		}
	}
}

// TestPlanningEnds: a plan that waits, here for a script that never ends, is given up at
// --timeout and on a signal, and says so in the status.
func TestPlanningEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		signal os.Signal
		code   int
		says   string
	}{
		"timeout": {args: []string{"--timeout", "500ms"}, code: 124, says: "E4001"},
		"term":    {signal: syscall.SIGTERM, code: 143, says: "E4009"},
		"int":     {signal: os.Interrupt, code: 130, says: "E4009"},
	} {
		for _, script := range []string{"-", "/dev/fd/0"} {
			w := newWorld(t)
			r, silent, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer silent.Close()
			status, to, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer status.Close()
			cmd := w.command(append(append([]string{"--status-fd", "3"}, c.args...), "script", script)...)
			var stderr bytes.Buffer
			cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = r, &stderr, []*os.File{to}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			to.Close()
			ended := time.AfterFunc(soon, func() { cmd.Process.Kill() })
			if c.signal != nil {
				settled(t, cmd.Process.Pid) // by then the signals are taken over
				cmd.Process.Signal(c.signal)
			}
			cmd.Wait()
			ended.Stop()
			line := make([]byte, 8192)
			n, _ := status.Read(line)
			if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(stderr.String(), c.says) || !bytes.Contains(line[:n], []byte(`"code":"`+c.says+`"`)) {
				t.Errorf("%s, script %s: %d: %s\nstatus: %s", name, script, got, stderr.String(), line[:n])
			}
		}
	}
}
