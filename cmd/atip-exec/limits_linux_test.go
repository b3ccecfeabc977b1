package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// limited runs a shell text under a policy and returns its exit status, what it printed
// and the receipt of its limits.
func (w world) limited(policy, text string) (status int, stdout string, limits map[string]struct {
	Max uint64
	By  string
}, errors string) {
	w.t.Helper()
	w.policy(policy)
	file := filepath.Join(w.home, "status.json")
	cmd := w.command("--status-file", file, "--", "bash", "-c", text)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	raw, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var doc struct {
		Sandbox struct{ Limits json.RawMessage }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		w.t.Fatal(err)
	}
	if len(doc.Sandbox.Limits) > 0 {
		if err := json.Unmarshal(doc.Sandbox.Limits, &limits); err != nil {
			w.t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out)), limits, stderr.String()
}

// TestLimits: each limit of a policy holds in the child, the receipt names the mechanism,
// and the wrapper's own writes are not hit.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now, err := exec.Command("nice").Output()
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(now)))
	raised := strconv.Itoa(min(n+5, 19))
	const big = "x = b'y' * (300 << 20)"
	for at, tier := range []string{"T2", "T3"} {
		for n, tc := range []struct {
			limit, key, by string
			text           string
			status         int
			stdout         string
		}{
			{`"openFiles":64`, "openFiles", "rlimit", "ulimit -n", 0, "64"},
			{`"cpu":"1s"`, "cpu", "rlimit", "while :; do :; done", 152, ""},
			{`"cpu":"100ms"`, "cpu", "rlimit", "ulimit -t", 0, "1"},
			// More than the limit passes through the wrapper into a file of its own.
			{`"fileSize":"1MiB"`, "fileSize", "rlimit", "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >big", 153, strings.Repeat("\x00", 3000000)},
			{`"memory":"200MiB"`, "memory", "", "python3 -c \"" + big + "\"", 1, ""},
			{`"memory":"2GiB"`, "memory", "", "python3 -c \"" + big + "; print(1)\"", 0, "1"},
			{`"nice":5`, "", "", "nice", 0, raised},
		} {
			if !paired(n, at) {
				continue
			}
			out := filepath.Join(w.home, "out")
			status, stdout, limits, stderr := w.limited(`{"version":1,"sandbox":{"tier":"`+tier+`"},"limits":{`+tc.limit+`}}`, tc.text)
			if tc.key == "fileSize" {
				// Into a regular file of the caller's, by the wrapper.
				f, err := os.Create(out)
				if err != nil {
					t.Fatal(err)
				}
				cmd := w.command("--", "bash", "-c", tc.text)
				cmd.Stdout = f
				_ = cmd.Run()
				f.Close()
				if fi, err := os.Stat(out); err != nil || fi.Size() != 3000000 || cmd.ProcessState.ExitCode() != 153 {
					t.Errorf("%s: the wrapper wrote %v, status %d", tier, fi.Size(), cmd.ProcessState.ExitCode())
				}
			}
			if tc.key == "memory" && tc.status == 1 && limits["memory"].By == "cgroup" {
				tc.status = 137 // a group does not refuse memory, it ends who takes too much
			}
			if status != tc.status || stdout != strings.TrimSpace(tc.stdout) {
				t.Errorf("%s %s: status %d, %.80q; %s", tier, tc.limit, status, stdout, stderr)
			}
			if tc.key != "" && (limits[tc.key].Max == 0 || tc.by != "" && limits[tc.key].By != tc.by) {
				t.Errorf("%s %s: receipt %v", tier, tc.limit, limits)
			}
		}
	}
	w.auditSummary()
}

// TestProcessLimit: 600 processes under a limit of 512.
func TestProcessLimit(t *testing.T) {
	w := newWorld(t)
	const forks = `python3 -c '
import os, signal, time
pids = []
try:
    for i in range(600):
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        pids.append(pid)
except OSError:
    pass
for pid in pids:
    os.kill(pid, signal.SIGKILL)
print(len(pids))'`
	if status, stdout, _, stderr := w.limited(`{"version":1,"sandbox":{"tier":"T3"}}`, forks); status != 0 || stdout != "600" {
		t.Fatalf("without a limit: status %d, %q; %s", status, stdout, stderr)
	}
	status, stdout, limits, stderr := w.limited(`{"version":1,"limits":{"processes":512}}`, forks)
	by := limits["processes"].By
	switch {
	case by == "cgroup" || os.Getuid() != 0:
		if status != 0 || len(stdout) != 3 || stdout > "512" || limits["processes"].Max != 512 {
			t.Errorf("status %d, %q, %v; %s", status, stdout, limits, stderr)
		}
	case status != 69 || !strings.Contains(stderr, "E4006") || stdout != "":
		t.Errorf("root without a control group: status %d, %q; %s", status, stdout, stderr)
	}
	// A limit that policy can do without is a gap.
	if os.Getuid() == 0 && by != "cgroup" {
		if status, stdout, _, stderr = w.limited(`{"version":1,"limits":{"processes":512},"sandbox":{"accept":["limits"]}}`, "echo ran"); status != 0 || stdout != "ran" {
			t.Errorf("accepted: status %d, %q; %s", status, stdout, stderr)
		}
	}
}

// TestNothingOutlivesTheRun: what left the session, forked twice and ignores signals is
// gone when the wrapper returns, and at T3 also when it is killed.
func TestNothingOutlivesTheRun(t *testing.T) {
	w := newWorld(t)
	for i, tc := range []struct {
		tier string
		args []string
		tail string
		kill bool
		want int
	}{
		{"T2", nil, "exit 5", false, 5},
		{"T3", nil, "exit 5", false, 5},
		{"T2", []string{"--timeout", "1", "--kill-after", "0.2"}, "while :; do sleep 0.1; done", false, 124},
		{"T3", []string{"--timeout", "1", "--kill-after", "0.2"}, "while :; do sleep 0.1; done", false, 124},
		{"T3", nil, "while :; do sleep 0.1; done", true, -1},
	} {
		w.policy(`{"version":1,"sandbox":{"tier":"` + tc.tier + `"}}`)
		name := "sleep 81." + strconv.Itoa(os.Getpid()) + strconv.Itoa(i)
		text := `trap "" TERM; (setsid bash -c 'trap "" TERM HUP INT; exec ` + name + `' >/dev/null 2>&1 &); touch up; ` + tc.tail
		cmd := w.command(append(tc.args, "--", "bash", "-c", text)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if tc.kill {
			for n := 0; !alive(name); n++ {
				if n > 1000 {
					t.Fatal("the process never came")
				}
				time.Sleep(10 * time.Millisecond)
			}
			cmd.Process.Kill()
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != tc.want {
			t.Errorf("%+v: status %d", tc, code)
		}
		if tc.kill {
			gone(t, name)
		} else if alive(name) {
			t.Errorf("%+v: it is there when the wrapper has ended", tc)
		}
	}
}
