package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestAttackDirectoryFlip: another run changes what the path of -C leads to, between the look at
// it and its use. No run gets to what it leads to then.
func TestAttackDirectoryFlip(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		// A repository in the workspace, which other runs there can replace, and one in the
		// place of credentials.
		a.git(a.ws, "clone", "-q", a.url("up.git"), "nested")
		a.git(a.home, "init", "-q", ".ssh/nested")
		put(t, a.home, map[string]string{".ssh/nested/key": "synthetic", ".ssh/nested/sub/key": "synthetic"})
		a.own(a.home)
		put(t, a.ws, map[string]string{"nested/sub/x": ""})
		a.write("look.py", "import os, sys\ntry: print('key', open('key').read())\nexcept OSError: pass\ntry: open('planted', 'w')\nexcept OSError: pass\n")
		look := a.ws + "/look.py"
		flipped := func(f func()) {
			stop, stopped := make(chan bool), make(chan bool)
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
					}
					if os.Rename(a.ws+"/nested", a.ws+"/aside") == nil {
						_ = os.Symlink(a.home+"/.ssh/nested", a.ws+"/nested")
						time.Sleep(3 * time.Millisecond)
						_ = os.Remove(a.ws + "/nested")
						_ = os.Rename(a.ws+"/aside", a.ws+"/nested")
					}
					time.Sleep(3 * time.Millisecond)
				}
			}()
			f()
			close(stop)
			<-stopped
		}
		got := func(out string) bool {
			planted := false
			for _, name := range []string{"/planted", "/sub/planted"} {
				planted = os.Remove(a.home+"/.ssh/nested"+name) == nil || planted
				os.Remove(a.ws + "/nested" + name)
			}
			return planted || strings.Contains(out, "key synthetic")
		}
		flipped(func() {
			won := false
			for i := 0; i < 40 || !won && i < 1000; i++ {
				out, _ := a.plain(a.ws, "env", "-C", a.ws+"/nested", "python3", look)
				won = got(out) || won
			}
			if !won {
				t.Error("without us the race is never won: it proves nothing")
			}
			started := 0
			for i := 0; i < 24 || started == 0 && i < 400; i++ {
				dir := []string{a.ws + "/nested", "nested/sub", a.ws + "/../ws/nested"}[i%3]
				out, err := a.run(a.ws, "-C", dir, "--", "python3", look)
				if err == nil {
					started++
				}
				if got(out) {
					t.Errorf("-C %s reached the credentials\n%s", dir, out)
				}
			}
			if started == 0 {
				t.Error("no run was started at all")
			}
		})
	})
}

