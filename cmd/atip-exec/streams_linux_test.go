package main_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReaderThatSleeps: who reads late gets all of it, and the wrapper keeps no more of it
// than a pipe holds.
func TestReaderThatSleeps(t *testing.T) {
	t.Parallel()
	size := tries(1<<28, 1<<30) // the bound of memory is a seventeenth of it
	w := newWorld(t)
	cmd := w.command("--", "head", "-c", strconv.Itoa(size), "/dev/zero")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The shape of a reader that is busy elsewhere; nothing waits for it.
	time.Sleep(2 * time.Second)
	buf, zero, n := make([]byte, 1<<20), make([]byte, 1<<20), 0
	_, own := memory(cmd.Process.Pid)
	for {
		m, err := out.Read(buf)
		if !bytes.Equal(buf[:m], zero[:m]) {
			t.Fatalf("changed within %d bytes from %d", m, n)
		}
		if n += m; n > size/2 && n-m <= size/2 {
			_, now := memory(cmd.Process.Pid)
			own = max(own, now)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil || n != size {
		t.Errorf("%v, %d bytes of %d", err, n, size)
	}
	if own == 0 || own > maxOwnMemory {
		t.Errorf("memory of the wrapper: %d KiB, more than %d or never seen", own, maxOwnMemory)
	}
}

// TestReaderThatNeverComes: a timeout ends a run whose output nobody takes.
func TestReaderThatNeverComes(t *testing.T) {
	w := newWorld(t)
	name := strconv.Itoa(1<<30 + os.Getpid()) // tells this child from all others
	cmd := w.command("--timeout", "2", "--", "head", "-c", name, "/dev/zero")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var errors strings.Builder
	cmd.Stdout, cmd.Stderr = out, &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatal("it does not end")
	}
	if status := cmd.ProcessState.ExitCode(); status != 124 || !strings.Contains(errors.String(), "E4001") {
		t.Errorf("status %d: %s", status, errors.String())
	}
	gone(t, "head -c "+name+" /dev/zero")
}

// TestNonblockingOutput: a pipe that its owner has made non-blocking, as Node does with its
// own, loses nothing, however late it is read.
func TestNonblockingOutput(t *testing.T) {
	const blocks = 1280 // of 8 KiB
	const script = "import sys\nfor i in range(%d): sys.stdout.write('%%08d' %% i * 1024)\n"
	w := newWorld(t)
	put(t, w.ws, map[string]string{"big.py": fmt.Sprintf(script, blocks)})
	h := sha256.New()
	for i := range blocks {
		h.Write(bytes.Repeat(fmt.Appendf(nil, "%08d", i), 1024))
	}
	want := fmt.Sprintf("%x", h.Sum(nil))

	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := w.command("--", "python3", "big.py")
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Fd makes the pipe blocking, so that this comes last. It holds for all who have the pipe.
	if err := unix.SetNonblock(int(out.Fd()), true); err != nil {
		t.Fatal(err)
	}
	out.Close()
	time.Sleep(300 * time.Millisecond) // a reader that comes late
	got := sha256.New()
	if _, err := io.Copy(got, r); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || fmt.Sprintf("%x", got.Sum(nil)) != want {
		t.Errorf("non-blocking pipe: %v, the stream was changed", err)
	}

	if _, err := exec.LookPath("node"); err != nil {
		t.Log("node is not installed")
		return
	}
	// As a harness in Node starts its commands: pipes of its own, and one handed on.
	put(t, w.ws, map[string]string{"start.js": `
const { spawn } = require('child_process'), { createHash } = require('crypto')
const child = spawn(process.argv[2], ['--', 'python3', 'big.py'], { stdio: ['pipe', 'pipe', 'inherit'] })
const hash = createHash('sha256')
let size = 0
child.stdout.on('data', d => { size += d.length; hash.update(d); if (size < 1 << 20) { child.stdout.pause(); setTimeout(() => child.stdout.resume(), 20) } })
child.on('close', code => console.log(code, size, hash.digest('hex')))
`})
	node := exec.Command("node", "start.js", filepath.Join(bin, "atip-exec"))
	node.Dir, node.Env = w.ws, w.command().Env
	text, err := node.CombinedOutput()
	if got := strings.TrimSpace(string(text)); err != nil || got != fmt.Sprintf("0 %d %s", blocks*8192, want) {
		t.Errorf("node: %v: %s", err, got)
	}
}

// event is one line of -o jsonl.
type event struct {
	Type     string
	Seq      *int
	Code     string
	Data     string
	ExitCode int `json:"exit_code"`
}

func events(t *testing.T, cmd *exec.Cmd) []event {
	t.Helper()
	raw, _ := cmd.Output()
	var out []event
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		out = append(out, e)
	}
	if lines.Err() != nil || len(out) == 0 {
		t.Fatalf("%v: %s", lines.Err(), raw)
	}
	return out
}

