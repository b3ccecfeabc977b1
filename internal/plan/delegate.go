package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/policy"
)

// delegate adds the restrictions of a delegation to what is decided. They hold for
// the whole tree of the run: its kernel domain, its environment and its decisions
// come from here, so a child that drops the variable gains nothing by it.
func (p *Plan) delegate(req *policy.Request) error {
	token := p.Machine.Getenv(delegation.Variable)
	if token == "" {
		return nil
	}
	blocks, err := delegation.Chain(p.Dirs.Config, token)
	if err != nil {
		return err
	}
	req.Delegated = true
	for _, b := range blocks {
		r := b.Restrict
		req.Chain = append(req.Chain, policy.Restrict{Profile: r.Profile, Default: r.Default, AllowedTools: r.AllowedTools, DeniedCommands: r.DeniedCommands,
			EffectRestrictions: r.EffectRestrictions, Hosts: r.Hosts, Paths: r.Paths})
	}
	for _, d := range p.Policies.Delegable() {
		req.Chain = append(req.Chain, withinDelegable(d))
		if d.MaxTTL > 0 && time.Until(time.Unix(blocks[0].Exp, 0)) > d.MaxTTL {
			return &approve.TokenError{Why: "it lives longer than the policy lets a delegation"}
		}
		if blocks[0].Depth > d.MaxDepth {
			return &approve.TokenError{Why: "it may be delegated further than the policy lets it"}
		}
	}
	return nil
}

// withinDelegable takes away what the policy lets no delegation carry.
func withinDelegable(d policy.Delegable) policy.Restrict {
	r := policy.Restrict{AllowedTools: d.Tools, Hosts: d.Hosts, Paths: d.Paths}
	if d.Effects == nil {
		return r
	}
	r.EffectRestrictions = map[string]bool{}
	for _, e := range DangerKeys() {
		if name := DangerName(e); !slices.Contains(d.Effects, name) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			// Of reversible the harmless value is "yes".
			r.EffectRestrictions[e.String()] = e == atip.Reversible
		}
	}
	return r
}

// ChainNames is the chain as an approval binds and the audit keeps it.
func (p *Plan) ChainNames() []string {
	token := p.Machine.Getenv(delegation.Variable)
	if token == "" {
		return nil
	}
	blocks, err := delegation.Chain(p.Dirs.Config, token)
	if err != nil {
		return []string{"invalid"}
	}
	var out []string
	for _, b := range blocks {
		out = append(out, strings.TrimSpace(b.Agent+" "+b.Nonce))
	}
	return out
}
