package plan

import (
	"slices"
	"strconv"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// sessionScope is what a grant for a session has to cover to permit this plan, nil if
// only one for the plan itself can, as for what a run inside asks for: each part that asks must be a command that is known
// to the word, runs nobody else's code, and does only what hosts and paths say.
func (p *Plan) sessionScope() *approve.Scope {
	if p.Invocation.Behalf != nil || len(p.Edges) > 0 || p.Decision.Action != policy.Confirm || len(p.Decision.Steps) != len(p.Steps) || p.SessionLabel() == "" {
		return nil
	}
	scope := &approve.Scope{UID: p.Machine.UID, Session: p.SessionLabel(), Agent: p.Agent(), Workspace: p.Workspace, Chain: p.ChainNames(), Credentials: slices.Clone(p.Env.Credentials)}
	for i, d := range p.Decision.Steps {
		if d.Action == policy.Allow {
			continue
		}
		step, ok := scopeOf(p.Steps[i], d.Danger)
		if !ok {
			return nil
		}
		scope.Steps = append(scope.Steps, step)
	}
	for _, r := range p.Decision.Reasons {
		if r.Action == policy.Confirm && (r.Step < 0 || r.Step >= len(p.Decision.Steps) || p.Decision.Steps[r.Step].Action == policy.Allow) {
			return nil // something else asks than a command by itself
		}
	}
	if len(scope.Steps) == 0 {
		return nil
	}
	return scope
}

// scopeOf is the step as a part of a session's scope.
func scopeOf(s *step.Step, danger atip.Set) (approve.ScopeStep, bool) {
	out := approve.ScopeStep{Tool: s.Call.Tool, SHA256: s.ID.Digest, Command: s.Call.Path}
	if s.Missing != nil || s.ID.Digest == "" || s.Certainty() != "exact" || s.RunsCode != policy.CodeNone {
		return out, false
	}
	for _, e := range DangerKeys() {
		if !danger.Has(e) {
			continue
		}
		if name := DangerName(e); slices.Contains(approve.SessionEffects(), name) {
			out.Effects = append(out.Effects, name)
		} else {
			return out, false
		}
	}
	if len(out.Effects) == 0 {
		return out, false // what asks is not an effect
	}
	for _, h := range s.Hosts {
		switch {
		case h.Kind == policy.HostService:
			out.Hosts = append(out.Hosts, "service")
		case h.Kind == policy.HostMetadata, h.Host == "":
			return out, false
		default:
			out.Hosts = append(out.Hosts, h.Host+":"+strconv.Itoa(h.Port))
		}
	}
	if slices.Contains(out.Effects, "network") && len(out.Hosts) == 0 {
		return out, false
	}
	named := false
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Access&(atip.AccessWrite|atip.AccessDelete|atip.AccessExec) == 0 {
			continue
		}
		if r.Abs == "" || r.Class == atip.ClassUnknown {
			return out, false
		}
		out.Paths, named = append(out.Paths, r.Abs), true
	}
	return out, named || !slices.Contains(out.Effects, "delete")
}
