package main

import (
	"bytes"
	"os"
	"testing"
)

// The table in the repository must be what the documents give.
func TestTableIsCurrent(t *testing.T) {
	files, err := build("..")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		got, err := os.ReadFile("../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./shims/builtin", file)
		}
	}
}

func TestLintManifests(t *testing.T) {
	const network = `"effects":{"network":true}`
	for _, row := range []struct {
		name, text string
		problems   int
	}{
		{"mix", `{` + network + `,"x-atip-effects":{"v":1,"files":[{"path":"mix.exs","relativeTo":"project"}]}}`, 0},
		{"mix", `{` + network + `}`, 1},
		{"mix", `{"effects":{"network":false}}`, 0},
		{"bundle", `{` + network + `,"x-atip-effects":{"v":1,"files":[{"path":"Gemfile"}]}}`, 1},
		{"other", `{` + network + `}`, 0},
		{"k", `{` + network + `,"options":[{"flags":["--kubeconfig"]}]}`, 1},
		{"k", `{` + network + `,"options":[{"flags":["--kubeconfig"]}],"x-atip-effects":{"when":[{"if":{"anyOption":["--x", "--kubeconfig"]}}]}}`, 0},
	} {
		if got := lintManifests(row.name, []byte(row.text)); len(got) != row.problems {
			t.Errorf("%s %s: %q", row.name, row.text, got)
		}
	}
	for path, tools := range manifests {
		for _, tool := range tools {
			if _, err := os.Stat("../" + tool + ".json"); err != nil {
				t.Errorf("%s: no document of %s", path, tool)
			}
		}
	}
}
