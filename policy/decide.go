package policy

import (
	"math/bits"
	"sort"

	"github.com/atip-dev/atip-exec/atip"
)

// candidate is a restrictive rule whose conditions hold, or may hold, apart from
// those on effects.
type candidate struct {
	rule *rule
	is   truth
}

// judged is one step on its way through the decision.
type judged struct {
	facts
	restrict []candidate
	allow    []*rule

	own    atip.Set // what it has been granted so far
	others atip.Set // what its neighbours have
}

// Decide judges a request. The steps of a request share one sandbox, so each is
// judged under the union of what all of them are granted; three rounds settle that
// union or the request asks.
func (s *Set) Decide(req Request) Decision {
	if s == nil || len(req.Steps) == 0 {
		return Decision{Reasons: []Reason{{Rule: "builtin/default", Text: "there is nothing to judge"}}}
	}
	var chainErr string
	if len(req.Chain) > 0 {
		s, chainErr = s.narrowed(req.Chain)
	}
	if req.Ceiling != nil {
		s = s.below(req.Ceiling)
	}
	steps := make([]judged, len(req.Steps))
	for i := range steps {
		steps[i] = s.prepare(&req, &req.Steps[i])
	}
	d := Decision{Action: Allow, Steps: make([]StepDecision, len(steps))}
	union, settled := atip.Set(0), false
	for round := 0; round < 3 && !settled; round++ {
		d.Reasons = d.Reasons[:0]
		settled = true
		for i := range steps {
			d.Steps[i] = s.one(&steps[i], i, &d.Reasons)
		}
		for i := range steps {
			j := &steps[i]
			settled = settled && d.Steps[i].Grants&^j.own == 0
			j.own |= d.Steps[i].Grants
			union |= j.own
		}
		shareOut(steps)
	}
	if !settled {
		d.Action = Confirm
		d.Reasons = append(d.Reasons, Reason{Rule: "builtin/default", Action: Confirm,
			Text: "what its parts would be granted together could not be settled"})
	}
	for i := range d.Steps {
		d.Action = min(d.Action, d.Steps[i].Action)
		d.Lifted = append(d.Lifted, d.Steps[i].Lifted...)
		d.Trust = d.Trust || req.Steps[i].Trust.Action == Deny
	}
	for _, e := range req.Edges {
		d.Action = min(d.Action, s.edge(steps, e, union, &d.Reasons))
	}
	if chainErr != "" {
		d.Action = Deny
		d.Reasons = append(d.Reasons, Reason{Rule: "delegated/delegation", Text: chainErr})
	}
	sortReasons(d.Reasons)
	if d.Action != Deny {
		d.Grants = grantsOf(steps, d.Steps, union)
	}
	if d.Action == Confirm && len(req.Steps) > 1 && s.eachAlone(req) {
		d.Alternatives = []string{"run the commands separately: together they would share one another's grants"}
	}
	return d
}

// shareOut tells each step what the others are granted.
func shareOut(steps []judged) {
	for i := range steps {
		steps[i].others = 0
		for k := range steps {
			if k != i {
				steps[i].others |= steps[k].own
			}
		}
	}
}

// prepare finds the rules that can bear on a step, whatever is granted.
func (s *Set) prepare(req *Request, step *Step) judged {
	j := judged{facts: newFacts(s, req, step)}
	for _, r := range s.restrict {
		if r.when.edge != nil || r.needsDigest && step.Trust.Action != Confirm {
			continue
		}
		if t := j.static(&r.when, false); t != isNo {
			j.restrict = append(j.restrict, candidate{r, t})
		}
	}
	for _, a := range s.allow {
		if a.when.edge == nil && j.static(&a.when, true) == isYes {
			j.allow = append(j.allow, a)
		}
	}
	return j
}

// one judges a step. An allow rule must cover what the step can do with the rule's
// grants and its neighbours'; what several rules grant it together is then covered
// by them together, because an effect is out of the kernel's hold under a union of
// grants only if it is under one of them. A restrictive rule sees everything.
func (s *Set) one(j *judged, index int, reasons *[]Reason) StepDecision {
	var d StepDecision
	if j.step.Trust.Action == Deny {
		*reasons = append(*reasons, Reason{Rule: "builtin/trust", Step: index, Text: "the executable is not to be trusted: " + j.step.Trust.Reason})
		d.Rules = []string{"builtin/trust"}
		return d
	}
	var matched []*rule
	for _, a := range j.allow {
		if j.covers(a, j.others) {
			matched = append(matched, a)
		}
	}
	granted := j.possible() & grantedBy(matched) &^ s.withhold
	v := j.under(j.others | j.own | granted)
	d.Values, d.Danger, d.Action = v, v.danger(), Allow
	var why []Reason
	for _, c := range j.restrict {
		action, maybe, applies := j.restricts(c, &v, matched)
		if !applies {
			continue
		}
		left, by := s.lift(c.rule, action, matched, j)
		if by != nil {
			d.Lifted = append(d.Lifted, Lift{c.rule.name(), by.name()})
		}
		if left == Allow {
			continue
		}
		if left == Confirm && (c.rule.layer == LayerBuiltin || len(matched) == 0 && !s.answersFor(c.rule)) {
			left = min(left, s.dflt)
		}
		d.Action = min(d.Action, left)
		why = append(why, j.reason(c.rule, left, maybe, index))
	}
	for _, r := range plain(why, d.Action) {
		d.Rules = append(d.Rules, r.Rule)
		*reasons = append(*reasons, r)
	}
	if d.Action == Allow && len(matched) == 0 {
		d.Action = s.dflt
		d.Rules = append(d.Rules, "builtin/default")
		*reasons = append(*reasons, Reason{Rule: "builtin/default", Action: s.dflt, Step: index, Text: j.subject() + ": no rule allows it"})
	}
	switch d.Action {
	case Allow:
		least := 32
		for _, a := range matched {
			least = min(least, bits.OnesCount32(uint32(a.grants)))
		}
		for _, a := range matched {
			if a.layer == LayerBuiltin {
				// Of the built-in rows the narrowest tells why.
				if bits.OnesCount32(uint32(a.grants)) != least {
					continue
				}
				least = -1
			}
			d.Rules = append(d.Rules, a.name())
			*reasons = append(*reasons, j.reason(a, Allow, false, index))
		}
		d.Grants = granted
	case Confirm:
		d.Grants = j.possible() & dangerKeys &^ s.withhold
	}
	sort.Strings(d.Rules)
	return d
}

