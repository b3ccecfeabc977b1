package plan

import (
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/marshal"
)

const planKind = "atip-exec.plan/1"

// Batch plans many commands and starts none: the way to test a policy over
// thousands of command lines.
type Batch struct {
	Policies  []string
	Profiles  []string
	Directory string
	Machine   caller.Machine
	Redactor  func(*Plan) func(string) string // makes what takes secrets out of the answers; nil for none

	places map[string]*Plan    // what all questions about one directory share
	clean  func(string) string // takes secrets out of the answers
	answer marshal.Encoder
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

// make plans like Make; policy, machine and file system are read once for each
// directory, since nothing that a batch does can change them.
func (b *Batch) make(inv Invocation) (*Plan, error) {
	place := b.places[inv.Directory]
	if place == nil {
		place = New(inv, b.Machine)
		place.memo = effects.NewMemo()
		if err := stages(place.settle, place.probe); err != nil {
			return nil, err
		}
		if b.places == nil {
			b.places = map[string]*Plan{}
		}
		b.places[inv.Directory] = place
		if b.clean == nil && b.Redactor != nil {
			b.clean = b.Redactor(place)
		}
	}
	p := New(inv, b.Machine)
	p.Place, p.Rules, p.Host, p.files, p.memo, p.Warnings = place.Place, place.Rules, place.Host, place.files, place.memo, slices.Clone(place.Warnings)
	if err := stages(p.identify, p.decide, p.enclose); err != nil {
		p.Close()
		return nil, err
	}
	p.Took = time.Since(p.Began)
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
		return failed(fault.New(errcode.NoCommand, "neither cmd nor argv"))
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
