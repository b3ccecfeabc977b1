// Package permit finds the permission of a plan that needs one: an approval, an entry of a lock,
// or a request for one.
package permit

import (
	"errors"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
)

// MaxWait is the longest that a run waits for a person.
const MaxWait = 10 * time.Minute

// pollEvery is how often a waiting run looks for an answer.
const pollEvery = 200 * time.Millisecond

// Permission is what a run knows of the person that was asked. Nothing of it goes
// into an error: the caller is not told how permission is given.
type Permission struct {
	plan      *plan.Plan
	warn      func(string)
	clean     func(string) string // takes secrets out of what is shown to a person
	cancelled func() error        // why a wait for a person is over, nil while it goes on

	grant    *approve.Grant // nil without one
	level    int            // what the approver's word is worth
	lock     string         // the entry of approvals.lock that permits it, "" for none
	request  string
	warnings []string
}

// New is the permission of a plan, before anything was looked for. cancelled may be nil if the plan
// waits for no one.
func New(p *plan.Plan, warn func(string), clean func(string) string, cancelled func() error) *Permission {
	return &Permission{plan: p, warn: warn, clean: clean, cancelled: cancelled}
}

// Permit looks for a person's permission of a plan that needs one. It returns nil if
// the run may go on, else the refusal.
func (x *Permission) Permit(refusal error) error {
	f := fault.From(refusal)
	if f == nil || f.Code == errcode.ApprovalRequired {
		if err := x.plan.TmpReachable(); err != nil {
			return err
		}
	}
	if f == nil || f.Code != errcode.ApprovalRequired {
		return refusal
	}
	if err := x.plan.Reachable(); err != nil {
		return err
	}
	digest, err := x.plan.BindingDigest()
	var unbound *plan.UnboundError
	if errors.As(err, &unbound) {
		return fault.New(errcode.Denied, "denied: what "+quote.Words(x.plan.Invocation.Words())+" sends cannot be told: "+err.Error()).WithFix("name the branches, tags or whole commit ids to send", "git push origin main").With("decision", policy.Deny)
	}
	if err != nil {
		return refusal // what cannot be written down cannot be permitted
	}
	switch found, err := x.find(digest); {
	case err != nil:
		return err
	case found:
		return x.plan.Startable()
	}
	switch entry, err := x.plan.LockEntry(x.plan.Binding()); {
	case err != nil:
		return err
	case entry != "":
		x.lock = entry
		return x.plan.Startable()
	}
	if changed := x.changed(); len(changed) > 0 {
		f = withDetails(x.differs(changed), f)
	}
	if approve.Denied(x.plan.RequestsDir(), digest) {
		return x.plan.SaidNo()
	}
	if x.plan.Invocation.Wait > 0 && !x.plan.InCI() {
		return x.await(f, digest)
	}
	return f
}

// find looks for a grant of this very plan.
func (x *Permission) find(digest string) (bool, error) {
	rules, err := x.plan.GrantRules()
	if err != nil {
		return false, err
	}
	g, warnings, err := approve.Find(x.plan.GrantsDir(), digest, rules)
	x.warnings = warnings
	if err != nil {
		x.warnings = append(warnings, err.Error())
		return false, nil
	}
	x.grant = g
	for _, a := range rules.Approvers {
		if g != nil && a.ID == g.Approver {
			x.level = a.Level
		}
	}
	return g != nil, nil
}

