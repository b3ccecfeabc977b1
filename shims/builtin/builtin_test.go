package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/wildcard"
)

func TestFind(t *testing.T) {
	for _, row := range []struct{ name, want string }{
		{"rm", "rm"}, {"egrep", "grep"}, {"gawk", "awk"}, {"[", "test"}, {"vim.basic", "vim"}, {"mkfs.ext4", "mkfs"},
		{"", ""}, {"r", ""}, {"rmx", ""}, {"zzzz", ""}, {"mkfs", "mkfs"}, {"md5sum", "sha256sum"},
	} {
		e, ok := Find(row.name)
		if e.Name != row.want || ok != (row.want != "") {
			t.Errorf("Find(%q) = %q, %v; want %q", row.name, e.Name, ok, row.want)
		}
	}
}

func TestEveryEntry(t *testing.T) {
	for _, e := range All() {
		doc, err := atip.Parse(e.Raw, atip.ParseOptions{})
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if doc.Name() != e.Name {
			t.Errorf("entry %s holds the document of %s", e.Name, doc.Name())
		}
		if sum := sha256.Sum256(e.Raw); hex.EncodeToString(sum[:]) != e.Digest {
			t.Errorf("%s: digest in the table is not that of the document", e.Name)
		}
		if got, ok := Find(e.Name); !ok || got.Name != e.Name {
			t.Errorf("Find(%q) = %q", e.Name, got.Name)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"python3.*", "python3.12", true}, {"python3.*", "python3", false}, {"*", "", true}, {"a?c", "abc", true},
		{"a?c", "ac", false}, {"*.js", "x.js.js", true}, {"*a*b", "xaybzb", true}, {"*a*b", "xayc", false},
	} {
		if got := wildcard.Match(row.pattern, row.name); got != row.want {
			t.Errorf("match(%q, %q) = %v", row.pattern, row.name, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?c*", "aXbYcZ")
	f.Add("**?*", "")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if wildcard.Match(pattern, name) && !wildcard.Match(pattern+"*", name) {
			t.Errorf("%q matches %q, but not with a star appended", pattern, name)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		Find("xargs")
		Find("no-such-tool")
	}
}
