// Package run carries out a plan: it asks who has to be asked, starts the command confined, passes on
// its streams and signals, and records how it ended.
package run

import (
	"encoding/json"
	"io"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/permit"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/priming"
	"github.com/atip-dev/atip-exec/internal/record"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Output is where a run writes and whom it tells.
type Output struct {
	Stdout, Stderr io.Writer
	Start          func(Started) // the child runs; nil to not be told
	Wanted         func() bool   // asked when there is a plan, before anything is done; false leaves no trace of it. nil for yes
	Note           func(status.Note)
	Warn           func(string)
}

// Started is told once the child runs.
type Started struct {
	V         int           `json:"v"`
	Run       string        `json:"run"`
	Argv      []string      `json:"argv"`
	Cwd       string        `json:"cwd"`
	Pid       int           `json:"pid"`
	Stdin     string        `json:"stdin"`
	Terminal  string        `json:"terminal"`
	TimeoutMS int64         `json:"timeout_ms"`
	Decision  string        `json:"decision"`
	Tier      string        `json:"tier"`
	Gaps      []sandbox.Gap `json:"gaps"`
}

// Result is how a run ended.
type Result struct {
	ExitCode int
	Fault    *fault.Fault // why the exit status is ours; nil if it is the child's
	Status   status.Document
	Plan     *plan.Plan
	Reports  []filter.Report               // stdout, stderr
	Bounds   map[string]filter.BoundReport // of the streams that were bounded
	Duration time.Duration

	kept bool // of a run for one inside: that one does it itself
}

// Run carries out one invocation from end to end. It never panics and always
// writes the status that was asked for.
func Run(inv plan.Invocation, m caller.Machine, out Output) *Result {
	r := &Result{}
	p := plan.New(inv, m)
	sink, err := status.Open(p.Run, inv.StatusFD, inv.StatusFile)
	if err != nil {
		return r.fail(err)
	}
	x := &execution{out: out, watched: make(chan *drive.Signals, 1), collected: make(chan error, 1)}
	// Taking over signals costs threads and a handshake for each; it is done while
	// the plan is made, and a signal that comes meanwhile cancels the run.
	go func() { x.watched <- drive.WatchSignals() }()
	p.Starts, x.plan = true, p
	x.permission = permit.New(p, x.warn, x.clean, x.cancelledMeanwhile)
	gaveUp, err := x.making(func() {
		// A private root is made elsewhere, and its rules with it.
		if p.Prepared != nil && p.Policies.Sandbox().Tier != sandbox.T3.String() {
			p.Prepared.Rules(p.Subprocess() == atip.No)
		}
		x.collecting = true
		go func() { x.collected <- x.collect() }()
	})
	if gaveUp != nil {
		return r.giveUp(inv, m, p.Run, p.Began, sink, gaveUp)
	}
	r.Plan = p
	defer p.Close()
	if serr := beginStatus(p, sink); serr != nil && err == nil {
		err = serr
	}
	if err == nil {
		err = p.StatusOutside(sink, p.Decision.Action == policy.Allow)
	}
	if err == nil {
		err = p.Refusal()
	}
	if f := fault.From(err); inv.RefuseOnly && (f == nil || !f.Refusal() || f.Code == errcode.ApprovalRequired) {
		if err != nil {
			r.fail(err)
		}
		return r // neither asked about nor recorded: the run of the command does that
	}
	if out.Wanted != nil && !out.Wanted() {
		r.kept = true
		return r
	}
	x.status = r.base(p)
	if inv.Behalf != nil && len(p.Decision.Steps) > 0 {
		if r.kept, err = p.Answerable(err); r.kept {
			return r
		}
	}
	err = x.carryOut(sink, err)
	if r.kept = x.kept; r.kept {
		return r
	}
	r.Status, r.Reports, r.Bounds, r.Duration = x.status, x.reports, x.bounds, x.ran
	r.settle(err)
	if werr := x.record(r); werr != nil {
		r.Fault, r.ExitCode = fault.From(werr), fault.From(werr).Exit
		r.Status.Error, r.Status.ExitCode, r.Status.Origin = r.Fault, r.ExitCode, "atip-exec"
	}
	if sink.Wanted() {
		r.Status.Argv = x.cleanAll(r.Status.Argv)
		if x.cleaning != nil {
			r.Status.Filter = record.Filter(x.cleaning, x.reports, x.bounds)
		}
	}
	if werr := sink.Write(r.Status); werr != nil && r.Fault == nil {
		r.Fault, r.ExitCode = fault.From(werr), fault.From(werr).Exit
	}
	return r
}

// carryOut asks whoever has to be asked and runs the command.
func (x *execution) carryOut(sink *status.Sink, refusal error) error {
	p := x.plan
	replayed, err := x.claim(refusal)
	defer x.releaseKey()
	if err != nil {
		return x.permission.Refuse(err)
	}
	if replayed {
		return nil
	}
	handed, err := x.hand(refusal)
	if !handed {
		if err = x.permission.Permit(err); err == nil && x.permission.Given() {
			err = p.StatusOutside(sink, true)
		}
		if err != nil {
			// A refusal is one line on stderr; warnings go into its details.
			return x.permission.Refuse(err)
		}
		for _, w := range p.Warnings {
			x.warn(w)
		}
		x.primes = priming.New(p, x.warn, x.clean)
		if err = x.primes.Ask(); err == nil {
			err = x.holdKey()
		}
		x.out.Stdout = x.primes.Watch(x.out.Stdout)
		if err == nil {
			err = x.fetchApart()
		}
		if err == nil {
			err = x.run()
		}
		if c := x.status.Child; c != nil && c.ExitCode == 0 && !x.killed {
			x.primes.Keep()
		}
	}
	if err != nil && err == x.collectErr {
		return err // what is wrong with the redaction itself holds no word of the command
	}
	if err != nil {
		// The message may quote the command line.
		return fault.From(err).Redact(x.clean)
	}
	return nil
}

func (r *Result) fail(err error) *Result {
	r.Fault = fault.From(err)
	r.ExitCode = r.Fault.Exit
	return r
}

// settle turns what happened into the exit status and the state of the run.
func (r *Result) settle(err error) {
	s := &r.Status
	if err != nil {
		r.fail(err)
		s.State, s.Origin, s.Error, s.ExitCode = "failed", "atip-exec", r.Fault, r.ExitCode
		if s.Child == nil && r.Fault.Exit == 77 {
			s.State = "refused"
		}
		return
	}
	s.State, s.Origin = "finished", "child"
	r.ExitCode, s.ExitCode = s.Child.ExitCode, s.Child.ExitCode
}

// base is the status of a plan before anything ran.
func (r *Result) base(p *plan.Plan) status.Document {
	s := status.Document{Kind: status.Kind, State: "failed", Run: p.Run, Argv: p.Invocation.Words(), Cwd: p.Cwd, NoWorkspace: p.NoWorkspace,
		Timing: &status.Timing{Began: p.Began.UTC().Format(time.RFC3339Nano), PlanUS: p.Took.Microseconds()}}
	if len(p.Steps) == 0 {
		return s
	}
	id := p.Steps[0].ID
	s.Tool = &status.Tool{Path: id.Canonical, SHA256: id.Digest}
	if len(p.Decision.Steps) > 0 {
		s.Decision = &status.Decision{Action: p.Decision.Action.String(), Rules: p.RuleNames()}
		s.Sandbox = p.Receipt()
		s.Env = &status.Env{Dropped: p.Env.Dropped, Credentials: p.Env.Credentials}
	}
	return s
}

// beginStatus makes sure that the status can be written later, if the place is allowed.
func beginStatus(p *plan.Plan, s *status.Sink) error {
	if s.File() == "" || p.OwnRefused {
		return nil
	}
	if !p.OwnJudged {
		if why := p.StatusClass(s.File()); why != "" {
			return fault.New(errcode.StatusWrite, "--status-file: "+s.File()+" is not written: "+why)
		}
	}
	return s.Begin()
}

// ReportUsage writes the status of a command line that could not be parsed. The
// error itself is on stderr already, so a status that cannot be written is lost.
func ReportUsage(file string, argv []string, f *fault.Fault) {
	if file == "" {
		return
	}
	s, err := status.Open("usage", 0, file)
	if err != nil {
		return
	}
	at, err := plan.Locate(plan.Invocation{}, caller.Here())
	if err != nil || at.StatusClass(s.File()) != "" || s.Hold() != nil {
		return
	}
	_ = s.Write(status.Document{Kind: status.Kind, State: "failed", Origin: "atip-exec", ExitCode: f.Exit, Error: f, Argv: argv,
		Timing: &status.Timing{Began: time.Now().UTC().Format(time.RFC3339Nano)}})
}

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