// changed says what differs from a plan with the same words that a person permitted.
func (x *Permission) changed() []string {
	p := x.plan
	bound := p.Binding()
	for _, g := range p.UnusedGrants() {
		if r, ok := approve.RequestOf(p.RequestsDir(), g.Digest); ok && sameWords(r.Bound["argv"], p.Invocation.Words()) {
			return approve.Changed(r.Bound, bound)
		}
	}
	return nil
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
func (x *Permission) ask(f *fault.Fault) *fault.Fault {
	p := x.plan
	bound := p.Binding()
	if p.InCI() {
		// No approver answers there, and what is kept would be in the way of others.
		if digest, err := approve.LockDigest(bound); err == nil && p.Invocation.Behalf == nil {
			f.With("lockDigest", digest)
		}
		f.Message += "; in CI no request is kept"
		return f
	}
	known := false
	if digest, err := approve.Digest(bound); err == nil {
		old, ok := approve.RequestOf(p.RequestsDir(), digest)
		known = ok && time.Now().Before(old.Expires)
	}
	var granted []string
	for _, g := range p.UnusedGrants() {
		granted = append(granted, g.Digest)
	}
	id, replaced, err := approve.WriteRequest(p.RequestsDir(), approve.Request{Bound: bound, Display: x.display(f.Message), Requester: requester(p)}, granted...)
	if err != nil {
		if p.Inside() {
			return f // requests are made outside
		}
		// The refusal stands either way, but you cannot be asked.
		return f.With("requestError", err.Error())
	}
	x.request = id
	if !known {
		x.notify()
	}
	if len(replaced) > 0 {
		f.With("replaced", replaced)
	}
	return f.With("requestId", id)
}

// await asks and waits for the answer.
func (x *Permission) await(f *fault.Fault, digest string) error {
	p := x.plan
	x.Refuse(f)
	x.warn("waits up to " + p.Invocation.Wait.String() + " for approval, request " + x.request)
	deadline := time.Now().Add(p.Invocation.Wait)
	for time.Now().Before(deadline) {
		time.Sleep(min(pollEvery, time.Until(deadline)))
		if err := x.cancelled(); err != nil {
			return err
		}
		if approve.Denied(p.RequestsDir(), digest) {
			return p.SaidNo()
		}
		switch found, err := x.find(digest); {
		case err != nil:
			return err
		case found:
			return x.unchanged(digest)
		}
	}
	return withDetails(fault.New(errcode.NoAnswer, "approval required: "+quote.Words(p.Invocation.Words())+" was not answered in "+p.Invocation.Wait.String()), f)
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
func (x *Permission) unchanged(digest string) error {
	again, err := plan.Make(x.plan.Invocation, x.plan.Machine)
	if err != nil {
		x.grant = nil
		return err
	}
	defer again.Close()
	now, err := again.BindingDigest()
	if again.Decision.Action == policy.Deny {
		x.grant = nil
		return again.Refusal()
	}
	if err != nil || now != digest {
		x.grant = nil
		return x.differs(approve.Changed(x.plan.Binding(), again.Binding()))
	}
	return x.plan.Startable()
}

func (x *Permission) differs(changed []string) *fault.Fault {
	return fault.New(errcode.DecisionChanged, quote.Words(x.plan.Invocation.Words())+" is not the approved command any more: "+strings.Join(changed, ", ")+" changed").With("changed", changed)
}

// Spend uses up the permission just before the start, if everything is still as it
// was permitted. Of two runs at once one gets it.
func (x *Permission) Spend() error {
	p := x.plan
	g := x.grant
	if g == nil {
		return x.stillLocked()
	}
	if g.Kind == "session" {
		return nil // it was found to cover this very plan, which nothing has changed since
	}
	digest, err := p.BindingDigest()
	if err != nil || digest != g.Digest {
		x.grant = nil
		var changed []string
		if r, ok := approve.RequestOf(p.RequestsDir(), g.Digest); ok {
			changed = approve.Changed(r.Bound, p.Binding())
		}
		return x.Refuse(x.differs(changed))
	}
	if err := g.Spend(x.plan.GrantsDir()); err != nil {
		x.grant = nil
		if errors.Is(err, approve.ErrSpent) {
			return x.Refuse(p.Refusal())
		}
		return fault.New(errcode.AuditWrite, err.Error())
	}
	if g.Kind == "once" {
		approve.Done(p.RequestsDir(), g.Digest)
	}
	return nil
}

// stillLocked looks at the lock again, with the files as they are now.
func (x *Permission) stillLocked() error {
	if x.lock == "" {
		return nil
	}
	entry, err := x.plan.LockEntry(x.plan.Binding())
	if err == nil && entry != x.lock {
		x.lock = ""
		return x.Refuse(x.differs([]string{"files"}))
	}
	return err
}

// Given reports whether a person permitted the run.
func (x *Permission) Given() bool { return x.grant != nil || x.lock != "" }

// Record is what the audit keeps of the person's part.
func (x *Permission) Record() map[string]any {
	rec := map[string]any{}
	if g := x.grant; g != nil {
		rec["id"], rec["kind"], rec["approver"], rec["level"], rec["digest"] = g.ID, g.Kind, g.Approver, x.level, g.Digest
	}
	if x.lock != "" {
		rec["lock"] = x.lock
	}
	if x.request != "" {
		rec["request"] = x.request
	}
	if len(x.warnings) > 0 {
		rec["warnings"] = x.warnings
	}
	if len(rec) == 0 {
		return nil
	}
	return rec
}

// Refuse completes the error of a run that must not start: words are redacted,
// and a request is left where a person can find it.
func (x *Permission) Refuse(err error) error {
	f := fault.From(err)
	if len(x.plan.Warnings) > 0 {
		f.With("warnings", x.plan.Warnings)
	}
	f.Redact(x.clean)
	if f.Code != errcode.ApprovalRequired && f.Code != errcode.DecisionChanged {
		return f
	}
	return x.ask(f)
}

func (x *Permission) display(message string) approve.Display {
	p := x.plan
	d := approve.Display{Argv: marshal.CleanAll(p.Invocation.Words(), x.clean), Message: message, Rules: p.RuleNames(), Trust: p.Steps[0].Verdict.Level.String(), Tool: p.Steps[0].Call.Tool, Subjects: p.Subjects()}
	for _, s := range p.Steps {
		for _, e := range plan.DangerKeys() {
			if v := s.Value(e); v != atip.No {
				d.Effects = append(d.Effects, policy.DangerName(e)+": "+v.String())
			}
		}
		for _, r := range s.Call.Resources {
			d.Resources = append(d.Resources, r.Access.String()+" "+r.Value)
		}
	}
	return d
}

func requester(p *plan.Plan) approve.Requester {
	r := approve.Requester{UID: p.Machine.UID, PID: processID(), SID: sessionID(), Session: p.SessionLabel(), Agent: p.Agent(), Chain: p.ChainNames()}
	for i, a := range approve.Ancestry(r.PID) {
		if i == 0 {
			r.Start, r.TTY = a.Start, a.Terminal()
		}
		r.Ancestry = append(r.Ancestry, a.Key())
	}
	return r
}
