package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// reachingCode tries what a program can do to a directory and a file in it, and says what it did.
const reachingCode = `
import os, sys
top, done = sys.argv[1], []
def attempt(name, act):
    try:
        act()
        done.append(name)
    except OSError:
        pass
files = [os.path.join(d, f) for d, _, names in os.walk(top) for f in names]
if files: done.append("listed")
known = sys.argv[2]
attempt("read", lambda: open(known, "rb").read())
attempt("added", lambda: open(os.path.join(top, "planted"), "w").close())
attempt("linked", lambda: os.symlink("/etc/passwd", os.path.join(os.path.dirname(known), "link")))
attempt("piped", lambda: os.mkfifo(os.path.join(os.path.dirname(known), "pipe")))
attempt("moved", lambda: os.rename(known, known + ".moved"))
attempt("emptied", lambda: open(known, "r+b").truncate(0))
print(" ".join(done) or "nothing")
`

// TestUndoStoreIsClosed: code of the workspace neither lists, reads, changes nor adds to the copies
// that undo keeps, and what a run deleted comes back afterwards. Unconfined the same code does it all.
func TestUndoStoreIsClosed(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		put(t, w.ws, map[string]string{"kept": "kept\n", "reach.py": reachingCode})
		if out, err := w.command("--", "rm", "kept").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", tier, err, out)
		}
		top := filepath.Join(w.home, ".local/share/atip-exec/undo")
		known := ""
		for path := range files(t, top) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				known = path
			}
		}
		if known == "" {
			t.Fatalf("%s: there are no copies", tier)
		}
		out, err := w.command("--", "python3", "reach.py", top, known).Output()
		if err != nil || strings.TrimSpace(string(out)) != "nothing" {
			t.Errorf("%s: %v: %s", tier, err, out)
		}
		undo := w.command()
		undo.Path, undo.Args = filepath.Join(bin, "atip"), []string{"atip", "undo", "--force"}
		if out, err := undo.CombinedOutput(); err != nil {
			t.Errorf("%s: undo: %v %s", tier, err, out)
		}
		cmd := exec.Command("python3", "reach.py", top, known)
		cmd.Dir = w.ws
		if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "listed read added linked piped moved" {
			t.Errorf("%s: unconfined: %v: %s", tier, err, out)
		}
	}
}

// TestTrustIsClosed: no run changes what is remembered of executables and signers, nor the user's
// own signers and overrides.
func TestTrustIsClosed(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		put(t, w.ws, map[string]string{"reach.py": reachingCode})
		for _, dir := range []string{".local/state/atip-exec/digest", ".local/state/atip-exec/verdict", ".config/agent-tools/trust", ".config/agent-tools/overrides", ".local/share/agent-tools/shims"} {
			top := filepath.Join(w.home, dir)
			known := filepath.Join(top, "ab", "known")
			put(t, top, map[string]string{"ab/known": "x"})
			out, err := w.command("--", "python3", "reach.py", top, known).Output()
			for _, did := range []string{"added", "linked", "piped", "moved", "emptied"} {
				if err != nil || strings.Contains(string(out), did) {
					t.Errorf("%s: %s: %v: %s", tier, dir, err, out)
					break
				}
			}
			cmd := exec.Command("python3", "reach.py", top, known)
			cmd.Dir = w.ws
			if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "listed read added linked piped moved" {
				t.Errorf("%s: %s unconfined: %v: %s", tier, dir, err, out)
			}
		}
	}
}

// TestUndoStoreRefused: a store that others could have written is not used. Runs go on without one, and what was
// allowed only because it can be taken back is not.
func TestUndoStoreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(top string) error{
		"open": func(top string) error { return os.Chmod(top, 0o770) },
		"link": func(top string) error { return errors.Join(os.Rename(top, top+"2"), os.Symlink(top+"2", top)) },
	} {
		w := newWorldAtHome(t)
		put(t, w.ws, map[string]string{"kept": "kept\n", "make.py": "open('made', 'w').write('made')\n"})
		if out, err := w.command("--", "rm", "kept").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", name, err, out)
		}
		if err := spoil(filepath.Join(w.home, ".local/share/atip-exec/undo")); err != nil {
			t.Fatal(err)
		}
		put(t, w.ws, map[string]string{"kept": "kept\n"})
		out, err := w.command("--", "python3", "make.py").CombinedOutput()
		if raw, rerr := os.ReadFile(filepath.Join(w.ws, "made")); err != nil || rerr != nil || string(raw) != "made" {
			t.Errorf("%s: code: %v %v: %s", name, err, rerr, out)
		}
		out, err = w.command("--", "rm", "kept").CombinedOutput()
		if _, lerr := os.Lstat(filepath.Join(w.ws, "kept")); err == nil || lerr != nil {
			t.Errorf("%s: rm: %v %v: %s", name, err, lerr, out)
		}
	}
}
