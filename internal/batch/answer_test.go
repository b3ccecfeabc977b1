package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/corpus"
)

// TestBatchOrder holds that answers come in the order of the lines, whatever each costs,
// and are those that the line gets alone.
func TestBatchOrder(t *testing.T) {
	w := newWorld(t)
	b := &Batch{Machine: w.machine(), Directory: w.Dir}
	cmds := []string{"ls", "cat README.md | sort | uniq -c", "for i in a b c d; do git log --oneline $i | head; done", "rm -rf /", "gh pr list", "make -j8", "x", "echo $("}
	var in bytes.Buffer
	const lines = 400
	for i := range lines {
		if i == 300 {
			fmt.Fprintln(&in, "no object")
		}
		json.NewEncoder(&in).Encode(map[string]any{"id": i, "cmd": cmds[(i*7+i/50)%len(cmds)]})
	}
	var out bytes.Buffer
	if err := b.Answer(&in, &out); err == nil || !strings.Contains(err.Error(), "line 301") {
		t.Errorf("the line that is no object: %v", err)
	}
	type brief struct {
		ID       *int
		Decision string
		Steps    []struct{ Argv []string }
	}
	alone := map[string]string{}
	for _, cmd := range cmds {
		q := batched{done: make(chan struct{})}
		q.line, _ = json.Marshal(map[string]any{"cmd": cmd})
		(&Batch{Machine: w.machine(), Directory: w.Dir}).worker().take(&q)
		var a brief
		if err := json.Unmarshal(q.answer, &a); err != nil {
			t.Fatal(err)
		}
		alone[cmd] = fmt.Sprint(a.Decision, a.Steps)
	}
	answers := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
	if len(answers) != lines+1 {
		t.Fatalf("%d answers to %d lines", len(answers), lines+1)
	}
	for i, raw := range answers {
		var a brief
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		want := i
		switch {
		case i == 300:
			if a.ID != nil || a.Decision != "deny" {
				t.Errorf("no object: %s", raw)
			}
			continue
		case i > 300:
			want--
		}
		cmd := cmds[(want*7+want/50)%len(cmds)]
		if a.ID == nil || *a.ID != want || fmt.Sprint(a.Decision, a.Steps) != alone[cmd] {
			t.Errorf("answer %d: %.200s, want that of %q", i, raw, cmd)
		}
	}
}

// TestBatchWaits holds that a caller who asks only after the answer before gets it.
func TestBatchWaits(t *testing.T) {
	w := newWorld(t)
	b := &Batch{Machine: w.machine(), Directory: w.Dir}
	fromUs, toThem := io.Pipe()
	fromThem, toUs := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- b.Answer(fromUs, toUs)
		toUs.Close()
	}()
	answers := bufio.NewReader(fromThem)
	for i := range 20 {
		fmt.Fprintf(toThem, `{"id":%d,"cmd":"git status"}`+"\n", i)
		line, err := answers.ReadString('\n')
		if err != nil || !strings.Contains(line, fmt.Sprintf(`"id":%d,`, i)) {
			t.Fatalf("answer %d: %q, %v", i, line, err)
		}
	}
	toThem.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestBatchCannotWrite holds that the end of the reader of answers ends the batch, and a
// line that is too long as well.
func TestBatchCannotWrite(t *testing.T) {
	w := newWorld(t)
	b := &Batch{Machine: w.machine(), Directory: w.Dir}
	if err := b.Answer(strings.NewReader(strings.Repeat(`{"cmd":"ls"}`+"\n", 500)), fullDisk{}); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("full disk: %v", err)
	}
	long := `{"cmd":"` + strings.Repeat("x", maxLine) + `"}`
	var out bytes.Buffer
	if err := b.Answer(strings.NewReader(`{"id":1,"cmd":"ls"}`+"\n"+long), &out); err == nil || !strings.Contains(err.Error(), "longer than 2 MiB") {
		t.Errorf("long line: %v", err)
	}
	if !strings.Contains(out.String(), `"id":1,`) {
		t.Errorf("what was batched before the long line: %q", out.String())
	}
}

type world struct{ corpus.World }

func newWorld(t testing.TB) world {
	t.Helper()
	w, err := corpus.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Remove() })
	return world{w}
}

func (w world) machine() caller.Machine {
	m := here()
	m.Environ = w.Environ()
	return m
}

// here is this machine, where HOME may be any directory.
func here() caller.Machine {
	m := caller.Here()
	m.Homes = []string{"/"}
	return m
}
