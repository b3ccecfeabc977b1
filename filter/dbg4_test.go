package filter

import (
	"io"
	"os"
	"strings"
	"testing"
)

func BenchmarkCliff(b *testing.B) {
	for _, unit := range strings.Split(os.Getenv("UNITS"), "~") {
		text := []byte(strings.Repeat(unit, 1+(256<<10)/len(unit)))
		b.Run(unit, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			set := testSet(b, Config{}, "A_TOKEN=aB3dE5fG7hJ9kL1mN3pQ")
			for b.Loop() {
				w := set.Writer(io.Discard, Stdout)
				for rest := text; len(rest) > 0; {
					n := min(len(rest), piece)
					w.Write(rest[:n])
					rest = rest[n:]
				}
				w.Close()
			}
		})
	}
}
