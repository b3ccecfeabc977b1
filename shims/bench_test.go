package shims

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims/builtin"
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

// Allocations stand for time here, which a busy machine cannot measure: a look-up and
// resolution stays within 200, whatever the document and the words, but for documents
// that must compile an expression. The words are those that once led to reading all of
// a document.
func TestAllocations(t *testing.T) {
	d := Dirs{Config: "/nonexistent/c", Data: "/nonexistent/d", Managed: "/nonexistent/m"}
	for _, e := range builtin.All() {
		limit := 200.0
		switch e.Name {
		case "awk", "curl", "duckdb", "heroku", "httpie", "ip", "magick", "mlr", "openssl", "scp", "sed", "socat", "stripe":
			limit = 600
		}
		for _, words := range [][]string{nil, {"-rf", "x"}, {"push", "-f"}, {"delete", "ns", "x"}, {"--no-such-option", "push"}, {"-Z", "x", "y"}, {"x", "--no-such", "y"}} {
			for _, invoked := range []string{"", "another-name"} {
				q := Query{Digest: hexA, Effective: e.Name, Invoked: e.Name, Believed: true}
				argv := append([]string{e.Name}, words...)
				n := testing.AllocsPerRun(1, func() {
					f, err := Lookup(q, d)
					if err != nil {
						t.Fatal(err)
					}
					f.Resolve(argv, atip.ResolveOptions{InvokedAs: invoked})
				})
				if n > limit {
					t.Errorf("%q as %q: %v allocations", argv, invoked, n)
				}
			}
		}
	}
}

// What is installed beside a document does not matter: no directory is listed, and the
// same work is done for ten shims as for two thousand.
func TestInstalledShimsCostNothing(t *testing.T) {
	var allocations [2]float64
	for i, installed := range []int{10, 2000} {
		dir := t.TempDir()
		d := Dirs{Config: dir + "/c", Data: dir + "/d", Managed: dir + "/m", DataDirs: []string{dir + "/s1"}}
		if err := os.MkdirAll(d.Data+"/shims/sha256", 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range installed {
			if err := os.WriteFile(fmt.Sprintf("%s/shims/sha256/%064x.json", d.Data, n), []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		q := Query{Digest: hexA, Effective: "git", Invoked: "git", Believed: true}
		allocations[i] = testing.AllocsPerRun(5, func() {
			f, err := Lookup(q, d)
			if err != nil {
				t.Fatal(err)
			}
			f.Resolve([]string{"git", "push", "-f"}, atip.ResolveOptions{})
		})
	}
	if allocations[0] != allocations[1] {
		t.Errorf("%v allocations beside 10 shims, %v beside 2000", allocations[0], allocations[1])
	}
}
