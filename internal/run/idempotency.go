package run

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/status"
)

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
