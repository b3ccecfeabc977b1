package run

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/ledger"
)

// cost counts the calls that budgets limit. A call that may cost is counted as one
// that does.
func (p *Plan) cost() ledger.Cost {
	c := ledger.Cost{Calls: map[string]int{}}
	for i, s := range p.steps {
		c.Calls[s.Call.Tool]++
		if i >= len(p.Decision.Steps) {
			continue
		}
		danger := p.Decision.Steps[i].Danger
		if danger.Has(atip.Billable) {
			c.Billable++
		}
		if danger.Has(atip.RemoteMutation) {
			c.Remote++
		}
	}
	return c
}

// ledgerDir is where the runs of this user keep what they have used up.
func (p *Plan) ledgerDir() string { return filepath.Join(p.dirs.State, "rate") }

// charge takes what the run costs from the budgets, just before the start: all of it
// or nothing. What a person permitted is counted and not refused.
func (x *execution) charge() error {
	p := x.plan
	b, c := p.policies.Budgets(), p.cost()
	if !c.Limited(b) {
		return nil
	}
	err := ledger.Charge(p.ledgerDir(), b, c, x.permitted())
	if err == nil {
		x.budget = map[string]any{"billable": c.Billable, "remoteMutation": c.Remote, "calls": c.Calls}
		return nil
	}
	f, ok := err.(*fault.Fault)
	if !ok {
		f = fault.New(errcode.Budget, "the remaining budget is unknown: "+err.Error())
	}
	return f.With("steps", p.stepDetails()).Redact(x.clean)
}

// billableBudget is what the decision is told of the budget: whether there is one.
// What is left of it is settled under the lock, just before the start.
func (p *Plan) billableBudget() int {
	if b := p.policies.Budgets().Billable; b.Set {
		return b.Max
	}
	return 0
}
