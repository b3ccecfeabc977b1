//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestRunsThatStartAtOnce: none settles, locks or removes the record of another that is about to start.
func TestRunsThatStartAtOnce(t *testing.T) {
	work, state := t.TempDir(), t.TempDir()
	p := Profile{Workspace: work, Protect: []string{work + "/.envrc"}}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 40 {
				g, err := guardNames(p, state)
				if err != nil {
					t.Error(err)
					return
				}
				if len(g.earlier) > 0 {
					t.Errorf("another run was settled: %v", g.earlier)
				}
				if _, err := os.Lstat(g.recordPath()); err != nil {
					t.Error(err)
				}
				if s := g.settle(); len(s.Changes) > 0 {
					t.Error(s.Changes)
				}
			}
		})
	}
	all.Wait()
	if left, _ := filepath.Glob(state + "/protect/*/pending/*"); len(left) > 0 {
		t.Error(left)
	}
}

// TestRecordsAreSettledOnce: what was protected by a run whose wrapper was killed may have been changed with
// approval since another run settled it.
func TestRecordsAreSettledOnce(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/run.json"
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := lockRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockRecord(path); err == nil {
		t.Error("the record of a run that is alive was locked")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if _, err := lockRecord(path); err == nil {
		t.Error("a record that was settled was locked")
	}
}

// TestRecordsWithoutALock: a record that never got its name is not settled, as its run had not begun.
func TestRecordsWithoutALock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/pending", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{".new": 0, ".old": 2 * leftAfter} {
		path := filepath.Join(dir, "pending", name)
		if err := os.WriteFile(path, []byte(`{"roots":["/"],"names":["/x"]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if changes := settleDead(dir); len(changes) > 0 {
		t.Error(changes)
	}
	if left, _ := filepath.Glob(dir + "/pending/.*"); len(left) != 1 || filepath.Base(left[0]) != ".new" {
		t.Error(left)
	}
}
