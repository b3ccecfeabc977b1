package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPackagesAnywhere: a build at the top of a repository has the caches of the packages below it.
func TestPackagesAnywhere(t *testing.T) {
	w := newCorpusWorld(t)
	ws := filepath.Join(w.Home, "work", "many")
	for _, name := range []string{".git/HEAD", ".git/objects/x", ".git/refs/x", "services/api/go.mod", "apps/web/package.json", "tools/x/pyproject.toml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "services", "apps/web"} {
		p, err := Make(Invocation{Argv: []string{"make"}, Directory: filepath.Join(ws, dir)}, w.machine())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if got := p.families(nil); !slices.Equal(got, []string{"go", "npm", "pip"}) {
			t.Errorf("%q: %q", dir, got)
		}
	}
}
