package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nestable puts the directory in PATH by which runs inside are expected.
func (w world) nestable(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(w.home, ".local/share/agent-tools/bin")+":/usr/local/bin:/usr/bin:/bin:"+bin)
	return cmd
}

// TestNestedIsNarrower: a run inside a run works, says so, and can no more than the outer
// one, whatever its own policy grants.
func TestNestedIsNarrower(t *testing.T) {
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1}`)
		outside := filepath.Join(w.home, "outside")
		for _, dir := range []string{outside, filepath.Join(w.home, ".local/share/agent-tools/bin")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		text := `import subprocess, sys, json, os
status = os.environ["TMPDIR"] + "/status.json"
r = subprocess.run([sys.argv[1], "--status-file", status, "--", "python3", "-c",
    "open('made', 'w')\ntry: open('` + outside + `/x', 'w')\nexcept OSError: print('denied')"], capture_output=True, text=True)
print(r.returncode, r.stdout.strip(), json.load(open(status))["sandbox"]["nested"]["outer"])
sys.stderr.write(r.stderr)
`
		if err := os.WriteFile(filepath.Join(w.ws, "inner.py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// Outside, the same policy lets the write through.
		if err := os.WriteFile(filepath.Join(w.ws, "outer.json"), []byte(`{"version":1,"sandbox":{"tier":"`+tier+`"}}`), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.nestable(w.command("--policy", "outer.json", "--", "python3", "inner.py", filepath.Join(bin, "atip-exec")))
		var errors strings.Builder
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != "0 denied "+tier {
			t.Errorf("%s: %v: %q; %s", tier, err, got, errors.String())
		}
		if _, err := os.Stat(filepath.Join(w.ws, "made")); err != nil {
			t.Error(err)
		}
		w.auditSummary()
	}
}

// TestOuterIsNullOutside: the variable of the outer run means nothing where there is none.
// A log that cannot be written stops the run there, whatever the environment says.
func TestOuterIsNullOutside(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.home, "status.json")
	state := filepath.Join(w.home, ".local/state/atip-exec")
	run := func() (status int, nested any) {
		cmd := w.command("--status-file", file, "--", "true")
		cmd.Env = append(cmd.Env, "ATIP_EXEC_SANDBOX=T3", "ATIP_EXEC_PARENT=fd:9")
		_ = cmd.Run()
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Sandbox struct{ Nested struct{ Outer any } }
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), doc.Sandbox.Nested.Outer
	}
	// The first run of a user has no log yet.
	if status, outer := run(); status != 0 || outer != nil {
		t.Errorf("first run: status %d, outer %v", status, outer)
	}
	if records, _ := w.auditSummary(); records != 1 {
		t.Errorf("%d records, want 1", records)
	}
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(); status != 73 {
		t.Errorf("without a log: status %d", status)
	}
	if os.Getuid() == 0 {
		return // root opens what has no mode
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(); status != 0 {
		t.Fatalf("status %d", status)
	}
	if err := os.Chmod(filepath.Join(state, "audit", "lock"), 0); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(); status != 73 {
		t.Errorf("with a log that was closed: status %d", status)
	}
}

// TestNestedTooDeep: the seventeenth layer is an error, not a run with one layer less.
func TestNestedTooDeep(t *testing.T) {
	w := newWorldAtHome(t)
	if err := os.MkdirAll(filepath.Join(w.home, ".local/share/agent-tools/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "import os, sys\nopen('levels', 'a').write('level\\n')\nos.execv(sys.argv[1], [sys.argv[1], '--', 'python3', 'deep.py', sys.argv[1]])\n"
	if err := os.WriteFile(filepath.Join(w.ws, "deep.py"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := w.nestable(w.command("--", "python3", "deep.py", filepath.Join(bin, "atip-exec")))
	out, _ := cmd.CombinedOutput()
	raw, err := os.ReadFile(filepath.Join(w.ws, "levels"))
	if n := strings.Count(string(raw), "level"); err != nil || cmd.ProcessState.ExitCode() != 69 || n < 8 || n > 16 || !strings.Contains(string(out), "too deep") {
		t.Errorf("status %d after %d levels, %v: %.2000s", cmd.ProcessState.ExitCode(), n, err, out)
	}
}
