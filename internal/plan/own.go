package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/standin"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// OwnStep is a command of a text that reaches hosts or holds a credential, and therefore runs by
// itself: with a plan, a sandbox and a record of its own, in the place that its stand-in hands on.
// The text that names it is granted none of that.
type OwnStep struct {
	Step        int      `json:"step"` // of the plan
	Argv        []string `json:"argv"`
	Cwd         string   `json:"cwd"`
	File        string   `json:"file"` // that its name leads to
	Net         string   `json:"net"`
	Hosts       []string `json:"hosts,omitempty"`
	Credentials []string `json:"credentials,omitempty"` // variables
	Files       []string `json:"files,omitempty"`       // of credentials
	Exec        string   `json:"exec"`                  // closed or gated
	Rules       []string `json:"rules"`
}

// Standing says of which run a run does one own step.
type Standing struct {
	For   string // the run of the text
	Umask int    // bits that the text's shell has set
	Tmp   string // holds the /tmp of that run; "" if it has the machine's
}

// separable reports whether steps of this text may be runs of their own. Their stand-ins are put
// into the shell by the names of its commands, and the gate tells which of them the shell itself has
// started.
func (p *Plan) separable() bool {
	inv := &p.Invocation
	forced, _ := sandbox.TierByName(p.Policies.Sandbox().Tier)
	return inv.IsShell && p.Reading.Text != "" && p.Reading.Pins && p.LongText == "" && inv.Standing == nil && inv.Fetching == nil && inv.Behalf == nil && inv.Ceiling == nil && !inv.Terminal &&
		!p.imagined && p.gateable() && p.Host.Parts(forced) && p.Machine.Getenv("ATIP_EXEC_SANDBOX") == "" &&
		!slices.ContainsFunc(p.Reading.Steps, func(s *step.Step) bool { return s.Call.Tool == "." || s.Call.Tool == "source" })
}

// separate decides once more for a text whose commands that reach other machines run by themselves,
// where that keeps it from asking: what is left of it then has no host, no credential and no secret.
// Each of those commands must be allowed by itself, and the flows of data between all of them, too.
func (p *judging) separate(req policy.Request) error {
	if p.Decision.Action != policy.Confirm || !p.separable() {
		return nil
	}
	whole, steps := p.Decision, p.Steps
	back := func(err error) error {
		p.Decision, p.Steps = whole, steps
		return err
	}
	own, reasons := p.ownSteps(req)
	if len(own) == 0 {
		return nil
	}
	p.Own = own
	flows := p.Policies.Flows(req)
	p.Steps = p.standIns(steps)
	if p.fedByCode() {
		return back(nil)
	}
	req = p.apartOf(req, p.Steps)
	p.Decision.Decision = p.judged(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	if p.Decision.Action == policy.Confirm {
		if err := p.fetchApart(req); err != nil {
			return back(err)
		}
	}
	g := p.Decision.Grants
	if p.Decision.Action != policy.Allow || flows != policy.Allow || g.Net > policy.NetLoopback || g.Effects.Has(atip.SecretRead) {
		return back(nil)
	}
	p.Decision.Reasons = append(reasons, p.Decision.Reasons...)
	return nil
}

// standIns are the steps of a text with stand-ins for those that are runs of their own.
func (p *judging) standIns(steps []*step.Step) []*step.Step {
	out := slices.Clone(steps)
	apart := false
	for i, s := range steps {
		if len(s.Via) == 0 {
			apart = p.ownOf(s.Argv, s.Cwd) != nil && s.Typed
		}
		if apart {
			out[i] = s.StandIn()
		}
	}
	return out
}

// apartOf is the request for steps of which some are stand-ins. Flows from and to those are judged
// by themselves.
func (p *judging) apartOf(req policy.Request, steps []*step.Step) policy.Request {
	req.Steps = nil
	for _, s := range steps {
		req.Steps = append(req.Steps, s.Step)
	}
	req.Edges = slices.DeleteFunc(slices.Clone(req.Edges), func(e policy.Edge) bool {
		return e.From >= 0 && e.From < len(steps) && steps[e.From].Own || e.To >= 0 && e.To < len(steps) && steps[e.To].Own
	})
	return req
}

// fedByCode reports an own step that gets what code of the text prints, through whatever is between
// them: it could send what that code has read.
func (p *judging) fedByCode() bool {
	is := func(command int, what func(*step.Step) bool) bool {
		return slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Command == command+1 && what(s) })
	}
	flows := p.Reading.Script.Flows
	from := map[int]bool{} // what code prints, and what is made of it
	for _, f := range flows {
		from[f.From] = from[f.From] || is(f.From, p.foreignHere)
	}
	for range flows {
		for _, f := range flows {
			from[f.To] = from[f.To] || from[f.From]
		}
	}
	return slices.ContainsFunc(flows, func(f shell.Flow) bool {
		return from[f.From] && is(f.To, func(s *step.Step) bool { return s.Own })
	})
}

// ownOf is the own step of these very words in this directory, nil for none.
func (d *Decision) ownOf(argv []string, cwd string) *OwnStep {
	for i := range d.Own {
		if slices.Equal(d.Own[i].Argv, argv) && d.Own[i].Cwd == cwd {
			return &d.Own[i]
		}
	}
	return nil
}

