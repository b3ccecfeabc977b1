package run

import (
	"encoding/json"
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/record"
	"github.com/atip-dev/atip-exec/internal/status"
)

// record writes the audit record of a run, refused or not.
func (x *execution) record(r *Result) error {
	kind := "run"
	if r.Status.State == "refused" {
		kind = "refused"
	}
	if err := x.openLog(); err != nil {
		if r.Fault != nil {
			// Nothing ran, and why is on its way to the caller already.
			return nil
		}
		return err
	}
	defer x.log.Close()
	x.recordInner()
	var static []byte
	if x.described != nil {
		static = <-x.described
	} else {
		static = x.static(kind)
	}
	rec := map[string]any{"exit": r.ExitCode, "state": r.Status.State, "timing": r.Status.Timing, "tree": r.Status.Tree, "filter": record.Filter(x.cleaning, x.reports, x.bounds),
		"started_by": x.status.Tool.HowStarted(), "exec_checked": x.status.Tool.HowChecked()}
	if r.Status.Child != nil {
		rec["child"] = r.Status.Child
		rec["protected"] = x.protected.Receipt()
		if len(x.denied) > 0 {
			rec["denials"] = x.denied
		}
	}
	if x.starts != nil {
		rec["starts"] = x.starts.Record()
	}
	if x.byParent != "" {
		rec["started_by_parent"] = x.byParent
	}
	if x.inner != nil {
		if own := x.inner.OwnRuns(); len(own) > 0 {
			for i := range own {
				own[i].Argv = x.cleanAll(own[i].Argv)
			}
			rec["own_runs"] = own
		}
	}
	if x.primes != nil && len(x.primes.Tools) > 0 {
		rec["prime"] = x.primes.Tools
	}
	if x.staged != nil {
		if u := x.staged.Record(); u != nil {
			rec["undo"] = u
		}
	}
	if x.network != nil {
		rec["network"] = x.network.Report
	}
	if g := x.permission.Record(); g != nil {
		rec["grant"] = g
	}
	if r.Fault != nil {
		rec["error"] = map[string]any{"code": r.Fault.Code, "message": x.clean(r.Fault.Message)}
	}
	id, err := x.log.Append(audit.Encoded{ID: x.plan.Run, Object: x.merge(static, rec)})
	if err != nil && r.Status.Child == nil && r.Fault != nil {
		return nil
	}
	r.Status.Audit = id
	if err == nil {
		x.mark.End()
	}
	return err
}

// static encodes what is known of a record before the child ends.
func (x *execution) static(kind string) []byte {
	raw, err := marshal.JSON(record.Of(x.plan, kind, x.clean, x.budget))
	if err != nil {
		raw, _ = json.Marshal(map[string]any{"kind": kind, "undescribed": err.Error()})
	}
	return x.redacted(raw)
}

// redacted takes secrets out of an encoded object: the arguments are not the only place of
// a record where a word of the command line stands.
func (x *execution) redacted(object []byte) []byte {
	if x.redaction() != nil || x.cleaning.Set == nil {
		return object
	}
	return marshal.Redacted(object, x.clean)
}

// merge adds the fields of rec to an encoded object.
func (x *execution) merge(object []byte, rec map[string]any) []byte {
	more, err := marshal.JSON(rec)
	if err != nil {
		return object
	}
	more = x.redacted(more)
	return append(append(object[:len(object)-1:len(object)-1], ','), more[1:]...)
}

// clean redacts one of our own texts. Without a set, which is the case when the
// run failed before there was one, nothing of the child's words is kept.
func (x *execution) clean(text string) string {
	if err := x.redaction(); err != nil || x.cleaning.Set == nil {
		return "[not recorded: no redaction]"
	}
	out, _ := x.cleaning.Set.String(text)
	return out
}

func (x *execution) cleanAll(words []string) []string { return marshal.CleanAll(words, x.clean) }

func (x *execution) warn(text string) {
	if x.out.Warn != nil {
		x.out.Warn(text)
	}
}

// claim takes the idempotency key of the run, if it has one. Replayed says that an earlier
// run has done the work, and that its output and status are those of this one. A refusal
// that a person could lift does not matter then: nothing is started.
func (x *execution) claim(refusal error) (replayed bool, err error) {
	p := x.plan
	key := p.Invocation.IdempotencyKey
	if key == "" || refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired {
		return false, nil
	}
	wait := idempotency.MaxWait
	if limit := p.Limit(); limit > 0 {
		wait = min(wait, limit)
	}
	c, old, err := idempotency.Take(filepath.Join(p.Dirs.State, "idempotency"), key, p.Fingerprint, p.Run, p.Began, wait)
	x.claimed = c // from here on the end of the run gives the key back
	switch {
	case err != nil || old == nil:
		return false, err
	case old.Finished():
		x.replay(old)
		return true, nil
	case !p.Idempotent():
		return false, fault.New(errcode.IdempotencyUnknown, "an earlier run with this idempotency key was ended before its result was known").With("run", old.Run)
	}
	return false, nil
}

// replay shows what the earlier run showed.
func (x *execution) replay(old *idempotency.Record) {
	x.status.Child = &status.Child{ExitCode: old.ExitCode, Signal: old.Signal}
	x.note("replayed", old.Run)
	_, _ = x.out.Stdout.Write(old.Stdout)
	_, _ = x.out.Stderr.Write(old.Stderr)
	if old.Truncated {
		x.warn("of the output of the earlier run only the first MiB was kept")
	}
}

// holdKey records that the child is about to start, and begins to keep its output.
func (x *execution) holdKey() (err error) {
	if x.claimed != nil {
		x.out.Stdout, x.out.Stderr, err = x.claimed.Start(x.out.Stdout, x.out.Stderr)
	}
	return err
}

// releaseKey records how it ended and gives the key back. What never started leaves nothing.
func (x *execution) releaseKey() {
	c := x.claimed
	if c == nil {
		return
	}
	defer c.Close()
	switch {
	case !c.Started():
	case x.proc == nil:
		c.Forget()
	case x.killed || x.status.Child == nil:
		// Its outcome is not that of the command.
	default:
		if err := c.Finish(x.status.Child.ExitCode, x.status.Child.Signal); err != nil {
			x.warn("the result is not kept under its idempotency key: " + err.Error())
		}
	}
}
