package run

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/internal/cleaning"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/sandbox"
)

// finish waits for the child and its output, and settles the tree.
func (x *execution) finish() error {
	defer drive.KeepThreads()()
	limit := x.plan.Limit()
	var timer <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timer = t.C
	}
	count := 0
	interrupted := make(chan struct{}, 1)
	early := x.signals.To(func(sig os.Signal) {
		if drive.Interrupts(sig) {
			if count++; count == 3 {
				select {
				case interrupted <- struct{}{}:
				default:
				}
				return
			}
		}
		x.forward(sig)
	})
	if early != nil {
		x.forward(early)
	}
	fired := false
	var killing sync.WaitGroup
	kill := func(grace time.Duration) {
		x.killed = true
		killing.Go(func() {
			if x.inner == nil {
				x.proc.KillTree(grace)
				return
			}
			// What was started for runs inside ends by itself, with a record; the sweep
			// would kill it.
			x.inner.Stop()
			x.proc.EndTree(grace)
			x.inner.End()
			x.proc.Sweep()
		})
	}
	for waiting := true; waiting; {
		select {
		case <-x.proc.Done():
			waiting = false
		case <-timer:
			fired, timer = true, nil
			x.note("timeout", limit.Milliseconds())
			kill(x.plan.Grace())
		case <-interrupted:
			kill(0)
		}
	}
	exit, werr := x.proc.Wait()
	x.ran = time.Since(x.began)
	for _, s := range x.streams {
		s.ChildEnded()
	}
	// The reader of our output may be slow for good reasons; only a run that was
	// ended on purpose does not wait for it.
	for _, s := range x.streams {
		var patience <-chan time.Time
		if x.killed {
			patience = time.After(drive.HeldGrace)
		}
		for waiting := true; waiting; {
			select {
			case <-s.Done:
				waiting = false
			case <-patience:
				waiting = false
			case <-timer:
				fired, timer, patience = true, nil, time.After(drive.HeldGrace)
				x.note("timeout", limit.Milliseconds())
			case <-interrupted:
				patience = time.After(0)
			}
		}
	}
	killing.Wait()
	if x.inner != nil {
		x.inner.End()
	}
	tree := x.proc.Sweep()
	x.status.Tree = &tree
	x.network.Settle()
	x.outOfMemory = x.proc.OutOfMemory()
	x.settleProtected(x.proc.Settlement())
	x.staged.Ended()
	if x.plan.Steps[0].Executable.ScriptChanged() {
		x.note("script_changed_while_running", x.plan.Steps[0].ID.Canonical)
	}
	if ended := tree.Leftovers - tree.Kept; ended > 0 && !x.killed {
		x.note("leftovers", ended)
	}
	x.binds.Terminal.Restore(exit.Signal != 0)
	x.settleStreams()
	x.settleExit(exit)
	x.denials(exit)
	return x.verdict(exit, werr, fired, limit)
}

// verdict is nil if the exit status is the child's.
func (x *execution) verdict(exit sandbox.Exit, werr error, fired bool, limit time.Duration) error {
	timeout := x.plan.Timeout()
	timeout.Fired = fired
	x.status.Timeout = &timeout
	for _, s := range x.streams {
		if s.Panicked() != nil {
			return fault.New(errcode.FilterFailed, fmt.Sprintf("%s was discarded: its filter failed: %v", s.Name, s.Panicked()))
		}
	}
	switch {
	case fired:
		return fault.New(errcode.Timeout, fmt.Sprintf("timeout after %v: %s was ended", limit, quote.Words(x.plan.Invocation.Words()))).With("limit_ms", limit.Milliseconds()).With("child_exit_code", exit.Code)
	case werr != nil:
		return fault.New(errcode.LostChild, "lost track of the child: "+werr.Error())
	}
	for _, s := range x.streams {
		if err := s.Failure(); err != nil {
			return fault.New(errcode.OutputWrite, s.Name+": "+err.Error()).With("child_exit_code", exit.Code)
		}
	}
	return nil
}

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
