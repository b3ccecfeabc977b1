//go:build unix

package shims

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Each row makes one change to a file that is read without it.
func TestUnsafeFiles(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, file string)
		code  string
		root  bool // only root can make this
	}{
		{name: "as it should be", spoil: func(*testing.T, string) {}},
		{name: "writable by all", spoil: func(t *testing.T, f string) { must(t, os.Chmod(f, 0o666)) }, code: "E1106"},
		{name: "directory writable by all", spoil: func(t *testing.T, f string) { must(t, os.Chmod(filepath.Dir(f), 0o777)) }, code: "E1106"},
		{name: "sticky directory writable by all", spoil: func(t *testing.T, f string) { must(t, os.Chmod(filepath.Dir(f), os.ModeSticky|0o777)) }, code: "E1106"},
		{name: "second hard link", spoil: func(t *testing.T, f string) { must(t, os.Link(f, f+".other")) }, code: "E1106"},
		{name: "symbolic link", spoil: func(t *testing.T, f string) { must(t, os.Rename(f, f+".real")); must(t, os.Symlink(f+".real", f)) }, code: "E1106"},
		{name: "FIFO", spoil: func(t *testing.T, f string) { must(t, os.Remove(f)); must(t, syscall.Mkfifo(f, 0o644)) }, code: "E1106"},
		{name: "directory", spoil: func(t *testing.T, f string) { must(t, os.Remove(f)); must(t, os.Mkdir(f, 0o755)) }, code: "E1106"},
		{name: "100 MB", spoil: func(t *testing.T, f string) { must(t, os.Truncate(f, 100<<20)) }, code: "E1102"},
		{name: "just too big", spoil: func(t *testing.T, f string) { must(t, os.Truncate(f, maxFile+1)) }, code: "E1102"},
		{name: "foreign owner", spoil: func(t *testing.T, f string) { must(t, os.Chown(f, 54321, -1)) }, code: "E1106", root: true},
		{name: "foreign directory", spoil: func(t *testing.T, f string) { must(t, os.Chown(filepath.Dir(f), 54321, -1)) }, code: "E1106", root: true},
		{name: "writable by a foreign group", spoil: func(t *testing.T, f string) { must(t, os.Chown(f, -1, 54321)); must(t, os.Chmod(f, 0o664)) }, code: "E1106", root: true},
		{name: "no directory", spoil: func(t *testing.T, f string) { must(t, os.RemoveAll(filepath.Dir(f))) }, code: "absent"},
		{name: "dangling", spoil: func(t *testing.T, f string) { must(t, os.Remove(f)) }, code: "absent"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.root && os.Geteuid() != 0 {
				return // chown needs root; the root run of CI makes this row
			}
			w := newWorld(t)
			file := w.put(w.d.Data+"/shims/mytool.json", doc("mytool", "", "", true))
			if _, err := Lookup(Query{Effective: "mytool"}, w.d); err != nil {
				t.Fatal("before the change:", err)
			}
			row.spoil(t, file)
			f, err := Lookup(Query{Effective: "mytool"}, w.d)
			var e *Error
			switch {
			case row.code == "":
				if err != nil || f.Document == nil {
					t.Error("refused:", err)
				}
			case row.code == "absent":
				if err != nil || f.Document != nil {
					t.Error(f, err)
				}
			case !errors.As(err, &e) || e.Code != row.code:
				t.Errorf("got %v, want %s", err, row.code)
			case !strings.HasPrefix(err.Error(), "tool metadata "+file):
				t.Error(err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
