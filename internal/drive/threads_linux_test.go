package drive

import (
	"os"
	"testing"
	"time"
)

// TestKeepThreads: the threads are there before a command that takes every process of
// its user makes the next one impossible, which the Go runtime would not survive.
func TestKeepThreads(t *testing.T) {
	stop := KeepThreads()
	defer stop()
	threads := 0
	for range 500 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		if threads = len(tasks); threads > spareThreads {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d threads, want more than %d", threads, spareThreads)
}
