package plan

import (
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/status"
)

// DefaultGrace is how long a command has to end after SIGTERM, if neither flag nor policy says.
const DefaultGrace = 2 * time.Second

// Limit is the strictest of the timeouts that were asked for; 0 for none.
func (p *Plan) Limit() time.Duration {
	limit, _ := p.timeout()
	return limit
}

// Timeout is the limit as the status has it.
func (p *Plan) Timeout() status.Timeout {
	limit, source := p.timeout()
	return status.Timeout{LimitMS: limit.Milliseconds(), Source: source}
}

func (p *Plan) timeout() (limit time.Duration, source string) {
	consider := func(d time.Duration, from string) {
		if d > 0 && (limit == 0 || d < limit) {
			limit, source = d, from
		}
	}
	consider(p.Invocation.Timeout, "flag")
	consider(p.Policies.Limits().Timeout, "policy")
	if p.Invocation.DeclaredTimeout {
		consider(p.Steps[0].Call.Timeout, "declared")
	}
	return limit, source
}

// Grace is how long the command has to end after SIGTERM before it is killed.
func (p *Plan) Grace() time.Duration {
	if p.Invocation.KillAfter > 0 {
		return p.Invocation.KillAfter
	}
	if g := p.Policies.Limits().Grace; g > 0 {
		return g
	}
	return DefaultGrace
}

// Cost counts the calls that budgets limit. A call that may cost is counted as one
// that does.
func (p *Plan) Cost() ledger.Cost {
	c := ledger.Cost{Calls: map[string]int{}}
	for i, s := range p.Steps {
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

// LedgerDir is where the runs of this user keep what they have used up.
func (p *Plan) LedgerDir() string { return filepath.Join(p.Dirs.State, "rate") }

// billableBudget is what the decision is told of the budget: whether there is one.
// What is left of it is settled under the lock, just before the start.
func (p *Plan) billableBudget() int {
	if b := p.Policies.Budgets().Billable; b.Set {
		return b.Max
	}
	return 0
}
