package plan

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/atip-dev/atip-exec/internal/built"
	"github.com/atip-dev/atip-exec/internal/corpus"
)

// builtProgram is the atip-exec that a user starts.
func builtProgram(t *testing.T) string {
	t.Helper()
	dir, err := built.Programs(t.TempDir(), "atip-exec")
	if err != nil {
		t.Fatal(err)
	}
	name := "atip-exec"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(dir, name)
}

// TestCorpusByTheProgram asks the built program about every fourth row and compares: the
// gate plans in this process, which is not the one that a user starts.
func TestCorpusByTheProgram(t *testing.T) {
	program := builtProgram(t)
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	b.Machine.Self = program // where it lies is a part of the answer: nothing may write there
	var asked []*corpus.Row
	var questions bytes.Buffer
	encoder := json.NewEncoder(&questions)
	rows := readCorpus(t)
	for i := range rows {
		r := &rows[i]
		if i%4 != 0 || len(r.Files)+len(r.Env) > 0 {
			continue // they need a world of their own, one at a time
		}
		asked = append(asked, r)
		if err := encoder.Encode(map[string]any{"id": r.ID, "cmd": r.Cmd, "argv": r.Argv, "cwd": filepath.Join(w.Dir, r.Cwd)}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "explain", "--batch")
	cmd.Dir, cmd.Env, cmd.Stdin = w.Dir, b.Machine.Environ, &questions
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(asked) || len(asked) < 250 {
		t.Fatalf("%d answers to %d questions", len(lines), len(asked))
	}
	count := map[string]int{}
	for i, line := range lines {
		var got struct {
			ID, Decision string
			Reasons      []struct{ Rule string }
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		r := asked[i]
		want := w.ask(r, b)
		if got.ID != r.ID || got.Decision != want.decision {
			t.Errorf("%s: %q: the program says %s of %s: %v; planned here: %s: %s", r.ID, r.Text(), got.Decision, got.ID, got.Reasons, want.decision, want.reasons)
		}
		count[got.Decision]++
	}
	for _, decision := range []string{"allow", "confirm", "deny"} {
		if count[decision] < 20 {
			t.Errorf("%d rows are judged %s: the sample says little", count[decision], decision)
		}
	}
	t.Logf("%d rows: %v", len(asked), count)
}
