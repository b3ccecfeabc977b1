package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// helperOf waits for the process that a run has started for a run inside of it.
func helperOf(t *testing.T, pid int) int {
	t.Helper()
	for range 5000 {
		for helper, line := range procstat.Lines() {
			if !strings.HasPrefix(line, "atip-exec:behalf") {
				continue
			}
			if stat, err := procstat.Of(helper); err == nil && stat.Int(procstat.Parent) == pid {
				return helper
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("nothing was started for the run inside")
	return 0
}

// TestParentsCommandIsRecorded: what was started for a run inside leaves its record when the
// run is ended in the middle of it, however long that takes; and where nobody is left to
// write one, that it was about to start stands there.
func TestParentsCommandIsRecorded(t *testing.T) {
	w := newInside(t)
	put(t, w.ws, map[string]string{"stubborn.py": "import signal, subprocess, sys\nsignal.signal(signal.SIGTERM, lambda *a: None)\nsys.exit(subprocess.run(sys.argv[1:], close_fds=False).returncode)\n"})
	for i, row := range []struct {
		name, tier string
		kill       bool // the process itself is killed, not slow
		want       string
	}{
		{"slow", "T2", false, "intent run"},
		{"slow", "T3", false, "intent run"},
		{"killed", "T2", true, "intent"},
		{"killed", "T3", true, "intent"},
	} {
		name := row.name + ", " + row.tier
		number := fmt.Sprint(6000 + i*10 + os.Getpid()%10)
		line := "sleep " + number + ".25"
		put(t, w.ws, map[string]string{"tier.json": `{"version":1,"sandbox":{"tier":"` + row.tier + `"}}`})
		cmd := w.command("--policy", "tier.json", "--", "python3", "stubborn.py", "atip-exec", "--", "gh", "pr", "view", number)
		cmd.Env = []string{"HOME=" + w.home, "GH_TOKEN=the-credential-of-this-test",
			"PATH=" + filepath.Join(w.home, "stubs") + ":" + filepath.Join(w.home, ".local/share/agent-tools/bin") + ":/usr/local/bin:/usr/bin:/bin:" + bin}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		helper := helperOf(t, cmd.Process.Pid)
		started := false
		for n := 0; n < 5000 && !started; n++ {
			started = alive(line)
			time.Sleep(20 * time.Millisecond)
		}
		if !started {
			t.Errorf("%s: gh was not started", name)
		}
		began := time.Now()
		if row.kill {
			_ = syscall.Kill(helper, syscall.SIGKILL)
		} else {
			_ = syscall.Kill(helper, syscall.SIGSTOP) // a machine that does not come to it
		}
		// The program does not end by a signal; the third one that comes to its run is no request.
		outer := "python3 stubborn.py atip-exec -- gh pr view " + number
		for n := 0; n < 5000 && alive(outer); n++ {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			time.Sleep(20 * time.Millisecond)
		}
		if !row.kill {
			_ = syscall.Kill(helper, syscall.SIGCONT)
		}
		// The helper is told to end again and again, and in the end without mercy.
		late := time.Since(began) > 20*time.Second
		_ = cmd.Wait()
		gone(t, line)
		var kinds []string
		for _, rec := range w.records() {
			if rec["asked_by"] != nil && strings.HasSuffix(fmt.Sprint(rec["argv"]), " "+number+"]") {
				kinds = append(kinds, fmt.Sprint(rec["kind"]))
			}
		}
		if got := strings.Join(kinds, " "); got != row.want && !(late && got == "intent") {
			t.Errorf("%s: records %q, want %q: %s", name, got, row.want, stderr.String())
		}
	}
	w.auditSummary()
}
