package main_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesOfTheHome: what is in the home directory has one answer. Its names are listed, by a tool or
// by a pattern of the shell, at every tier; no file below it comes along.
func TestNamesOfTheHome(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		for name, text := range map[string]string{"Documents/a.txt": "one\n", "Documents/b.txt": "two\n", "notes.txt": "n\n", ".config/gh/hosts.yml": "oauth\n", ".ssh/id_ed25519": "key\n"} {
			path := filepath.Join(w.home, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for text, want := range map[string]string{
			"ls ~":                                  "Documents\nnotes.txt",
			"cd ~; ls":                              "Documents\nnotes.txt",
			"ls -d ~/*":                             w.home + "/Documents\n" + w.home + "/notes.txt",
			"echo ~/*":                              w.home + "/Documents " + w.home + "/notes.txt",
			"for f in ~/Doc*; do echo \"$f\"; done": w.home + "/Documents",
			"cat ~/Documents/*.txt":                 "one\ntwo",
			"for f in ~/Documents/*.txt; do cat \"$f\"; done": "one\ntwo",
			"cd ~/Documents && cat *.txt":                     "one\ntwo",
			"find ~ -maxdepth 1 -name 'n*'":                   w.home + "/notes.txt",
			"ls ~/.config":                                    "agent-tools\ngh",
			"cat ~/*.txt":                                     "n",
			"head -1 ~/n*":                                    "n",
			"cat ~/*.nothing 2>&1 || :":                       "cat: '" + w.home + "/*.nothing': No such file or directory",
			"cat /d* 2>&1 | sort | head -1":                   "cat: /dev: Is a directory",
		} {
			if got := w.answer("-c", text); got != want {
				t.Errorf("%s: %s: %q, want %q", tier, text, got, want)
			}
		}
		// A refusal names what the pattern stands for.
		for text, want := range map[string]string{"cat ~/.ssh/id*": "(~/.ssh/id_ed25519)", "cat ~/.config/*/*": "(~/.config/gh/hosts.yml)", "grep -r x ~": "(~/.ssh lies below it)", "cp -r ~/* .": "(the pattern may lead to ~/.ssh)"} {
			if out, err := w.command("-c", text).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %s: %v %s, want %q", tier, text, err, out, want)
			}
		}
		// The words of a listing open nothing to the code beside it.
		for _, list := range []string{"ls ~", "ls ~/.config", "echo ~/.config/*", "ls -R ~ 2>/dev/null"} {
			for _, file := range []string{".config/gh/hosts.yml", ".ssh/id_ed25519", "notes.txt"} {
				name := base64.StdEncoding.EncodeToString([]byte(filepath.Join(w.home, file)))
				got := w.answer("-c", list+" >/dev/null; python3 -c \"import base64\ntry: print(open(base64.b64decode('"+name+"')).read())\nexcept OSError: print('refused')\"")
				if got != "refused" {
					t.Errorf("%s: %s, then code that reads %s: %q", tier, list, file, got)
				}
			}
		}
	}
}

// TestLoginShellKeepsPath: a login shell finds what the caller's PATH finds, and what was judged. Its
// start-up files stay closed, as people export credentials in them.
func TestLoginShellKeepsPath(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		if err := os.WriteFile(filepath.Join(w.home, ".profile"), []byte("export LEAK=1 PATH=/nowhere\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		path := "/usr/local/bin:/usr/bin:/bin:" + bin
		put(t, w.ws, map[string]string{"nested.sh": "exec bash -lc \"$1\"\n"})
		for _, args := range [][]string{{"bash", "-lc"}, {"sh", "-lc"}, {"bash", "--login", "-e", "-c"},
			{"timeout", "5", "bash", "-lc"}, {"env", "A=b", "nice", "sh", "-lc"}, {"bash", "nested.sh"}, {"sh", "nested.sh"}} {
			if args[1] == "nested.sh" && tier == "T2" {
				continue // a start-up file of the system sets another PATH there: docs/sandbox.md
			}
			plain := exec.Command(args[0], append(args[1:len(args):len(args)], `echo "$PATH ${LEAK-closed}"`)...)
			plain.Dir = w.ws
			plain.Env = []string{"HOME=" + w.home, "PATH=" + path}
			if out, _ := plain.Output(); string(out) != "/nowhere 1\n" {
				t.Errorf("control: %q: %q", args, out)
			}
			if got := w.answer(append(append([]string{"--"}, args...), `echo "$PATH ${LEAK-closed}"`)...); got != path+" closed" {
				t.Errorf("%s: %q: %q", tier, args, got)
			}
		}
	}
}

// TestNpmInitEnds: with nothing to read npm init ends as it does outside, also where npm has never run,
// which made it look for a newer npm and wait for a network that is not there.
func TestNpmInitEnds(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	if err := os.WriteFile(filepath.Join(w.ws, ".gitignore"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	plain := exec.Command("npm", "init")
	plain.Dir, plain.Env = w.ws, []string{"HOME=" + t.TempDir(), "PATH=/usr/local/bin:/usr/bin:/bin", "npm_config_update_notifier=false"}
	_ = plain.Run()
	cmd := w.command("--timeout", "15s", "--", "npm", "init")
	out, err := cmd.CombinedOutput()
	if got, want := cmd.ProcessState.ExitCode(), plain.ProcessState.ExitCode(); got != want {
		t.Errorf("status %d, outside %d: %v: %s", got, want, err, out)
	}
}

// TestClosedPortIsRefused: nothing listens there, and that is what a run is told.
func TestClosedPortIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	const text = "import socket\nfor family, address in (socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'):\n  try: socket.socket(family).connect((address, 1))\n  except OSError as e: print(type(e).__name__)"
	plain, _ := exec.Command("python3", "-c", text).Output()
	if got := w.answer("--", "python3", "-c", text); got+"\n" != string(plain) {
		t.Errorf("%q, outside %q", got, plain)
	}
}

// TestDirectoryOfTemporaryFiles: a run may stand in /tmp and read what lies there by its name.
func TestDirectoryOfTemporaryFiles(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	file, made := temporary(t, "file"), temporary(t, "made")
	if err := os.WriteFile(file, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(file)
	for text, want := range map[string]string{
		"pwd": "/tmp", "cat " + name: "text", "cat *" + name[5:]: "text", "ls -d " + name: name, "cat < " + name: "text",
		"python3 -c 'print(open(\"" + name + "\").read().strip())'":            "text",
		"echo new > " + filepath.Base(made) + " && cat " + filepath.Base(made): "new",
	} {
		cmd := w.command("-c", text)
		cmd.Dir = "/tmp"
		out, err := cmd.CombinedOutput()
		if string(out) != want+"\n" {
			t.Errorf("%s: %q, %v", text, out, err)
		}
	}
	if text, err := os.ReadFile(made); string(text) != "new\n" {
		t.Errorf("what was written: %q, %v", text, err)
	}
}
