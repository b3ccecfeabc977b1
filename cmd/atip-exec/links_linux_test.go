package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPlacesBehindLinks: a workspace to which links lead, as a shell that was started there calls it (PWD), is the
// same to a command with and without the wrapper. The cache of the home directory lies elsewhere.
func TestPlacesBehindLinks(t *testing.T) {
	w := newWorldAtHome(t)
	dir := filepath.Dir(w.ws)
	for name, target := range map[string]string{"absolute": w.ws, "relative": filepath.Base(w.ws), "chain": "relative", "above": "../" + filepath.Base(dir)} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	far := filepath.Join(t.TempDir(), "far") // below /tmp, which is a run's own
	if err := errors.Join(os.Symlink(w.ws, far), os.Mkdir(dir+"/cache", 0o700), os.Symlink(dir+"/cache", w.home+"/.cache"), os.MkdirAll(w.ws+"/deep/er", 0o755), os.Symlink("deep/er", w.ws+"/in"),
		os.WriteFile(w.home+"/.gitconfig", []byte("[user]\n\tname = linked\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	if out, err := w.command("-c", "ls ~").CombinedOutput(); err != nil { // the first run makes what it needs in the cache
		t.Errorf("the first run: %v: %s", err, out)
	}
	const text = `pwd -P; touch made && ls; cat made "$PWD/made" && rm "$PWD/made"; git config user.name; python3 -c 'import os; print(os.getcwd(), os.path.exists(os.path.expanduser("~/.gitconfig")))'`
	for _, tier := range []string{"T2", "T3"} {
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		for _, place := range []string{w.ws, dir + "/absolute", dir + "/relative", dir + "/chain", dir + "/above/" + filepath.Base(w.ws), dir + "/absolute/in", w.ws + "/in", far} {
			say := "pwd; " + text
			if place == far {
				say = text // the link is not in the run's own /tmp
			}
			said := map[string]string{}
			for _, by := range []string{"bash", "atip-exec"} {
				cmd := w.command("-c", say)
				if by == "bash" {
					cmd = exec.Command("bash", "-c", say)
				}
				cmd.Dir, cmd.Env = place, append(w.command().Env, "PWD="+place)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s, %s: %s: %v: %s", tier, place, by, err, out)
				}
				said[by] = string(out)
			}
			if said["bash"] != said["atip-exec"] {
				t.Errorf("%s, %s: plain %q, wrapped %q", tier, place, said["bash"], said["atip-exec"])
			}
		}
	}
	umask := exec.Command("sh", "-c", "umask 777; exec \"$@\"", "sh", filepath.Join(bin, "atip-exec"), "--", "sh", "-c", "umask")
	umask.Dir, umask.Env = w.ws, w.command().Env
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	if out, err := umask.Output(); err != nil || string(out) != "0777\n" { // stderr may say that a file of ours cannot be read
		t.Errorf("umask 777: %v: %s", err, out)
	}
}
