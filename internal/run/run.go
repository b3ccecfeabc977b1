package run

import (
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/subpath"
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
	Plan     *Plan
	Reports  []filter.Report               // stdout, stderr
	Bounds   map[string]filter.BoundReport // of the streams that were bounded
	Duration time.Duration

	kept bool // of a run for one inside: that one does it itself
}

// Run carries out one invocation from end to end. It never panics and always
// writes the status that was asked for.
func Run(inv Invocation, m Machine, out Output) *Result {
	r := &Result{}
	p := newPlan(inv, m)
	sink, err := status.Open(p.Run, inv.StatusFD, inv.StatusFile)
	if err != nil {
		return r.fail(err)
	}
	x := &execution{out: out, watched: make(chan *drive.Signals, 1), collected: make(chan error, 1)}
	// Taking over signals costs threads and a handshake for each; it is done while
	// the plan is made, and a signal that comes meanwhile cancels the run.
	go func() { x.watched <- drive.WatchSignals() }()
	p.starts, x.plan = true, p
	gaveUp, err := x.making(func() {
		// A private root is made elsewhere, and its rules with it.
		if p.prepared != nil && p.policies.Sandbox().Tier != sandbox.T3.String() {
			p.prepared.Rules(p.subprocess() == atip.No)
		}
		x.collecting = true
		go func() { x.collected <- x.collect() }()
	})
	if gaveUp != nil {
		return r.giveUp(inv, m, p.Run, p.began, sink, gaveUp)
	}
	r.Plan = p
	defer p.Close()
	if serr := p.beginStatus(sink); serr != nil && err == nil {
		err = serr
	}
	if err == nil {
		err = p.statusOutside(sink, p.Decision.Action == policy.Allow)
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
	if inv.behalf != nil && len(p.Decision.Steps) > 0 {
		if r.kept, err = p.answerable(err); r.kept {
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
		return x.refuse(err)
	}
	if replayed {
		return nil
	}
	handed, err := x.hand(refusal)
	if !handed {
		if err = x.permit(err); err == nil && x.permitted() {
			err = p.statusOutside(sink, true)
		}
		if err != nil {
			// A refusal is one line on stderr; warnings go into its details.
			return x.refuse(err)
		}
		for _, w := range p.Warnings {
			x.warn(w)
		}
		if err = x.prime(); err == nil {
			err = x.holdKey()
		}
		if err == nil {
			err = x.run()
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
	r.ExitCode = s.Child.ExitCode
	s.ExitCode = r.ExitCode
}

// base is the status of a plan before anything ran.
func (r *Result) base(p *Plan) status.Document {
	s := status.Document{Kind: status.Kind, State: "failed", Run: p.Run, Argv: p.inv.words(), Cwd: p.Cwd, NoWorkspace: p.noWorkspace,
		Timing: &status.Timing{Began: p.began.UTC().Format(time.RFC3339Nano), PlanUS: p.took.Microseconds()}}
	if len(p.steps) == 0 {
		return s
	}
	id := p.steps[0].ID
	s.Tool = &status.Tool{Path: id.Canonical, SHA256: id.Digest}
	if len(p.Decision.Steps) > 0 {
		s.Decision = &status.Decision{Action: p.Decision.Action.String(), Rules: p.rules()}
		s.Sandbox = p.receipt()
		s.Env = &status.Env{Dropped: p.env.dropped, Credentials: p.env.credentials}
	}
	return s
}

func (p *Plan) rules() []string {
	rules := []string{}
	for _, reason := range p.Decision.Reasons {
		if !slices.Contains(rules, reason.Rule) {
			rules = append(rules, reason.Rule)
		}
	}
	return rules
}

// statusOutside refuses a status file that the child could write.
func (p *Plan) statusOutside(s *status.Sink, runs bool) error {
	if s == nil || s.File() == "" || !runs {
		return nil
	}
	dir := filepath.Dir(s.File())
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, g := range p.Profile.Write {
		if subpath.Within(dir, g.Path) {
			return fault.New(errcode.FlagValue, "--status-file: the command can write to "+dir).WithFix("name a file outside the workspace, or use --status-fd", "--status-fd 3 3>status.json").With("path", s.File())
		}
	}
	return nil
}

// beginStatus makes sure that the status can be written later, if the place is allowed.
func (p *Plan) beginStatus(s *status.Sink) error {
	if s.File() == "" || p.ownRefused {
		return nil
	}
	if !p.ownJudged {
		if why := p.statusClass(s.File()); why != "" {
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
	p := newPlan(Invocation{}, Here())
	defer p.Close()
	if p.locate() != nil || p.statusClass(s.File()) != "" || s.Hold() != nil {
		return
	}
	_ = s.Write(status.Document{Kind: status.Kind, State: "failed", Origin: "atip-exec", ExitCode: f.Exit, Error: f, Argv: argv,
		Timing: &status.Timing{Began: time.Now().UTC().Format(time.RFC3339Nano)}})
}

// words is the command line of the child as it was typed.
func (inv Invocation) words() []string {
	if inv.Script != "" {
		words := []string{"script"}
		words = append(words, inv.ShellSet...)
		if inv.Script == "-" {
			return append(append(words, "-"), inv.ShellArgs[min(1, len(inv.ShellArgs)):]...)
		}
		return append(words, inv.ShellArgs...)
	}
	if inv.IsShell {
		return append([]string{"-c", inv.Shell}, inv.ShellArgs...)
	}
	return inv.Argv
}

// Granted lists the dangers that the run was granted, under their names in plans.
func (p *Plan) Granted() []string { return dangersOf(p.Decision.Grants.Effects) }

// Tool is the name of the tool that a plan starts, "" if it was not found out.
func (p *Plan) Tool() string {
	if p == nil || len(p.steps) == 0 {
		return ""
	}
	return p.steps[0].Call.Tool
}
