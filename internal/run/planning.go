package run

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/status"
)

const (
	// orderly is how long planning goes on after a signal: a plan takes milliseconds, and one
	// that gets done leaves a whole record of what was cancelled.
	orderly = 250 * time.Millisecond
	// lastWords bounds the record of a run whose planning was given up: the log may be what
	// planning waits for.
	lastWords = time.Second
)

// making makes the plan beside the caller, who waits no longer than --timeout and a signal
// allow. A plan that is given up, which a fault without an error of making says, still belongs
// to the goroutine that makes it: the caller reads nothing of it. Nothing is started before
// this returns, and nothing here acts afterwards, so that a limit of planning cannot end a
// command.
func (x *execution) making(identified func()) (gaveUp *fault.Fault, made error) {
	defer func() {
		if gaveUp != nil && x.signals != nil {
			x.signals.Close()
		}
	}()
	p := x.plan
	type outcome struct {
		err   error
		panic any
	}
	done := make(chan outcome, 1)
	limit := p.Invocation.Timeout // read before the plan is made beside this
	go func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.err = p.Complete(identified)
	}()
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(time.Until(p.Began.Add(limit)))
		defer t.Stop()
		late = t.C
	}
	watched, signalled, over := x.watched, (<-chan struct{})(nil), (<-chan time.Time)(nil)
	for {
		select {
		case o := <-done:
			if o.panic != nil {
				panic(o.panic)
			}
			return nil, o.err
		case x.signals = <-watched:
			watched, signalled = nil, x.signals.Ended
		case <-signalled:
			signalled, over = nil, time.After(orderly)
		case <-over:
			return fault.From(cancelled(x.signals.Pending())), nil
		case <-late:
			return fault.New(errcode.Timeout, fmt.Sprintf("timeout after %v: the plan of the command was not made in that time, and nothing was started", limit)).
				WithFix("look for a file or a pipe that does not end among what the command reads, or give a longer --timeout", "").With("limit_ms", limit.Milliseconds()), nil
		}
	}
}

// giveUp is the result of a run whose plan was not made in time. The status goes to the
// descriptor only, since where a file may be written is part of the plan. The words of the
// command are not recorded: which of them are secret is not known.
func (r *Result) giveUp(inv plan.Invocation, m caller.Machine, id string, began time.Time, sink *status.Sink, why *fault.Fault) *Result {
	r.fail(why)
	r.Status = status.Document{Kind: status.Kind, State: "failed", Run: id, Argv: []string{}, Origin: "atip-exec", ExitCode: r.ExitCode, Error: r.Fault,
		Timing: &status.Timing{Began: began.UTC().Format(time.RFC3339Nano), PlanUS: time.Since(began).Microseconds()}}
	if inv.Timeout > 0 {
		r.Status.Timeout = &status.Timeout{LimitMS: inv.Timeout.Milliseconds(), Source: "flag", Fired: r.Fault.Code == errcode.Timeout}
	}
	recorded := make(chan string, 1)
	go func() {
		kept := ""
		if dirs, err := m.Dirs(); err == nil {
			if log, err := audit.Open(filepath.Join(dirs.State, "audit")); err == nil {
				cwd, _ := os.Getwd()
				kept, _ = log.Append(map[string]any{"id": id, "kind": "run", "argv": []string{}, "cwd": cwd, "uid": m.UID, "exit": r.ExitCode, "state": "failed",
					"timing": r.Status.Timing, "error": map[string]any{"code": why.Code, "message": "planning was given up"}})
				log.Close()
			}
		}
		recorded <- kept
	}()
	select {
	case kept := <-recorded:
		r.Status.Audit = kept
	case <-time.After(lastWords):
	}
	_ = sink.Write(r.Status)
	return r
}
