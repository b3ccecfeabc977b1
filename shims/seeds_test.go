package shims

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSeedExamples reads the local registry of the protocol text.
func TestSeedExamples(t *testing.T) {
	raw, err := os.ReadFile("../testdata/seeds/registry-0.6.json")
	if err != nil {
		t.Fatal(err)
	}
	d := Dirs{Data: t.TempDir()}
	if err := os.WriteFile(filepath.Join(d.Data, "registry.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := ReadIndex(d)
	if err != nil {
		t.Fatal(err)
	}
	gh, curl := x.Tools["gh"], x.Tools["curl"]
	if gh.Path != "/opt/homebrew/bin/gh" || gh.Source != "native" || gh.LastChecked.IsZero() || curl.ShimRegistry != "https://atip.dev" || len(x.Tools) != 2 {
		t.Errorf("%+v", x.Tools)
	}
	if err := UpdateIndex(d, "test", func(x *Index) { x.Tools["ls"] = IndexEntry{Path: "/bin/ls", Source: "shim"} }); err != nil {
		t.Fatal(err)
	}
	if x, err := ReadIndex(d); err != nil || len(x.Tools) != 3 || x.Tools["gh"].Hash != gh.Hash {
		t.Errorf("%v %+v", err, x)
	}
}
