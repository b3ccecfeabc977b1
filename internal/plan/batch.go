package plan

import (
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
)

// Kind is the kind of a plan document.
const Kind = "atip-exec.plan/1"

// Batch plans many commands and starts none: the way to test a policy over
// thousands of command lines.
type Batch struct {
	Machine caller.Machine
	Settled func(*Plan) // told once for each directory, when its place and rules are known; may be nil

	places map[string]*Plan // what all questions about one directory share
}

// Plan plans like Make; policy, machine and file system are read once for each
// directory, since nothing that a batch does can change them.
func (b *Batch) Plan(inv Invocation) (*Plan, error) {
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
		if b.Settled != nil {
			b.Settled(place)
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
