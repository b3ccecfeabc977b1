package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestPut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := Create(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v", err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "one" {
		t.Errorf("%q, %v", raw, err)
	}
	if err := Replace(path, []byte("three"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if raw, rerr := os.ReadFile(path); err != nil || rerr != nil || string(raw) != "three" || info.Mode().Perm() != 0o644 {
		t.Errorf("%q, %v, %v, %v", raw, info, err, rerr)
	}
	if err := Replace(dir, nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
