package run

import (
	"encoding/json"
	"strings"

	"github.com/atip-dev/atip-exec/internal/aftermath"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/record"
)

// charge takes what the run costs from the budgets, just before the start: all of it
// or nothing. What a person permitted is counted and not refused.
func (x *execution) charge() error {
	p := x.plan
	b, c := p.Policies.Budgets(), p.Cost()
	if !c.Limited(b) {
		return nil
	}
	err := ledger.Charge(p.LedgerDir(), b, c, x.permission.Given())
	if err == nil {
		x.budget = map[string]any{"billable": c.Billable, "remoteMutation": c.Remote, "calls": c.Calls}
		return nil
	}
	f, ok := err.(*fault.Fault)
	if !ok {
		f = fault.New(errcode.Budget, "the remaining budget is unknown: "+err.Error())
	}
	return f.With("steps", p.StepDetails()).Redact(x.clean)
}

// intend leaves a trace before anything starts: a run that is killed together with us
// would else be missing. The trace of a run that may do harm, or that was asked for by a
// run inside, says all that was decided, since nothing else will; any other names its
// command only. The next run that finds the mark of a dead one writes a record of kind
// "killed" for it.
func (x *execution) intend() error {
	p := x.plan
	rec := map[string]any{"kind": "intent", "argv": x.cleanAll(p.Invocation.Words()), "cwd": p.Cwd, "uid": p.Machine.UID, "session": p.SessionLabel(), "agent": p.Agent(), "tier": p.Setup.Tier().String()}
	if log, ok := x.log.(*audit.Log); ok {
		if _, err := log.Settle(); err != nil {
			return err
		}
		about, err := json.Marshal(map[string]any{"argv": rec["argv"], "cwd": rec["cwd"], "session": rec["session"], "agent": rec["agent"]})
		if err != nil {
			return err
		}
		if x.mark, err = log.Begin(p.Run, x.redacted(about)); err != nil {
			return err
		}
	} else if !p.MayHarm() && p.Invocation.Behalf == nil {
		return nil // a run inside: the parent run has an intent of its own
	}
	if p.MayHarm() || p.Invocation.Behalf != nil {
		rec = record.Of(x.plan, "intent", x.clean, x.budget)
	}
	raw, err := marshal.JSON(rec)
	if err != nil {
		return err
	}
	_, err = x.log.Append(audit.Encoded{ID: p.Run + "-intent", Object: x.redacted(raw)})
	return err
}

// sayShortfall tells what this machine cannot keep and the built-in policy goes without:
// once in a session of an agent, or a day where none has a name. Who never reads receipts
// should know it, and who hears it with each command stops listening.
func (x *execution) sayShortfall() {
	p := x.plan
	gaps, why := p.Setup.Shortfall()
	if len(gaps) == 0 || p.Inside() {
		return
	}
	names := make([]string, len(gaps))
	for i, g := range gaps {
		names[i] = string(g.Guarantee)
	}
	list := strings.Join(names, ", ")
	if aftermath.FirstInSession(p, list) {
		x.warn("tier " + p.Setup.Tier().String() + " is the highest of this machine (" + why + "); not kept here: " + list + "; atip doctor says more")
	}
}
