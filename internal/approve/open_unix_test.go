//go:build unix

package approve

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestUnsafePlaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := WriteRequest(dir, Request{Bound: bound("x")}); err == nil {
		t.Error("a directory that others can write was used")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	id, _, err := WriteRequest(dir, Request{Bound: bound("x")})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := List(dir); len(got) != 1 {
		t.Fatalf("control: %v", got)
	}
	file := filepath.Join(dir, id+".json")
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, _ := List(dir); len(got) != 0 {
		t.Error("a file that others can write is listed")
	}
	moved := filepath.Join(t.TempDir(), "r")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, file); err != nil {
		t.Fatal(err)
	}
	if got, _ := List(dir); len(got) != 0 {
		t.Error("a link is followed")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := List(dir); err != nil || len(got) != 0 {
		t.Errorf("a FIFO: %v, %v", got, err)
	}
}