// TestNoWorkspace: where nothing may be written because there is no workspace, plan, status,
// refusal and denial say so, and what to do.
func TestNoWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	w.policy(`{"version":1}`)
	plain := w.home + "/plain"
	put(t, plain, map[string]string{"x": ""})
	run := func(dir, name string, args ...string) string {
		cmd := exec.Command(bin+"/"+name, args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin:" + bin}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	const why, fix = "it lies in no ", "atip workspace add ."
	// The message of a refusal is shortened in its middle where paths are long; its fix is whole.
	for _, args := range [][]string{{"explain", "--", "touch", "y"}, {"--", "touch", "y"}, {"--", "python3", "-c", "open('" + plain + "/y', 'w')"}} {
		if out := run(plain, "atip-exec", args...); strings.Count(out, why) != 1 && args[1] != "touch" || args[0] == "--" && !strings.Contains(out, fix) {
			t.Errorf("%v:\n%s", args, out)
		}
		if out := run(w.ws, "atip-exec", args...); strings.Contains(out, why) || strings.Contains(out, fix) {
			t.Errorf("%v in a workspace:\n%s", args, out)
		}
	}
	// A home directory is none, and cannot be registered.
	if out := run(w.home, "atip-exec", "--", "touch", "y"); !strings.Contains(out, "is the home directory") || strings.Contains(out, fix) {
		t.Errorf("at home:\n%s", out)
	}
	var doc struct {
		NoWorkspace string `json:"noWorkspace"`
		No          string `json:"no_workspace"`
	}
	if out := run(plain, "atip-exec", "explain", "-o", "json", "--", "ls"); json.Unmarshal([]byte(out), &doc) != nil || !strings.Contains(doc.NoWorkspace, why) || strings.Contains(out, "leads to the system") {
		t.Errorf("plan: %.500s", out)
	}
	file := t.TempDir() + "/status.json"
	out := run(plain, "atip-exec", "--status-file", file, "--", "ls")
	raw, _ := os.ReadFile(file)
	if json.Unmarshal(raw, &doc) != nil || !strings.Contains(doc.No, why) {
		t.Errorf("status: %.500s\n%s", raw, out)
	}
}

// TestTruncatedSearchIsSaid: where not all of a workspace can be compared after a run, a line
// says so, once in a session.
func TestTruncatedSearchIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	w.policy(`{"version":1}`)
	said := func(session string) bool {
		cmd := w.command("--", "python3", "-c", "open('x', 'w')")
		cmd.Env = append(cmd.Env, "ATIP_SESSION_ID="+session)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), "could be compared after this run")
	}
	if said("small") {
		t.Error("said of a small workspace")
	}
	if out, err := exec.Command("sh", "-c", "mkdir "+w.ws+"/many && cd "+w.ws+"/many && seq 5000 | xargs touch").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	if !said("one") || said("one") || !said("two") {
		t.Error("not said once in each session")
	}
}

// TestAttackProcLinks: what /proc/self leads to differs between this program, which judges, and
// the command: a path or a link through it reaches nothing that was not granted.
func TestAttackProcLinks(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		put(t, a.home, map[string]string{".bashrc": "# start-up\n"})
		a.own(a.home)
		a.write("sub/x", "# planted\n")
		a.write("swap.py", "import os, sys\nos.chdir('sub')\nfor how, name in (('r', 'key'), ('a', 'start')):\n  try:\n    with open('../' + name + sys.argv[1], how) as f: print(f.read() if how == 'r' else f.write('# planted\\n'))\n  except OSError: pass\n")
		bash, _ := os.ReadFile(a.home + "/.bashrc")
		for i, through := range []string{"/proc/self/cwd", "/proc/thread-self/cwd", "/proc/self/root" + a.ws + "/sub", "/proc/self/task/../cwd"} {
			n := string(rune('0' + i))
			for name, target := range map[string]string{"key": ".ssh/id_ed25519", "start": ".bashrc"} {
				if err := os.Symlink(through+"/../../home/"+target, a.ws+"/"+name+n); err != nil {
					t.Fatal(err)
				}
			}
			reached := func(out string) bool {
				now, _ := os.ReadFile(a.home + "/.bashrc")
				_ = os.WriteFile(a.home+"/.bashrc", bash, 0o644)
				return strings.Contains(out, "synthetic") || string(now) != string(bash)
			}
			for _, words := range [][]string{{"python3", "swap.py", n}, {"env", "-C", "sub", "cat", "../key" + n}, {"env", "-C", "sub", "cp", "x", "../start" + n}, {"bash", "-c", "cd sub && cat ../key" + n + " && echo x >>../start" + n}} {
				if out, _ := a.plain(a.ws, "env", words...); !reached(out) {
					t.Errorf("%s %v: nothing is reached without us: %s", through, words, out)
				}
				lines := [][]string{append([]string{"--"}, words...)}
				if words[0] == "env" {
					lines = append(lines, append([]string{"-C", "sub", "--"}, words[3:]...))
				}
				for _, line := range lines {
					if out, err := a.run(a.ws, line...); reached(out) {
						t.Errorf("%s %v: %v\n%s", through, line, err, out)
					}
				}
			}
		}
	})
}

