package plan

import (
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
)

// RequestsDir is where requests for an approval wait.
func (p *Plan) RequestsDir() string { return filepath.Join(p.Dirs.State, "requests") }

// GrantsDir is where approvals lie until they are used.
func (p *Plan) GrantsDir() string { return filepath.Join(p.Dirs.State, "grants") }

// Startable is what else keeps a permitted plan from starting.
func (p *Plan) Startable() error {
	if s := p.Steps[0]; s.Missing != nil {
		return s.Missing
	}
	return nil
}

// SaidNo is the refusal of what an approver denied.
func (p *Plan) SaidNo() error {
	return fault.New(errcode.Denied, "denied: the user refused "+quote.Words(p.Invocation.Words())).With("decision", policy.Deny).With("steps", p.StepDetails())
}

// GrantRules is what this plan demands of a grant. What the kernel withholds from the
// run is no danger; what it may do, counts as done.
func (p *Plan) GrantRules() (approve.Rules, error) {
	ap := p.Policies.Approval()
	approvers, err := approversOf(p.Policies, p.Dirs)
	if err != nil {
		return approve.Rules{}, err
	}
	r := approve.Rules{Approvers: approvers, Idempotent: true, Scope: p.sessionScope(), MaxAge: ap.MaxAge}
	for i, s := range p.Steps {
		r.Idempotent = r.Idempotent && s.Call.Effects[atip.Idempotent].Value == atip.Yes
		if i >= len(p.Decision.Steps) {
			break
		}
		danger := p.Decision.Steps[i].Danger
		for _, e := range DangerKeys() {
			if !danger.Has(e) {
				continue
			}
			r.MinLevel = max(r.MinLevel, ap.MinLevel[DangerName(e)])
			r.OnceOnly = r.OnceOnly || onceOnly(e)
		}
	}
	return r, nil
}

// approversOf lists the keys that policy and the user's own list name.
func approversOf(set *policy.Set, dirs place.Dirs) ([]approve.Approver, error) {
	var out []approve.Approver
	for _, a := range set.Approval().Approvers {
		level := a.Level
		if a.Layer != policy.LayerManaged {
			level = approve.UserLevel(a.Key, level)
		}
		out = append(out, approve.Approver{ID: a.ID, Key: a.Key, Level: level})
	}
	if set.UserConfigAccount() && !place.BelowAccount(dirs.Config, os.Geteuid()) {
		return out, nil // whoever starts us could register a key there
	}
	own, err := approve.ReadApprovers(ApproversFile(dirs))
	return append(out, own...), err
}

// ApproversFile is the list of approvers that `atip approve --init` keeps.
func ApproversFile(dirs place.Dirs) string { return filepath.Join(dirs.Config, "approvers.json") }

// Approvers lists whose grants count here.
func Approvers(m caller.Machine) ([]approve.Approver, error) {
	p, err := Open(Invocation{}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return approversOf(p.Policies, p.Dirs)
}

// MaxGrantAge is how long a policy lets a grant count at most, 0 if none says so.
func MaxGrantAge(m caller.Machine) (time.Duration, error) {
	set, err := Policies(m)
	if err != nil {
		return 0, err
	}
	return set.Approval().MaxAge, nil
}

// onceOnly names the dangers that are permitted one run at a time.
func onceOnly(e atip.Effect) bool {
	switch e {
	case atip.Destructive, atip.Reversible, atip.Billable, atip.SecretRead, atip.Privileged, atip.Persistence:
		return true
	}
	return false
}

// UnusedGrants lists what a person permitted and no run has used up.
func (p *Plan) UnusedGrants() []approve.Grant {
	rules, err := p.GrantRules()
	if err != nil {
		return nil
	}
	return approve.Pending(p.GrantsDir(), rules.Approvers)
}
