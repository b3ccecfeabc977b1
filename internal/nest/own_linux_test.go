package nest

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/standin"
)

// standing is a run that has one own step, word, for a process that the shell started: this one, as it is
// the program that stand-ins are.
func standing(t *testing.T, word string, handshake time.Duration) (l *Listener, to *os.File, last *atomic.Pointer[Stand]) {
	t.Helper()
	last = new(atomic.Pointer[Stand])
	l, to, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Start(Host{Grace: time.Second, handshake: handshake, Order: func() Order { return Order{Run: "outer"} }, Typed: func(pid int) bool { return pid == os.Getpid() },
		Stands: func(s Stand) Settled {
			last.Store(&s)
			if !s.Typed {
				return Settled{Keep: "/kept"}
			}
			return Settled{Own: &Own{Argv: WordsOf([]string{word}), Cwd: "/"}}
		}})
	t.Cleanup(func() {
		l.End()
		to.Close()
		l.Close()
	})
	return l, to, last
}

// stand asks as a stand-in does and returns the end that the answer comes to.
func stand(t *testing.T, to *os.File, raw string, files ...*os.File) *os.File {
	t.Helper()
	reply, theirs, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	to.SetWriteDeadline(time.Now().Add(patience))
	if err := send(to, []byte(raw), append([]*os.File{theirs}, files...)...); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { reply.Close() })
	return reply
}

// answer waits for the end of a question. here says whether it answers the question who it is.
func answer(t *testing.T, reply *os.File, here bool) (Outcome, bool) {
	t.Helper()
	reply.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, maxAnswer)
	for {
		var out Outcome
		n, err := reply.Read(buf)
		if os.IsTimeout(err) {
			t.Error("no answer, and no end of it")
		}
		if err != nil || n == 0 {
			return out, false
		}
		text := string(buf[:n])
		switch status, ended := strings.CutPrefix(text, standin.Exit); {
		case text == standin.Who && here:
			sendNow(reply, []byte("here"))
			continue
		case text == standin.Who:
			continue
		case strings.HasPrefix(text, standin.Keep):
			return Keep(), true
		case ended:
			out.Kind = "end"
			if out.ExitCode, err = strconv.Atoi(status); err != nil {
				t.Error(err)
			}
		default:
			if err := json.Unmarshal(buf[:n], &out); err != nil {
				t.Error(err)
			}
		}
		return out, true
	}
}

const own = standin.Question

func null(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestStandHangs: one that does not say that it is still there gets nothing, keeps nobody waiting, and
// neither does one that sends half a message or none.
func TestStandHangs(t *testing.T) {
	_, to, last := standing(t, "copy", 3*time.Second)
	n := null(t)
	var silent []*os.File
	for range 2 * maxOwnBy { // they have no place before they have answered
		silent = append(silent, stand(t, to, own, n, n, n))
	}
	for _, raw := range []string{`{"kind":"ow`, `{}`, "", `null`, `[]`, "\x00", `{"kind":"own"}{"kind":"own"}`} {
		if out, ok := answer(t, stand(t, to, raw, n, n, n), false); ok {
			t.Errorf("%q is answered: %+v", raw, out)
		}
		to.SetWriteDeadline(time.Now().Add(patience))
		to.Write([]byte(raw)) // without descriptors; no bytes at all are no end
	}
	if out, _ := answer(t, stand(t, to, own, n, n, n), true); out.Kind != "end" || out.Error != nil {
		t.Errorf("beside silent ones: %+v", out)
	}
	for _, reply := range silent {
		if out, _ := answer(t, reply, false); out.Kind != "keep" {
			t.Errorf("a silent one: %+v", out)
		}
	}
	if s := last.Load(); s.Typed {
		t.Errorf("%+v", s)
	}
	// Another process cannot answer for the one that asked.
	asked := stand(t, to, own, n, n, n)
	other, err := os.StartProcess("/bin/sh", []string{"sh", "-c", `printf here >&3`}, &os.ProcAttr{Files: []*os.File{n, n, n, asked}})
	if err != nil {
		t.Fatal(err)
	}
	other.Wait()
	if out, _ := answer(t, asked, false); out.Kind != "keep" {
		t.Errorf("answered by another process: %+v", out)
	}
}

// TestStandDescriptors: only what carries bytes, in the right direction, becomes a descriptor of a command.
func TestStandDescriptors(t *testing.T) {
	_, to, _ := standing(t, "copy", 0)
	n := null(t)
	file := func(fd int, err error) *os.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "odd")
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, w, _ := os.Pipe()
	defer r.Close()
	defer w.Close()
	path := file(unix.Open("/dev/null", unix.O_PATH, 0))
	dir := file(unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0))
	event := file(unix.Eventfd(0, 0))
	poll := file(unix.EpollCreate1(0))
	process := file(unix.PidfdOpen(os.Getpid(), 0))
	socket := file(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))
	for i, files := range [][]*os.File{{path, n, n}, {n, path, n}, {dir, n, n}, {n, n, dir}, {event, n, n}, {n, event, n}, {poll, n, n}, {process, n, n}, {socket, n, n}, {n, socket, n}, {w, n, n}, {n, r, n}, {n, n, r}} {
		if out, _ := answer(t, stand(t, to, own, files...), true); out.Error == nil || out.Error.Code != errcode.CredentialWithheld || out.Child != nil {
			t.Errorf("row %d: %+v", i, out)
		}
	}
	for _, files := range [][]*os.File{nil, {n}, {n, n}, {n, n, n, n}, {n, n, n, n, n, n}} {
		if out, ok := answer(t, stand(t, to, own, files...), true); ok {
			t.Errorf("%d descriptors: %+v", len(files), out)
		}
	}
	if out, _ := answer(t, stand(t, to, own, n, w, n), true); out.Kind == "end" && out.Error != nil {
		t.Errorf("pipes: %+v", out)
	}
}

