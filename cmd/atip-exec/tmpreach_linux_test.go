package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTmpWithoutPrivateRoot: what is allowed to write in /tmp does, or is refused before it starts. At
// T3 all of it works, as it does without us.
func TestTmpWithoutPrivateRoot(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		third := strings.Contains(t.Name(), "T3")
		own := "/tmp/atip-reach-" + filepath.Base(a.dir) // the directory itself is in the /tmp of a run
		clear := func() {
			for _, suffix := range []string{".file", ".dir", ".link", ".clone", ".moved", ".tree", "", ".copy"} {
				_, _ = a.plain(a.dir, "rm", "-rf", own+suffix)
			}
			a.write(filepath.Base(own), "x\n")
			a.write("tree/x", "x\n")
		}
		t.Cleanup(clear)
		name := filepath.Base(own)
		for _, row := range []struct {
			text, makes string
			known       bool // works at T2, too
		}{
			{"cp " + name + " /tmp/", own, false},
			{"cp -a " + name + " /tmp", own, false},
			{"install " + name + " /tmp/", own, false},
			{"mv " + name + " " + own + ".moved", own + ".moved", false},
			{"mkdir " + own + ".dir", own + ".dir", false},
			{"mkdir -p " + own + ".dir/a/b", own + ".dir", false},
			{"ln -s /etc/passwd " + own + ".link", own + ".link", false},
			{"git clone -q . " + own + ".clone", own + ".clone", false},
			{"cp -r tree " + own + ".tree", own + ".tree", false},
			{"cp " + name + " " + own + ".file", own + ".file", true},
			{"cp -a " + name + " " + own + ".copy", own + ".copy", true},
			{"echo x >" + own + ".file", own + ".file", true},
			{"mkdir -p /tmp && cat " + name + " >/dev/null", "/tmp", true},
		} {
			clear()
			if out, err := a.plain(a.ws, "sh", "-c", row.text); err != nil {
				t.Errorf("%s: without us: %v %s", row.text, err, out)
			}
			clear()
			out, err := a.run(a.ws, "-c", row.text)
			switch _, lerr := os.Lstat(row.makes); {
			case third || row.known:
				if err != nil || lerr != nil && !strings.HasSuffix(row.makes, ".link") {
					t.Errorf("%s: %v %v\n%s", row.text, err, lerr, out)
				}
			case err == nil || lerr == nil || !strings.Contains(out, "E2001") || !strings.Contains(out, "known name"):
				t.Errorf("%s: %v %v\n%s", row.text, err, lerr, out)
			}
		}
	})
}
