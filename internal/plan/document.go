package plan

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// DangerKeys are the effects of a plan document in their order; Reversible stands
// for "irreversible", a danger when reversible is stated "no".
func DangerKeys() []atip.Effect {
	return []atip.Effect{atip.Read, atip.Write, atip.Delete, atip.Network, atip.Subprocess, atip.Destructive, atip.Reversible, atip.Billable, atip.Idempotent,
		atip.SecretRead, atip.Privileged, atip.Persistence, atip.RemoteMutation, atip.ExecOpaque}
}

// DangerName is the name of an effect in plans and grants: "irreversible" for Reversible.
func DangerName(e atip.Effect) string {
	if e == atip.Reversible {
		return "irreversible"
	}
	return e.String()
}

// DangersOf names what of a set is a danger.
func DangersOf(set atip.Set) []string {
	out := []string{}
	for _, e := range DangerKeys() {
		if set.Has(e) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			out = append(out, DangerName(e))
		}
	}
	return out
}

// dangers lists the effects of a step under their names in plans.
func dangers(s *step.Step) map[string]any {
	out := map[string]any{}
	for _, e := range DangerKeys() {
		out[DangerName(e)] = s.Value(e).String()
	}
	return out
}

// ProvenanceOf lists the stated effects with where they come from.
func ProvenanceOf(s *step.Step) map[string]atip.Fact {
	out := map[string]atip.Fact{}
	for _, e := range DangerKeys() {
		if f := s.Call.Effects[e]; f.Value != atip.Unknown {
			out[e.String()] = f
		}
	}
	return out
}

// StepDocument is one step of a plan document.
type StepDocument struct {
	Argv       []string             `json:"argv"`
	Via        []string             `json:"via,omitempty"`
	Cwd        string               `json:"cwd"`
	Tool       string               `json:"tool"`
	Command    []string             `json:"command"`
	Effects    map[string]any       `json:"effects"`
	Provenance map[string]atip.Fact `json:"provenance"`
	Resources  []atip.Resource      `json:"resources"`
	Confidence string               `json:"confidence"` // exact, bounded, opaque
	RunsCode   policy.CodeKind      `json:"runsCode"`
	Action     policy.Action        `json:"action"`
	Why        []string             `json:"why"`
	Options    []atip.OptionUse     `json:"options"`
	Unknown    []string             `json:"unknownOptions,omitempty"`
	Arguments  []atip.Positional    `json:"positionals"`
	Metadata   atip.Provenance      `json:"metadata"`
	Executable trust.Identity       `json:"executable"`
	Trust      trust.Verdict        `json:"trust"`
	Installed  bool                 `json:"installed"`
	Decided    string               `json:"decided"` // plan, or exec where words are decided when it starts
	// MetadataTrust is the verdict on the document; nil for none, and for one of our own.
	MetadataTrust *trust.Verdict `json:"metadataTrust,omitempty"`
}

// Document is a plan as JSON, "atip-exec.plan/1". docs/plan.md describes it.
type Document struct {
	Kind         string          `json:"kind"`
	ID           any             `json:"id,omitempty"`
	Decision     policy.Action   `json:"decision"`
	Argv         []string        `json:"argv"`
	Cwd          string          `json:"cwd"`
	Workspace    string          `json:"workspace"`
	NoWorkspace  string          `json:"noWorkspace,omitempty"` // why there is none
	Steps        []StepDocument  `json:"steps"`
	Reasons      []policy.Reason `json:"reasons"`
	Alternatives []string        `json:"alternatives,omitempty"`
	Lifted       []policy.Lift   `json:"lifted,omitempty"` // rules that others set aside
	Grants       []string        `json:"grants"`           // dangers that the run as a whole is granted, or would be
	Sandbox      sandbox.Receipt `json:"sandbox"`
	Trust        TrustDocument   `json:"trust"`
	Environment  EnvDocument     `json:"environment"`
	Delegation   []string        `json:"delegation,omitempty"` // label and number of each block of the token, outermost first
	TimeoutMS    int64           `json:"timeout_ms"`
	Policy       any             `json:"policy"`
	Profile      string          `json:"profile"`
	Fetches      []*fetch.Work   `json:"fetches,omitempty"` // what a run of its own fetches before
	Pending      []string        `json:"pending"`
	Warnings     []string        `json:"warnings"`
}

// TrustDocument is the verdict on what would be started.
type TrustDocument struct {
	trust.Verdict
	Digest string `json:"sha256,omitempty"`
	Path   string `json:"path,omitempty"`
}

// EnvDocument names the variables that are passed and dropped, never their values.
type EnvDocument struct {
	Passed      []string `json:"passed"`
	Dropped     []string `json:"dropped"`
	Credentials []string `json:"credentials"`
}

