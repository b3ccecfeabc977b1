package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/atip-dev/atip-exec/internal/corpus"
)

// BenchmarkBatch answers a string of ten commands again and again, as
// `explain --batch` does.
func BenchmarkBatch(b *testing.B) {
	dir := b.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Chdir(dir)
	b.Setenv("HOME", dir)
	for _, cmd := range []string{"ls -la", "cd src && git status --short | head -5; for f in a b; do wc -l \"$f\"; done; if [ -f go.mod ]; then go vet ./...; else ls -la; fi; grep -rn foo . | sort | uniq -c > out.txt; echo done"} {
		b.Run(fmt.Sprint(len(cmd)), func(b *testing.B) {
			var in bytes.Buffer
			enc := json.NewEncoder(&in)
			for i := range b.N {
				if err := enc.Encode(map[string]any{"id": i, "cmd": cmd}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := (&Batch{Machine: here()}).Answer(&in, io.Discard); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkBatchCorpus answers every row of the corpus in one batch.
func BenchmarkBatchCorpus(b *testing.B) {
	dir := b.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	rows, err := corpus.Read(filepath.Join("..", "..", "testdata", "commands"), "*")
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range rows {
		if err := enc.Encode(line{Cmd: r.Cmd, Argv: r.Argv}); err != nil {
			b.Fatal(err)
		}
	}
	b.Chdir(dir)
	b.Setenv("HOME", dir)
	b.ReportAllocs()
	for b.Loop() {
		if err := (&Batch{Machine: here()}).Answer(bytes.NewReader(in.Bytes()), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "commands/s")
}
