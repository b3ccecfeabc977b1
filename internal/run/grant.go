package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/policy"
)

// MaxWait is the longest that a run waits for a person.
const MaxWait = 10 * time.Minute

// pollEvery is how often a waiting run looks for an answer.
const pollEvery = 200 * time.Millisecond

// grantState is what a run knows of the person that was asked. Nothing of it goes
// into an error: the caller is not told how permission is given.
type grantState struct {
	grant    *approve.Grant // the permission, nil without one
	level    int            // what the approver's word is worth
	lock     string         // the entry of approvals.lock that permits it, "" for none
	request  string
	warnings []string
}

func (p *Plan) requestsDir() string { return filepath.Join(p.dirs.State, "requests") }
func (p *Plan) grantsDir() string   { return filepath.Join(p.dirs.State, "grants") }

// permit looks for a person's permission of a plan that needs one. It returns nil if
// the run may go on, else the refusal.
func (x *execution) permit(refusal error) error {
	f := fault.From(refusal)
	if f == nil || f.Code == errcode.ApprovalRequired {
		if err := x.plan.tmpReachable(); err != nil {
			return err
		}
	}
	if f == nil || f.Code != errcode.ApprovalRequired {
		return refusal
	}
	if err := x.plan.reachable(); err != nil {
		return err
	}
	digest, err := x.plan.digest()
	var unbound *unboundError
	if errors.As(err, &unbound) {
		return fault.New(errcode.Denied, "denied: what "+Quote(x.plan.inv.words())+" sends cannot be told: "+err.Error()).WithFix("name the branches, tags or whole commit ids to send", "git push origin main").With("decision", policy.Deny)
	}
	if err != nil {
		return refusal // what cannot be written down cannot be permitted
	}
	switch found, err := x.find(digest); {
	case err != nil:
		return err
	case found:
		return x.plan.startable()
	}
	switch entry, err := x.plan.locked(x.plan.bound()); {
	case err != nil:
		return err
	case entry != "":
		x.grants.lock = entry
		return x.plan.startable()
	}
	if changed := x.changed(); len(changed) > 0 {
		f = withDetails(x.differs(changed), f)
	}
	if approve.Denied(x.plan.requestsDir(), digest) {
		return x.plan.saidNo()
	}
	if x.plan.inv.Wait > 0 && !x.plan.inCI() {
		return x.await(f, digest)
	}
	return f
}

// startable is what else keeps a permitted plan from starting.
func (p *Plan) startable() error {
	if s := p.steps[0]; s.Missing != nil {
		return s.Missing
	}
	return nil
}

func (p *Plan) saidNo() error {
	return fault.New(errcode.Denied, "denied: the user refused "+Quote(p.inv.words())).With("decision", policy.Deny).With("steps", p.stepDetails())
}

// find looks for a grant of this very plan.
func (x *execution) find(digest string) (bool, error) {
	rules, err := x.plan.grantRules()
	if err != nil {
		return false, err
	}
	g, warnings, err := approve.Find(x.plan.grantsDir(), digest, rules)
	x.grants.warnings = warnings
	if err != nil {
		x.grants.warnings = append(warnings, err.Error())
		return false, nil
	}
	x.grants.grant = g
	for _, a := range rules.Approvers {
		if g != nil && a.ID == g.Approver {
			x.grants.level = a.Level
		}
	}
	return g != nil, nil
}

