package plan

import (
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// gateable reports whether this run's starts can be decided when they happen. A run inside
// another has the gate of that one, if it has any.
func (p *Plan) gateable() bool {
	sp := p.Policies.Sandbox()
	return p.Host.Seccomp && p.Host.ABI > 0 && sp.Confine != "none" && sp.Gate != "off" && gate.Supported() && !p.Inside()
}

// deferUnknown decides once more without the words that are not known, where they alone
// keep the plan from being allowed. Each program that they start is decided when it starts.
func (p *judging) deferUnknown(req policy.Request) {
	if p.Decision.Action == policy.Allow || !slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Known != nil }) {
		return
	}
	whole, steps := p.Decision, p.Steps
	p.Steps = slices.Clone(steps)
	req.Steps = slices.Clone(req.Steps)
	for i, s := range steps {
		if s.Known == nil {
			continue
		}
		s.RedirectedAs(s.Known)
		s.Known.AtExec = true
		p.Steps[i], req.Steps[i] = s.Known, s.Known.Step
	}
	p.Deferred = true
	p.Decision.Decision = p.Policies.Decide(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	if p.Decision.Action != policy.Allow {
		p.Decision, p.Steps = whole, steps
	}
}

// Gated reports whether the starts of this run are decided when they happen: some were left
// for that, or documents restrict what code of the workspace may start.
func (p *Plan) Gated() bool {
	return p.Deferred || p.Policies.Restricts() && p.Starts && p.forks() && p.gateable()
}

// forks reports whether something of the run may start programs.
func (p *Plan) forks() bool {
	return slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Call.Effects[atip.Subprocess].Value != atip.No })
}
