package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHardLinkToCredentials: a second name of a credential file that stood in the workspace
// before the run shows nothing at T3, also to a command that only reads, and is told below.
func TestHardLinkToCredentials(t *testing.T) {
	t.Parallel()
	needTier3(t)
	w := newWorldAtHome(t)
	put(t, w.home, map[string]string{".netrc": "synthetic netrc\n", ".ssh/id_ed25519": "synthetic key\n"})
	put(t, w.ws, map[string]string{"deep/er/x": "x"})
	for from, to := range map[string]string{".netrc": "deep/er/one", ".ssh/id_ed25519": "two"} {
		if err := os.Link(filepath.Join(w.home, from), filepath.Join(w.ws, to)); err != nil {
			t.Fatal(err)
		}
	}
	const text = `
import os
for path in ('deep/er/one', 'two', '.git/../two', '/proc/self/cwd/two'):
    try: print(open(path).read().split()[0])
    except OSError as e: print(type(e).__name__)
try: os.rename('two', 'three')
except OSError as e: print(type(e).__name__)
`
	if status, stdout, stderr := w.python(text); status != 0 || strings.Contains(stdout, "synthetic") || strings.Count(stdout, "Error") != 5 {
		t.Errorf("T3: status %d, %q; %s", status, stdout, stderr)
	}
	out, _ := w.command("--", "head", "-c", "9", "deep/er/one").CombinedOutput()
	if strings.Contains(string(out), "synthetic") {
		t.Errorf("a command that reads: %s", out)
	}
	for _, path := range []string{"deep/er/one", "two"} {
		if raw, err := os.ReadFile(filepath.Join(w.ws, path)); err != nil || !strings.HasPrefix(string(raw), "synthetic") {
			t.Errorf("outside: %q %v", raw, err)
		}
	}
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	status, stdout, stderr := w.python(text)
	if status != 0 || !strings.Contains(stdout, "synthetic") || strings.Count(stderr, "another name of a credential file") != 2 {
		t.Errorf("T2: status %d, %q; %s", status, stdout, stderr)
	}
}
