package main_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// temporary is a name in the machine's /tmp that no other test has, gone after this one.
func temporary(t *testing.T, name string) string {
	t.Helper()
	path := "/tmp/atip-exec-test-" + strconv.Itoa(os.Getpid()) + "-" + strings.ReplaceAll(t.Name(), "/", "-") + "-" + name
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

// answer runs a command and returns what it prints, with its status if that is not 0.
func (w world) answer(args ...string) string {
	w.t.Helper()
	cmd := w.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Logf("%q: %v: %s", args, err, stderr.String())
		return strings.TrimSpace(string(out)) + " status " + strconv.Itoa(cmd.ProcessState.ExitCode())
	}
	return strings.TrimSpace(string(out))
}

// TestOneTmp: whatever command writes in /tmp, whatever one reads there, and whether the tier is
// that of a reader or of a writer, they meet; so do the user's programs that nothing confines.
func TestOneTmp(t *testing.T) {
	writers := map[string]func(path string) []string{
		"redirection": func(p string) []string { return []string{"-c", "echo text > " + p} },
		"code": func(p string) []string {
			return []string{"--", "python3", "-c", "import sys; open('/t' + 'mp/' + sys.argv[1], 'w').write('text')", filepath.Base(p)}
		},
		"shell": func(p string) []string { return []string{"--", "sh", "-c", "echo text > " + p} },
		"tool":  func(p string) []string { return []string{"-c", "echo text | tee " + p} },
	}
	readers := map[string]func(path string) []string{
		"known tool":  func(p string) []string { return []string{"--", "cat", p} },
		"string":      func(p string) []string { return []string{"-c", "cat " + p} },
		"redirection": func(p string) []string { return []string{"-c", "cat < " + p} },
		"code": func(p string) []string {
			return []string{"--", "python3", "-c", "import sys; print(open('/t' + 'mp/' + sys.argv[1]).read())", filepath.Base(p)}
		},
		"shell": func(p string) []string { return []string{"--", "sh", "-c", "cat " + p} },
	}
	for _, tier := range []string{"", "T2"} {
		w := newWorldAtHome(t)
		if tier != "" {
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		}
		for writer, write := range writers {
			if tier == "T2" && writer == "code" {
				continue // docs/limits.md: without a private root only names that the call shows
			}
			path := temporary(t, writer+tier)
			if out := w.answer(write(path)...); strings.Contains(out, "status") {
				t.Errorf("%s %s: %s", tier, writer, out)
			}
			if raw, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(raw)) != "text" {
				t.Errorf("%s %s: outside there is %q, %v", tier, writer, raw, err)
			}
			for reader, read := range readers {
				if got := w.answer(read(path)...); got != "text" {
					t.Errorf("%s: %s writes, %s reads %q", tier, writer, reader, got)
				}
			}
		}
		path := temporary(t, "tool-of-the-agent"+tier)
		for _, text := range []string{"first", "second, by the same name"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for reader, read := range readers {
				if got := w.answer(read(path)...); got != text {
					t.Errorf("%s: an agent's tool writes, %s reads %q", tier, reader, got)
				}
			}
		}
		// What a redirection that was judged writes into such a file is there outside, too.
		w.answer("-c", "echo more >> "+path)
		if raw, _ := os.ReadFile(path); !strings.HasSuffix(string(raw), "more\n") {
			t.Errorf("%s: appended: %q", tier, raw)
		}
		os.Remove(path)
		if got := w.answer("--", "cat", path); !strings.Contains(got, "status 1") {
			t.Errorf("%s: removed outside, and still read: %q", tier, got)
		}
	}
}

