package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
			cmd := w.command("--status-file", file, "--", "python3", "-c", "open('/etc/x' + chr(121), 'w')")
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
