// Package batch answers many commands with their plans, one JSON object a line, and starts none.
package batch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// Batch says how the commands are planned.
type Batch struct {
	Policies  []string
	Profiles  []string
	Directory string
	Machine   caller.Machine
	Redactor  func(*plan.Plan) func(string) string // makes what takes secrets out of the answers; nil for none
}

// worker plans in its own places.
type worker struct {
	Batch
	plans  plan.Batch
	clean  func(string) string
	answer marshal.Encoder
}

const (
	maxLine    = 2 << 20
	maxWorkers = 8 // each reads policy and files for itself
)

// batched is one line of a batch on its way to its answer.
type batched struct {
	number int
	line   []byte
	answer []byte
	wrong  *fault.Fault  // the line is no object
	err    error         // there is no answer that could be written
	panic  any           // for the goroutine that knows what to do about it
	done   chan struct{} // answered
}

// Answer reads one JSON object a line and writes one plan a line, in order and each as
// soon as it is there, so that a caller may wait for it. Lines that come faster than
// they are answered are planned side by side. What cannot be planned is answered with
// "deny" and its error; the first line that is no object is also the error of the whole.
func (b *Batch) Answer(in io.Reader, out io.Writer) error {
	order := make(chan *batched, 4*maxWorkers)
	stop := make(chan struct{})
	defer close(stop)
	var broken error // of stdin; read when order is closed
	go func() {
		defer close(order)
		broken = b.hand(in, order, stop)
	}()
	var first error
	for q := range order {
		<-q.done
		switch {
		case q.panic != nil:
			panic(q.panic)
		case q.err != nil:
			return fault.New(errcode.OutputWrite, "stdout: "+q.err.Error())
		case q.wrong != nil && first == nil:
			first = q.wrong
		}
		if _, err := out.Write(q.answer); err != nil {
			return fault.New(errcode.OutputWrite, "stdout: "+err.Error())
		}
	}
	switch {
	case errors.Is(broken, bufio.ErrTooLong):
		return fault.New(errcode.Arguments, fmt.Sprintf("a line of stdin is longer than %d MiB", maxLine>>20))
	case broken != nil:
		return fault.New(errcode.Arguments, "stdin: "+broken.Error())
	}
	return first
}

// hand gives the lines of in to workers, and in their order to the one who writes the
// answers. There is one worker more whenever none is idle.
func (b *Batch) hand(in io.Reader, order chan<- *batched, stop <-chan struct{}) error {
	todo := make(chan *batched)
	defer close(todo)
	workers, most := 0, min(runtime.GOMAXPROCS(0), maxWorkers)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		q := &batched{number: n, line: slices.Clone(lines.Bytes()), done: make(chan struct{})}
		select {
		case order <- q:
		case <-stop:
			return nil
		}
		select {
		case todo <- q:
			continue
		default:
		}
		if workers < most {
			workers++
			go b.worker().work(todo)
		}
		todo <- q
	}
	return lines.Err()
}

func (b *Batch) worker() *worker {
	w := &worker{Batch: *b, plans: plan.Batch{Machine: b.Machine}}
	if b.Redactor != nil {
		w.plans.Settled = func(p *plan.Plan) {
			if w.clean == nil {
				w.clean = b.Redactor(p)
			}
		}
	}
	return w
}

func (b *worker) work(todo <-chan *batched) {
	for q := range todo {
		b.take(q)
	}
}

// take answers one question.
func (b *worker) take(q *batched) {
	defer close(q.done)
	defer func() { q.panic = recover() }()
	var l line
	var answer any
	if err := json.Unmarshal(q.line, &l); err != nil {
		q.wrong = fault.New(errcode.Arguments, fmt.Sprintf("line %d of stdin is not a JSON object: %v", q.number, err)).WithFix("write {\"id\":1,\"argv\":[\"ls\"]}", "")
		answer = refusal{Kind: plan.Kind, Decision: "deny", Error: q.wrong}
	} else {
		answer = b.plan(l)
	}
	q.answer, q.err = b.text(answer)
}

// text is one answer without the secrets of the caller's environment and files.
func (b *worker) text(answer any) ([]byte, error) {
	raw, err := b.answer.Again(answer)
	if text := string(raw); err == nil && b.clean != nil && b.clean(text) != text {
		raw, err = marshal.JSON(marshal.Clean(answer, b.clean))
	}
	return append(slices.Clone(raw), '\n'), err
}

// line is one question of a batch.
type line struct {
	ID   any      `json:"id"`
	Cmd  *string  `json:"cmd"`
	Argv []string `json:"argv"`
	Cwd  string   `json:"cwd"`
}

// refusal is the answer to a line that has no plan.
type refusal struct {
	Kind     string       `json:"kind"`
	ID       any          `json:"id,omitempty"`
	Decision string       `json:"decision"`
	Error    *fault.Fault `json:"error"`
}

func (b *worker) plan(q line) any {
	inv := plan.Invocation{Argv: q.Argv, Policies: b.Policies, Profiles: b.Profiles, Directory: b.Directory}
	if q.Cwd != "" {
		inv.Directory = q.Cwd
	}
	if q.Cmd != nil {
		inv.Shell, inv.IsShell = *q.Cmd, true
	}
	failed := func(err error) any {
		return refusal{Kind: plan.Kind, ID: q.ID, Decision: "deny", Error: fault.From(err)}
	}
	if len(inv.Argv) == 0 && !inv.IsShell {
		return failed(fault.New(errcode.NoCommand, "neither cmd nor argv"))
	}
	p, err := b.plans.Plan(inv)
	if err != nil {
		return failed(err)
	}
	defer p.Close()
	d := p.Document()
	d.ID = q.ID
	return d
}
