package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal with somebody's settings, and what was written on it.
type screen struct {
	t     *testing.T
	outer *os.File
	inner *os.File
	mu    sync.Mutex
	seen  bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outer.Close() })
	number, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Held open: the settings of a terminal go with its last user.
	t.Cleanup(func() { inner.Close() })
	s := &screen{t: t, outer: outer, inner: inner}
	own := s.settings()
	own.Iflag |= unix.IXANY
	own.Cc[unix.VERASE], own.Cc[unix.VINTR] = 8, 'G'-'@'
	if err := unix.IoctlSetTermios(int(inner.Fd()), unix.TCSETS, &own); err != nil {
		t.Fatal(err)
	}
	s.resize(31, 97)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := outer.Read(buf)
			s.mu.Lock()
			s.seen.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// settings is what `stty -a` shows.
func (s *screen) settings() unix.Termios {
	s.t.Helper()
	v, err := unix.IoctlGetTermios(int(s.inner.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *v
}

func (s *screen) resize(rows, cols uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.outer.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

// shows waits for a text.
func (s *screen) shows(text string) bool {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.text(), text) {
			return true
		}
	}
	s.t.Errorf("%q never came: %q", text, s.text())
	return false
}

// on starts a command on the terminal, as its own session.
func (s *screen) on(cmd *exec.Cmd) {
	s.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.inner, s.inner, s.inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// TestTerminalIsGivenBack: however a run with a terminal of its own ends, the caller's is as
// it was, and a new size arrives in it.
func TestTerminalIsGivenBack(t *testing.T) {
	const text = `import os, signal, sys, termios
def size(*_): os.write(1, b'size %d %d\n' % tuple(os.get_terminal_size(0)))
signal.signal(signal.SIGWINCH, size)
print('tty', sys.stdin.isatty(), sys.stdout.isatty(), flush=True)
size()
for line in sys.stdin:
    if line == 'crash\n': os.abort()
    break
`
	for _, tier := range []string{"T2", "T3"} {
		for _, tc := range []struct {
			name   string
			end    func(*screen, *exec.Cmd)
			status int
		}{
			{"end of the command", func(s *screen, _ *exec.Cmd) { _, _ = s.outer.WriteString("x\r") }, 0},
			{"end by a signal", func(s *screen, _ *exec.Cmd) { _, _ = s.outer.WriteString("crash\r") }, 134},
			{"TERM", func(_ *screen, c *exec.Cmd) { _ = c.Process.Signal(syscall.SIGTERM) }, 143},
			{"HUP", func(_ *screen, c *exec.Cmd) { _ = c.Process.Signal(syscall.SIGHUP) }, 129},
			{"QUIT", func(_ *screen, c *exec.Cmd) { _ = c.Process.Signal(syscall.SIGQUIT) }, 131},
			{"key of interrupt", func(s *screen, _ *exec.Cmd) { _, _ = s.outer.WriteString("\a") }, -1},
		} {
			w := newWorldAtHome(t)
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
			put(t, w.ws, map[string]string{"run.py": text})
			s := newScreen(t)
			before := s.settings()
			cmd := w.command("-t", "--", "python3", "run.py")
			s.on(cmd)
			timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
			if s.shows("tty True True") && s.shows("size 97 31") {
				if during := s.settings(); during == before {
					t.Errorf("%s, %s: the terminal is not raw", tier, tc.name)
				}
				s.resize(43, 121)
				s.shows("size 121 43")
			}
			tc.end(s, cmd)
			_ = cmd.Wait()
			timer.Stop()
			if got := cmd.ProcessState.ExitCode(); tc.status >= 0 && got != tc.status {
				t.Errorf("%s, %s: status %d, want %d; %q", tier, tc.name, got, tc.status, s.text())
			}
			if after := s.settings(); after != before {
				t.Errorf("%s, %s: the terminal was %+v and is %+v", tier, tc.name, before, after)
			}
		}
	}
}

// TestTerminalOnOutput: on a person's terminal a command sees one on its output too, which is filtered all
// the same; in a pipe it sees none.
func TestTerminalOnOutput(t *testing.T) {
	t.Parallel()
	token := "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		put(t, w.ws, map[string]string{"run.py": "import os\nprint('tty', os.isatty(0), os.isatty(1), *os.get_terminal_size(1))\nprint('<" + token[:9] + "' + '" + token[9:] + ">')\nprint('last')\n"})
		s := newScreen(t)
		before := s.settings()
		cmd := w.command("--", "python3", "run.py")
		s.on(cmd)
		s.shows("tty True True 97 31\r\n")
		s.shows("last\r\n")
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", tier, err)
		}
		if text := s.text(); strings.Contains(text, token) || !strings.Contains(text, "<[REDACTED:") || strings.Contains(text, "\r\r") {
			t.Errorf("%s: %q", tier, text)
		}
		if after := s.settings(); after != before {
			t.Errorf("%s: the terminal was %+v and is %+v", tier, before, after)
		}
		if got := w.answer("-c", "test -t 1 || echo pipe"); got != "pipe" {
			t.Errorf("%s: in a pipe: %q", tier, got)
		}
	}
}
