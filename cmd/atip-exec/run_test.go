package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// world is a home and a workspace of its own.
type world struct {
	t        *testing.T
	home, ws string
	path     string // in front of PATH
}

func newWorld(t *testing.T) world {
	t.Helper()
	dir := t.TempDir()
	w := world{t: t, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws")}
	for _, d := range []string{w.home, w.ws} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(repository(w.ws), probed(w.home, os.Getuid())); err != nil {
		t.Fatal(err)
	}
	return w
}

// emptyRepository is what git makes of an empty directory, once.
var emptyRepository = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "repository")
	git := exec.Command("git", "init", "-q", "-b", "main", dir)
	git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := git.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("git init: %v: %s", err, out)
	}
	return dir, nil
})

// repository makes the directory a work tree, as git init does.
func repository(dir string) error {
	from, err := emptyRepository()
	if err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(from))
}

func (w world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "atip-exec"), args...)
	cmd.Dir = w.ws
	cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin:" + bin}
	return cmd
}

// auditSummary asks `atip audit verify`.
func (w world) auditSummary() (records, torn int) {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "atip"), "audit", "verify", "-o", "json")
	cmd.Env = []string{"HOME=" + w.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("audit verify: %v: %s", err, out)
	}
	var doc struct {
		OK      bool
		Summary struct{ Records, Torn int }
	}
	if err := json.Unmarshal(out, &doc); err != nil || !doc.OK {
		w.t.Fatalf("audit verify: %v: %s", err, out)
	}
	return doc.Summary.Records, doc.Summary.Torn
}

func TestLargeStreamIsIdentical(t *testing.T) {
	const script = `import sys
line = b"%08d the quick brown fox jumps over the lazy dog and back\n"
for block in range(0, 1700):
    sys.stdout.buffer.write(b"".join(line % (block * 1000 + i) for i in range(1000)))
`
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.ws, "big.py"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	digest := func(cmd *exec.Cmd) (string, int64) {
		h := sha256.New()
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(h, pipe)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", h.Sum(nil)), n
	}
	plain := exec.Command("python3", "big.py")
	plain.Dir = w.ws
	plain.Env = w.command().Env
	want, n := digest(plain)
	if n < 100_000_000 {
		t.Fatalf("the stream has only %d bytes", n)
	}
	wrapped := w.command("--", "python3", "big.py")
	got, _ := digest(wrapped)
	if got != want {
		t.Error("the stream was changed")
	}
	// Maxrss of the wrapper's own tree includes python; the wrapper alone is measured by the bench.
}

// TestSecretAtEveryCut writes a token in two writes, cut at each byte, on both
// streams: neither half may pass.
func TestSecretAtEveryCut(t *testing.T) {
	const script = `import os, sys, time
token = "ghp_" + "a1B2c3D4e5F6g7H8i9" + "J0k1L2m3N4o5P6q7R8"
for fd in (1, 2):
    for cut in range(1, len(token)):
        os.write(fd, b"<" + token[:cut].encode())
        time.sleep(0.002)
        os.write(fd, token[cut:].encode() + b">\n")
`
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.ws, "cuts.py"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("--", "python3", "cuts.py")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for name, out := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 39 {
			t.Fatalf("%s has %d lines, want 39", name, len(lines))
		}
		for i, line := range lines {
			if line != lines[0] || !strings.HasPrefix(line, "<[REDACTED:github-pat:") {
				t.Errorf("%s, cut %d: %q", name, i+1, line)
			}
		}
	}
}

func TestParallelRunsLeaveOneChain(t *testing.T) {
	w := newWorld(t)
	var running sync.WaitGroup
	slots := make(chan struct{}, 16)
	for range 200 {
		running.Add(1)
		slots <- struct{}{}
		go func() {
			defer running.Done()
			defer func() { <-slots }()
			if out, err := w.command("--", "true").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}()
	}
	running.Wait()
	if records, _ := w.auditSummary(); records != 400 {
		t.Errorf("%d records, want an intent and an end of each of 200 runs", records)
	}
}

