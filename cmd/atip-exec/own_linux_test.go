package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// ownWorld is a world with a gh that is known, a script of the project that says what it finds, and
// files that choose the tier.
func ownWorld(t *testing.T) inside {
	w := newInside(t)
	for name, text := range map[string]string{
		"test.sh": "#!/bin/sh\necho \"test token=$GH_TOKEN\"\ncat \"$HOME/.config/gh/hosts.yml\" 2>/dev/null\ncat /proc/net/route 2>/dev/null | grep -q 00000000 && echo routed\ntrue\n",
		"T2.json": `{"version":1,"sandbox":{"tier":"T2"}}`, "T3.json": `{"version":1,"sandbox":{"tier":"T3"}}`,
	} {
		if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, w.home, map[string]string{".config/gh/hosts.yml": "github.com:\n    user: someone\n"})
	return w
}

// TestOwnStep: gh has its credential and its host, the script beside it has neither, and nobody asks.
func TestOwnStep(t *testing.T) {
	w := ownWorld(t)
	for _, tier := range []string{"T2", "T3"} {
		status, out, stderr := w.run(nil, "--policy", tier+".json", "-c", "gh pr list; ./test.sh")
		if status != 0 || out != "gh pr list token=[REDACTED:env:GH_TOKEN] in=typed\ntest token=\n" {
			t.Errorf("%s: %d %q %q", tier, status, out, stderr)
		}
	}
	for _, rec := range w.records() {
		t.Log(rec["kind"], rec["argv"], rec["own_runs"], rec["own_step_of"])
	}
	w.auditSummary()
}
