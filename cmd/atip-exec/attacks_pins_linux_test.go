package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// meanwhile runs f, which plants something, says so by a file and waits for another. In between
// git is asked for its status, as a prompt or an editor does. It reports whether the program of
// the workspace ran.
func (a *attacked) meanwhile(dirs []string, f func()) (ran bool) {
	done := make(chan bool)
	go func() { defer close(done); f() }()
	for planted := false; !planted; {
		select {
		case <-done:
			a.t.Error("it ended before it had planted anything")
			return false
		case <-time.After(5 * time.Millisecond):
			_, err := os.Lstat(a.ws + "/planted")
			planted = err == nil
		}
	}
	for _, dir := range dirs {
		_, _ = a.plain(dir, "sh", "-c", "touch file; git status")
	}
	ran, _ = a.traces()
	a.write("seen", "")
	<-done
	return ran
}

// TestAttackPlantsMeanwhile: what a run plants below the root of the workspace is met by nothing
// outside while the run is going on: the names that are there are pinned at T3. At T2 and without
// us the user's git runs it.
func TestAttackPlantsMeanwhile(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		third := strings.Contains(t.Name(), "T3")
		a.git(a.ws, "submodule", "add", "-q", a.url("up.git"), "sub")
		a.git(a.ws, "submodule", "add", "-q", "--name", "deep/name", a.url("up.git"), "third/sub")
		a.git(a.ws, "clone", "-q", a.url("up.git"), "linked")
		a.git(a.ws, "add", "linked")
		a.git(a.ws, "clone", "-q", a.url("up.git"), "alone")
		a.git(a.ws, "commit", "-q", "-m", "trees")
		a.write("shared.gitconfig", "[color]\n\tui = false\n")
		a.git(a.ws, "config", "include.path", "../shared.gitconfig")
		a.own(a.ws)
		setting := "[core]\\n\\tfsmonitor = " + a.payload + "\\n"
		kept := a.dir + "/kept"
		for i, plant := range []struct{ name, shell string }{
			{"configuration of the root", "printf '" + setting + "' >>.git/config"},
			{"configuration of the root by a rename", "cp .git/config c; printf '" + setting + "' >>c; mv c .git/config"},
			{"configuration of a submodule", "printf '" + setting + "' >>.git/modules/sub/config"},
			{"configuration of a submodule by a rename of its directory", "cp -r .git/modules/sub .git/modules/new; printf '" + setting + "' >>.git/modules/new/config; mv .git/modules/sub .git/modules/old; mv .git/modules/new .git/modules/sub"},
			{"configuration of a submodule with a name of two parts", "printf '" + setting + "' >>.git/modules/deep/name/config"},
			{"configuration of a gitlink", "printf '" + setting + "' >>linked/.git/config"},
			{"configuration of a nested repository", "printf '" + setting + "' >>alone/.git/config"},
			{"a file that is included", "printf '" + setting + "' >>shared.gitconfig"},
			{"hook of a submodule", "cp evil .git/modules/sub/hooks/post-index-change"},
			{".git of a submodule", "cp -r linked/.git hidden; printf '" + setting + "' >>hidden/config; echo 'gitdir: ../hidden' >sub/.git"},
			{".git of a submodule by a rename of its tree", "cp -r linked/.git hidden; printf '" + setting + "' >>hidden/config; cp -r sub new; echo 'gitdir: ../hidden' >new/.git; mv sub old; mv new sub"},
		} {
			if i%3 == len(t.Name())%3 && !third && os.Getenv("MORE_STAGES") == "" {
				continue
			}
			a.write("plant.py", fmt.Sprintf("import os, subprocess, time\nsubprocess.call(['sh', '-c', %q])\nopen('planted', 'w').close()\nfor i in range(6000):\n  if os.path.exists('seen'): break\n  time.sleep(0.01)\n", plant.shell))
			os.RemoveAll(kept)
			if out, err := a.plain(a.dir, "cp", "-a", a.ws, kept); err != nil {
				t.Fatal(out)
			}
			restore := func() {
				if out, err := a.plain(a.dir, "sh", "-ec", "rm -rf ws; cp -a kept ws"); err != nil {
					t.Fatal(out)
				}
			}
			dirs := []string{a.ws, a.ws + "/sub", a.ws + "/alone", a.ws + "/linked"}
			var out string
			if plain := a.meanwhile(dirs, func() { out, _ = a.plain(a.ws, "env", "python3", "plant.py") }); !plain {
				t.Errorf("%s: nothing runs unconfined: the row proves nothing\n%s", plant.name, out)
			}
			restore()
			ran := a.meanwhile(dirs, func() { out, _ = a.run(a.ws, "--", "python3", "plant.py") })
			if ran == third {
				t.Errorf("%s: ran meanwhile %v\n%s", plant.name, ran, out)
			}
			restore()
		}
	})
}

// TestAttackPinsAreNoWall: repositories that commands change, build or remove are not in their way.
func TestAttackPinsAreNoWall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.git(a.ws, "submodule", "add", "-q", a.url("up.git"), "third/sub")
		a.git(a.ws, "commit", "-q", "-m", "trees")
		a.git(a.ws, "clone", "-q", a.url("up.git"), "alone")
		a.git(a.ws, "clone", "-q", a.url("up.git"), "made/dependency")
		a.write(".gitignore", "made/\n")
		a.write("clean.py", "import shutil\nshutil.rmtree('made')\n")
		for _, row := range []struct {
			text string
			want string // a path that is there afterwards, or is not with "!"
		}{
			{"python3 clean.py", "!made"},
			{"rm -rf alone", "!alone"},
			{"git remote add other https://host.invalid/x && git -C third/sub remote add other https://host.invalid/x", ""},
			{"git -C third/sub checkout -q -b topic && echo x >third/sub/new && git -C third/sub add new && git -C third/sub commit -q -m new && git add third/sub && git commit -q -m sub", "third/sub/new"},
			{"python3 -c 'import subprocess as s; s.check_call([\"git\", \"-C\", \"third/sub\", \"commit\", \"-q\", \"--allow-empty\", \"-m\", \"x\"]); s.check_call([\"git\", \"commit\", \"-q\", \"-a\", \"-m\", \"y\"]); s.check_call([\"git\", \"gc\", \"-q\"])'", ""},
			{"python3 -c 'import shutil; shutil.move(\"third/sub/new\", \"moved\")'", "moved"},
			{"git mv third/sub fourth", "fourth/.git"},
		} {
			out, err := a.run(a.ws, "-c", row.text)
			if err != nil {
				t.Errorf("%s: %v\n%s", row.text, err, out)
			}
			name, gone := strings.CutPrefix(row.want, "!")
			if _, err := os.Lstat(filepath.Join(a.ws, name)); (err != nil) != gone {
				t.Errorf("%s: %s: %v\n%s", row.text, name, err, out)
			}
		}
	})
}