func TestKillNeverCorruptsTheChain(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewSource(1))
	for i := range 60 {
		// The duration is a name: it tells this run's children from all others.
		name := fmt.Sprintf("77.%d%04d", os.Getpid(), 1000+i)
		cmd := w.command("--", "sleep", name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Intn(12000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		gone(t, "sleep "+name)
	}
	if out, err := w.command("--", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.auditSummary()
}

// TestKilledRunIsRecorded: each command leaves a trace before it starts, whatever it does, and
// the next run writes down that its wrapper was killed. A run that goes on is not taken for a
// dead one, and one that ended leaves no mark.
func TestKilledRunIsRecorded(t *testing.T) {
	for _, tc := range []struct{ name, tier, tool string }{
		{"a command that only waits", "T2", "sleep 77.31"}, {"in a private root", "T3", "sleep 77.32"},
		{"code", "T3", "python3 -c import\ttime;time.sleep(60)"}, {"a shell string", "T2", "-c sleep\t77.33"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			policy := filepath.Join(w.home, ".config/agent-tools/policy.json")
			if err := os.MkdirAll(filepath.Dir(policy), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(policy, []byte(`{"version":1,"sandbox":{"tier":"`+tc.tier+`"}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			words := []string{}
			for _, word := range strings.Fields(strings.ReplaceAll(tc.tool, "\t", "\x01")) {
				words = append(words, strings.ReplaceAll(word, "\x01", " "))
			}
			if words[0] != "-c" {
				words = append([]string{"--"}, words...)
			}
			start := func() *exec.Cmd {
				cmd := w.command(words...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return cmd
			}
			marks := func(want int) []string {
				var names []string
				for range 6000 {
					names, _ = filepath.Glob(filepath.Join(w.home, ".local/state/atip-exec/audit/started/*"))
					if len(names) == want {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if len(names) != want {
					t.Fatalf("%d marks, want %d", len(names), want)
				}
				return names
			}
			killed := start()
			marks(1)
			intents := func(want int) { // each is written after its mark
				for range 6000 {
					if files, _ := filepath.Glob(filepath.Join(w.home, ".local/state/atip-exec/audit/*.jsonl")); len(files) > 0 {
						if raw, _ := os.ReadFile(files[0]); bytes.Count(raw, []byte(`"kind":"intent"`)) >= want {
							return
						}
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Fatalf("%d intents are not written", want)
			}
			intents(1)
			alive := start()
			defer alive.Wait()
			defer alive.Process.Kill()
			marks(2)
			intents(2)
			killed.Process.Kill()
			killed.Wait()
			for range 2 { // the second finds nothing to say
				if out, err := w.command("--", "true").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			marks(1)
			kinds := map[string]int{}
			for _, kind := range w.recorded(func(argv []string) bool { return len(argv) > 0 && argv[0] != "true" }) {
				kinds[kind]++
			}
			if kinds["intent"] != 2 || kinds["killed"] != 1 || kinds["run"] != 0 {
				t.Errorf("records: %v", kinds)
			}
			show := exec.Command(filepath.Join(bin, "atip"), "audit", "show", "-o", "text")
			show.Env = []string{"HOME=" + w.home}
			if out, err := show.Output(); err != nil || strings.Count(string(out), "  intent ") != 1 || strings.Count(string(out), "  killed ") != 1 || strings.Count(string(out), "\n") != 4 {
				t.Errorf("shown to a person: %v\n%s", err, out)
			}
			w.auditSummary()
		})
	}
}

// records reads the audit log.
func (w world) records() (out []map[string]any) {
	w.t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.home, ".local/state/atip-exec/audit/*.jsonl"))
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var rec map[string]any
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				w.t.Fatalf("%v: %s", err, line)
			}
			out = append(out, rec)
		}
	}
	return out
}

// recorded lists the kinds of the records whose words are wanted, in their order.
func (w world) recorded(wanted func(argv []string) bool) (kinds []string) {
	w.t.Helper()
	for _, rec := range w.records() {
		var argv []string
		list, _ := rec["argv"].([]any)
		for _, word := range list {
			argv = append(argv, fmt.Sprint(word))
		}
		if wanted(argv) {
			kinds = append(kinds, fmt.Sprint(rec["kind"]))
		}
	}
	return kinds
}

// gone fails unless no process with this command line is left soon; a busy machine may
// take a while to end one.
func gone(t *testing.T, line string) {
	t.Helper()
	for range 3000 {
		if !alive(line) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%q outlived its wrapper", line)
}

func alive(line string) bool {
	for _, words := range procstat.Lines() {
		if strings.ReplaceAll(strings.TrimRight(words, "\x00"), "\x00", " ") == line {
			return true
		}
	}
	return false
}

// TestReplacedExecutableNeverRuns swaps an executable under the wrapper's feet, by
// rename and by writing in place; only the bytes that were identified may run.
func TestReplacedExecutableNeverRuns(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"rename", "write"} {
		t.Run(how, func(t *testing.T) { replaceRace(t, how) })
	}
}

func replaceRace(t *testing.T, how string) {
	w := newWorld(t)
	tool := filepath.Join(w.ws, "tool")
	good, evil := buildTool(t, w, "good"), buildTool(t, w, "evil")
	place := func(content []byte) error {
		if how == "write" {
			return os.WriteFile(tool, content, 0o755)
		}
		tmp := tool + ".new"
		if err := os.WriteFile(tmp, content, 0o755); err != nil {
			return err
		}
		return os.Rename(tmp, tool)
	}
	if err := place(good); err != nil {
		t.Fatal(err)
	}
	pin := fmt.Sprintf(`{"version":1,"trust":{"pins":{%q:["sha256:%x"]}}}`, tool, sha256.Sum256(good))
	if err := os.MkdirAll(filepath.Join(w.home, ".config/agent-tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, ".config/agent-tools/policy.json"), []byte(pin), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, swapping := make(chan struct{}), sync.WaitGroup{}
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			content := good
			if i%2 == 0 {
				content = evil
			}
			// ETXTBSY and EAGAIN are the point: the file is held.
			_ = place(content)
			time.Sleep(300 * time.Microsecond)
		}
	})
	ran := 0
	for range tries(15, 50) {
		out, _ := w.command("--", "./tool").CombinedOutput()
		if bytes.Contains(out, []byte("evil ran")) {
			t.Errorf("the replacement ran")
		}
		if bytes.Contains(out, []byte("good ran")) {
			ran++
		}
	}
	close(stop)
	swapping.Wait()
	if err := place(good); err != nil {
		t.Fatal(err)
	}
	if out, err := w.command("--", "./tool").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("good ran")) {
		t.Errorf("the pinned file does not run: %v: %s", err, out)
	}
	t.Logf("%d of 50 runs under attack ran the pinned file", ran)
}

func buildTool(t *testing.T, w world, name string) []byte {
	t.Helper()
	dir := t.TempDir()
	src := fmt.Sprintf("package main\n\nfunc main() { println(%q) }\n", name+" ran")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "tool")
	build := exec.Command("go", "build", "-o", out, filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestOnlyOneThreadIsConfined looks at the wrapper's own threads while a child runs.
func TestOnlyOneThreadIsConfined(t *testing.T) {
	w := newWorld(t)
	// Of this test alone: another user may run it at the same time.
	duration := fmt.Sprintf("60.%d", os.Getpid())
	cmd := w.command("--", "sleep", duration)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() }()
	for range 3000 {
		if alive("sleep " + duration) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	confined := 0
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if strings.Contains(string(raw), "Seccomp:\t2") {
			confined++
			if strings.Contains(f, fmt.Sprintf("/task/%d/", cmd.Process.Pid)) {
				t.Error("the main thread is confined")
			}
		}
	}
	if confined != 1 {
		t.Errorf("%d threads are confined, want 1", confined)
	}
}

// maxOwnMemory is what the wrapper may hold, in KiB, besides pages of its program: of those the kernel maps
// as many at once as lie together in the cache of the file system, nine to thirteen MiB.
const maxOwnMemory = 7 << 10

// memory is the peak of a process in KiB, and without pages of files.
func memory(pid int) (all, own int) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	kib := func(name string) (n int) {
		_, rest, _ := strings.Cut(string(raw), name)
		fmt.Sscan(rest, &n)
		return n
	}
	all = kib("VmHWM:")
	return all, all - kib("RssFile:") - kib("RssShmem:") // the latter where the program lies in memory
}

// TestBoundedMemory lets a child write a gigabyte and looks at the wrapper alone.
func TestBoundedMemory(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("--", "head", "-c", fmt.Sprint(tries(1<<28, 1<<30)), "/dev/zero")
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all, own := 0, 0
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if own == 0 || own > maxOwnMemory {
				t.Errorf("memory of the wrapper: %d KiB, more than %d or never seen", own, maxOwnMemory)
			}
			if tries(0, 1) == 1 && all > 15<<10 {
				t.Errorf("with pages of its program, on a disk: %d KiB, more than 15 MiB", all)
			}
			t.Logf("memory of the wrapper: %d KiB, %d with pages of its program", own, all)
			return
		case <-time.After(5 * time.Millisecond):
			now, without := memory(cmd.Process.Pid)
			all, own = max(all, now), max(own, without)
		}
	}
}
