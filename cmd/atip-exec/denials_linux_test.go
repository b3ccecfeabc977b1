package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type denial struct {
	Op, Path, Class, Errno, Guarantee, Rule, Remedy string
	Count                                           int
	Certain                                         bool
}

// observedRun runs a Python text and returns its output, the lines of the wrapper and the
// denials of the status file.
func (w world) observedRun(flags []string, env []string, text string) (status int, stdout, stderr string, list []denial) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "status.json")
	script := filepath.Join(w.ws, "try.py")
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	cmd := w.command(append(flags, "--status-file", file, "--", "python3", "try.py")...)
	cmd.Env = append(cmd.Env, env...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, _ := cmd.Output()
	raw, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var doc struct{ Sandbox struct{ Denials []denial } }
	if err := json.Unmarshal(raw, &doc); err != nil {
		w.t.Fatalf("%v: %s", err, raw)
	}
	return cmd.ProcessState.ExitCode(), string(out), errors.String(), doc.Sandbox.Denials
}

// newWorldAtHome is a world outside the directories that a run at T3 has for its own.
func newWorldAtHome(t *testing.T) world {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(home, ".atip-exec-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := world{t: t, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws")}
	for _, d := range []string{w.home, w.ws + "/.git/objects", w.ws + "/.git/refs"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(w.ws+"/.git/HEAD", []byte("ref: refs/heads/main\n"), 0o644), probed(w.home, os.Getuid())); err != nil {
		t.Fatal(err)
	}
	return w
}

const trying = `
import os, socket, subprocess, threading
home = os.path.expanduser("~")
def t(f, *a):
    try:
        f(*a)
        print("ok", a)
    except OSError as e:
        print(a, e.errno)
t(open, home + "/notes", "a")
t(open, home + "/notes", "a")
t(open, home + "/.s" + "sh/id_ed25519")
t(open, home + "/missing")
t(open, home + "/.config/agent-tools/policy.json", "w")
t(os.mkdir, home + "/made")
t(os.remove, home + "/notes")
t(os.rename, "try.py", home + "/try.py")
t(os.symlink, "x", home + "/link")
t(subprocess.run, [home + "/tool"])
t(open, "own", "w")
t(os.listdir, "/mnt")
os.chdir(home)
t(open, "notes")
for n in range(40):
    t(open, home + "/many%d" % n, "w")
threads = [threading.Thread(target=t, args=(open, "/etc/hostname")) for n in range(4)]
[x.start() for x in threads]
[x.join() for x in threads]
`

// TestExplainDenials: what was refused is named, and nothing else comes of being watched.
func TestExplainDenials(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		for _, env := range [][]string{nil, {"GOMAXPROCS=1"}} {
			w := newWorldAtHome(t)
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
			for name, mode := range map[string]os.FileMode{"notes": 0o644, ".ssh/id_ed25519": 0o600, "tool": 0o755} {
				path := filepath.Join(w.home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("#!/bin/true\n"), mode); err != nil {
					t.Fatal(err)
				}
			}
			status, stdout, _, list := w.observedRun(nil, env, trying)
			if len(list) != 0 {
				t.Errorf("%s: not asked for: %+v", tier, list)
			}
			seen, observed, stderr, list := w.observedRun([]string{"--explain-denials"}, env, trying)
			if seen != status || observed != stdout || status != 0 {
				t.Errorf("%s %v: status %d and %d\n%s\n%s", tier, env, status, seen, stdout, observed)
			}
			got := map[string]denial{}
			for _, d := range list {
				got[d.Op+" "+strings.TrimPrefix(d.Path, w.home+"/")] = d
				if !d.Certain || d.Count == 0 {
					t.Errorf("%s: %+v", tier, d)
				}
			}
			for name, guarantee := range map[string]string{
				"write notes": "files.write", "read notes": "files.read", "read .ssh/id_ed25519": "files.read", "write .config/agent-tools/policy.json": "files.write",
				"create made": "files.write", "remove notes": "files.write", "rename try.py": "files.write", "create link": "files.write", "execute tool": "files.read",
			} {
				d, ok := got[name]
				if !ok || d.Guarantee != guarantee || d.Rule == "" {
					t.Errorf("%s: %s is %+v, of %v", tier, name, d, list)
				}
				if !strings.Contains(stderr, "denied "+d.Op+" "+d.Path+": ") {
					t.Errorf("%s: no line for %s in %s", tier, name, stderr)
				}
				if remedy := !strings.HasPrefix(d.Path, w.home+"/.ssh") && !strings.Contains(d.Path, "agent-tools"); remedy != (d.Remedy != "") {
					t.Errorf("%s: remedy of %s: %q", tier, name, d.Remedy)
				}
			}
			if fi, err := os.Stat("/mnt"); err == nil && fi.IsDir() {
				errno := map[string]string{"T2": "EACCES", "T3": "ENOENT"}[tier]
				if d := got["read /mnt"]; d.Guarantee != "files.read" || d.Errno != errno || d.Remedy == "" {
					t.Errorf("%s: /mnt is %+v", tier, d)
				}
			}
			if got["write notes"].Count != 2 {
				t.Errorf("%s: counted %+v", tier, got["write notes"])
			}
			audit := exec.Command(filepath.Join(bin, "atip"), "audit", "show", "-n", "1", "-o", "json")
			audit.Env = []string{"HOME=" + w.home}
			if raw, err := audit.Output(); err != nil || !strings.Contains(string(raw), `"denials":[{"kind":"atip-exec.denial/1"`) || !strings.Contains(string(raw), w.home+"/notes") {
				t.Errorf("%s: audit: %v: %.600s", tier, err, raw)
			}
			if len(list) != 21 || list[20].Op != "other" || list[20].Count < 20 {
				t.Errorf("%s: %d are listed, last %+v", tier, len(list), list[len(list)-1])
			}
			for name := range got {
				if strings.HasSuffix(name, "missing") || strings.HasSuffix(name, "own") || strings.Contains(name, "hostname") {
					t.Errorf("%s: %s was not denied", tier, name)
				}
			}
		}
	}
}

