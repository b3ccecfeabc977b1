package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receipt is the part of a status that says what was enforced.
type receipt struct {
	Tier  string
	Given []string
}

// TestProbeCacheChangesNothing: whatever stands where the answer of the probe is kept, and
// whether it can be kept or not, a run is confined as without it.
func TestProbeCacheChangesNothing(t *testing.T) {
	for _, tier := range []string{"T2", "T3"} {
		w := newWorld(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		cache := filepath.Join(w.home, ".local/state/atip-exec/sandbox.probe")
		run := func(how string) {
			t.Helper()
			file := filepath.Join(w.home, "status.json")
			cmd := w.command("--status-file", file, "--", "python3", "-c", "open(chr(47) + 'etc/xy', 'w')")
			out, _ := cmd.CombinedOutput()
			raw, err := os.ReadFile(file)
			var doc struct{ Sandbox receipt }
			if err != nil || json.Unmarshal(raw, &doc) != nil || doc.Sandbox.Tier != tier || cmd.ProcessState.ExitCode() != 1 || len(doc.Sandbox.Given) < 15 {
				t.Errorf("%s, %s: status %d, %s, %s", tier, how, cmd.ProcessState.ExitCode(), raw, out)
			}
			if _, err := os.Lstat("/etc/xy"); err == nil {
				t.Fatal("a file outside was made")
			}
		}
		if err := os.Remove(cache); err != nil {
			t.Fatal(err)
		}
		run("none")
		kept, err := os.ReadFile(cache)
		if err != nil {
			t.Fatal(err)
		}
		run("kept")
		_, answer, _ := strings.Cut(string(kept), "\n")
		for how, text := range map[string]string{
			"stale":        "another boot\n" + answer,
			"of no kernel": strings.Replace(string(kept), "linux 7", "linux 0", 1),
			"damaged":      string(kept[:len(kept)/2]),
			"empty":        "",
			"long":         strings.Repeat("x", 1<<20),
		} {
			if err := os.WriteFile(cache, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			run(how)
		}
		if err := os.Remove(cache); err != nil {
			t.Fatal(err)
		}
		// Nothing can be renamed over it.
		if err := os.MkdirAll(cache+"/x", 0o700); err != nil {
			t.Fatal(err)
		}
		run("unwritable")
	}
}

// TestStaleProbeIsAskedAgain: a start that fails where the kept answer promised it is tried
// once more, by what the machine says now; a start that would fail again is not.
func TestStaleProbeIsAskedAgain(t *testing.T) {
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	put(t, w.ws, map[string]string{"go.mod": "module example.invalid/m\n", "x.py": "print('it ran')"})
	put(t, w.home, map[string]string{".cache/go-build/README": "cache"})
	cache, file := filepath.Join(w.home, ".local/state/atip-exec/sandbox.probe"), filepath.Join(t.TempDir(), "status.json")
	run := func(nr, flags uint32) (int, string, string) {
		t.Helper()
		cmd := w.command("--status-file", file, "--", "python3", "x.py")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		startFiltered(t, cmd, nr, flags)
		_ = cmd.Wait()
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), string(raw)
	}
	// promise writes into the kept answer that namespaces and overlays work.
	promise := func() {
		t.Helper()
		raw, err := os.ReadFile(cache)
		key, answer, ok := strings.Cut(string(raw), "\n")
		head, texts, ok2 := strings.Cut(answer, "\n")
		words := strings.Fields(head)
		if err != nil || !ok || !ok2 || len(words) != 7 {
			t.Fatalf("%v: %q", err, raw)
		}
		words[5], words[6] = "true", "true"
		if err := os.WriteFile(cache, []byte(key+"\n"+strings.Join(words, " ")+"\n"+texts), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() string { raw, _ := os.ReadFile(cache); return string(raw) }

	// A private root without overlays.
	status, out, _ := run(unix.SYS_FSOPEN, 0)
	if status != 0 || strings.Contains(out, "asked again") {
		t.Fatalf("first: status %d: %s", status, out)
	}
	honest := kept()
	promise()
	status, out, raw := run(unix.SYS_FSOPEN, 0)
	if status != 0 || !strings.Contains(out, "it ran") || !strings.Contains(out, "asked again, it gives T3") || !strings.Contains(raw, `"tier":"T3"`) {
		t.Errorf("no overlays: status %d: %s", status, out)
	}
	if kept() != honest {
		t.Errorf("kept: %q, want %q", kept(), honest)
	}
	if status, out, _ := run(unix.SYS_FSOPEN, 0); status != 0 || strings.Contains(out, "asked again") {
		t.Errorf("the next run: status %d: %s", status, out)
	}

	// No private root at all: what the policy demands cannot be had.
	promise()
	if status, out, _ = run(unix.SYS_CLONE, unix.CLONE_NEWUSER); status != 69 || !strings.Contains(out, "E4101") || strings.Contains(out, "it ran") {
		t.Errorf("no namespaces: status %d: %s", status, out)
	}
	promise()
	if err := os.Remove(filepath.Join(w.home, ".config/agent-tools/policy.json")); err != nil {
		t.Fatal(err)
	}
	if status, out, raw = run(unix.SYS_CLONE, unix.CLONE_NEWUSER); status != 0 || !strings.Contains(out, "it ran") || !strings.Contains(raw, `"tier":"T2"`) {
		t.Errorf("no namespaces, none demanded: status %d: %s", status, out)
	}

	// What no answer of the machine explains fails once.
	if err := os.Remove(cache); err != nil {
		t.Fatal(err)
	}
	if status, out, _ = run(unix.SYS_ACCT, 0); status != 0 || kept() == "" {
		t.Fatalf("status %d: %s", status, out)
	}
	if err := os.RemoveAll(filepath.Join(w.home, ".cache/atip-exec")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, ".cache/atip-exec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, _ = run(unix.SYS_ACCT, 0); status != 69 || !strings.Contains(out, "E4102") || strings.Contains(out, "asked again") || strings.Contains(out, "it ran") {
		t.Errorf("another reason: status %d: %s", status, out)
	}
}

// TestSecondUser: another user of the machine, without any set-up, gets every layer.
func TestSecondUser(t *testing.T) {
	ids := []int{os.Getuid()}
	if os.Getuid() == 0 {
		ids = []int{0, 65534, 54321} // the last has no account
	}
	for _, tier := range []string{"T2", "T3"} {
		for _, id := range ids {
			w := newWorld(t)
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
			base := filepath.Dir(w.home)
			err := filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(path, id, -1)
			})
			if err != nil {
				t.Fatal(err)
			}
			// The directory above belongs to whoever runs the test.
			if err := os.Chmod(filepath.Dir(base), 0o711); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(w.home, "status.json")
			cmd := exec.Command(filepath.Join(bin, "atip-exec"), "--status-file", file, "--", "python3", "-c", "open('mine', 'w')")
			cmd.Dir, cmd.Env = w.ws, w.command().Env
			if id != os.Getuid() {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
			}
			out, err := cmd.CombinedOutput()
			raw, rerr := os.ReadFile(file)
			var doc struct{ Sandbox receipt }
			if err != nil || rerr != nil || json.Unmarshal(raw, &doc) != nil || doc.Sandbox.Tier != tier || len(doc.Sandbox.Given) != map[string]int{"T2": 15, "T3": 20}[tier] {
				t.Errorf("user %d at %s: %v, %v: %s; given %v", id, tier, err, rerr, out, doc.Sandbox.Given)
			}
		}
	}
}

// TestWithoutNamespaces: where none can be made, a shell runs at T2 with its gaps named,
// and what a policy requires beyond that starts nothing.
func TestWithoutNamespaces(t *testing.T) {
	w := newWorld(t)
	inside := func(args ...string) (int, string, receipt, []string) {
		t.Helper()
		file := filepath.Join(w.home, "status.json")
		cmd := w.command(append([]string{"--status-file", file}, args...)...)
		var text strings.Builder
		cmd.Stdout, cmd.Stderr = &text, &text
		startFiltered(t, cmd, unix.SYS_CLONE, unix.CLONE_NEWUSER)
		_ = cmd.Wait()
		out := text.String()
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var doc struct {
			Sandbox struct {
				receipt
				Gaps []struct{ Guarantee string }
			}
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		var gaps []string
		for _, g := range doc.Sandbox.Gaps {
			gaps = append(gaps, g.Guarantee)
		}
		return cmd.ProcessState.ExitCode(), out, doc.Sandbox.receipt, gaps
	}
	status, out, r, gaps := inside("--", "sh", "-c", "touch first; echo ran")
	if want := "files.meta files.hidden ws.protect proc.hidden tree.killed"; status != 0 || !strings.Contains(out, "ran") || r.Tier != "T2" || strings.Join(gaps, " ") != want {
		t.Errorf("status %d, %s, gaps %v, want %s; %s", status, r.Tier, gaps, want, out)
	}
	const said = "tier T2 is the highest of this machine"
	if !strings.Contains(out, said) || !strings.Contains(out, "not kept here: files.meta, files.hidden, ws.protect, proc.hidden, tree.killed") {
		t.Errorf("the first run does not say what is not kept: %s", out)
	}
	if status, out, _, _ = inside("--", "sh", "-c", "touch first"); status != 0 || strings.Contains(out, said) {
		t.Errorf("said again: status %d: %s", status, out)
	}
	if status, out, _, _ = inside("--", "ls"); status != 0 || strings.Contains(out, said) {
		t.Errorf("said where nothing is lacking: status %d: %s", status, out)
	}
	w.policy(`{"version":1,"sandbox":{"require":["proc.hidden"]}}`)
	if status, out, _, _ = inside("--", "sh", "-c", "touch made"); status != 69 || !strings.Contains(out, "E4101") || !strings.Contains(out, "proc.hidden") {
		t.Errorf("required: status %d: %s", status, out)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "made")); err == nil {
		t.Error("it ran")
	}
	// With them, the requirement leads to T3.
	file := filepath.Join(w.home, "status.json")
	cmd := w.command("--status-file", file, "--", "sh", "-c", "touch made")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if raw, _ := os.ReadFile(file); !strings.Contains(string(raw), `"tier":"T3"`) {
		t.Errorf("required, with namespaces: %s", raw)
	}
}

// TestWithoutLandlock: a kernel that knows nothing of it confines nothing, and that has to
// be permitted in words.
func TestWithoutLandlock(t *testing.T) {
	w := newWorld(t)
	start := func(args ...string) (int, string) {
		t.Helper()
		cmd := w.command(args...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		startFiltered(t, cmd, unix.SYS_LANDLOCK_CREATE_RULESET, 0)
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), out.String()
	}
	if status, out := start("--", "sh", "-c", "touch made"); status != 69 || !strings.Contains(out, "E4106") || !strings.Contains(out, "no Landlock") {
		t.Errorf("status %d: %s", status, out)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "made")); err == nil {
		t.Error("it ran")
	}
	w.policy(`{"version":1,"sandbox":{"confine":"none"}}`)
	file := filepath.Join(w.home, "status.json")
	status, out := start("--status-file", file, "--", "echo", "ran")
	raw, err := os.ReadFile(file)
	if err != nil || status != 0 || !strings.Contains(out, "ran") || !strings.Contains(out, "not confined") || !strings.Contains(string(raw), `"tier":"T0"`) {
		t.Errorf("permitted: status %d: %s; %s", status, out, raw)
	}
	logs, err := filepath.Glob(filepath.Join(w.home, ".local/state/atip-exec/audit/*.jsonl"))
	if err != nil || len(logs) != 1 || !strings.Contains(string(fileText(t, logs[0])), `"tier":"T0"`) {
		t.Errorf("audit: %v: %v", err, logs)
	}
}

// startFiltered starts a program to which one system call is unknown, or that call with one
// of the flags in its first argument.
func startFiltered(t *testing.T, cmd *exec.Cmd, nr, flags uint32) {
	t.Helper()
	failed := make(chan error)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	go func() {
		// Never unlocked: the filter ends with the thread. The child inherits it.
		runtime.LockOSThread()
		err := withoutCall(nr, flags)
		if err == nil {
			err = cmd.Start()
		}
		failed <- err
		<-ended
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

func withoutCall(nr, flags uint32) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	pass := uint8(1)
	if flags == 0 {
		pass = 0 // whatever the argument is
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: flags, Jf: pass},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}
