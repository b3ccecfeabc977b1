package main_test

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWrapperKilled kills the whole wrapper at random moments of a run that changes the workspace, and
// an undo as well: nothing of the run lives on, the log verifies, and each checkpoint that was finished
// takes the workspace back to what it was. ATIP_TEST_WHOLE=1 does it 200 times.
func TestWrapperKilled(t *testing.T) {
	t.Parallel()
	kills, every := tries(12, 200), tries(4, 10)
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"rules":[]}`)
	for i := range 20 {
		put(t, w.ws, map[string]string{fmt.Sprint("kept", i): strings.Repeat(fmt.Sprintln(i), 100*i)})
	}
	atip := func(args ...string) (string, error) {
		cmd := w.command()
		cmd.Path, cmd.Args = filepath.Join(bin, "atip"), append([]string{"atip"}, args...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	tree := func() map[string]string {
		t.Helper()
		out := map[string]string{}
		list, err := os.ReadDir(w.ws)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Type().IsRegular() {
				raw, err := os.ReadFile(filepath.Join(w.ws, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				out[e.Name()] = string(raw)
			}
		}
		return out
	}
	text := "for i in 1 2 3 4 5 6 7 8; do rm -f kept$i; echo made > made$i; echo more >> kept1$i; done; sleep 60"
	span := 200 * time.Millisecond
	for k := range kills {
		cmd := w.command("-c", text)
		if k%3 == 2 {
			cmd.Path, cmd.Args = filepath.Join(bin, "atip"), []string{"atip", "undo", "--force"}
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			// How long it takes until something changes differs by ten between machines.
			for deadline := began.Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if _, err := os.Stat(filepath.Join(w.ws, "made1")); err == nil {
					break
				}
			}
			span = 2 * time.Since(began)
		} else {
			time.Sleep(time.Duration(rand.Int63n(int64(span))))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); k == 0 && (!ok || ws.Signal() != syscall.SIGKILL) {
			t.Fatalf("the run ended by itself: %v", cmd.ProcessState)
		}
		if k%every != every-1 {
			continue
		}
		// What is left of the killed run is gone, so that nothing changes any more.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if out, _ := exec.Command("pgrep", "-f", "kept1.*sleep 60.*"+filepath.Base(filepath.Dir(w.ws))).Output(); len(out) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("kill %d: the run lives on", k)
			}
		}
		before := tree()
		if out, err := w.command("-c", fmt.Sprintf("rm -f kept* made*; echo new > new%d", k)).CombinedOutput(); err != nil {
			t.Fatalf("kill %d: %v: %s", k, err, out)
		}
		if lost := tree(); maps.Equal(lost, before) {
			t.Fatalf("kill %d: nothing was lost, so this shows nothing", k)
		}
		if out, err := atip("undo", "--force"); err != nil {
			t.Errorf("kill %d: undo: %v: %s", k, err, out)
		}
		if after := tree(); !maps.Equal(after, before) {
			t.Errorf("kill %d: the undo left %d files, there were %d", k, len(after), len(before))
		}
		if out, err := atip("undo", "--list"); err != nil {
			t.Errorf("kill %d: list: %v: %s", k, err, out)
		}
	}
	w.auditSummary()
}
