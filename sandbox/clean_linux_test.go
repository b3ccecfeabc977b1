package sandbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHoldPrivateAwaitsClean: a run that starts while Clean holds its directory waits, however slow Clean is, and
// has a lock on the new one; a leftover command of a run that holds it makes no run wait for long.
func TestHoldPrivateAwaitsClean(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ws", "0123456789abcdef")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, free := lockUnused(dir)
	if !free {
		t.Fatal("nothing holds it")
	}
	renamed := make(chan error, 1)
	time.AfterFunc(2*privateTries*2*time.Millisecond, func() { // as if it had no processor meanwhile
		renamed <- os.Rename(dir, dir+".removing")
		unlock()
	})
	lock, err := HoldPrivate(dir)
	if err != nil || lock == nil {
		t.Fatalf("%v, %v", lock, err)
	}
	if err := <-renamed; err != nil {
		t.Error(err)
	}
	if unlock, free := lockUnused(dir); free {
		t.Error("Clean would take the directory of a run")
	} else {
		unlock()
	}
	lock.Close()

	leftover, err := lockPrivate(dir, unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	defer leftover.Close()
	if lock, err := HoldPrivate(dir); err != nil || lock != nil {
		t.Errorf("under a leftover command: %v, %v", lock, err)
	}
}
