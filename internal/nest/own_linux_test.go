package nest

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
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
		if err := json.Unmarshal(buf[:n], &out); err != nil {
			t.Error(err)
		}
		if out.Kind != "who" {
			return out, true
		}
		if here {
			sendNow(reply, []byte(`{"kind":"here"}`))
		}
	}
}

const own = `{"kind":"own"}`

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
	_, to, last := standing(t, "copy", 400*time.Millisecond)
	n := null(t)
	var silent []*os.File
	for range maxOwnBy - 1 {
		silent = append(silent, stand(t, to, own, n, n, n))
	}
	for _, raw := range []string{`{"kind":"ow`, `{}`, "", `null`, `[]`, "\x00", `{"kind":"own"}{"kind":"own"}`} {
		if out, ok := answer(t, stand(t, to, raw, n, n, n), false); ok {
			t.Errorf("%q is answered: %+v", raw, out)
		}
		to.SetWriteDeadline(time.Now().Add(patience))
		to.Write([]byte(raw)) // without descriptors; no bytes at all are no end
	}
	if out, _ := answer(t, stand(t, to, own, n, n, n), true); out.Kind != "end" || out.Child == nil {
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
	other, err := os.StartProcess("/bin/sh", []string{"sh", "-c", `printf '{"kind":"here"}' >&3`}, &os.ProcAttr{Files: []*os.File{n, n, n, asked}})
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

// TestStandsAtOnce: what is more than the bound is refused with its reason, and taken again when there is room;
// a flood of other messages keeps nobody from an answer.
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
	var waiting, pipes []*os.File
	for range maxOwnBy {
		r, w, _ := os.Pipe()
		defer r.Close()
		waiting, pipes = append(waiting, stand(t, to, own, n, w, n)), append(pipes, r)
		w.Close()
	}
	answered := make(chan Outcome, maxOwnBy)
	for _, reply := range waiting {
		go func() {
			out, _ := answer(t, reply, true)
			answered <- out
		}()
	}
	for _, r := range pipes {
		r.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := r.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := answer(t, stand(t, to, own, n, n, n), true); out.Error == nil || out.Error.Code != errcode.OutOfResources {
		t.Errorf("one more: %+v", out)
	}
	// The caller goes without a word: its command ends, and another one has its place.
	waiting[0].Close()
	<-answered
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		reply := stand(t, to, own, n, n, n)
		go answer(t, reply, true)
		l.broker.mu.Lock()
		owned := l.broker.owned
		l.broker.mu.Unlock()
		if owned > maxOwnBy {
			break
		}
		if time.Now().After(end) {
			t.Fatal("its place is not free")
		}
	}
	close(stop)
	<-flooded
	l.Stop()
	for range maxOwnBy - 1 {
		if out := <-answered; out.ExitCode != 128+15 {
			t.Errorf("%+v", out)
		}
	}
}
