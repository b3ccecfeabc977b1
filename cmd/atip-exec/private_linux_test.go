package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// python runs a text from a file, which the plan does not read.
func (w world) python(text string, flags ...string) (status int, stdout, stderr string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.ws, "run.py"), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	cmd := w.command(append(flags, "--", "python3", "run.py")...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, _ := cmd.Output()
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out)), errors.String()
}

// TestNeedsPrivateRoot: what needs sockets, semaphores and terminals of its own works in a
// private root; below it the receipt says what is missing.
func TestNeedsPrivateRoot(t *testing.T) {
	t.Parallel()
	const sh = "import subprocess, sys\nsys.exit(subprocess.run(['bash', '-ec', %q]).returncode)"
	for _, tc := range []struct{ name, tool, text, want string }{
		{"multiprocessing", "python3", "import multiprocessing as m\nif __name__ == '__main__':\n    with m.Pool(2) as p: print(p.map(abs, [-1, -2]))", "[1, 2]"},
		{"inner terminal", "python3", "import pty, os\npid, fd = pty.fork()\nif pid == 0:\n    os.execvp('tty', ['tty'])\nprint(os.read(fd, 99).decode().strip().startswith('/dev/pts/'))", "True"},
		{"script", "script", `script -qec 'test -t 1 && echo terminal' /dev/null | tr -d '\r'`, "terminal"},
		{"tmux", "tmux", `export TERM=screen; tmux -S $TMPDIR/t new-session -d 'sleep 5' && tmux -S $TMPDIR/t list-sessions | wc -l; tmux -S $TMPDIR/t kill-server`, "1"},
		{"gpg", "gpg", `export GNUPGHOME=$(mktemp -d); gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-gen-key a@example.invalid rsa1024 sign never 2>/dev/null; gpg --list-secret-keys --with-colons | grep -c ^sec; gpgconf --kill all`, "1"},
		{"unix socket", "python3", "import socket, os\np = os.environ['TMPDIR'] + '/s'\ns = socket.socket(socket.AF_UNIX); s.bind(p); s.listen()\nc = socket.socket(socket.AF_UNIX); c.connect(p); print('connected')", "connected"},
		{"loopback", "python3", "import socket\ns = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname()); print('connected')", "connected"},
	} {
		if _, err := exec.LookPath(tc.tool); err != nil {
			t.Logf("%s is not installed", tc.tool)
			continue
		}
		text := tc.text
		if tc.tool != "python3" {
			text = strings.Replace(sh, "%q", strconv.Quote(tc.text), 1)
		}
		w := newWorld(t)
		w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
		if status, stdout, stderr := w.python(text); status != 0 || stdout != tc.want {
			t.Errorf("%s at T3: status %d, %q; %s", tc.name, status, stdout, stderr)
		}
		w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
		file := filepath.Join(w.home, "status.json")
		status, stdout, stderr := w.python(text, "--status-file", file)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, reduced := range []string{"network loopback: none", "AF_UNIX: socketpair only", "/dev/shm: none", "inner terminals: none"} {
			if !strings.Contains(string(raw), reduced) {
				t.Errorf("%s at T2: the receipt does not say %q", tc.name, reduced)
			}
		}
		if status == 0 && stdout == tc.want {
			t.Errorf("%s passes at T2, so the test above shows nothing", tc.name)
		} else if tc.tool == "python3" && !strings.Contains(stderr, "E4110") {
			t.Errorf("%s at T2: no hint: %s", tc.name, stderr)
		}
	}
}

// TestWorkspaceOfSomebodyElse: root works in a directory to which only its owner has the
// way, as it does outside of a run.
func TestWorkspaceOfSomebodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	if err := os.WriteFile(filepath.Join(w.ws, "there"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	above := filepath.Dir(w.ws)
	if err := os.Chown(above, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(above, 0o700); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := w.python("import os\nopen('made', 'w')\nprint(os.path.exists('there'), os.getcwd())")
	if status != 0 || stdout != "True "+w.ws {
		t.Errorf("status %d, %q: %s", status, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "made")); err != nil {
		t.Error(err)
	}
}
