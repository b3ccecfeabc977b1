package main_test

import (
	"os"
	"strings"
	"testing"
)

// TestAttackModes: the modes of our own files, which a run below T3 can change, are what they were
// when it has ended, and that is said. A git directory that it moves away is told, and stays at T3.
func TestAttackModes(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		third := strings.Contains(t.Name(), "T3")
		dir := a.home + "/.config/agent-tools"
		a.write("modes.py", "import os, sys\nfor path, mode in ('policy.json', 0o666), ('policy.json', 0), ('', 0o777), ('', 0):\n"+
			"  if sys.argv[1] == path + oct(mode):\n    os.chmod('"+dir+"/' + path, mode)\n    print('done')\n")
		modes := func() string {
			out := ""
			for _, path := range []string{dir, dir + "/policy.json"} {
				if info, err := os.Lstat(path); err == nil {
					out += info.Mode().String() + " "
				}
			}
			return out
		}
		before := modes()
		for _, act := range []string{"policy.json0o666", "policy.json0o0", "0o777", "0o0"} {
			if out, _ := a.plain(a.ws, "env", "python3", "modes.py", act); !strings.Contains(out, "done") || modes() == before {
				t.Errorf("%s: without us: %s", act, out)
			}
			_ = os.Chmod(dir, 0o755)
			_ = os.Chmod(dir+"/policy.json", 0o644)
			before = modes()
			out, _ := a.run(a.ws, "--", "python3", "modes.py", act)
			if modes() != before || strings.Contains(out, "done") != strings.Contains(out, "E4111") || third && strings.Contains(out, "done") {
				t.Errorf("%s: %s, before %s\n%s", act, modes(), before, out)
			}
			if out, err := a.run(a.ws, "--", "true"); err != nil {
				t.Errorf("%s: the next run: %v\n%s", act, err, out)
			}
		}
		a.write("move.py", "import os\nos.rename('.git', 'g')\nprint('done')\n")
		a.write(".git/hooks/pre-commit", "#!/bin/sh\n")
		if out, _ := a.plain(a.ws, "env", "python3", "move.py"); !strings.Contains(out, "done") {
			t.Errorf("without us: %s", out)
		}
		if err := os.Rename(a.ws+"/g", a.ws+"/.git"); err != nil {
			t.Fatal(err)
		}
		out, _ := a.run(a.ws, "--", "python3", "move.py")
		if third && strings.Contains(out, "done") || !third && !strings.Contains(out, "removed "+a.ws+"/.git/config, a protected name") {
			t.Errorf("mv .git: %s", out)
		}
	})
}
