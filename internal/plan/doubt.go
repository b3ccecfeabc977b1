package plan

import (
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
)

// judgeDoubt reads a text that would be allowed once more, with every variable that is
// not set standing for anything. Nothing is what it holds, and so it was read; but who
// wrote `$CMD` or `rm -rf "$DIR/build"` took it to hold something, and a start-up
// file or a later assignment in a file that was not read may give it that. The stricter
// judgement counts.
func (p *judging) judgeDoubt(req policy.Request) {
	if !p.Reading.Unset || p.Decision.Action != policy.Allow {
		return
	}
	steps, edges, err := p.Reading.Doubted()
	if err != nil {
		return // what runs was read; only the doubt was not
	}
	req.Steps, req.Edges = nil, edges
	for _, s := range steps {
		if p.Deferred && s.Known != nil {
			s.RedirectedAs(s.Known)
			s = s.Known
		}
		req.Steps = append(req.Steps, s.Step)
	}
	d := p.judged(req)
	if d.Action >= p.Decision.Action {
		return
	}
	p.Decision.Action, p.Decision.Grants = d.Action, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action != d.Action {
			continue
		}
		if r.Step < len(steps) {
			r.Text += " (" + quote.Words(steps[r.Step].Argv) + ", where a variable is not set)"
		}
		r.Step = 0
		p.Decision.Reasons = append(p.Decision.Reasons, r)
	}
}

// judgeHidden denies a run whose scripts hold what is denied.
func (p *judging) judgeHidden(req policy.Request) {
	if len(p.Reading.Hidden.Steps) == 0 || p.Decision.Action == policy.Deny {
		return
	}
	req.Steps, req.Edges = nil, p.Reading.Hidden.Edges
	for _, s := range p.Reading.Hidden.Steps {
		req.Steps = append(req.Steps, s.Step)
	}
	d := p.Policies.Decide(req)
	if d.Action != policy.Deny {
		return
	}
	p.Decision.Action, p.Decision.Grants = policy.Deny, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action == policy.Deny {
			at := r.Step
			r.Step = 0
			r.Text = "in a script it runs: " + r.Text
			if at < len(p.Reading.Hidden.Steps) {
				p.Reading.Hidden.Owners[at].ShowEffects(p.Reading.Hidden.Steps[at : at+1])
				r.Text += " (" + quote.Words(p.Reading.Hidden.Steps[at].Argv) + ")"
			}
			p.Decision.Reasons = append(p.Decision.Reasons, r)
		}
	}
}
