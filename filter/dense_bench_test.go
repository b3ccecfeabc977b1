package filter_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/redactcorpus"
)

// BenchmarkWriterDense filters texts in which nearly each line has a name or a secret: the open outputs of the corpora.
func BenchmarkWriterDense(b *testing.B) {
	records, err := redactcorpus.Outputs(corpora, 1)
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	for _, r := range records {
		if !r.Unseen {
			text.Write(r.Text)
		}
	}
	set, err := filter.NewSet(filter.Config{NoMemory: true}, filter.Known{}, filter.TagKey{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		w := set.Writer(io.Discard, filter.Stdout)
		for rest := text.Bytes(); len(rest) > 0; {
			n := min(len(rest), 64<<10)
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
	}
}