// TestAttackMovedGitDirectory: a run that moves .git away, to put another in its place, changes
// nothing of it unsaid.
func TestAttackMovedGitDirectory(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.write("move.py", "import os, shutil\nos.rename('.git', 'gone')\nshutil.copytree('gone', '.git')\nopen('.git/config', 'a').write('[core]\\n\\tfsmonitor = "+a.payload+"\\n')\n")
		control := a.dir + "/control"
		if out, err := a.plain(a.dir, "cp", "-a", a.ws, control); err != nil {
			t.Fatal(out)
		}
		if out, err := a.plain(control, "env", "python3", "move.py"); err != nil {
			t.Fatal(out)
		}
		_, _ = a.plain(control, "git", "status")
		if ran, _ := a.traces(); !ran {
			t.Error("without us nothing runs: the row proves nothing")
		}
		out, _ := a.run(a.ws, "--", "python3", "move.py")
		if !strings.Contains(out, "E4111") && !strings.Contains(out, "busy") {
			t.Errorf("nothing is said:\n%s", out)
		}
		after, _ := a.plain(a.ws, "git", "status")
		if ran, _ := a.traces(); ran {
			t.Errorf("it runs at the next git status\n%s\n%s", out, after)
		}
	})
}

// TestAttackApproverKey: who asks for an approval registers no key to approve with, of whatever
// level, although it can make a terminal for itself.
func TestAttackApproverKey(t *testing.T) {
	a := newAsker(t)
	code, e := a.try(nil, "--", "gh", "repo", "delete", "o/r", "--yes")
	if code != 77 || e.Details.RequestID == "" {
		t.Fatalf("exit %d: %s", code, e.text)
	}
	if code, out := a.person([][2]string{{"passphrase", ""}, {"again", ""}}, "approve", "--init"); code != 77 || !strings.Contains(out, e.Details.RequestID) {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, err := os.Stat(a.state("approver/id_ed25519")); err == nil {
		t.Error("a key was made")
	}
	a.elsewhere(e.Details.RequestID)
	a.register()
}

// TestAttackOwnTerminal: a terminal that an agent opened registers no key, although no request is
// open, and neither does one that leads back to the session of an agent. Signing with the key that
// such a terminal would register works without us.
func TestAttackOwnTerminal(t *testing.T) {
	a := newAsker(t)
	direct := func(c *exec.Cmd) {
		c.Path, c.Args = c.Args[1], c.Args[1:]
		c.SysProcAttr.Setctty = true
	}
	for name, change := range map[string]func(*exec.Cmd){
		"a terminal of its own": direct,
		"a session between": func(c *exec.Cmd) {
			direct(c)
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", "\"$@\"; exit $?", "sh"}, c.Args...)
		},
		"an opener that has gone": func(c *exec.Cmd) {
			c.Args = append([]string{"xterm", "-c", "setsid -c sh -c 'sleep 0.3; \"$@\"; echo ended $?' sh \"$@\" <&1 & exec sleep 0", "sh"}, c.Args[1:]...)
			c.Path = "/bin/sh"
		},
		"the session of an agent": func(c *exec.Cmd) { c.Env = append(c.Env, "CLAUDE_CODE_SESSION_ID=x") },
		"a variable that was taken out": func(c *exec.Cmd) {
			c.Env = append(c.Env, "ATIP_SESSION_ID=x")
			c.Args = append([]string{c.Args[0], "env", "-i"}, c.Args[1:]...)
		},
	} {
		code, out := a.personWith(change, [][2]string{{"passphrase", ""}, {"again", ""}}, "approve", "--init")
		if code != 77 && !strings.Contains(out, "ended 77") {
			t.Errorf("%s: exit %d: %s", name, code, out)
		}
		if _, err := os.Stat(a.state("approver/id_ed25519")); err == nil {
			t.Errorf("%s: a key was made: %s", name, out)
		}
	}
	a.register()
}
