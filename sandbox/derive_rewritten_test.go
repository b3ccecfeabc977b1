package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// A file in /tmp that the run writes before it starts it is the one of the private /tmp. What it only starts is the
// machine's, as it was identified.
func TestDeriveRewritten(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "atip-rewritten-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	script, ws := dir+"/x.sh", t.TempDir()
	if err := os.WriteFile(script, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	in := Input{Names: tableNames(), Workspace: ws, Cwd: ws, Home: "/home/u", Private: "/home/u/.cache/w", Mirrored: func(string) bool { return true }, Exec: []string{script},
		Resources: []atip.Resource{{Kind: "path", Value: script, Abs: script, Access: atip.AccessExec, Class: atip.ClassTmp}}}
	granted := func(in Input) bool {
		p, err := Derive(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range p.grants() {
			if g.Path == script {
				return true
			}
		}
		return false
	}
	if !granted(in) {
		t.Error("a file that is only started has no grant")
	}
	in.Granted = in.Granted.With(atip.Write)
	for _, written := range []string{script, filepath.Dir(script)} {
		one := in
		one.Resources = append(one.Resources[:1:1], atip.Resource{Kind: "path", Value: written, Abs: written, Access: atip.AccessWrite, Class: atip.ClassTmp})
		if granted(one) {
			t.Errorf("%s is written and the machine's file is granted", written)
		}
	}
}

// Entries that stand for a directory with a secret in it are given up where they and the other rules are too many.
func TestDeriveHidesManyRules(t *testing.T) {
	ws := t.TempDir()
	for _, name := range append([]string{".env"}, numbered(maxSiblings-1)...) {
		if err := os.WriteFile(filepath.Join(ws, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := Input{Names: tableNames(), Workspace: ws, Cwd: ws, Home: "/home/u", Private: "/home/u/.cache/w", Hidden: []string{ws + "/.env"}, OrgBound: true, Mirrored: func(string) bool { return false }}
	p, err := Derive(in)
	if err != nil || len(p.Mask) != 0 {
		t.Fatalf("few rules: %v, %v", p.Mask, err)
	}
	more := t.TempDir()
	for _, name := range numbered(maxGrants - maxSiblings) {
		path := filepath.Join(more, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		in.Policy.Read = append(in.Policy.Read, PathRule{Path: path})
	}
	if p, err = Derive(in); err != nil || len(p.Mask) != 1 {
		t.Errorf("many rules: %v, %v", p.Mask, err)
	}
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("f%03d", i))
	}
	return names
}
