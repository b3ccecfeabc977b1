package undo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fill makes n files of size bytes, a hundred in a directory, older than any tick.
func fill(t testing.TB, root string, n, size int) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for i := range n {
		d := filepath.Join(root, fmt.Sprintf("dir%03d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f := filepath.Join(d, fmt.Sprintf("file%02d.go", i%100))
		if err := os.WriteFile(f, bytes.Repeat(fmt.Appendf(nil, "%d\n", i), size/len(fmt.Sprintln(i))+1), 0o644); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(f, old, old)
	}
	time.Sleep(3 * tick)
}

func BenchmarkUnchanged(b *testing.B) {
	for _, n := range []int{5_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := world(b)
			fill(b, p.Root, n, 100)
			p.Limits.New, p.Limits.Bytes = 4<<30, 4<<30
			s := open(b, p)
			if _, err := s.Checkpoint(); err != nil {
				b.Fatal(err)
			}
			s.Close()
			began := processors(b)
			for b.Loop() {
				s, err := Open(p, true)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Checkpoint(); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
			b.ReportMetric(float64(processors(b)-began)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

// processors is the time that all processors have worked for this process.
func processors(t testing.TB) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

func BenchmarkFirst100MB(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		p := world(b)
		p.unsynced = false
		fill(b, p.Root, 5_000, 20<<10)
		b.StartTimer()
		s := open(b, p)
		if _, err := s.Checkpoint(); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
