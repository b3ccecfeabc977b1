package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSwappedScriptNeverRuns: while another process swaps the script for another one and back,
// each run prints what was identified or nothing. The script is the same inode again after each swap, so
// that no comparison after the start would tell.
func TestSwappedScriptNeverRuns(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		for _, tc := range []struct{ name, scripts, good, evil string }{
			{"shell, by default", "", "#!/bin/bash\necho good\n", "#!/bin/bash\necho evil\n"},
			{"python, by default", "", "#!/usr/bin/env python3\nimport sibling\nprint('good')\n", "#!/usr/bin/env python3\nprint('evil')\n"},
			{"shell that asks for its name, by policy", `,"trust":{"scripts":"descriptor"}`, "#!/bin/bash\necho good; : $0\n", "#!/bin/bash\necho evil\n"},
		} {
			t.Run(tier+" "+tc.name, func(t *testing.T) { swapRace(t, tier, tc.scripts, tc.good, tc.evil) })
		}
	}
}

func swapRace(t *testing.T, tier, scripts, good, evil string) {
	w := newWorld(t)
	w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}` + scripts + `}`)
	tool, other, aside := filepath.Join(w.ws, "tool"), filepath.Join(w.ws, "other"), filepath.Join(w.ws, "aside")
	for path, text := range map[string]string{tool: good, other: evil} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.ws, "sibling.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	status := filepath.Join(w.home, "status.json")
	digest := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	// swapped calls f while the other script stands where the tool stood.
	swapped := func(f func()) {
		rename(tool, aside)
		rename(other, tool)
		f()
		rename(tool, other)
		rename(aside, tool)
	}
	// Unconfined, the text counts that stands there when the interpreter opens it. The control stops
	// after the execve and before the interpreter's first instruction, so that it is no race.
	runtime.LockOSThread()
	control := exec.Command(tool)
	control.Dir, control.SysProcAttr = w.ws, &syscall.SysProcAttr{Ptrace: true}
	var out bytes.Buffer
	control.Stdout = &out
	if err := control.Start(); err != nil {
		t.Fatal(err)
	}
	swapped(func() {
		_, _ = syscall.Wait4(control.Process.Pid, nil, 0, nil)
		if err := syscall.PtraceDetach(control.Process.Pid); err != nil {
			t.Error(err)
		}
		_ = control.Wait()
	})
	runtime.UnlockOSThread()
	if out.String() != "evil\n" {
		t.Errorf("plain execve ran %q after the swap, so this test shows nothing", out.String())
	}
	// run starts the tool under the program and swaps the other one in for a moment.
	run := func(before, during time.Duration) string {
		os.Remove(status)
		cmd := w.command("--status-file", status, "--", "./tool")
		cmd.Dir = w.ws
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(before)
		swapped(func() { time.Sleep(during) })
		_ = cmd.Wait()
		return out.String()
	}
	counts := map[string]int{}
	random := rand.New(rand.NewSource(1))
	// How long a start takes hangs on the machine: at least one run must be judged by the good text.
	for i := 0; i < tries(15, 60) || counts["good"] == 0 && i < 600; i++ {
		// From before the identification to after the start.
		before := time.Duration(random.Intn(15000)) * time.Microsecond
		during := time.Duration(random.Intn(3000)) * time.Microsecond
		out := run(before, during)
		raw, _ := os.ReadFile(status)
		switch {
		case out == "":
			counts["nothing"]++
		case out == "good\n" && strings.Contains(string(raw), digest(good)):
			counts["good"]++
		case out == "evil\n" && strings.Contains(string(raw), digest(evil)):
			counts["the other one, judged as such"]++
		default:
			t.Errorf("%q ran after the swap, and the status says %s", out, raw)
		}
	}
	if counts["good"] == 0 {
		t.Errorf("no run of the good script was allowed: %v", counts)
	}
	t.Log(counts)
}