// TestExplainRefusedCalls: what the filter of system calls refuses is named, too, and what
// an observer saw takes the place of the guess.
func TestExplainRefusedCalls(t *testing.T) {
	w := newWorld(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`) // where a loopback of its own is none
	const text = `
import os, socket
for f in (lambda: socket.socket(), lambda: os.unshare(os.CLONE_NEWUSER) if hasattr(os, "unshare") else (_ for _ in ()).throw(OSError(1, "x"))):
    try:
        f()
    except OSError as e:
        print(e.errno)
`
	_, plain, _, _ := w.observedRun(nil, nil, text)
	status, stdout, stderr, list := w.observedRun([]string{"--explain-denials"}, nil, text)
	at := slices.IndexFunc(list, func(d denial) bool { return d.Op == "socket" })
	if status != 0 || stdout != plain || at < 0 || list[at].Guarantee != "net" || list[at].Path != "AF_INET" || list[at].Errno != "EAFNOSUPPORT" || !strings.Contains(stderr, "denied socket AF_INET") {
		t.Errorf("status %d, %q and %q, %+v, %s", status, plain, stdout, list, stderr)
	}
	// A failing command gets the certain answer instead of the guess.
	status, _, stderr, list = w.observedRun([]string{"--explain-denials"}, nil, "open('"+w.home+"/x', 'w')")
	// Python itself may be denied more, where its modules are not compiled.
	if status != 1 || strings.Contains(stderr, "probably") || !slices.ContainsFunc(list, func(d denial) bool { return d.Op == "write" && d.Path == w.home+"/x" && d.Certain }) {
		t.Errorf("status %d, %+v, %s", status, list, stderr)
	}
	if status, _, stderr, list = w.observedRun(nil, nil, "open('"+w.home+"/x', 'w')"); status != 1 || !strings.Contains(stderr, "denied, probably") || len(list) != 1 || list[0].Certain {
		t.Errorf("guessed: status %d, %+v, %s", status, list, stderr)
	}
}

// TestUnreachedHosts: a run without a network that tries to reach a host is told of, whatever becomes of its output:
// each time if it fails, and once in a session if it does not. What it does on its own loopback is nothing.
func TestUnreachedHosts(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	const head = "import socket, sys\ndef t(f, *a):\n    try: f(*a)\n    except OSError: pass\n"
	const host = "t(socket.create_connection, ('192.0.2.1', 80))\n"
	const lookup = "t(socket.getaddrinfo, 'registry.example', 443)\n"
	const own = "s = socket.create_server(('127.0.0.1', 0))\nt(socket.create_connection, s.getsockname())\nt(socket.create_connection, ('127.0.0.1', 1))\nt(socket.getaddrinfo, 'localhost', 80)\n"
	for i, c := range []struct {
		text string
		told bool
	}{{own + "sys.exit(3)", false}, {own, false}, {host + "sys.exit(3)", true}, {host, true}, {host, false}, {lookup + "sys.exit(3)", true}} {
		_, _, stderr, list := w.observedRun(nil, nil, head+c.text)
		told := len(list) == 1 && list[0].Class == "network" && list[0].Certain && list[0].Count > 0 && strings.Contains(stderr, "denied connect: network loopback")
		if told != c.told || len(list) > 1 {
			t.Errorf("%d: told: %v; %+v\n%s", i, told, list, stderr)
		}
	}
}