// Document renders the plan for machines.
func (p *Plan) Document() Document {
	d := Document{Kind: Kind, Decision: p.Decision.Action, Argv: p.Invocation.Words(), Cwd: p.Cwd, Workspace: p.Workspace, NoWorkspace: p.NoWorkspace, Steps: []StepDocument{},
		Reasons: p.Decision.Reasons, Alternatives: p.Decision.Alternatives, Lifted: p.Decision.Lifted, Grants: DangersOf(p.Decision.Grants.Effects), Sandbox: p.Receipt(), Fetches: p.Fetches, Pending: append([]string{}, p.pending...),
		Environment: EnvDocument{Passed: p.Env.Passed, Dropped: p.Env.Dropped, Credentials: p.Env.Credentials}, Policy: p.Policies.Sources(), Profile: p.Policies.Profile(), Delegation: p.ChainNames()}
	if d.Reasons == nil {
		d.Reasons = []policy.Reason{}
	}
	// What metadata warns of concerns its author: a plan shows it, a run does not.
	d.Warnings = append([]string{}, p.Warnings...)
	for _, s := range p.Steps {
		for _, w := range s.Call.Warnings {
			d.Warnings = append(d.Warnings, s.Call.Tool+": "+w)
		}
	}
	if len(p.Steps) > 0 {
		d.TimeoutMS = p.Limit().Milliseconds()
		main := p.Steps[0]
		d.Trust = TrustDocument{Verdict: main.Verdict, Digest: main.ID.Digest, Path: main.ID.Canonical}
	}
	for i, s := range p.Steps {
		doc := StepDocument{Argv: s.Argv, Via: s.Via, Cwd: s.Cwd, Tool: s.Call.Tool, Command: s.Call.Path, Effects: dangers(s), Provenance: ProvenanceOf(s),
			Resources: s.Call.Resources, Confidence: s.Certainty(), RunsCode: s.RunsCode, Why: []string{}, Options: s.Call.Options, Unknown: s.Call.UnknownOptions, Arguments: s.Call.Positionals,
			Metadata: s.Call.Provenance, Executable: s.ID, Trust: s.Verdict, Installed: s.Missing == nil, Decided: s.DecidedAt()}
		if s.DocumentVerdict.Reason != "" {
			doc.MetadataTrust = &s.DocumentVerdict
		}
		if doc.Command == nil {
			doc.Command = []string{}
		}
		if doc.Resources == nil {
			doc.Resources = []atip.Resource{}
		}
		if doc.Arguments == nil {
			doc.Arguments = []atip.Positional{}
		}
		if i < len(p.Decision.Steps) {
			doc.Action = p.Decision.Steps[i].Action
		}
		for _, r := range p.Decision.Reasons {
			if r.Step == i {
				doc.Why = append(doc.Why, r.Rule+": "+r.Text)
			}
		}
		d.Steps = append(d.Steps, doc)
	}
	return d
}

// refusedWords bounds the command lines in a refusal, which xargs fills with thousands.
const refusedWords = 256

// StepDetails are the steps as a refusal shows them.
func (p *Plan) StepDetails() []any {
	var out []any
	for _, s := range p.Steps {
		argv := s.Argv
		if len(argv) > refusedWords {
			argv = append(argv[:refusedWords:refusedWords], "…")
		}
		out = append(out, map[string]any{"argv": argv, "tool": s.Call.Tool, "command": s.Call.Path, "effects": dangers(s), "resources": s.Call.Resources})
	}
	return out
}

// Open finds the place of an invocation and the policies in force there, and plans nothing. The
// caller closes the plan.
func Open(inv Invocation, m caller.Machine) (*Plan, error) {
	p := New(inv, m)
	if err := p.settle(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Policies loads every layer that is in force in the current directory.
func Policies(m caller.Machine) (*policy.Set, error) {
	p, err := Open(Invocation{}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Policies, nil
}

// SandboxPolicy is the sandbox object of the policy of this place, as a run would take it.
func SandboxPolicy(m caller.Machine) (sandbox.PolicyProfile, error) {
	set, err := Policies(m)
	if err != nil {
		return sandbox.PolicyProfile{}, err
	}
	return policyProfile(set.Sandbox(), set)
}

// Kind is the kind of a plan document.
const Kind = "atip-exec.plan/1"

// Batch plans many commands and starts none: the way to test a policy over
// thousands of command lines.
type Batch struct {
	Machine caller.Machine
	Settled func(*Plan) // told once for each directory, when its place and rules are known; may be nil

	places map[string]*Plan // what all questions about one directory share
}

// Plan plans like Make; policy, machine and file system are read once for each
// directory, since nothing that a batch does can change them.
func (b *Batch) Plan(inv Invocation) (*Plan, error) {
	place := b.places[inv.Directory]
	if place == nil {
		place = New(inv, b.Machine)
		place.memo = effects.NewMemo()
		if err := stages(place.settle, place.probe); err != nil {
			return nil, err
		}
		if b.places == nil {
			b.places = map[string]*Plan{}
		}
		b.places[inv.Directory] = place
		if b.Settled != nil {
			b.Settled(place)
		}
	}
	p := New(inv, b.Machine)
	p.Place, p.Rules, p.Host, p.files, p.memo, p.Warnings = place.Place, place.Rules, place.Host, place.files, place.memo, slices.Clone(place.Warnings)
	if err := stages(p.identify, p.decide, p.enclose); err != nil {
		p.Close()
		return nil, err
	}
	p.Took = time.Since(p.Began)
	return p, nil
}

// PrimeSession is the label of the session, or else of the process that started us.
func (p *Plan) PrimeSession() string {
	for _, name := range append(SessionVariables(), "BUILDKITE_JOB_ID", "BUILD_ID") {
		if v := p.Machine.Getenv(name); v != "" {
			return v
		}
	}
	return "ppid-" + strconv.Itoa(os.Getppid()) + "-" + parentStarted()
}

// parentStarted tells processes apart that had the same number one after the other.
func parentStarted() string {
	parent, err := procstat.Of(os.Getppid())
	if err != nil {
		return "0"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return parent.Fields[procstat.Start] + "-" + strings.TrimSpace(string(boot))
}

// Identity is the agent and the session that this process belongs to: labels, which give
// no authority.
func Identity(m caller.Machine) (agent, session string) {
	p := &Plan{Machine: m}
	return p.Agent(), p.PrimeSession()
}
