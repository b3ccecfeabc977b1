//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// screen is a terminal as a person has it: what is typed goes in, what is shown
// can be waited for.
type screen struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	seen   bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if master, err = pollable(master); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	if err := unix.SetNonblock(int(slave.Fd()), false); err != nil {
		t.Fatal(err)
	}
	return &screen{t: t, master: master, slave: slave}
}

func (s *screen) write(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) resize(rows, cols uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.t.Fatal(err)
	}
}

// expect reads until text has been shown, and returns what was shown up to its end.
func (s *screen) expect(text string) string {
	s.t.Helper()
	return expect(s.t, s.master, &s.seen, text)
}

func expect(t *testing.T, from interface {
	io.Reader
	SetReadDeadline(time.Time) error
}, seen *bytes.Buffer, text string) string {
	t.Helper()
	if err := from.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1024)
	for {
		if i := bytes.Index(seen.Bytes(), []byte(text)); i >= 0 {
			return string(seen.Next(i + len(text)))
		}
		n, err := from.Read(buffer)
		seen.Write(buffer[:n])
		if err != nil && !bytes.Contains(seen.Bytes(), []byte(text)) {
			t.Fatalf("waiting for %q: %v after %q", text, err, seen)
		}
	}
}

func settings(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	m, err := modes(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func TestPtyWithoutOuter(t *testing.T) {
	p, err := OpenPty(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.HasOuter() || !IsTerminal(p.Slave.Fd()) || width(p.Slave.Fd()) != defaultCols {
		t.Errorf("outer %v, terminal %v, width %d", p.HasOuter(), IsTerminal(p.Slave.Fd()), width(p.Slave.Fd()))
	}
	m := settings(t, p.Slave)
	if m.Lflag&unix.ECHO != 0 || m.Oflag&unix.ONLCR != 0 || m.Lflag&unix.ICANON == 0 {
		t.Errorf("settings %+v", m)
	}
	flags, err := unix.FcntlInt(p.Slave.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags of the slave %#x, %v", flags, err)
	}
	if _, err := p.Slave.WriteString("a\nb"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(p, got); err != nil || string(got) != "a\nb" {
		t.Errorf("%q, %v", got, err)
	}
	p.Slave.Close()
	if n, err := p.Read(got); err != io.EOF {
		t.Errorf("after the last end is closed: %d, %v", n, err)
	}
}

// TestScreenFollowsTheSize: who is behind the terminal hears of no other size, so what is printed tells.
func TestScreenFollowsTheSize(t *testing.T) {
	outer := newScreen(t)
	outer.resize(33, 99)
	p, err := OpenScreen(outer.slave)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := width(p.Slave.Fd()); got != 99 {
		t.Errorf("width %d", got)
	}
	for _, columns := range []uint16{120, 60} {
		outer.resize(40, columns)
		if _, err := p.Slave.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if got := width(p.Slave.Fd()); got != int(columns) {
			t.Errorf("width %d after %d", got, columns)
		}
	}
}

func TestRelayBesideTerminal(t *testing.T) {
	outer := newScreen(t)
	outer.resize(33, 99)
	before := settings(t, outer.slave)
	p, err := OpenPty(outer.slave)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := settings(t, p.Slave); got != before || width(p.Slave.Fd()) != 99 {
		t.Errorf("inner settings %+v, want %+v; width %d", got, before, width(p.Slave.Fd()))
	}
	if err := p.Relay(outer.slave); err != nil {
		t.Fatal(err)
	}
	if m := settings(t, outer.slave); m.Lflag&(unix.ICANON|unix.ISIG|unix.ECHO) != 0 {
		t.Errorf("outer is not raw: %+v", m)
	}
	// ^D and ^C are keys to the outer terminal; the inner makes of them what it does.
	outer.write("key")
	var seen bytes.Buffer
	expect(t, p.Master, &seen, "key")
	outer.write("\x03")
	expect(t, p.Master, &seen, "^C")

	outer.resize(20, 44)
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); width(p.Slave.Fd()) != 44; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("width %d after a resize to 44", width(p.Slave.Fd()))
		}
	}

	if err := p.Pause(); err != nil || settings(t, outer.slave) != before {
		t.Errorf("paused: %v, %+v", err, settings(t, outer.slave))
	}
	if err := p.Resume(); err != nil || settings(t, outer.slave).Lflag&unix.ICANON != 0 {
		t.Errorf("resumed: %v, %+v", err, settings(t, outer.slave))
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if got := settings(t, outer.slave); !reflect.DeepEqual(got, before) {
		t.Errorf("after Close %+v, want %+v", got, before)
	}
}

// runInPty starts argv on a pseudo-terminal and returns what it printed.
func runInPty(t *testing.T, stdin *os.File, argv ...string) (string, error) {
	t.Helper()
	p, err := OpenPty(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout = p.Slave, p.Slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Slave.Close()
	if err := p.Relay(stdin); err != nil {
		t.Fatal(err)
	}
	stdin.Close() // the relay has its own
	if err := p.Master.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p)
	if err != nil {
		_ = cmd.Process.Kill()
		t.Errorf("%v: %v after %q", argv, err, out)
	}
	return string(out), cmd.Wait()
}

func TestEndOfInput(t *testing.T) {
	for _, row := range []struct{ input, script, want string }{
		{"x\n", "cat; cat; echo done", "x\ndone\n"},
		{"x", "cat; cat; echo done", "xdone\n"},
		{"", "cat; echo done", "done\n"},
		{"a\nb\n", "read x; echo 1$x; read x; echo 2$x; read x || echo end", "1a\n2b\nend\n"},
		{"", "test -t 0 && test -t 1 && echo yes", "yes\n"},
		{"", "exit", ""},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(row.input); err != nil {
			t.Fatal(err)
		}
		w.Close()
		out, err := runInPty(t, r, "sh", "-c", row.script)
		if out != row.want || err != nil {
			t.Errorf("%q into %q: %q, %v, want %q", row.input, row.script, out, err, row.want)
		}
	}
}

// A process that ends while somebody is still there to type must not take his next
// key with it.
func TestCloseLeavesLaterKeys(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p, err := OpenPty(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Relay(r); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if !waitsForKeys {
		return
	}
	if _, err := w.WriteString("later"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "later" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReopenForReading(t *testing.T) {
	s := newScreen(t)
	f, ok := Reopen(s.slave)
	if !ok {
		t.Fatal("not reopened")
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err == nil {
		t.Error("the reopened terminal can be written")
	}
	s.write("line\n")
	got := make([]byte, 16)
	if n, err := f.Read(got); err != nil || string(got[:n]) != "line\n" {
		t.Errorf("%q, %v", got[:n], err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, ok := Reopen(null); ok {
		t.Error("/dev/null was reopened as a terminal")
	}
}

func TestNotATerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null.Fd()) || IsControlling(int(null.Fd())) || width(null.Fd()) != 0 {
		t.Error("/dev/null passes for a terminal")
	}
	// A terminal that is not the one of our session cannot be lent.
	if _, err := Lend(newScreen(t).slave); err == nil {
		t.Error("a foreign terminal was lent")
	}
	if err := GiveForeground(int(null.Fd()), 0); err == nil {
		t.Error("group 0 was put in front")
	}
	if err := (&Loan{}).Stopped(0, syscall.SIGTSTP); err == nil {
		t.Error("group 0 was taken for stopped")
	}
}

const jobEnv = "ATIP_TEST_TTY_JOB"

// TestJobChild is the wrapper of the job control tests and passes when run by
// itself: it runs $ATIP_TEST_TTY_JOB with the terminal lent to it.
func TestJobChild(t *testing.T) {
	script := os.Getenv(jobEnv)
	if script == "" {
		return
	}
	loan, err := Lend(os.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := loan.Give(pid); err != nil {
		t.Fatal(err)
	}
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err == syscall.EINTR {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if status.Stopped() {
			if err := loan.Stopped(pid, status.StopSignal()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := loan.Return(status.Signaled()); err != nil {
			t.Fatal(err)
		}
		front, err := foreground(0)
		if err != nil || front != unix.Getpgrp() {
			fmt.Println("not in front:", front, err)
		}
		if status.Signaled() {
			os.Exit(128 + int(status.Signal()))
		}
		os.Exit(status.ExitStatus())
	}
}

// shell starts a job-controlling shell on a screen.
func shell(t *testing.T, s *screen, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-i")
	cmd.Env = append(os.Environ(), "PS1=ready> ", "ENV=", jobEnv+"="+script, "GORACE=atexit_sleep_ms=0", "WRAPPER="+os.Args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.slave, s.slave, s.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.expect("ready> ")
	s.write("set -m\n")
	s.expect("ready> ")
}

func TestJobControl(t *testing.T) {
	s := newScreen(t)
	shell(t, s, `trap 'echo caught; exit 7' INT; echo star'ted'; while read x; do echo "got $x"; done`)
	s.write("\"$WRAPPER\" -test.run='^TestJobChild$'; echo \"status $?\"\n")
	s.expect("started")
	s.write("one\n")
	s.expect("got one")
	for range 2 {
		s.write("\x1a")
		s.expect("ready> ")
		s.write("echo shell $((20+3))\n")
		s.expect("shell 23")
		s.write("fg\n")
		s.write("two\n")
		s.expect("got two")
	}
	s.write("\x03")
	s.expect("caught")
	s.expect("ready> ")
	s.write("echo still $((40+2))\n")
	s.expect("still 42")
	if strings.Contains(s.seen.String(), "not in front") {
		t.Error(s.seen.String())
	}
}

// The status of the command passes, also of one that ^C ends.
func TestInterruptReachesOnlyTheCommand(t *testing.T) {
	s := newScreen(t)
	shell(t, s, `stty -echo; echo star'ted'; exec cat`)
	before := settings(t, s.slave)
	s.write("\"$WRAPPER\" -test.run='^TestJobChild$'; echo \"status $?\"\n")
	s.expect("started")
	s.write("\x03")
	s.expect("status 130")
	s.expect("ready> ")
	if after := settings(t, s.slave); after != before {
		t.Errorf("settings after %+v, before %+v", after, before)
	}
}

// Started in the background it stops at its first read, and fg brings it in front.
func TestBackgroundJob(t *testing.T) {
	s := newScreen(t)
	shell(t, s, `read x; echo "got $x"`)
	s.write("\"$WRAPPER\" -test.run='^TestJobChild$' &\n")
	s.expect("ready> ")
	// "jobs" says Running until the child has met the terminal.
	for stopped := false; !stopped; {
		time.Sleep(5 * time.Millisecond)
		s.write("jobs; echo as'ked'\n")
		stopped = strings.Contains(s.expect("asked\r\n"), "topped")
		s.expect("ready> ")
	}
	s.write("fg\n")
	s.write("one\n")
	s.expect("got one")
	s.expect("ready> ")
}

// Nobody could continue a session leader's child: it goes on at once.
func TestStopWithoutJobControl(t *testing.T) {
	s := newScreen(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestJobChild$")
	cmd.Env = append(os.Environ(), jobEnv+`=echo star'ted'; while read x; do echo "got $x"; exit 5; done`, "GORACE=atexit_sleep_ms=0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.slave, s.slave, s.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.expect("started")
	s.write("\x1a")
	s.expect("^Z")
	s.write("one\n")
	s.expect("got one")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Error(err)
	}
}

// width returns the number of columns of a terminal, 0 if it is none or does not know.
func width(fd uintptr) int {
	size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