// grantedBy is what matching allow rules grant. Each built-in row covers all danger
// by itself, given that the kernel withholds what it does not grant, so only what
// they agree on is needed. A person's rule is a wish: its grants are added whole.
func grantedBy(matched []*rule) atip.Set {
	agreed, wished, some := ^atip.Set(0), atip.Set(0), false
	for _, a := range matched {
		if a.layer == LayerBuiltin {
			agreed, some = agreed&a.grants, true
		} else {
			wished |= a.grants
		}
	}
	if !some {
		agreed = 0
	}
	return agreed | wished
}

// held are the effects the kernel can withhold one by one; removal only if policy
// parts it from writing.
const held = fWrite | fNetwork | fSecretRead | fPersistence

// possible is what the step does or may do. A stated "no" is held to even where it
// is not believed: the kernel enforces it.
func (f *facts) possible() atip.Set {
	var s atip.Set
	held := held
	if f.req.Enforce.DeleteStrict {
		held |= fDelete
	}
	for e := range f.base {
		stated := f.step.Call.Effects[e].Value
		denied := held.Has(atip.Effect(e)) && f.blocked(atip.Effect(e), 0) && f.step.RunsCode == CodeNone && f.step.Confidence != Opaque &&
			stated != atip.Unknown && stated != atip.Effect(e).Dangerous()
		if f.base[e] == atip.Yes || f.base[e] == atip.Unknown && !denied && atip.Effect(e) != atip.Reversible {
			s = s.With(atip.Effect(e))
		}
	}
	return s
}

// covers reports whether an allow rule covers all danger of the step.
func (j *judged) covers(a *rule, others atip.Set) bool {
	if !a.expires.IsZero() && !j.req.Now.Before(a.expires) || !a.expires.IsZero() && j.req.Now.IsZero() {
		return false
	}
	v := j.under(others | a.grants)
	danger := v.danger()
	if danger&^a.grants != 0 || effectsAre(&a.when, &v, true) != isYes {
		return false
	}
	if danger.Has(atip.Billable) && j.req.BillableLeft <= 0 {
		return false
	}
	for e := range j.base {
		if a.notDeclared.Has(atip.Effect(e)) && j.base[e] == atip.Yes {
			return false
		}
	}
	if !j.scope(&a.when, &v) {
		return false
	}
	for i := range a.unless {
		if j.holds(&a.unless[i], &v, false) != isNo {
			return false
		}
	}
	return true
}

// restricts reports whether a restrictive rule applies under v, and how strictly.
func (j *judged) restricts(c candidate, v *values, matched []*rule) (action Action, maybe, applies bool) {
	t := min(c.is, effectsAre(&c.rule.when, v, false))
	if t == isNo {
		return 0, false, false
	}
	for _, id := range c.rule.unlessAllowed {
		for _, a := range matched {
			if a.layer == LayerBuiltin && (id == "*" || id == a.id) {
				return 0, false, false
			}
		}
	}
	for i := range c.rule.unless {
		if j.holds(&c.rule.unless[i], v, true) == isYes {
			return 0, false, false
		}
	}
	if t == isMaybe && c.rule.decision == Deny {
		return c.rule.onUnknown, true, true
	}
	return c.rule.decision, t == isMaybe, true
}

// edge judges a flow between two steps; the rule's other conditions are about the
// step it flows into.
func (s *Set) edge(steps []judged, e Edge, union atip.Set, reasons *[]Reason) Action {
	if e.To < 0 || e.To >= len(steps) || e.From < 0 || e.From >= len(steps) || e.Kind > ForkBomb {
		*reasons = append(*reasons, Reason{Rule: "builtin/default", Text: "a flow of data between unknown steps"})
		return Deny
	}
	j := &steps[e.To]
	v := j.under(union)
	var matched []*rule
	for _, a := range s.allow {
		if contains(a.when.edge, e.Kind) && j.static(&a.when, true) == isYes && j.covers(a, union) {
			matched = append(matched, a)
		}
	}
	action := Allow
	for _, r := range s.restrict {
		if !contains(r.when.edge, e.Kind) {
			continue
		}
		t := j.static(&r.when, false)
		if t == isNo {
			continue
		}
		got, maybe, applies := j.restricts(candidate{r, t}, &v, nil)
		if !applies {
			continue
		}
		left, _ := s.lift(r, got, matched, j)
		if left == Allow {
			continue
		}
		if left == Confirm && (r.layer == LayerBuiltin || len(matched) == 0 && !s.answersFor(r)) {
			left = min(left, s.dflt)
		}
		action = min(action, left)
		*reasons = append(*reasons, j.reason(r, left, maybe, e.To))
	}
	return action
}

// eachAlone reports whether every step would be allowed by itself.
func (s *Set) eachAlone(req Request) bool {
	if len(req.Edges) > 0 {
		return false
	}
	alone := req
	alone.Chain = nil
	for i := range req.Steps {
		alone.Steps = req.Steps[i : i+1]
		if s.Decide(alone).Action != Allow {
			return false
		}
	}
	return true
}
