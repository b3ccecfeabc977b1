package run

import (
	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// dangerKeys are the effects of a plan document in their order; Reversible stands
// for "irreversible", a danger when reversible is stated "no".
func dangerKeys() []atip.Effect {
	return []atip.Effect{atip.Read, atip.Write, atip.Delete, atip.Network, atip.Subprocess, atip.Destructive, atip.Reversible, atip.Billable, atip.Idempotent,
		atip.SecretRead, atip.Privileged, atip.Persistence, atip.RemoteMutation, atip.ExecOpaque}
}

func dangerName(e atip.Effect) string {
	if e == atip.Reversible {
		return "irreversible"
	}
	return e.String()
}

// value is an effect under its danger name: irreversible is the opposite of
// reversible.
func (s *step) value(e atip.Effect) atip.Value {
	v := s.Call.Effects[e].Value
	if e == atip.Reversible {
		switch v {
		case atip.Yes:
			return atip.No
		case atip.No:
			return atip.Yes
		}
		return v
	}
	if v == atip.No && (s.RunsCode != policy.CodeNone || s.Call.Effects[atip.ExecOpaque].Value == atip.Yes) {
		switch e {
		case atip.Write, atip.Delete, atip.Network, atip.Destructive, atip.Billable, atip.SecretRead, atip.Persistence, atip.RemoteMutation:
			// The tool's "no" speaks for the tool, not for the code it is handed.
			return atip.Unknown
		}
	}
	return v
}

// dangersOf names what of a set is a danger.
func dangersOf(set atip.Set) []string {
	out := []string{}
	for _, e := range dangerKeys() {
		if set.Has(e) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			out = append(out, dangerName(e))
		}
	}
	return out
}

// danger lists the effects of a step under their names in plans.
func (s *step) danger() map[string]any {
	out := map[string]any{}
	for _, e := range dangerKeys() {
		out[dangerName(e)] = s.value(e).String()
	}
	return out
}

// provenance lists the stated effects with where they come from.
func (s *step) provenance() map[string]atip.Fact {
	out := map[string]atip.Fact{}
	for _, e := range dangerKeys() {
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
}

// Document is a plan as JSON, "atip-exec.plan/1". docs/plan.md describes it.
type Document struct {
	Kind         string          `json:"kind"`
	ID           any             `json:"id,omitempty"`
	Decision     policy.Action   `json:"decision"`
	Argv         []string        `json:"argv"`
	Cwd          string          `json:"cwd"`
	Workspace    string          `json:"workspace"`
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
	d := Document{Kind: planKind, Decision: p.Decision.Action, Argv: p.inv.words(), Cwd: p.Cwd, Workspace: p.Workspace, Steps: []StepDocument{},
		Reasons: p.Decision.Reasons, Alternatives: p.Decision.Alternatives, Lifted: p.Decision.Lifted, Grants: dangersOf(p.Decision.Grants.Effects), Sandbox: p.receipt(), Pending: append([]string{}, p.pending...),
		Environment: EnvDocument{Passed: p.env.passed, Dropped: p.env.dropped, Credentials: p.env.credentials}, Policy: p.policies.Sources(), Profile: p.policies.Profile(), Delegation: p.chainNames()}
	if d.Reasons == nil {
		d.Reasons = []policy.Reason{}
	}
	// What metadata warns of concerns its author: a plan shows it, a run does not.
	d.Warnings = append([]string{}, p.Warnings...)
	for _, s := range p.steps {
		for _, w := range s.Call.Warnings {
			d.Warnings = append(d.Warnings, s.Call.Tool+": "+w)
		}
	}
	if len(p.steps) > 0 {
		d.TimeoutMS = p.limit().Milliseconds()
		main := p.steps[0]
		d.Trust = TrustDocument{Verdict: main.verdict, Digest: main.id.Digest, Path: main.id.Canonical}
	}
	for i, s := range p.steps {
		doc := StepDocument{Argv: s.argv, Via: s.Via, Cwd: s.Cwd, Tool: s.Call.Tool, Command: s.Call.Path, Effects: s.danger(), Provenance: s.provenance(),
			Resources: s.Call.Resources, Confidence: s.confidence(), RunsCode: s.RunsCode, Why: []string{}, Options: s.Call.Options, Unknown: s.Call.UnknownOptions, Arguments: s.Call.Positionals,
			Metadata: s.Call.Provenance, Executable: s.id, Trust: s.verdict, Installed: s.missing == nil}
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

// confidence joins how well the words of a step are known with how exactly they
// resolved.
func (s *step) confidence() string {
	switch {
	case s.Confidence == policy.Opaque || s.Call.Exactness == atip.Unresolved:
		return "opaque"
	case s.Confidence == policy.Bounded || s.Call.Exactness == atip.Bounded:
		return "bounded"
	}
	return "exact"
}

// refusedWords bounds the command lines in a refusal, which xargs fills with thousands.
const refusedWords = 256

func (p *Plan) stepDetails() []any {
	var out []any
	for _, s := range p.steps {
		argv := s.argv
		if len(argv) > refusedWords {
			argv = append(argv[:refusedWords:refusedWords], "…")
		}
		out = append(out, map[string]any{"argv": argv, "tool": s.Call.Tool, "command": s.Call.Path, "effects": s.danger(), "resources": s.Call.Resources})
	}
	return out
}

// Quote writes words as a shell line would show them.
func Quote(words []string) string { return shell.Quote(words) }
