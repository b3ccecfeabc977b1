package status

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

func state(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	var d Document
	if err != nil || json.Unmarshal(raw, &d) != nil || d.Kind != Kind {
		t.Fatalf("%s, %v", raw, err)
	}
	return d.State
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status.json")
	s, err := Open("run", 0, file)
	if err != nil || !s.Wanted() || s.File() != file {
		t.Fatal(s, err)
	}
	if err := s.Write(Document{Kind: Kind, State: "finished"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("written before the place was held")
	}
	if err := s.Begin(); err != nil || state(t, file) != "incomplete" {
		t.Fatal(err)
	}
	if err := s.Write(Document{Kind: Kind, State: "finished"}); err != nil || state(t, file) != "finished" {
		t.Error(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("%v", left)
	}
	if s, err := Open("run", 0, ""); err != nil || s.Wanted() {
		t.Error("a status is wanted that was not asked for", err)
	}
}

// TestNothingElseIsReplaced: a status takes the place of a status, and of nothing else.
func TestNothingElseIsReplaced(t *testing.T) {
	for text, ok := range map[string]bool{"": true, `{"kind":"` + Kind + `"}`: true, "mine": false, `{"kind":"another"}`: false} {
		file := filepath.Join(t.TempDir(), "status.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open("run", 0, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(); (err == nil) != ok || Older(file) != ok || err != nil && fault.From(err).Code != errcode.StatusWrite {
			t.Errorf("%q: %v", text, err)
		}
		if raw, _ := os.ReadFile(file); !ok && string(raw) != text {
			t.Errorf("%q became %q", text, raw)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s, err := Open("run", 0, filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Begin()
	if _, err := os.Lstat(filepath.Join(dir, "target")); err == nil {
		t.Error("a link was followed")
	}
}

func TestDescriptor(t *testing.T) {
	if _, err := Open("run", 999, ""); err == nil || fault.From(err).Code != errcode.FlagValue {
		t.Errorf("a descriptor that is not open: %v", err)
	}
	var none *Tool
	if none.HowStarted() != "" || none.HowChecked() != "" || (&Tool{StartedBy: "path"}).HowStarted() != "path" {
		t.Error("a tool that is not known was started somehow")
	}
}
