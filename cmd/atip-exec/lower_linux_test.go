package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingLowersLaterRuns: a run that was started with too little, or where it is hard to
// start one, fails or goes on with less. It never makes later ones do with less.
func TestNothingLowersLaterRuns(t *testing.T) {
	t.Parallel()
	needTier3(t)
	w := newWorldAtHome(t)
	put(t, w.ws, map[string]string{"run.py": "print('ran')"})
	tier := func() string {
		file := filepath.Join(t.TempDir(), "status.json")
		if out, err := w.command("--status-file", file, "--", "python3", "run.py").CombinedOutput(); err != nil {
			t.Errorf("a plain run: %v: %s", err, out)
		}
		raw, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(raw), `"tier":"`)
		tier, _, _ := strings.Cut(rest, `"`)
		return tier
	}
	deep := filepath.Join(w.ws, strings.Repeat(strings.Repeat("d", 250)+"/", 15))
	odd := filepath.Join(w.ws, "no text \xff\n")
	for _, dir := range []string{deep, odd} {
		put(t, dir, map[string]string{"run.py": "print('ran')"})
	}
	for _, fresh := range []bool{false, true} {
		for _, tc := range []struct{ dir, limit string }{
			{w.ws, "-n 16"}, {w.ws, "-n 22"}, {w.ws, "-n 26"}, {w.ws, "-n 30"}, {w.ws, "-n 34"}, {w.ws, "-f 1"}, {w.ws, "-f 8"}, {deep, "-n 256"}, {odd, "-n 256"},
		} {
			if fresh {
				// Nothing is known yet, so this run asks the machine.
				if err := os.Remove(filepath.Join(w.home, ".local/state/atip-exec/sandbox.probe")); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			} else if got := tier(); got != "T3" {
				t.Fatalf("before: %s", got)
			}
			cmd := w.command("-c", "true")
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "ulimit " + tc.limit + "; exec \"$0\" -- python3 run.py", cmd.Path}
			cmd.Dir = tc.dir
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "goroutine") || err == nil && !strings.Contains(string(out), "ran") {
				t.Errorf("%.20q %s: %v: %s", tc.dir, tc.limit, err, out)
			}
			if got := tier(); got != "T3" {
				t.Errorf("after %.20q %s (%v, fresh %v: %s): %s", tc.dir, tc.limit, err, fresh, out, got)
			}
		}
	} // Who has given its capabilities away cannot do what root can do, and root still can.
	if _, err := exec.LookPath("setpriv"); os.Getuid() == 0 && err == nil {
		cmd := w.command("-c", "true")
		cmd.Args = append([]string{"setpriv", "--bounding-set", "-all", cmd.Path, "--"}, "python3", "run.py")
		cmd.Path, _ = exec.LookPath("setpriv")
		out, err := cmd.CombinedOutput()
		if got := tier(); got != "T3" {
			t.Errorf("after a run without capabilities (%v: %s): %s", err, out, got)
		}
	}
}
