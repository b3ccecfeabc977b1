package run

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/fault"
)

const (
	planKind     = "atip-exec.plan/1"
	maxBatchLine = 2 << 20
)

// Batch plans many commands and starts none: the way to test a policy over
// thousands of command lines.
type Batch struct {
	Policies  []string
	Profiles  []string
	Directory string
	Machine   Machine

	places map[string]*Plan    // what all questions about one directory share
	clean  func(string) string // takes secrets out of the answers
	answer encoder
}

// batchLine is one question of a batch.
type batchLine struct {
	ID   any      `json:"id"`
	Cmd  *string  `json:"cmd"`
	Argv []string `json:"argv"`
	Cwd  string   `json:"cwd"`
}

// batchError is the answer to a line that has no plan.
type batchError struct {
	Kind     string       `json:"kind"`
	ID       any          `json:"id,omitempty"`
	Decision string       `json:"decision"`
	Error    *fault.Fault `json:"error"`
}

// Answer reads one JSON object a line and writes one plan a line, in order and at
// once, so that a caller may wait for each answer. What cannot be planned is
// answered with "deny" and its error; the first line that is no object is also the
// error of the whole.
func (b *Batch) Answer(in io.Reader, out io.Writer) error {
	var first error
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxBatchLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var q batchLine
		var answer any
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			f := fault.New("E1004", fmt.Sprintf("line %d of stdin is not a JSON object: %v", n, err)).WithFix("write {\"id\":1,\"argv\":[\"ls\"]}", "")
			if first == nil {
				first = f
			}
			answer = batchError{Kind: planKind, Decision: "deny", Error: f}
		} else {
			answer = b.plan(q)
		}
		if err := b.write(out, answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fault.New("E1004", "stdin: "+err.Error())
	}
	return first
}

// write prints one answer without the secrets of the caller's environment and files.
func (b *Batch) write(out io.Writer, answer any) error {
	raw, err := b.answer.again(answer)
	if text := string(raw); err == nil && b.clean != nil && b.clean(text) != text {
		raw, err = encode(RedactDocument(answer, b.clean))
	}
	if err == nil {
		_, err = out.Write(append(raw, '\n'))
	}
	if err != nil {
		return fault.New("E4005", "stdout: "+err.Error())
	}
	return nil
}

// make plans like MakePlan; policy, machine and file system are read once for each
// directory, since nothing that a batch does can change them.
func (b *Batch) make(inv Invocation) (*Plan, error) {
	place := b.places[inv.Directory]
	if place == nil {
		place = newPlan(inv, b.Machine)
		place.memo = newMemo()
		if err := stages(place.locate, place.probe, place.loadPolicy); err != nil {
			return nil, err
		}
		if b.places == nil {
			b.places = map[string]*Plan{}
		}
		b.places[inv.Directory] = place
		if b.clean == nil {
			b.clean = place.Redactor()
		}
	}
	p := newPlan(inv, b.Machine)
	run, argv, began := p.Run, p.Argv, p.began
	*p = *place
	p.Run, p.Argv, p.inv, p.began, p.Warnings = run, argv, inv, began, slices.Clone(place.Warnings)
	if err := stages(p.identify, p.decide, p.confine, p.environment, p.returned); err != nil {
		p.Close()
		return nil, err
	}
	p.took = time.Since(p.began)
	return p, nil
}

func (b *Batch) plan(q batchLine) any {
	inv := Invocation{Argv: q.Argv, Policies: b.Policies, Profiles: b.Profiles, Directory: b.Directory}
	if q.Cwd != "" {
		inv.Directory = q.Cwd
	}
	if q.Cmd != nil {
		inv.Shell, inv.IsShell = *q.Cmd, true
	}
	failed := func(err error) any {
		return batchError{Kind: planKind, ID: q.ID, Decision: "deny", Error: fault.From(err)}
	}
	if len(inv.Argv) == 0 && !inv.IsShell {
		return failed(fault.New("E1003", "neither cmd nor argv"))
	}
	p, err := b.make(inv)
	if err != nil {
		return failed(err)
	}
	defer p.Close()
	d := p.Document()
	d.ID = q.ID
	return d
}
