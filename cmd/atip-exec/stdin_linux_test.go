package main_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// socketPair makes a connected pair; the second is for standard input.
func socketPair(t *testing.T, kind int) (ours, theirs *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs = os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// run ends after a minute, whatever it waits for.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = append(out, err.Error()...)
	}
	return string(out)
}

// TestSocketOnStdin: what is written to it arrives, all of it, and the end of it does too.
func TestSocketOnStdin(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20000) + "end"
	for _, mode := range []string{"auto", "inherit"} {
		ours, theirs := socketPair(t, unix.SOCK_STREAM)
		cmd := newWorld(t).command("--stdin", mode, "--", "cat")
		cmd.Stdin = theirs
		var writing sync.WaitGroup
		writing.Go(func() {
			_, _ = io.WriteString(ours, text)
			_ = unix.Shutdown(int(ours.Fd()), unix.SHUT_WR)
		})
		out := run(t, cmd)
		writing.Wait()
		if out != text {
			t.Errorf("%s: %d bytes, want %d", mode, len(out), len(text))
		}
	}
}

// TestSocketKeepsTheRest: two commands share a connection, as in a script that a shell
// reads from one. What the first has not read is there for the second.
func TestSocketKeepsTheRest(t *testing.T) {
	for name, first := range map[string][]string{"nothing": {"true"}, "ten": {"head", "-c10"}, "one": {"dd", "bs=1", "count=1", "status=none"},
		"most": {"head", "-c9000"}} {
		ours, theirs := socketPair(t, unix.SOCK_STREAM)
		text := strings.Repeat("0123456789", 2000)
		if _, err := io.WriteString(ours, text); err != nil {
			t.Fatal(err)
		}
		_ = unix.Shutdown(int(ours.Fd()), unix.SHUT_WR)
		w := newWorld(t)
		got := ""
		for _, args := range [][]string{first, {"cat"}} {
			cmd := w.command(append([]string{"--"}, args...)...)
			cmd.Stdin = theirs
			got += run(t, cmd)
		}
		// head reads more than it prints; nothing may be missing for a program that reads
		// exactly what it uses.
		if name == "nothing" || name == "one" {
			if got != text {
				t.Errorf("%s: %d bytes of %d", name, len(got), len(text))
			}
		} else if !strings.HasPrefix(got, text[:10]) || !strings.HasSuffix(got, text[len(text)-1000:]) {
			t.Errorf("%s: %q … %q", name, got[:10], got[len(got)-10:])
		}
	}
}

// onStdin tries on descriptor 0 what only a socket, a directory or a file that is open for
// writing allows.
const onStdin = `
import os, socket, stat, sys
def tell(name, f):
    try: print(name, "ok", f() or "")
    except OSError as e: print(name, "refused")
tell("write", lambda: os.write(0, b"leak") and None)
s = lambda: socket.socket(fileno=os.dup(0))
tell("socket", lambda: s().getpeername() and None)
tell("reconnect", lambda: s().connect(tuple(sys.argv[1].rsplit(":", 1)[:1]) + (int(sys.argv[1].rsplit(":", 1)[1]),)))
tell("openat", lambda: os.close(os.open("secret", os.O_RDONLY, dir_fd=0)))
tell("truncate", lambda: os.ftruncate(0, 0))
`

// TestStdinIsOnlyRead: a socket cannot be written to or connected to somebody else, a
// directory is no way to the files in it, a file that is open for writing is not written
// to. Without the wrapper each of it works.
func TestStdinIsOnlyRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/secret", []byte("synthetic"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	for name, tc := range map[string]struct {
		open func() *os.File
		free string // what works without the wrapper
	}{
		"stream socket": {func() *os.File { _, f := socketPair(t, unix.SOCK_STREAM); return f }, "write socket"},
		"UDP socket": {func() *os.File {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
			}
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(fd), "udp")
		}, "write socket reconnect"},
		"directory": {func() *os.File {
			f, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}, "openat"},
		"file for writing": {func() *os.File {
			path := t.TempDir() + "/file"
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}, "write truncate"},
		"pipe for writing": {func() *os.File {
			path := t.TempDir() + "/fifo"
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}, "write"},
	} {
		free := exec.Command("python3", "-c", onStdin, address)
		free.Stdin = tc.open()
		for line := range strings.Lines(run(t, free)) {
			act, _, _ := strings.Cut(line, " ")
			if works := strings.Contains(line, " ok"); works != strings.Contains(" "+tc.free+" ", " "+act+" ") {
				t.Errorf("%s without the wrapper: %s", name, line)
			}
		}
		for _, tier := range []string{"T2", "T3"} {
			for _, mode := range []string{"auto", "inherit"} {
				policy := w.home + "/" + tier + ".json"
				if err := os.WriteFile(policy, []byte(fmt.Sprintf(`{"version":1,"sandbox":{"tier":%q}}`, tier)), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := w.command("--policy", policy, "--stdin", mode, "--", "python3", "-c", onStdin, address)
				cmd.Stdin = tc.open()
				out := run(t, cmd)
				if strings.Count(out, "refused") != 5 || strings.Contains(out, " ok") {
					t.Errorf("%s at %s, --stdin %s:\n%s", name, tier, mode, out)
				}
			}
		}
	}
}

// TestFileOnStdinKeepsItsMode: with a private root the mode of a file outside cannot be
// changed through the descriptor of standard input either; what was not read is there for
// the next command.
func TestFileOnStdinKeepsItsMode(t *testing.T) {
	needTier3(t)
	w := newWorld(t)
	policy := w.home + "/T3.json"
	if err := os.WriteFile(policy, []byte(`{"version":1,"sandbox":{"tier":"T3"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = "import os; print(os.read(0, 5).decode())\nos.fchmod(0, 0o666)\n"
	for _, inside := range []bool{false, true} {
		dir := t.TempDir()
		if inside {
			dir = w.ws
		}
		path := dir + "/input"
		if err := os.WriteFile(path, []byte("firstsecond"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd := w.command("--policy", policy, "--", "python3", "-c", text)
		cmd.Stdin = f
		out := run(t, cmd)
		rest, err := io.ReadAll(f)
		info, err2 := os.Stat(path)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		// Outside it is the mode of a pipe that changes; inside, as without the wrapper, the file's.
		mode := os.FileMode(0o600)
		if inside {
			mode = 0o666
		}
		if out != "first\n" || string(rest) != "second" || info.Mode() != mode {
			t.Errorf("in the workspace %v: %q, rest %q, mode %v", inside, out, rest, info.Mode())
		}
	}
}

// TestInheritedSocketIsClosed: a connection that the caller left open is not there.
func TestInheritedSocketIsClosed(t *testing.T) {
	_, theirs := socketPair(t, unix.SOCK_STREAM)
	for _, wrapped := range []bool{false, true} {
		cmd := exec.Command("bash", "-c", "echo leak >&3")
		if wrapped {
			cmd = newWorld(t).command("--", "bash", "-c", "echo leak >&3")
		}
		cmd.ExtraFiles = []*os.File{theirs}
		if out := run(t, cmd); strings.Contains(out, "Bad file descriptor") != wrapped {
			t.Errorf("wrapped %v: %s", wrapped, out)
		}
	}
}
