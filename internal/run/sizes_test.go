package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSizes: no package grows into the one that knows everything. The four that are larger are a library each
// (atip, policy, sandbox) or its table of rules (filter).
func TestSizes(t *testing.T) {
	large := map[string]bool{"atip": true, "sandbox": true, "filter": true, "policy": true}
	root := filepath.Join("..", "..")
	lines := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || len(name) > 2 && name[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		lines[filepath.ToSlash(rel)] += bytes.Count(raw, []byte("\n"))
		return err
	})
	if err != nil || len(lines) < 50 {
		t.Fatalf("%d packages, %v", len(lines), err)
	}
	for pkg, n := range lines {
		most := 5500
		if pkg == "internal/run" {
			most = 1500
		}
		if n > most && !large[pkg] {
			t.Errorf("%s has %d lines without tests, more than %d", pkg, n, most)
		}
	}
}
