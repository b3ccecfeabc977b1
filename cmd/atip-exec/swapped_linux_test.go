package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	// run starts the tool and swaps the other one in for a moment, or until the tool has ended.
	run := func(confined bool, before, during time.Duration) string {
		cmd := exec.Command(tool)
		if confined {
			os.Remove(status)
			cmd = w.command("--status-file", status, "--", "./tool")
		}
		cmd.Dir = w.ws
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(before)
		for _, move := range [][2]string{{tool, aside}, {other, tool}, {"", ""}, {tool, other}, {aside, tool}} {
			if move[0] == "" {
				if during < 0 {
					_ = cmd.Wait()
				}
				time.Sleep(during)
			} else if err := os.Rename(move[0], move[1]); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		return out.String()
	}
	counts := map[string]int{}
	random := rand.New(rand.NewSource(1))
	for range 60 {
		// From before the identification to after the start.
		before := time.Duration(random.Intn(15000)) * time.Microsecond
		during := time.Duration(random.Intn(3000)) * time.Microsecond
		out := run(true, before, during)
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
	// Started by path, it is the text that stands there when the interpreter opens it.
	for range 5 {
		if run(false, 0, -1) == "evil\n" {
			counts["control"]++
		}
	}
	if counts["control"] == 0 || counts["good"] == 0 {
		t.Errorf("the race was not tried: %v", counts)
	}
	t.Log(counts)
}
