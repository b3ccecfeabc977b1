// Package run carries out a plan: it asks who has to be asked, starts the command confined, passes on
// its streams and signals, and records how it ended.
package run

import (
	"io"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
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
	r.settle(x, err)
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
func (r *Result) settle(x *execution, err error) {
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
