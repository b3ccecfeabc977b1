package main_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/built"
)

// sandboxReport is atip-exec.sandbox-test/1.
type sandboxReport struct {
	OK         bool
	Tier       string
	Guarantees []struct{ Guarantee, Status, Why string }
	Probes     []struct{ Guarantee, Name, Inside, Outside, Status string }
}

func (r sandboxReport) with(status string) []string {
	var out []string
	for _, g := range r.Guarantees {
		if g.Status == status {
			out = append(out, g.Guarantee)
		}
	}
	return out
}

// sandboxTest runs `atip sandbox test` of the programs in dir.
func (w world) sandboxTest(dir string, args ...string) (r sandboxReport, status int, stderr string) {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(dir, "atip"), append([]string{"sandbox", "test", "-o", "json"}, args...)...)
	cmd.Dir = w.ws
	cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin"}
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if len(out) > 0 {
		if err := json.Unmarshal(out, &r); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	} else if err == nil {
		w.t.Fatal("no report")
	}
	return r, cmd.ProcessState.ExitCode(), errors.String()
}

// policy writes the user's policy.
func (w world) policy(text string) {
	w.t.Helper()
	dir := filepath.Join(w.home, ".config/agent-tools")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.json"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func TestSandboxTest(t *testing.T) {
	t.Parallel()
	needTier3(t)
	w := newWorld(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	r, status, stderr := w.sandboxTest(bin)
	gaps := []string{"files.hidden", "ws.protect", "proc.hidden", "tree.killed"}
	if status != 0 || !r.OK || r.Tier != "T2" || len(r.with("holds")) != 16 || !slices.Equal(r.with("gap"), gaps) {
		t.Errorf("T2: status %d, %s, holds %v, gaps %v, rest %+v; %s", status, r.Tier, r.with("holds"), r.with("gap"), r.Guarantees, stderr)
	}
	na := 0
	for _, p := range r.Probes {
		if p.Outside != "ok" {
			na++
		}
		if (p.Outside != "ok") != (p.Status == "n/a") || p.Status == "unclear" || p.Status == "launch-fail" {
			t.Errorf("%+v", p)
		}
	}
	if na == 0 {
		t.Error("no control failed, so nothing shows that such a probe counts as n/a")
	}

	w.policy(`{"version":1}`)
	if r, status, stderr = w.sandboxTest(bin); status != 0 || r.Tier != "T3" || len(r.with("holds")) != 20 {
		t.Errorf("default: status %d, %s, %v; %s", status, r.Tier, r.with("holds"), stderr)
	}
	// What stands for the outside must not be granted.
	w.policy(`{"version":1,"sandbox":{"write":["` + filepath.Dir(w.ws) + `/granted"]}}`)
	granted := filepath.Join(filepath.Dir(w.ws), "granted")
	if err := os.Mkdir(granted, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "atip"), "sandbox", "test")
	cmd.Dir, cmd.Env = w.ws, []string{"HOME=" + w.home, "TMPDIR=" + granted}
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 64 || !strings.Contains(string(out), "set TMPDIR") {
		t.Errorf("granted TMPDIR: status %d: %s", cmd.ProcessState.ExitCode(), out)
	}
	if left, _ := filepath.Glob(granted + "/*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSandboxTestFindsHoles: the same program with three holes in its sandbox.
func TestSandboxTestFindsHoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, change := range []struct{ file, is, becomes string }{
		// Links can be made anywhere.
		{"landlock_linux.go", "return last[min(abi, newestABI)]<<1 - 1", "return (last[min(abi, newestABI)]<<1 - 1) &^ ll.AccessFSMakeSym"},
		// Modes can be changed by runs that write nowhere.
		{"landlock_linux.go", "Metadata: p.HostWrite,", "Metadata: true,"},
		// What is left over is left alone.
		{"tree_linux.go", "if reapEnded() {", "if reapEnded() || true {"},
	} {
		path, err := filepath.Abs("../../sandbox/" + change.file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(cmp.Or(replace[path], path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), change.is) != 1 {
			t.Fatalf("%s has no %q", change.file, change.is)
		}
		replace[path] = filepath.Join(dir, change.file)
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(text), change.is, change.becomes, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/overlay.json", overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := built.Build(dir, []string{"-overlay", dir + "/overlay.json"}, "atip"); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	r, status, stderr := w.sandboxTest(dir)
	if want := []string{"files.write", "files.meta", "tree.end"}; status != 69 || r.OK || !slices.Equal(r.with("escaped"), want) {
		t.Errorf("status %d, escaped %v, want %v; %s", status, r.with("escaped"), want, stderr)
	}
}
