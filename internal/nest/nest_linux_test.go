package nest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/status"
)

// TestMain is the process that answers questions when it is started as one: it does what the
// first word of the question says.
func TestMain(m *testing.M) {
	if os.Args[0] == ProcessName {
		os.Exit(process())
	}
	os.Exit(m.Run())
}

func process() int {
	p, f := Accept()
	if f != nil {
		os.Stderr.WriteString(f.Message)
		return f.Exit
	}
	out := Outcome{Kind: "end", Run: p.Order.Run, Child: &status.Child{Pid: os.Getpid()}}
	word := ""
	if own := p.Order.Own; own != nil {
		word = string(own.Argv[0])
	} else {
		word = string(p.Order.Question.Argv[0])
	}
	if !p.Wanted() {
		return 0
	}
	if p.Order.Ahead {
		out.Run = "ahead"
	}
	switch word {
	case "keep":
		out = Keep()
	case "copy":
		io.Copy(os.Stdout, os.Stdin)
		os.Stderr.WriteString(strings.Join(p.Order.Withheld, ":"))
	case "die":
		return 1
	case "wait":
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGHUP, syscall.SIGTERM)
		os.Stdout.WriteString("ready")
		out.ExitCode = 128 + int((<-told).(syscall.Signal))
	case "record":
		up := ToParent(os.Getenv)
		up.Append(map[string]any{"id": "from-the-process", "argv": []string{"record"}})
		up.Close()
	}
	if f := p.Answer(out); f != nil {
		return f.Exit
	}
	return 0
}

// nested is a parent run and the way of a run inside to it.
func nested(t *testing.T, h Host) (*Listener, *Parent) {
	t.Helper()
	l, child, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FcntlInt(child.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	child.Close()
	if err != nil {
		t.Fatal(err)
	}
	up := ToParent(func(name string) string {
		return map[string]string{ParentVariable: "fd:" + strconv.Itoa(fd), RunVariable: "outer"}[name]
	})
	if !up.Reachable() {
		t.Fatal("the parent run is not reachable")
	}
	if h.Order == nil {
		h.Order = func() Order { return Order{Run: "outer", Withheld: []string{"TOKEN", "KEY"}} }
	}
	h.Grace = time.Second
	l.Start(h)
	return l, up
}

// ask asks for a command whose output comes back on pipes.
func ask(t *testing.T, up *Parent, word string) (*Asked, *os.File, *os.File) {
	t.Helper()
	in, feed, _ := os.Pipe()
	feed.WriteString("input")
	feed.Close()
	stdout, w, _ := os.Pipe()
	stderr, ew, _ := os.Pipe()
	a, err := up.Ask(Question{Argv: [][]byte{[]byte(word)}, Cwd: "/"}, in, w, ew)
	for _, f := range []*os.File{in, w, ew} {
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); stdout.Close(); stderr.Close() })
	return a, stdout, stderr
}

