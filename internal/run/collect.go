package run

import (
	"github.com/atip-dev/atip-exec/internal/cleaning"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// redaction waits until the values that must not be shown are collected.
func (x *execution) redaction() error {
	switch {
	case x.collecting:
		x.collecting = false
		x.collectErr = <-x.collected
	case x.cleaning == nil && x.collectErr == nil:
		// The plan failed early; its words still pass through the filter.
		x.collectErr = x.collect()
	}
	return x.collectErr
}

// collect gathers the values that must not be shown, before the child can show them.
func (x *execution) collect() (err error) {
	x.cleaning, err = cleaning.Of(x.plan)
	return err
}

// Redactor returns what takes secrets out of texts about p: a plan that is only
// printed shows command lines too, and its reader may be an agent.
func Redactor(p *plan.Plan) func(string) string { return (&execution{plan: p}).clean }
