package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func BenchmarkIdentityHit(b *testing.B) {
	o := Opener{CacheDir: filepath.Join(b.TempDir(), "digest"), Workspace: "/w", Home: "/home/u", TmpDirs: []string{"/tmp"}}
	path := []string{"/usr/bin"}
	f, err := o.Open("true", path, "/")
	if err != nil {
		b.Fatal(err)
	}
	f.Close()
	b.ReportAllocs()
	hits := 0
	for b.Loop() {
		f, err := o.Open("true", path, "/")
		if err != nil {
			b.Fatal(err)
		}
		if f.Identity().CacheHit {
			hits++
		}
		f.Close()
	}
	b.ReportMetric(float64(hits)/float64(b.N), "hits/op")
}

// BenchmarkIdentityMiss and BenchmarkSHA256 read the same 16 MiB; the ratio is
// the budget.
func BenchmarkIdentityMiss(b *testing.B) {
	p := bigFile(b)
	b.SetBytes(16 << 20)
	for b.Loop() {
		f, err := Opener{}.Open(p, nil, "/")
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

func BenchmarkSHA256(b *testing.B) {
	data := make([]byte, 16<<20)
	rand.Read(data)
	b.SetBytes(16 << 20)
	for b.Loop() {
		sha256.Sum256(data)
	}
}

func bigFile(b *testing.B) string {
	data := make([]byte, 16<<20)
	rand.Read(data)
	copy(data, "\x7fELF")
	p := filepath.Join(b.TempDir(), "big")
	if err := os.WriteFile(p, data, 0o755); err != nil {
		b.Fatal(err)
	}
	os.Chtimes(p, time.Time{}, time.Now().Add(-time.Hour))
	return p
}
