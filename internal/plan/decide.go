package plan

import (
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// judging is a decision that is being made about a plan. What it holds itself is not yet the plan's.
type judging struct {
	*Plan
	Steps []*step.Step
	Decision
}

func (p *Plan) decide() (err error) {
	if p.Decision, p.Steps, err = p.decision(); err == nil {
		p.Warnings = append(p.Warnings, p.Decision.Warnings...)
	}
	return err
}

// decision is what policy says of the steps, and the steps as they were judged. With an error it is
// what was decided until then.
func (p *Plan) decision() (Decision, []*step.Step, error) {
	j := &judging{Plan: p, Steps: p.Steps}
	req := policy.Request{Agent: p.Agent(), Session: p.Machine.Getenv("ATIP_SESSION_ID"), CI: p.InCI(), Workspace: p.Workspace, Cwd: p.Cwd, Now: p.Began, BillableLeft: p.billableBudget(),
		Edges: p.Edges, Ceiling: p.Invocation.Ceiling}
	if sp := p.Policies.Sandbox(); sp.Confine != "none" {
		can := sandbox.Enforceable(p.Host)
		req.Enforce = policy.Enforce{Files: can.Files, Net: can.Net, Secrets: can.Files, DeleteStrict: can.Files && (sp.DeleteStrict || p.strictDelete())}
	}
	for _, s := range j.Steps {
		req.Steps = append(req.Steps, s.Step)
	}
	if err := p.delegate(&req); err != nil {
		return j.Decision, j.Steps, err
	}
	j.CanEnforce, j.chain = req.Enforce, req.Chain
	j.Decision.Decision = j.judged(req)
	j.judgeHidden(req)
	j.judgeDoubt(req)
	if err := j.fetchApart(req); err != nil {
		return j.Decision, j.Steps, err
	}
	j.deferUnknown(req)
	j.judgeOwn(req)
	j.signedMetadata()
	err := j.mayStart()
	if err == nil {
		err = j.onlyApproved()
	}
	return j.Decision, j.Steps, err
}