// TestStandsAtOnce: what is more than the bound waits for a place, in turn; who gives up or is told to end while it
// waits starts nothing; a flood of other messages keeps nobody from an answer.
func TestStandsAtOnce(t *testing.T) {
	l, to, _ := standing(t, "wait", 0)
	n := null(t)
	stop := make(chan struct{})
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for {
			select {
			case <-stop:
				return
			default:
				to.SetWriteDeadline(time.Now().Add(time.Second))
				to.Write(make([]byte, 900))
			}
		}
	}()
	type one struct{ reply, says *os.File }
	answered := make(chan Outcome, 2*maxOwnBy)
	ask := func() one {
		r, w, _ := os.Pipe()
		t.Cleanup(func() { r.Close() })
		defer w.Close()
		o := one{stand(t, to, own, n, w, n), r}
		go func() {
			out, _ := answer(t, o.reply, true)
			answered <- out
		}()
		return o
	}
	begins := func(o one, within time.Duration) bool {
		o.says.SetReadDeadline(time.Now().Add(within))
		_, err := o.says.Read(make([]byte, 5))
		return err == nil
	}
	var first []one
	for range maxOwnBy {
		first = append(first, ask())
	}
	for _, o := range first {
		if !begins(o, 30*time.Second) {
			t.Fatal("one of the first did not begin")
		}
	}
	owned := func() int {
		l.broker.mu.Lock()
		defer l.broker.mu.Unlock()
		return len(l.broker.running)
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	var second []one
	for i := range 3 {
		second = append(second, ask())
		until("it does not wait", func() bool { return owned() == maxOwnBy+i+1 })
	}
	if begins(second[0], 50*time.Millisecond) || begins(second[1], time.Millisecond) {
		t.Error("more than the bound began")
	}
	// The first that waits is told to end: it never begins.
	sendNow(second[0].reply, Outcome{Kind: "signal", Signal: 15}.encode())
	if out := <-answered; out.ExitCode != 128+15 || begins(second[0], time.Second) {
		t.Errorf("ended while it waited: %+v", out)
	}
	// The next one goes without a word.
	second[1].reply.Close()
	<-answered
	until("it waits for good", func() bool { return owned() == maxOwnBy+1 })
	if begins(second[1], time.Second) {
		t.Error("began for nobody")
	}
	// One of the first goes: its command ends, and the last one has its place.
	first[0].reply.Close()
	<-answered
	if !begins(second[2], 20*time.Second) {
		t.Error("its place is not free")
	}
	close(stop)
	<-flooded
	l.Stop()
	for range maxOwnBy {
		if out := <-answered; out.ExitCode != 128+15 {
			t.Errorf("%+v", out)
		}
	}
}