// TestTmpStaysApart: sockets, files of secrets and of other users go neither way, names that are
// taken stay as they are, and another workspace has a /tmp of its own.
func TestTmpStaysApart(t *testing.T) {
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	base := temporary(t, "")
	file, key, pem, socket, dir := base+"file", temporary(t, "")+"x/id_rsa", base+"text", base+"socket", base+"x"
	for _, path := range []string{file, pem, socket} {
		t.Cleanup(func() { os.Remove(path) })
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{file: "x", key: "x", pem: "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	look := "import os\nb = '/t' + 'mp/'\nprint(sorted(n for n in os.listdir(b) if n.startswith('" + filepath.Base(base) + "')), os.path.lexists(b + '" + filepath.Base(dir) + "/id' + '_rsa'))"
	if _, got, stderr := w.python(look); got != "['"+filepath.Base(file)+"', '"+filepath.Base(dir)+"'] False" {
		t.Errorf("inside: %s %s", got, stderr)
	}
	// The other way.
	made := `import os, socket, sys
b = sys.argv[1]
socket.socket(socket.AF_UNIX).bind(b + 's')
os.symlink('/etc/passwd', b + 'l')
os.mkfifo(b + 'p')
os.mkdir(b + 'd')
open(b + 'd/id' + '_rsa', 'w').write('x')
open(b + 'd/fine', 'w').write('x')
open(b + 'file', 'w').write('changed')
open(b + 'mine', 'w').write('x')`
	for _, n := range []string{"s", "l", "p", "d", "mine"} {
		t.Cleanup(func() { os.RemoveAll(base + n) })
	}
	if status, _, stderr := w.python("import sys; sys.argv = ['', '/t' + 'mp/" + filepath.Base(base) + "']\n" + made); status != 0 || !strings.Contains(stderr, "for runs of this workspace only") {
		t.Errorf("status %d: %s", status, stderr)
	}
	for name, want := range map[string]bool{"s": false, "l": false, "p": false, "d/id_rsa": false, "d/fine": true, "mine": true} {
		if _, err := os.Lstat(base + name); (err == nil) != want {
			t.Errorf("%s outside: %v", name, err)
		}
	}
	if raw, _ := os.ReadFile(file); string(raw) != "x" {
		t.Errorf("a name that is taken: %q", raw)
	}
	if got := w.answer("--", "cat", file); got != "changed" {
		t.Errorf("the next run reads %q", got)
	}
	other := w
	other.ws = filepath.Join(filepath.Dir(w.ws), "other")
	if err := os.CopyFS(other.ws, os.DirFS(w.ws)); err != nil {
		t.Fatal(err)
	}
	have := "import os\nb = '/t' + 'mp/" + filepath.Base(base) + "'\nprint(*[n for n in ('mine', 'file', 'd') if os.path.lexists(b + n)])"
	if _, got, _ := w.python(have); got != "mine file d" {
		t.Errorf("this workspace: %s", got)
	}
	if _, got, _ := other.python(have); got != "file" {
		t.Errorf("another workspace: %s", got)
	}
	// Named by a call it is a file of the user like any other, and leaves nothing behind.
	if got := other.answer("--", "cat", base+"mine"); got != "x" {
		t.Errorf("named: %q", got)
	}
	if _, got, _ := other.python(have); got != "file" {
		t.Errorf("another workspace: %s", got)
	}
	if os.Getuid() == 0 {
		third := w
		third.ws = filepath.Join(filepath.Dir(w.ws), "third")
		if err := os.CopyFS(third.ws, os.DirFS(w.ws)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, 1234, 1234); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := third.python(have); got != "" {
			t.Errorf("a file of another user: %s", got)
		}
	}
}

// TestTmpOfAWorkspaceInVarTmp: a workspace below another temporary directory, which is the same
// one inside of a private root, leaves no directory of its name in /tmp.
func TestTmpOfAWorkspaceInVarTmp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir, err := os.MkdirTemp("/var/tmp", "atip-exec-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ws := filepath.Join(dir, "ws")
	// Which may be another file system.
	if err := os.CopyFS(ws, os.DirFS(w.ws)); err != nil {
		t.Fatal(err)
	}
	w.ws = ws
	if got := w.answer("--", "python3", "-c", "open('made', 'w').write('x'); print('ran')"); got != "ran" {
		t.Error(got)
	}
	if _, err := os.Lstat(filepath.Join(w.ws, "made")); err != nil {
		t.Error(err)
	}
	if name := filepath.Join("/tmp", filepath.Base(dir)); os.Remove(name) == nil {
		t.Errorf("%s was left", name)
	}
}
