package staging

import (
	"errors"
	"fmt"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/undo"
)

// checkpointed is what came of the checkpoint of a run.
type checkpointed struct {
	before  *undo.Checkpoint
	counts  *undo.Counts
	problem error
}

// checkpoint saves the workspace before a run that may change it. Only a run whose decision
// rests on it does not start without.
func (x *Staging) checkpoint() error {
	p := x.plan
	mode := p.UndoMode()
	if mode == "off" || !p.ChangesWorkspace() {
		return nil
	}
	refuse := func(why string) error {
		return fault.New(errcode.CheckpointFailed, quote.Words(marshal.CleanAll(p.Invocation.Words(), x.clean))+" was not started, because it was allowed only as it could be undone: "+why).WithFix("make room or name fewer files, and try again", "")
	}
	at := p.UndoPlace()
	s, err := undo.Open(at, true)
	if err == nil {
		defer s.Close()
		r := undo.Run{Run: p.Run, Cmd: x.clean(quote.Words(p.Invocation.Words())), Cwd: p.Cwd}
		lazy := mode != "always" && !p.Undo.Rests && !p.Destroys()
		x.saved.before, err = s.Before(r, lazy)
	}
	if err != nil {
		x.saved.problem = err
		if p.Undo.Rests {
			return refuse(err.Error())
		}
		var refused *undo.Error
		if errors.As(err, &refused) && refused.Refused() {
			x.warn("no checkpoint: " + err.Error())
		}
		return nil
	}
	if p.Undo.Rests {
		c := undo.Coverage{Known: true, Whole: x.saved.before.Whole, Losses: x.saved.before.Losses}
		for _, s := range p.Steps {
			was, _ := p.UndoOf(&s.Step, p.Undo.Coverage)
			if now, lost := p.UndoOf(&s.Step, c); now < was {
				return refuse(fmt.Sprint("not covered now: ", lost))
			}
		}
	}
	return nil
}

// noteChanges notes what the run left, so that it can be told from what others do later.
func (x *Staging) noteChanges() {
	p := x.plan
	if x.saved.before == nil || x.saved.before.Shared {
		return
	}
	s, err := undo.Open(p.UndoPlace(), true)
	if err == nil {
		defer s.Close()
		var n undo.Counts
		if n, err = s.After(p.Run, x.saved.before.Seq); err == nil {
			x.saved.counts = &n
			s.Tidy(time.Now())
		}
	}
	if err != nil {
		x.saved.problem = err
	}
}

// Record is what the audit keeps of the checkpoint.
func (x *Staging) Record() map[string]any {
	problem := x.saved.problem
	if problem == nil {
		problem = x.plan.Undo.Problem
	}
	if x.saved.before == nil && problem == nil {
		return nil
	}
	rec := map[string]any{}
	if b := x.saved.before; b != nil {
		rec["checkpoint"] = b.Seq
		if b.Shared {
			rec["shared"] = true
		}
		if len(b.Losses) > 0 {
			rec["not_covered"] = b.Losses[:min(len(b.Losses), 16)]
		}
	}
	if x.saved.counts != nil {
		rec["changed"] = x.saved.counts
	}
	if problem != nil {
		rec["error"] = problem.Error()
	}
	return rec
}
