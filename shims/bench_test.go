package shims

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// The time must not depend on how many shims are installed.
func BenchmarkLookupResolve(b *testing.B) {
	for _, installed := range []int{10, 10000} {
		dir := b.TempDir()
		d := Dirs{Config: dir + "/c", Data: dir + "/d", Managed: dir + "/m", DataDirs: []string{dir + "/s1", dir + "/s2"}}
		if err := os.MkdirAll(d.Data+"/shims/sha256", 0o755); err != nil {
			b.Fatal(err)
		}
		for i := range installed {
			if err := os.WriteFile(fmt.Sprintf("%s/shims/sha256/%064x.json", d.Data, i), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
		for _, argv := range [][]string{{"rm", "-rf", "build"}, {"git", "push", "-f", "origin", "main"}, {"git", "--no-such-option", "push"}, {"no-such-tool"}} {
			b.Run(fmt.Sprintf("%s/%d", strings.Join(argv[:min(2, len(argv))], "_"), installed), func(b *testing.B) {
				b.ReportAllocs()
				q := Query{Digest: hexA, Effective: argv[0], Invoked: argv[0], Believed: true}
				for b.Loop() {
					f, err := Lookup(q, d)
					if err != nil {
						b.Fatal(err)
					}
					f.Resolve(argv, atip.ResolveOptions{})
				}
			})
		}
	}
}

// A look-up and resolution stays within 200 allocations, whatever the document.
func TestAllocations(t *testing.T) {
	for _, argv := range [][]string{{"rm", "-rf", "x"}, {"git", "push", "-f"}, {"gh", "pr", "merge", "42"}, {"kubectl", "delete", "ns", "x"}, {"docker", "run", "x"}, {"no-such-tool"}} {
		q := Query{Digest: hexA, Effective: argv[0], Invoked: argv[0], Believed: true}
		d := Dirs{Config: "/nonexistent/c", Data: "/nonexistent/d", Managed: "/nonexistent/m"}
		n := testing.AllocsPerRun(5, func() {
			f, err := Lookup(q, d)
			if err != nil {
				t.Fatal(err)
			}
			f.Resolve(argv, atip.ResolveOptions{})
		})
		if n > 200 {
			t.Errorf("%q: %v allocations", argv, n)
		}
	}
}
