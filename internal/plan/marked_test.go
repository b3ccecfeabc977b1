package plan

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMarked: the caches of a tool are there in a package anywhere in the workspace, and
// markers outside it are none.
func TestMarked(t *testing.T) {
	outside := t.TempDir()
	root := filepath.Join(outside, "ws")
	deep := filepath.Join(root, "services", "api", "cmd")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(outside, "Cargo.toml"), filepath.Join(root, "package.json"), filepath.Join(root, "services", "api", "go.mod")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		cwd, name string
		want      bool
	}{
		{deep, "go.mod", true}, {deep, "package.json", true}, {deep, "Cargo.toml", false},
		{root, "go.mod", false}, {root, "package.json", true}, {outside, "Cargo.toml", false}, {outside, "package.json", true},
	} {
		if got := (&Plan{Place: Place{Cwd: c.cwd, Workspace: root}}).marked(c.name); got != c.want {
			t.Errorf("%s in %s: %v, want %v", c.name, c.cwd, got, c.want)
		}
	}
}