// OwnStep is the own step of these very words in this directory, nil for none.
func (p *Plan) OwnStep(argv []string, cwd string) *OwnStep { return p.Decision.ownOf(argv, cwd) }

// ownSteps are the commands of a text that can be runs of their own, each judged as one, with the
// reasons for it. One that needs approval is none.
func (p *judging) ownSteps(req policy.Request) (own []OwnStep, reasons []policy.Reason) {
	for i, s := range p.Steps {
		if !s.Typed || len(s.Via) > 0 || s.Certainty() == "opaque" {
			continue
		}
		n := i + 1
		for n < len(p.Steps) && len(p.Steps[n].Via) > 0 {
			n++
		}
		if !slices.ContainsFunc(p.Steps[i:n], func(s *step.Step) bool { return s.Call.Effects[atip.Network].Value != atip.No }) || slices.ContainsFunc(p.Steps[i:n], p.foreignHere) {
			continue
		}
		// In its place in the text first: what an earlier part configures is known here only.
		here := req
		here.Steps, here.Edges = nil, nil
		for _, part := range p.Steps[i:n] {
			here.Steps = append(here.Steps, part.Step)
		}
		if p.judged(here).Action != policy.Allow {
			continue
		}
		if one, why := p.alone(i, s); one != nil {
			own, reasons = append(own, *one), append(reasons, why...)
		}
	}
	return own, reasons
}

// foreignHere reports a step that runs code which is not a known tool's, and a shell: what it is told
// could hand anything to anybody.
func (p *judging) foreignHere(s *step.Step) bool {
	return s.Foreign() || step.IsShell(s.ID.Effective) || s.Call.Provenance.Rank < atip.Org || p.startsWritten(s)
}

// alone judges one command of a text as a run of its own, nil if it is none: because it asks, or
// because it needs no more than the text has.
func (p *judging) alone(i int, s *step.Step) (*OwnStep, []policy.Reason) {
	if StdinKind(p.Machine.Stdin) == "tty" && p.Invocation.Stdin != "null" && s.Call.Interactive.Stdin != "none" {
		return nil, nil // it would read the terminal, which the text has
	}
	sub := New(p.OwnInvocation(s.Argv, s.Cwd), p.Machine)
	defer sub.Close()
	sub.Place, sub.Rules, sub.Host, sub.files = p.Place.from(s.Cwd), p.Rules, p.Host, p.files
	if sub.files == nil {
		sub.files = sandbox.HostFiles()
	}
	if err := stages(sub.identify, sub.decide); err != nil || sub.Decision.Action != policy.Allow || s.Missing == nil && sub.Refusal() != nil || slices.ContainsFunc(sub.Steps, (&judging{Plan: sub}).foreignHere) {
		return nil, nil
	}
	if sub.entitle() != nil || !sub.Rights.held || sub.Rights.closed == nil {
		return nil, nil
	}
	one := &OwnStep{Step: i, Argv: s.Argv, Cwd: s.Cwd, File: s.ID.Canonical, Net: sub.Decision.Grants.Net.String(), Hosts: sub.Decision.Grants.Hosts, Credentials: sub.Env.Credentials, Files: sub.CredentialFiles, Exec: "closed", Rules: sub.RuleNames()}
	if s.ID.Place != "" {
		one.File = s.ID.Place
	}
	if sub.Gated() {
		one.Exec = "gated"
	}
	why := slices.Clone(sub.Decision.Reasons)
	for k := range why {
		why[k].Step = i
	}
	return one, why
}

// OwnInvocation is the invocation of an own step.
func (p *Plan) OwnInvocation(argv []string, cwd string) Invocation {
	inv := &p.Invocation
	return Invocation{Argv: argv, Directory: cwd, CI: inv.CI, Policies: inv.Policies, Profiles: inv.Profiles, Timeout: inv.Timeout, KillAfter: inv.KillAfter, Version: inv.Version, Standing: &Standing{For: p.Run}}
}

// StartedArgv is what is started: with stand-ins, the shell is told of them before its text.
func (p *Plan) StartedArgv() []string {
	if len(p.Own) == 0 {
		return p.Argv
	}
	var b strings.Builder
	for _, name := range p.ownNames() {
		b.WriteString("hash -p " + quote.Literal(p.Machine.Self) + " " + quote.Literal(name) + "; ")
	}
	argv := slices.Clone(p.Argv)
	text := p.Reading.Text
	argv[slices.Index(argv, text)] = text[:p.Reading.Pinned] + b.String() + text[p.Reading.Pinned:]
	return argv
}

// standVariables tell stand-ins which descriptor leads to this run. Nothing is believed because of
// them.
func (p *Plan) standVariables(set map[string]string, fd int) {
	if len(p.Own) == 0 {
		return
	}
	text := "fd:" + strconv.Itoa(fd)
	for _, name := range p.ownNames() {
		text += "/" + name
	}
	set[standin.Variable] = text
}

// ownNames are the names by which the text calls its own steps.
func (p *Plan) ownNames() (names []string) {
	for _, o := range p.Own {
		if !slices.Contains(names, o.Argv[0]) {
			names = append(names, o.Argv[0])
		}
	}
	return names
}