// grantRules is what this plan demands of a grant. What the kernel withholds from the
// run is no danger; what it may do, counts as done.
func (p *Plan) grantRules() (approve.Rules, error) {
	ap := p.policies.Approval()
	approvers, err := approversOf(p.policies, p.dirs)
	if err != nil {
		return approve.Rules{}, err
	}
	r := approve.Rules{Approvers: approvers, Idempotent: true, Scope: p.sessionScope(), MaxAge: ap.MaxAge}
	for i, s := range p.steps {
		r.Idempotent = r.Idempotent && s.Call.Effects[atip.Idempotent].Value == atip.Yes
		if i >= len(p.Decision.Steps) {
			break
		}
		danger := p.Decision.Steps[i].Danger
		for _, e := range dangerKeys() {
			if !danger.Has(e) {
				continue
			}
			r.MinLevel = max(r.MinLevel, ap.MinLevel[dangerName(e)])
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
func Approvers(m Machine) ([]approve.Approver, error) {
	p := &Plan{machine: m}
	if err := p.locate(); err != nil {
		return nil, err
	}
	defer p.Close()
	if err := p.loadPolicy(); err != nil {
		return nil, err
	}
	return approversOf(p.policies, p.dirs)
}

// MaxGrantAge is how long a policy lets a grant count at most, 0 if none says so.
func MaxGrantAge(m Machine) (time.Duration, error) {
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

// changed says what differs from a plan with the same words that a person permitted.
func (x *execution) changed() []string {
	p := x.plan
	bound := p.bound()
	for _, g := range p.unusedGrants() {
		if r, ok := approve.RequestOf(p.requestsDir(), g.Digest); ok && sameWords(r.Bound["argv"], p.inv.words()) {
			return approve.Changed(r.Bound, bound)
		}
	}
	return nil
}

// unusedGrants lists what a person permitted and no run has used up.
func (p *Plan) unusedGrants() []approve.Grant {
	rules, err := p.grantRules()
	if err != nil {
		return nil
	}
	return approve.Pending(p.grantsDir(), rules.Approvers)
}

func sameWords(v any, words []string) bool {
	list, ok := v.([]any)
	if !ok || len(list) != len(words) {
		return false
	}
	for i := range words {
		if list[i] != any(words[i]) {
			return false
		}
	}
	return true
}

// ask leaves the request where a person can find it.
func (x *execution) ask(f *fault.Fault) *fault.Fault {
	p := x.plan
	bound := p.bound()
	if p.inCI() {
		// Nobody answers there, and what is kept would be in the way of others.
		if digest, err := LockDigest(bound); err == nil && p.inv.behalf == nil {
			f.With("lockDigest", digest)
		}
		f.Message += "; in CI no request is kept"
		return f
	}
	known := false
	if digest, err := approve.Digest(bound); err == nil {
		old, ok := approve.RequestOf(p.requestsDir(), digest)
		known = ok && time.Now().Before(old.Expires)
	}
	var granted []string
	for _, g := range p.unusedGrants() {
		granted = append(granted, g.Digest)
	}
	id, replaced, err := approve.WriteRequest(p.requestsDir(), approve.Request{Bound: bound, Display: x.display(f.Message), Requester: p.requester()}, granted...)
	if err != nil {
		if p.inside() {
			return f // nobody expects a request from in here
		}
		// The refusal stands either way; only nobody can be asked.
		return f.With("requestError", err.Error())
	}
	x.grants.request = id
	if !known {
		x.notify()
	}
	if len(replaced) > 0 {
		f.Message += "; this request takes the place of " + strings.Join(replaced, ", ")
		f.With("replaced", replaced)
	}
	return f.With("requestId", id)
}

// await asks and waits for the answer.
func (x *execution) await(f *fault.Fault, digest string) error {
	p := x.plan
	if x.signals == nil {
		x.signals = <-x.watched
	}
	x.refuse(f)
	x.warn("waits up to " + p.inv.Wait.String() + " for approval, request " + x.grants.request)
	deadline := time.Now().Add(p.inv.Wait)
	for time.Now().Before(deadline) {
		time.Sleep(min(pollEvery, time.Until(deadline)))
		if sig := x.signals.Pending(); sig != nil {
			return cancelled(sig)
		}
		if approve.Denied(p.requestsDir(), digest) {
			return p.saidNo()
		}
		switch found, err := x.find(digest); {
		case err != nil:
			return err
		case found:
			return x.unchanged(digest)
		}
	}
	return withDetails(fault.New(errcode.NoAnswer, "approval required: "+Quote(p.inv.words())+" was not answered in "+p.inv.Wait.String()), f)
}

// withDetails adds the details of another fault to those of f.
func withDetails(f, from *fault.Fault) *fault.Fault {
	for k, v := range from.Details {
		if f.Details[k] == nil {
			f.With(k, v)
		}
	}
	return f
}

// unchanged plans again after a wait: the world had time to change.
func (x *execution) unchanged(digest string) error {
	again, err := MakePlan(x.plan.inv, x.plan.machine)
	if err != nil {
		x.grants.grant = nil
		return err
	}
	defer again.Close()
	now, err := again.digest()
	if again.Decision.Action == policy.Deny {
		x.grants.grant = nil
		return again.Refusal()
	}
	if err != nil || now != digest {
		x.grants.grant = nil
		return x.differs(approve.Changed(x.plan.bound(), again.bound()))
	}
	return x.plan.startable()
}

func (x *execution) differs(changed []string) *fault.Fault {
	return fault.New(errcode.DecisionChanged, Quote(x.plan.inv.words())+" is not the approved command any more: "+strings.Join(changed, ", ")+" changed").With("changed", changed)
}

// spend uses up the permission just before the start, if everything is still as it
// was permitted. Of two runs at once one gets it.
func (x *execution) spend() error {
	p := x.plan
	g := x.grants.grant
	if g == nil {
		return x.stillLocked()
	}
	if g.Kind == "session" {
		return nil // it was found to cover this very plan, which nothing has changed since
	}
	digest, err := p.digest()
	if err != nil || digest != g.Digest {
		x.grants.grant = nil
		var changed []string
		if r, ok := approve.RequestOf(p.requestsDir(), g.Digest); ok {
			changed = approve.Changed(r.Bound, p.bound())
		}
		return x.refuse(x.differs(changed))
	}
	if err := g.Spend(x.plan.grantsDir()); err != nil {
		x.grants.grant = nil
		if errors.Is(err, approve.ErrSpent) {
			return x.refuse(p.Refusal())
		}
		return fault.New(errcode.AuditWrite, err.Error())
	}
	if g.Kind == "once" {
		approve.Done(p.requestsDir(), g.Digest)
	}
	return nil
}

// stillLocked looks at the lock again, with the files as they are now.
func (x *execution) stillLocked() error {
	if x.grants.lock == "" {
		return nil
	}
	entry, err := x.plan.locked(x.plan.bound())
	if err == nil && entry != x.grants.lock {
		x.grants.lock = ""
		return x.refuse(x.differs([]string{"files"}))
	}
	return err
}

// permitted reports whether a person permitted the run.
func (x *execution) permitted() bool { return x.grants.grant != nil || x.grants.lock != "" }

// grantRecord is what the audit keeps of the person's part.
func (x *execution) grantRecord() map[string]any {
	rec := map[string]any{}
	if g := x.grants.grant; g != nil {
		rec["id"], rec["kind"], rec["approver"], rec["level"], rec["digest"] = g.ID, g.Kind, g.Approver, x.grants.level, g.Digest
	}
	if x.grants.lock != "" {
		rec["lock"] = x.grants.lock
	}
	if x.grants.request != "" {
		rec["request"] = x.grants.request
	}
	if len(x.grants.warnings) > 0 {
		rec["warnings"] = x.grants.warnings
	}
	if len(rec) == 0 {
		return nil
	}
	return rec
}
