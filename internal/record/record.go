// Package record shows a plan, and what its run did, as the audit keeps them.
package record

import (
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/cleaning"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// Of is what is known of a run before its command ends. clean takes secrets out of words; budget is
// what was charged, nil for nothing.
func Of(p *plan.Plan, kind string, clean func(string) string, budget map[string]any) map[string]any {
	rec := map[string]any{"kind": kind, "argv": marshal.CleanAll(p.Invocation.Words(), clean), "cwd": p.Cwd, "uid": p.Machine.UID,
		"session": p.SessionLabel(), "agent": p.Agent()}
	if chain := p.ChainNames(); chain != nil {
		rec["chain"] = chain
	}
	if len(p.Steps) > 0 {
		main := p.Steps[0]
		rec["tool"] = map[string]any{"path": main.ID.Canonical, "place": main.ID.Place, "sha256": main.ID.Digest, "trust": main.Verdict, "metadata": main.Call.Provenance}
	}
	if len(p.Decision.Steps) > 0 {
		rec["decision"] = decision(p, clean, budget)
		rec["sandbox"] = p.Enforced()
		env := map[string]any{"passed": p.Env.Passed, "dropped": p.Env.Dropped, "credentials": p.Env.Credentials}
		if len(p.HandedDown) > 0 {
			env["handed_down"] = p.HandedDown
		}
		rec["env"] = env
	}
	if f := p.Invocation.Fetching; f != nil {
		rec["fetches_for"] = f.For
	}
	if s := p.Invocation.Standing; s != nil {
		rec["own_step_of"] = s.For
	}
	if b := p.Invocation.Behalf; b != nil {
		rec["asked_by"] = b.Run
	}
	return rec
}

func decision(p *plan.Plan, clean func(string) string, budget map[string]any) map[string]any {
	var steps []map[string]any
	for i, s := range p.Steps {
		step := map[string]any{"argv": marshal.CleanAll(s.Argv, clean), "via": s.Via, "tool": s.Call.Tool, "sha256": s.ID.Digest, "path": s.Call.Path, "exact": s.Call.Exactness, "effects": plan.ProvenanceOf(s), "resources": s.Call.Resources}
		if s.AtExec || s.Own {
			step["decided"] = s.DecidedAt()
		}
		if i < len(p.Decision.Steps) {
			step["rules"], step["lifted"] = p.Decision.Steps[i].Rules, p.Decision.Steps[i].Lifted
		}
		steps = append(steps, step)
	}
	rec := map[string]any{"action": p.Decision.Action, "rules": p.RuleNames(), "steps": steps, "policy": p.Policies.Sources(), "profile": p.Policies.Profile(), "switches": p.Policies.Switches(),
		"enforce": map[string]bool{"files": p.CanEnforce.Files, "net": p.CanEnforce.Net, "secrets": p.CanEnforce.Secrets, "delete": p.CanEnforce.DeleteStrict}, "us": p.Took.Microseconds()}
	if len(p.Own) > 0 {
		var own []map[string]any
		for _, o := range p.Own {
			own = append(own, map[string]any{"argv": marshal.CleanAll(o.Argv, clean), "cwd": o.Cwd, "net": o.Net, "hosts": o.Hosts, "credentials": o.Credentials, "files": o.Files, "exec": o.Exec, "rules": o.Rules})
		}
		rec["own_steps"] = own
	}
	var edges []map[string]any
	for _, e := range p.Edges {
		edges = append(edges, map[string]any{"from": e.From, "to": e.To, "kind": e.Kind})
	}
	if edges != nil {
		rec["edges"] = edges
	}
	if budget != nil {
		rec["budget"] = budget
	}
	return rec
}

// Filter is what the filters of a run did. c is nil if the run failed before there were any.
func Filter(c *cleaning.Cleaning, reports []filter.Report, bounds map[string]filter.BoundReport) map[string]any {
	if c == nil {
		c = &cleaning.Cleaning{}
	}
	rec := map[string]any{"known": map[string]any{"loaded": c.Known.Loaded, "skipped": len(c.Known.Skipped), "dropped": c.Known.Dropped, "unreadable": c.Known.Unreadable}}
	for i, report := range reports {
		rec[[...]string{"stdout", "stderr"}[i&1]] = report
	}
	if c.Off {
		rec["redaction"] = "off"
	}
	if len(bounds) > 0 {
		rec["bounded"] = bounds
	}
	return rec
}