func TestRecordsArrive(t *testing.T) {
	l, up := nested(t, Host{Nests: true})
	for i := range maxRecords + 3 {
		if _, err := up.Append(map[string]any{"id": strconv.Itoa(i), "kind": "run", "argv": []string{"a", "secret"}, "error": map[string]any{"code": "E", "message": "secret"}}); err != nil {
			t.Fatal(err)
		}
	}
	up.Close()
	got := l.Close()
	if len(got) != maxRecords || got[0].ID != "0" || got[0].Parent != "outer" {
		t.Fatalf("%d records, the first %+v", len(got), got[0])
	}
	entry := got[0].Entry("outer", func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") })
	raw, _ := json.Marshal(entry)
	if bytes.Contains(raw, []byte("secret")) || entry["unverified"] != true || entry["parent"] != "outer" {
		t.Errorf("%s", raw)
	}
}

// TestLongRecordIsCut: a record that does not fit into a message loses words, not itself.
func TestLongRecordIsCut(t *testing.T) {
	l, up := nested(t, Host{Nests: true})
	up.Append(map[string]any{"id": "long", "argv": []string{"a", strings.Repeat("b", maxRecord)}})
	up.Close()
	if got := l.Close(); len(got) != 1 || !reflect.DeepEqual(got[0].Argv, []string{"a"}) {
		t.Errorf("%+v", got)
	}
}

func TestRecordsGoFurtherOut(t *testing.T) {
	outer, middle := nested(t, Host{Nests: true})
	inner, up := nested(t, Host{Nests: true, Up: middle})
	up.Append(map[string]any{"id": "innermost"})
	up.Close()
	if kept := inner.Close(); len(kept) != 0 {
		t.Errorf("kept on the way: %+v", kept)
	}
	middle.Close()
	if got := outer.Close(); len(got) != 1 || got[0].ID != "innermost" {
		t.Errorf("%+v", got)
	}
}

// TestNothingIsHeardBeforeTheStart: what is sent to a run that never starts is not kept.
func TestNothingIsHeardBeforeTheStart(t *testing.T) {
	l, child, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	child.WriteString(`{"id":"early"}`)
	child.Close()
	if got := l.Close(); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestAnswers(t *testing.T) {
	l, up := nested(t, Host{Nests: true, Environ: os.Environ()})
	a, stdout, stderr := ask(t, up, "copy")
	got, err := a.Wait()
	if err != nil || got.Kept() || got.Run != "outer" || got.Child == nil || got.Child.Pid == os.Getpid() {
		t.Errorf("%+v, %v", got, err)
	}
	out, _ := io.ReadAll(io.LimitReader(stdout, 100))
	said, _ := io.ReadAll(io.LimitReader(stderr, 100))
	if string(out) != "input" || string(said) != "TOKEN:KEY" {
		t.Errorf("%q %q", out, said)
	}
	a, _, _ = ask(t, up, "keep")
	if got, err := a.Wait(); err != nil || !got.Kept() {
		t.Errorf("%+v, %v", got, err)
	}
	a, _, _ = ask(t, up, "die")
	if got, err := a.Wait(); err != nil || got.Error == nil || got.Error.Code != errcode.LostChild {
		t.Errorf("%+v, %v", got, err)
	}
	l.End()
	a, _, _ = ask(t, up, "copy")
	if got, err := a.Wait(); err != nil || got.Error == nil || got.Error.Code != errcode.OutOfResources {
		t.Errorf("after the end: %+v, %v", got, err)
	}
	up.Close()
	l.Close()
}

func TestSignalsAndEnd(t *testing.T) {
	l, up := nested(t, Host{Nests: true, Environ: os.Environ()})
	ready := func(f *os.File) {
		buf := make([]byte, 5)
		if _, err := io.ReadFull(f, buf); err != nil {
			t.Fatal(err)
		}
	}
	a, stdout, _ := ask(t, up, "wait")
	ready(stdout)
	a.Signal(syscall.SIGHUP)
	if got, err := a.Wait(); err != nil || got.ExitCode != 128+int(syscall.SIGHUP) {
		t.Errorf("a signal: %+v, %v", got, err)
	}
	a, stdout, _ = ask(t, up, "wait")
	ready(stdout)
	l.End()
	if got, err := a.Wait(); err != nil || got.ExitCode != 128+int(syscall.SIGTERM) {
		t.Errorf("the end of the run: %+v, %v", got, err)
	}
	up.Close()
	l.Close()
}

// TestProcessRecordsFurtherOut: the process hands its own record to the run outside its run.
func TestProcessRecordsFurtherOut(t *testing.T) {
	outer, middle := nested(t, Host{Nests: true})
	inner, up := nested(t, Host{Nests: true, Up: middle, Environ: os.Environ()})
	a, _, _ := ask(t, up, "record")
	if got, err := a.Wait(); err != nil || got.Error != nil {
		t.Errorf("%+v, %v", got, err)
	}
	inner.End()
	up.Close()
	inner.Close()
	middle.Close()
	if got := outer.Close(); len(got) != 1 || got[0].ID != "from-the-process" {
		t.Errorf("%+v", got)
	}
}

func TestRefusals(t *testing.T) {
	l, up := nested(t, Host{Nests: true, Withheld: true})
	a, _, _ := ask(t, up, "copy")
	if got, err := a.Wait(); err != nil || got.Error == nil || got.Error.Code != errcode.CredentialWithheld || got.ExitCode != fault.New(errcode.CredentialWithheld, "").Exit {
		t.Errorf("%+v, %v", got, err)
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	a, err = up.Ask(Question{Argv: [][]byte{[]byte("copy")}, Cwd: "/"}, null, file, file)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got, err := a.Wait(); err != nil || got.Error == nil || !strings.Contains(got.Error.Message, "only pipes") {
		t.Errorf("a file as output: %+v, %v", got, err)
	}
	if _, err := up.Ask(Question{Argv: [][]byte{make([]byte, maxQuestion)}, Cwd: "/"}, null, file, file); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long question: %v", err)
	}
	// One that makes no sense has its descriptors closed, and no answer.
	a, err = up.Ask(Question{Cwd: "relative"}, null, file, file)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got, err := a.Wait(); err == nil {
		t.Errorf("an answer to nonsense: %+v", got)
	}
	up.Close()
	l.Close()
}

func TestNoParent(t *testing.T) {
	r, w, _ := os.Pipe()
	defer r.Close()
	defer w.Close()
	for _, named := range []string{"", "9", "fd:", "fd:2", "fd:x", "fd:" + strconv.Itoa(int(r.Fd()))} {
		up := ToParent(func(name string) string { return map[string]string{ParentVariable: named}[name] })
		if up.Reachable() {
			t.Errorf("%q leads to a parent run", named)
		}
		if _, err := up.Append(map[string]any{}); err != nil {
			t.Errorf("%q: %v", named, err)
		}
		if err := up.Close(); err != nil {
			t.Errorf("%q: %v", named, err)
		}
	}
}

// TestOutcomeFits: an answer that is too long loses what is least needed.
func TestOutcomeFits(t *testing.T) {
	long := Failed(fault.New(errcode.LostChild, "short").With("words", strings.Repeat("a", maxAnswer)))
	var got Outcome
	if raw := long.encode(); len(raw) > maxAnswer || json.Unmarshal(raw, &got) != nil || got.Error == nil || got.Error.Message != "short" || got.ExitCode != long.ExitCode {
		t.Errorf("%+v", got)
	}
	longer := Failed(fault.New(errcode.LostChild, strings.Repeat("a", maxAnswer)))
	got = Outcome{}
	if raw := longer.encode(); len(raw) > maxAnswer || json.Unmarshal(raw, &got) != nil || got.ExitCode != longer.ExitCode || got.Kind != "end" {
		t.Errorf("%+v", got)
	}
}
