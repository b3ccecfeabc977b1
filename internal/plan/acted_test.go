package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
)

func TestActedOn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"body", "form", "up", "two", "main.tf", "app/Dockerfile", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("other", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool, path string
		argv, want []string
	}{
		{"curl", "", []string{"curl", "-d", "@body", "-F", "f=@form;type=text/plain", "-Tup", "https://h.example/"}, []string{"body", "form", "up"}},
		{"curl", "", []string{"curl", "-d@link", "-F", "f=<form", "-F", "g=@up,two", "-F", `h=@"body"`, "https://h.example/"}, []string{"link", "form", "up", "two", "body"}},
		{"docker", "build", []string{"docker", "build", "--push", "app"}, []string{"app/Dockerfile"}},
		{"terraform", "apply", []string{"terraform", "apply"}, []string{"main.tf"}},
	} {
		s := &step.Step{Argv: tt.argv}
		s.Cwd, s.Call.Tool, s.Call.Path = dir, tt.tool, []string{tt.path}
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes}
		got := (&Plan{}).actedOn(s)
		var want []string
		for _, name := range tt.want {
			want = append(want, filepath.Join(dir, name))
		}
		slices.Sort(got)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", tt.argv, got, want)
		}
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.No}
		if got := (&Plan{}).actedOn(s); len(got) != 0 {
			t.Errorf("%v without network: %v", tt.argv, got)
		}
	}
}
