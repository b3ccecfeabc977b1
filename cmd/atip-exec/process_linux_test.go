package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestManyRules: thirty granted directories can all be read and nothing beside them; more
// than the kernel's rules are good for is refused.
func TestManyRules(t *testing.T) {
	w := newWorld(t)
	base := filepath.Join(filepath.Dir(w.ws), "many")
	grants := func(n int) string {
		var list []string
		for i := range n {
			dir := filepath.Join(base, strconv.Itoa(i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			list = append(list, strconv.Quote(dir))
		}
		return `{"version":1,"sandbox":{"read":[` + strings.Join(list, ",") + `]}}`
	}
	w.policy(grants(30))
	if err := os.MkdirAll(base+"/beside", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"/beside/f", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("n = 0\nfor i in list(range(30)) + ['beside']:\n    try: open('%s/%%s/f' %% i); n += 1\n    except OSError: print('closed', i)\nprint(n)", base)
	if status, stdout, stderr := w.python(text); status != 0 || stdout != "closed beside\n30" {
		t.Errorf("30 rules: status %d, %q; %s", status, stdout, stderr)
	}
	w.policy(grants(129))
	if status, stdout, stderr := w.python("print('ran')"); status != 78 || stdout != "" || !strings.Contains(stderr, "E4104") {
		t.Errorf("129 rules: status %d, %q; %s", status, stdout, stderr)
	}
}

// TestNohup: neither wrapper nor child dies of a signal that the caller ignores, and the
// child does not inherit what the wrapper ignores for itself.
func TestNohup(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command("sh", "-c", `trap "" HUP INT; exec "$@"`, "sh", filepath.Join(bin, "atip-exec"), "--", "python3", "-c",
		"import time; open('up', 'w').close(); time.sleep(1); print([l for l in open('/proc/self/status') if l.startswith('SigIgn')][0].split()[1])")
	cmd.Dir, cmd.Env = w.ws, w.command().Env
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 2000; n++ {
		if _, err := os.Stat(filepath.Join(w.ws, "up")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Error(err)
		}
	}
	err := cmd.Wait()
	mask, perr := strconv.ParseUint(strings.TrimSpace(out.String()), 16, 64)
	bit := func(s syscall.Signal) bool { return mask&(1<<(s-1)) != 0 }
	if err != nil || perr != nil || !bit(syscall.SIGHUP) || bit(syscall.SIGTTIN) || bit(syscall.SIGTTOU) {
		t.Errorf("%v, ignored %x (%v)", err, mask, perr)
	}
}

// TestStatusOfKilledWrapper: what was written at the beginning stays.
func TestStatusOfKilledWrapper(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.home, "status.json")
	name := "sleep 83." + strconv.Itoa(os.Getpid())
	cmd := w.command("--status-file", file, "--", "sleep", strings.TrimPrefix(name, "sleep "))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 2000 && !alive(name); n++ {
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Kill()
	_ = cmd.Wait()
	gone(t, name)
	raw, err := os.ReadFile(file)
	var doc struct{ Kind, State string }
	if err != nil || json.Unmarshal(raw, &doc) != nil || doc.State != "incomplete" || doc.Kind != "atip-exec.status/1" {
		t.Errorf("%v: %s", err, raw)
	}
}

// TestEnvironment: what loads code is dropped and named, and policy brings it back.
func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	names := []string{"LD_PRELOAD", "PYTHONPATH", "GIT_SSH_COMMAND", "BASH_FUNC_x%%"}
	run := func() (string, []string) {
		t.Helper()
		file := filepath.Join(w.home, "status.json")
		cmd := w.command("--status-file", file, "--", "env")
		for _, name := range names {
			cmd.Env = append(cmd.Env, name+"=() { :; }")
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		var doc struct{ Env struct{ Dropped []string } }
		if err != nil || json.Unmarshal(raw, &doc) != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		return string(out), doc.Env.Dropped
	}
	out, dropped := run()
	for _, name := range names {
		if strings.Contains(out, name+"=") || !slices.Contains(dropped, name) {
			t.Errorf("%s is passed, or not named in %v", name, dropped)
		}
	}
	w.policy(`{"version":1,"env":{"pass":["PYTHONPATH"]}}`)
	if out, dropped = run(); !strings.Contains(out, "PYTHONPATH=") || slices.Contains(dropped, "PYTHONPATH") || !slices.Contains(dropped, "LD_PRELOAD") {
		t.Errorf("passed by policy: %v: %s", dropped, out)
	}
}

// TestStartedFileIsChecked: a program that ends at once is compared all the same.
func TestStartedFileIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(w.home, "status.json")
	for range tries(100, 1000) {
		cmd := w.command("--status-file", file, "--", "true")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		raw, err := os.ReadFile(file)
		var doc struct {
			Tool struct {
				Checked string `json:"exec_checked"`
			}
		}
		if err != nil || json.Unmarshal(raw, &doc) != nil || doc.Tool.Checked != "true" && doc.Tool.Checked != "ended" {
			t.Fatalf("%v: %s", err, raw)
		}
	}
}

// TestTimerSlack: a command's timers are as exact as those of its caller, on every tier and as part of a text,
// whatever the processes between them have.
func TestTimerSlack(t *testing.T) {
	w := newInside(t)
	put(t, w.ws, map[string]string{"slack.sh": "cat /proc/self/timerslack_ns\n"})
	for _, tier := range []string{"T1", "T2", "T3"} {
		put(t, w.ws, map[string]string{"tier.json": `{"version":1,"sandbox":{"tier":"` + tier + `"}}`})
		for _, want := range []int{50000, 123456} {
			for _, words := range [][]string{{"--", "cat", "/proc/self/timerslack_ns"}, {"--", "sh", "slack.sh"}, {"-c", "cat /proc/self/timerslack_ns | cat"}} {
				// What a thread starts has its value.
				runtime.LockOSThread()
				err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(want), 0, 0, 0)
				status, out, stderr := w.run(nil, append([]string{"--policy", "tier.json"}, words...)...)
				_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
				runtime.UnlockOSThread()
				if err != nil || status != 0 || out != strconv.Itoa(want)+"\n" {
					t.Errorf("%s, %d ns: %q: %d %q, %v %s", tier, want, words, status, out, err, stderr)
				}
			}
		}
	}
}
