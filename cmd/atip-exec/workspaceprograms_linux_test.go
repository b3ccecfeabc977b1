package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProgramsInWorkspace: in the clone that they were built in, the programs are protected names.
// All else there can be written, and no code of the workspace changes or moves them. Where only
// a comparison after the run could tell, nothing that writes there starts.
func TestProgramsInWorkspace(t *testing.T) {
	t.Parallel()
	const code = `import os
def tried(name, f):
    try:
        f()
        print(name, "did")
    except OSError:
        print(name, "refused")
tried("make", lambda: open("made", "w").close())
tried("make beside", lambda: open(os.path.join(PLACE, "made"), "w").close())
tried("make below", lambda: os.makedirs("sub/dir"))
tried("write", lambda: open(os.path.join(PLACE, "atip-exec"), "r+b").close())
tried("replace", lambda: os.rename("README", os.path.join(PLACE, "atip-exec")))
tried("remove", lambda: os.unlink(os.path.join(PLACE, "atip-exec")))
if PLACE != ".":
    tried("move", lambda: os.rename(PLACE, "elsewhere"))
`
	const allowed = "make did\nmake beside did\nmake below did\n"
	for _, place := range []string{".", "bin", "out/linux"} {
		for _, tier := range []string{"", "T2", "T3"} {
			t.Run(tier+" "+place, func(t *testing.T) {
				w := newWorld(t)
				if tier != "" {
					w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
				}
				programs := filepath.Join(w.ws, place)
				plant := func(ws string) {
					put(t, ws, map[string]string{"README": "", "tool.py": "PLACE = '" + place + "'\n" + code, place + "/atip-exec": "", place + "/atip": ""})
				}
				want, refused := allowed+"write refused\nreplace refused\nremove refused\n", allowed+"write did\nreplace did\nremove did\n"
				if place != "." {
					want, refused = want+"move refused\n", refused+"move did\n"
				}
				plain := t.TempDir()
				plant(plain)
				control := exec.Command("python3", "tool.py")
				control.Dir = plain
				if out, err := control.CombinedOutput(); err != nil || string(out) != refused {
					t.Fatalf("unconfined: %v\n%s", err, out)
				}
				plant(w.ws)
				if out, err := exec.Command("cp", "--remove-destination", filepath.Join(bin, "atip-exec"), programs).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				run := func(args ...string) (string, error) {
					cmd := exec.Command(filepath.Join(programs, "atip-exec"), append([]string{"--"}, args...)...)
					cmd.Dir, cmd.Env = w.ws, w.command().Env
					out, err := cmd.Output()
					return string(out), err
				}
				if out, err := run("cat", "tool.py"); err != nil || len(out) < len(code) {
					t.Errorf("reading: %v\n%s", err, out)
				}
				if tier == "T2" {
					if out, err := run("python3", "tool.py"); err == nil || out != "" {
						t.Errorf("%v\n%s", err, out)
					}
					return
				}
				for range 2 { // the first run leaves nothing that changes the second
					if out, err := run("python3", "tool.py"); err != nil || out != want {
						t.Errorf("%v\n%s", err, out)
					}
					if err := os.RemoveAll(filepath.Join(w.ws, "sub")); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
