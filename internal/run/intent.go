package run

import (
	"encoding/json"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/marshal"
)

// intend leaves a trace before anything starts: a run that is killed together with us
// would else be missing. The trace of a run that may do harm, or that was asked for by a
// run inside, says all that was decided, since nothing else will; any other names its
// command only. The next run that finds the mark of a dead one writes a record of kind
// "killed" for it.
func (x *execution) intend() error {
	p := x.plan
	rec := map[string]any{"kind": "intent", "argv": x.cleanAll(p.inv.words()), "cwd": p.Cwd, "uid": p.machine.UID, "session": p.session(), "agent": p.agent(), "tier": p.Setup.Tier().String()}
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
	} else if !p.mayHarm() && p.inv.behalf == nil {
		return nil // a run inside: the parent run has an intent of its own
	}
	if p.mayHarm() || p.inv.behalf != nil {
		rec = x.describe("intent")
	}
	raw, err := marshal.JSON(rec)
	if err != nil {
		return err
	}
	_, err = x.log.Append(audit.Encoded{ID: p.Run + "-intent", Object: x.redacted(raw)})
	return err
}

// mayHarm reports whether the run may do what an audit must be able to show even
// if the wrapper is killed.
func (p *Plan) mayHarm() bool {
	for _, s := range p.steps {
		e := s.Call.Effects
		if e[atip.Destructive].Value != atip.No || e[atip.Billable].Value != atip.No || e[atip.RemoteMutation].Value != atip.No || e[atip.Reversible].Value == atip.No {
			return true
		}
	}
	return false
}