// TestStandsOfCode: who was not started by the shell is answered at once and takes nothing away.
func TestStandsOfCode(t *testing.T) {
	l, to, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	var typed atomic.Bool
	l.Start(Host{Grace: time.Second, Order: func() Order { return Order{Run: "outer"} }, Typed: func(int) bool { return typed.Load() }, Owns: 3,
		Stands: func(s Stand) Settled {
			if !s.Typed {
				return Settled{Keep: "/kept"}
			}
			return Settled{Own: &Own{Argv: WordsOf([]string{"copy"}), Cwd: "/"}}
		}})
	defer l.Close()
	defer to.Close()
	defer l.End()
	n := null(t)
	for range maxOwn + 10 {
		if out, _ := answer(t, stand(t, to, own, n, n, n), false); out.Kind != "keep" {
			t.Fatalf("%+v", out)
		}
	}
	typed.Store(true)
	for range 2 {
		if out, _ := answer(t, stand(t, to, own, n, n, n), true); out.Kind != "end" || out.Error != nil || out.ExitCode != 0 {
			t.Errorf("%+v", out)
		}
	}
	if runs := l.OwnRuns(); len(runs) != 2 || runs[0].Run != "outer" {
		t.Errorf("%+v", runs)
	}
}

// TestStandAhead: what is planned while a stand-in starts is what that very process asks for, with the same
// descriptors, or it is planned anew; nobody who does not ask has anything done.
func TestStandAhead(t *testing.T) {
	l, to, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Start(Host{Grace: time.Second, Order: func() Order { return Order{Run: "outer"} }, Typed: func(int) bool { return true }, Owns: 20,
		Stands: func(s Stand) Settled {
			return Settled{Own: &Own{Argv: WordsOf([]string{"none"}), Cwd: "/", Umask: s.Umask}}
		}})
	defer l.Close()
	defer to.Close()
	defer l.End()
	coming := func(pid int, word string) (begun *ahead) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); begun == nil && time.Now().Before(end); time.Sleep(time.Millisecond) { // until a process is ready
			l.Coming(pid, []string{word}, "/")
			l.broker.mu.Lock()
			begun = l.broker.ahead[pid]
			l.broker.mu.Unlock()
		}
		if begun == nil {
			t.Fatal("nothing was planned")
		}
		return begun
	}
	n, self := null(t), os.Getpid()
	for i, c := range []struct {
		word  string
		files []*os.File
		run   string
	}{
		{"none", []*os.File{os.Stdin, os.Stdout, os.Stderr}, "ahead"},
		{"none", []*os.File{n, n, n}, "outer"},
		{"copy", []*os.File{os.Stdin, os.Stdout, os.Stderr}, "outer"},
	} {
		first := coming(self, c.word)
		if out, _ := answer(t, stand(t, to, own, c.files...), true); out.Kind != "end" || out.Error != nil || out.ExitCode != 0 {
			t.Errorf("%v: %+v", c, out)
		}
		runs := l.OwnRuns()
		if len(runs) != i+1 || runs[i].Run != c.run {
			t.Errorf("%v: %+v", c, runs)
		}
		if unix.Kill(first.Pid, 0) != unix.ESRCH {
			t.Errorf("%v: the process is still there", c)
		}
	}
	// Nobody asks: the process ends with the run, or with the next that comes under the same number.
	first := coming(self, "none")
	second := coming(self, "none")
	l.End()
	for _, a := range []*ahead{first, second} {
		if unix.Kill(a.Pid, 0) != unix.ESRCH {
			t.Error("a process that nobody asked for is still there")
		}
	}
	if l.Coming(self, []string{"none"}, "/"); len(l.broker.ahead) > 0 {
		t.Error("planned after the end")
	}
	// Without a word from the run it is not wanted, and says nothing.
	theirs, ours, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
	p := &Process{Order: Order{Ahead: true}, control: theirs}
	if p.Wanted() || p.Answer(Outcome{}) != nil {
		t.Error("wanted by nobody")
	}
}
