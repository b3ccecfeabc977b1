//go:build unix

package flock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if !Within(first, 0) {
		t.Fatal("a free lock was not given")
	}
	if Within(second, 30*time.Millisecond) {
		t.Error("a lock was given twice")
	}
	given := make(chan error)
	go func() { given <- Exclusive(second) }()
	select {
	case err := <-given:
		t.Errorf("a lock was given twice: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	first.Close() // gives it back
	if err := <-given; err != nil {
		t.Error(err)
	}
}