// TestEventsInOrder: of the events of a run the first is its start, the last how it ended,
// and the pieces of both streams are counted without a gap.
func TestEventsInOrder(t *testing.T) {
	w := newWorld(t)
	put(t, w.ws, map[string]string{"both.py": `import sys
for i in range(300):
    for f in (sys.stdout, sys.stderr):
        f.write("%d\n" % i)
        f.flush()
sys.exit(3)
`})
	for name, tc := range map[string]struct {
		args   []string
		last   string
		status int
	}{
		"exit":    {[]string{"--", "python3", "both.py"}, "exit", 3},
		"signal":  {[]string{"--", "sh", "-c", "echo x; kill -TERM $$"}, "exit", 143},
		"timeout": {[]string{"--timeout", "1", "--", "sh", "-c", "echo x; echo y >&2; exec sleep 60"}, "error", 124},
		"refused": {[]string{"--", "git", "push", "--force"}, "error", 77},
		"missing": {[]string{"--", "no-such-command"}, "error", 127},
	} {
		cmd := w.command(append([]string{"-o", "jsonl"}, tc.args...)...)
		list := events(t, cmd)
		started := tc.status < 64 || tc.status > 127 || tc.status == 124
		last, next := list[len(list)-1], -1
		if last.Type != tc.last || last.ExitCode != tc.status || cmd.ProcessState.ExitCode() != tc.status {
			t.Errorf("%s: last %+v, status %d", name, last, cmd.ProcessState.ExitCode())
		}
		text := map[string]string{}
		for i, e := range list {
			if (i == 0 && started) != (e.Type == "start") || (i == len(list)-1) != (e.Type == "exit" || e.Type == "error") {
				t.Errorf("%s: event %d of %d is %s", name, i+1, len(list), e.Type)
			}
			if e.Type != "stdout" && e.Type != "stderr" {
				continue
			}
			if next < 0 && e.Seq != nil {
				next = *e.Seq
			}
			if e.Seq == nil || *e.Seq != next || next > i {
				t.Fatalf("%s: event %d has number %v, want %d", name, i+1, e.Seq, next)
			}
			next++
			text[e.Type] += e.Data
		}
		if tc.status == 3 && (strings.Count(text["stdout"], "\n") != 300 || text["stdout"] != text["stderr"]) {
			t.Errorf("%s: %q, %q", name, text["stdout"], text["stderr"])
		}
		if tc.status == 124 && !hasNote(list, "timeout") {
			t.Errorf("%s: no note: %+v", name, list)
		}
	}
}

func hasNote(list []event, code string) bool {
	for _, e := range list {
		if e.Type == "note" && e.Code == code {
			return true
		}
	}
	return false
}

// TestHeldOutput: what stays behind with the output open holds neither the run nor itself.
func TestHeldOutput(t *testing.T) {
	for _, tier := range []string{"T2", "T3"} {
		w := newWorld(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		file := filepath.Join(w.home, "status.json")
		name := "sleep 87." + strconv.Itoa(os.Getpid())
		out, err := w.command("--status-file", file, "--", "sh", "-c", "setsid "+name+" & echo hi").Output()
		if err != nil || string(out) != "hi\n" {
			t.Errorf("%s: %v: %q", tier, err, out)
		}
		gone(t, name)
		raw, _ := os.ReadFile(file)
		var doc struct {
			IO   struct{ Stdout struct{ End string } }
			Tree struct{ Leftovers int }
		}
		if err := json.Unmarshal(raw, &doc); err != nil || doc.IO.Stdout.End != "held" || doc.Tree.Leftovers != 1 {
			t.Errorf("%s: %v: %s", tier, err, raw)
		}
	}
}

// TestNoStageWithoutARun: what is refused, or only looked at, has started nothing.
func TestNoStageWithoutARun(t *testing.T) {
	w := newWorld(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	// The machine is asked once, by a stage.
	if out, err := w.command("--", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stages := func(args ...string) (int, int) {
		t.Helper()
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := exec.Command("strace", append([]string{"-f", "-qq", "-e", "trace=execve", "-o", trace, filepath.Join(bin, "atip-exec")}, args...)...)
		cmd.Dir, cmd.Env = w.ws, w.command().Env
		_ = cmd.Run()
		raw, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), strings.Count(string(raw), `"atip-exec:stage"`)
	}
	for _, tc := range []struct {
		args          []string
		status, count int
	}{
		{[]string{"--", "sh", "-c", "exit 3"}, 3, 1},
		{[]string{"--", "git", "push", "--force"}, 77, 0},
		{[]string{"--dry-run", "--", "sh", "-c", "exit 3"}, 0, 0},
		{[]string{"explain", "--", "sh", "-c", "exit 3"}, 0, 0},
	} {
		if status, n := stages(tc.args...); status != tc.status || n != tc.count {
			t.Errorf("%v: status %d, %d stages; want %d, %d", tc.args, status, n, tc.status, tc.count)
		}
	}
}
