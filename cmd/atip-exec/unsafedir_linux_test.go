package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnsafeDirectoryIsRecorded: a run that is refused because a directory of ours leads elsewhere
// leaves its record all the same.
func TestUnsafeDirectoryIsRecorded(t *testing.T) {
	w := newWorld(t)
	if out, err := w.command("--", "true").CombinedOutput(); err != nil {
		t.Fatalf("the twin: %v %s", err, out)
	}
	config, elsewhere := filepath.Join(w.home, ".config", "agent-tools"), filepath.Join(w.home, "elsewhere")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(config); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, config); err != nil {
		t.Fatal(err)
	}
	if out, err := w.command("--", "echo", "unrecorded").CombinedOutput(); err == nil || !strings.Contains(string(out), "symbolic link") {
		t.Fatalf("%v %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(w.home, ".local/state/atip-exec/audit/*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(raw), `"unrecorded"`) {
		t.Errorf("no record of the refusal: %v %s", err, raw)
	}
}
