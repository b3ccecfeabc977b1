package policy

import (
	"math/bits"
	"path"
	"slices"
	"sort"
	"time"

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
	s, chainErr := s.bounded(&req)
	steps, d, union := s.together(&req)
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

// Flows judges the flows of data between the steps of a request and nothing else, under what
// Decide would grant the steps together.
func (s *Set) Flows(req Request) Action {
	if s == nil {
		return Deny
	}
	if len(req.Edges) == 0 {
		return Allow
	}
	s, chainErr := s.bounded(&req)
	if chainErr != "" {
		return Deny
	}
	steps, _, union := s.together(&req)
	action, reasons := Allow, []Reason{}
	for _, e := range req.Edges {
		action = min(action, s.edge(steps, e, union, &reasons))
	}
	return action
}

// bounded is the set below the delegation and the ceiling of a request; why says what is wrong with
// the delegation.
func (s *Set) bounded(req *Request) (_ *Set, why string) {
	if len(req.Chain) > 0 {
		s, why = s.narrowed(req.Chain)
	}
	if req.Ceiling != nil {
		s = s.below(req.Ceiling)
	}
	return s, why
}

// together judges the steps of a request under what all of them are granted, apart from its flows.
func (s *Set) together(req *Request) ([]judged, Decision, atip.Set) {
	steps := make([]judged, len(req.Steps))
	for i := range steps {
		steps[i] = s.prepare(req, &req.Steps[i])
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
	return steps, d, union
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
	if danger&^a.grants != 0 || effectsAre(&a.when, &v, true) != isYes || danger.Has(atip.Billable) && j.req.BillableLeft <= 0 {
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
		if slices.ContainsFunc(matched, func(a *rule) bool { return a.layer == LayerBuiltin && (id == "*" || id == a.id) }) {
			return 0, false, false
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
		if slices.Contains(a.when.edge, e.Kind) && j.static(&a.when, true) == isYes && j.covers(a, union) {
			matched = append(matched, a)
		}
	}
	action := Allow
	for _, r := range s.restrict {
		if !slices.Contains(r.when.edge, e.Kind) {
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

// Undo says how far what a step does to the workspace can be taken back. The zero value is
// not at all.
type Undo uint8

// Degrees of undo in ascending order.
const (
	UndoNo Undo = iota
	UndoPartly
	UndoYes
)

// String returns the name used in policy documents.
func (u Undo) String() string { return [...]string{"no", "partly", "yes"}[min(u, UndoYes)] }

// MarshalText implements encoding.TextMarshaler.
func (u Undo) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// undoCond reads the condition. A worse call is one that can be taken back less, so a rule that
// loosens names what must be there at least, and one that restricts what is there at most.
func (r *reader) undoCond(v *atip.Node, proven bool) *Undo {
	u := map[string]Undo{"no": UndoNo, "partly": UndoPartly, "yes": UndoYes}[r.oneOf(v, "yes", "partly", "no")]
	if proven && u == UndoNo {
		r.fail(v, `undo "no" cannot loosen: use "yes"`)
	}
	if !proven && u == UndoYes {
		r.fail(v, `undo "yes" cannot restrict, as what cannot be undone would escape: use "no" or "partly"`)
	}
	return &u
}

func undoIs(want, have Undo, proven bool) bool {
	if proven {
		return have >= want
	}
	return have <= want
}

// UndoPolicy is the merged undo object; zero means that nothing was said.
type UndoPolicy struct {
	Mode     string // "", "auto", "always", "off"
	MaxBytes int64  // of the copies of one workspace
	MaxAge   time.Duration
	Exclude  []string // patterns of names that are not copied
}

type undoDoc struct {
	UndoPolicy
	set, excludeSet bool
}

func (r *reader) undo(v *atip.Node) undoDoc {
	u := undoDoc{set: true}
	r.object(v, "undo", func(key string, e *atip.Node) bool {
		switch key {
		case "mode":
			u.Mode = r.oneOf(e, "auto", "always", "off")
		case "maxBytes":
			u.MaxBytes = r.integer(e, 1<<20, 1<<40)
		case "maxAge":
			u.MaxAge = r.duration(e)
		case "exclude":
			u.Exclude, u.excludeSet = r.strings(e), true
			for i, p := range u.Exclude {
				if _, err := path.Match(p, ""); err != nil || p == "" || path.IsAbs(p) {
					r.fail(e.Items[i], "%q is not a pattern of a name or of a path in the workspace", p)
				}
			}
		default:
			return false
		}
		return true
	})
	return u
}

// Undo returns the merged undo object. A lower layer may only keep more: what an upper one
// says is a floor, and what is left out is what all leave out.
func (s *Set) Undo() UndoPolicy {
	var p UndoPolicy
	rank := map[string]int{"off": 1, "auto": 2, "always": 3}
	excluded := false
	for _, d := range s.docs {
		x := &d.undo
		if !x.set {
			continue
		}
		mayLess := owner(d)
		if x.Mode != "" && (p.Mode == "" && (mayLess || x.Mode == "always") || p.Mode != "" && rank[x.Mode] > rank[p.Mode]) {
			p.Mode = x.Mode
		}
		if p.MaxBytes == 0 && mayLess || x.MaxBytes > p.MaxBytes && p.MaxBytes != 0 {
			p.MaxBytes = x.MaxBytes
		}
		if p.MaxAge == 0 && mayLess || x.MaxAge > p.MaxAge && p.MaxAge != 0 {
			p.MaxAge = x.MaxAge
		}
		switch {
		case !x.excludeSet:
		case !excluded && mayLess:
			p.Exclude, excluded = x.Exclude, true
		case excluded:
			p.Exclude = intersect(p.Exclude, x.Exclude)
		}
	}
	return p
}

// AsksUndo reports whether a rule of a document depends on what can be taken back; the
// built-in ones do, as far as their switch is on.
func (s *Set) AsksUndo() bool {
	asks := func(r *rule) bool {
		return slices.ContainsFunc(append([]when{r.when}, r.unless...), func(w when) bool { return w.undo != nil && r.layer != LayerBuiltin })
	}
	return slices.ContainsFunc([][]*rule{s.restrict, s.allow}, func(list []*rule) bool { return slices.ContainsFunc(list, asks) })
}

// Action is the outcome for a step or a whole request. The zero value denies; of
// two actions the smaller is the stricter.
type Action uint8

// The actions, strictest first.
const (
	Deny Action = iota
	Confirm
	Allow
)

// String returns the name used in policy documents.
func (a Action) String() string { return [...]string{"deny", "confirm", "allow"}[a] }

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func ActionByName(name string) (Action, bool) {
	for a := Deny; a <= Allow; a++ {
		if a.String() == name {
			return a, true
		}
	}
	return Deny, false
}

// Layer says where a document comes from, and with it what it may loosen. A
// larger layer is further below: it can be bounded by every smaller one.
type Layer uint8

// The layers, from the one above all to the narrowest.
const (
	LayerBuiltin   Layer = iota
	LayerManaged         // /etc/agent-tools, owned by root
	LayerOrg             // fetched from an organisation's registry: tightens only
	LayerUser            // the user's own policy.json
	LayerProject         // found in the workspace: tightens only until trusted
	LayerFlag            // --policy, --profile, environment: agents type flags, so never loosens
	LayerDelegated       // a lead agent's restrictions: never loosens
)

// NumLayers is the number of layers.
const NumLayers = int(LayerDelegated) + 1

// String returns the name shown before a rule's id.
func (l Layer) String() string {
	return [...]string{"builtin", "managed", "org", "user", "project", "flag", "delegated"}[l]
}

// MarshalText implements encoding.TextMarshaler.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Restricts reports whether a document restricts anything beyond the built-in policy: by a
// rule. A delegation is held when the run is planned and by the sandbox.
func (s *Set) Restricts() bool {
	return slices.ContainsFunc(s.restrict, func(r *rule) bool { return r.layer != LayerBuiltin })
}

// Written returns the set without the built-in rules and without a default: what documents
// restrict, and nothing else. Programs that code of the workspace starts are judged by it, as they could do no
// more than that code, which has the same sandbox.
func (s *Set) Written() *Set {
	out := *s
	out.dflt, out.restrict = Allow, nil
	for _, r := range s.restrict {
		if r.layer != LayerBuiltin {
			out.restrict = append(out.restrict, r)
		}
	}
	return &out
}

// Names reports whether a rule that restricts may be about the tool of a step, whatever its words and effects:
// one that names the tool, or none at all.
func (s *Set) Names(step *Step) bool {
	f := newFacts(s, &Request{}, step)
	return slices.ContainsFunc(s.restrict, func(r *rule) bool { return r.when.tool == nil || f.toolIs(r.when.tool, false) != isNo }) || s.dflt != Allow
}

// Defers reports whether planning may leave words that are not known to the decision at
// execve.
func (s *Set) Defers() bool { return s.switches&switchBit("defer") != 0 }

// FetchesDeclared reports whether what a project declares may be fetched in a run of its own
// before a command that would ask for the network.
func (s *Set) FetchesDeclared() bool { return s.switches&switchBit("declared_dependencies") != 0 }

// Decision is the outcome for a request. Its zero value denies and grants nothing.
type Decision struct {
	Action  Action         `json:"action"`
	Steps   []StepDecision `json:"steps"`
	Reasons []Reason       `json:"reasons"`
	Grants  Grants         `json:"grants"`
	Lifted  []Lift         `json:"lifted,omitempty"`
	// Warnings are about this request; those about documents are the Set's.
	Warnings []string `json:"warnings,omitempty"`
	// Trust is set if the verdict on an executable alone denies (E2101).
	Trust bool `json:"trust,omitempty"`
	// Alternatives are ways to reach the same without asking, such as running the
	// steps separately. They never say how to approve.
	Alternatives []string `json:"alternatives,omitempty"`
}

// StepDecision is the outcome for one step.
type StepDecision struct {
	Action Action                      `json:"action"`
	Values [atip.NumEffects]atip.Value `json:"-"` // effects as believed under the final grants
	Danger atip.Set                    `json:"-"` // effects that are or may be dangerous
	Grants atip.Set                    `json:"-"`
	Rules  []string                    `json:"rules"` // the rules that decided, layer/id
	Lifted []Lift                      `json:"lifted,omitempty"`
}

// Reason is one rule's part in the decision.
type Reason struct {
	Rule    string `json:"rule"` // layer/id
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	Action  Action `json:"action"`
	Maybe   bool   `json:"maybe,omitempty"` // it rests on an effect that is unknown
	Text    string `json:"text"`
	Suggest string `json:"suggest,omitempty"`
	Step    int    `json:"step"`
}

// Lift records that an allow rule of a lower layer set a restrictive rule aside.
type Lift struct {
	Rule string `json:"rule"`
	By   string `json:"by"`
}

// NetMode is how much network the whole run gets.
type NetMode uint8

// Network modes in ascending order.
const (
	NetNone      NetMode = iota
	NetLoopback          // a loopback of its own, nothing of the host
	NetAllowlist         // the hosts listed
	NetFull
)

// String returns the mode's name.
func (m NetMode) String() string { return [...]string{"none", "loopback", "allowlist", "full"}[m] }

// MarshalText implements encoding.TextMarshaler.
func (m NetMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Grants is the union of what all steps may do: one string is one sandbox. For a
// Confirm it is what an approval would cover; for a Deny it is empty.
type Grants struct {
	Effects atip.Set        `json:"-"`
	Paths   []atip.Resource `json:"paths,omitempty"`
	Hosts   []string        `json:"hosts,omitempty"`
	Net     NetMode         `json:"net"`
	// NetKnown: whoever gets network is a known tool. Only then may a sandbox that
	// cannot tell hosts apart turn an allowlist into full network.
	NetKnown bool `json:"netKnown,omitempty"`
}

// lift returns what is left of a restrictive rule after the allow rules of lower
// layers, and the rule that lifted it.
func (s *Set) lift(r *rule, action Action, matched []*rule, j *judged) (left Action, by *rule) {
	left = action
	if r.layer == LayerOrg || r.floor <= action {
		return left, nil
	}
	for _, a := range matched {
		switch {
		case a.layer <= r.layer,
			r.decision == Deny && !s.named(a, r),
			r.needsDigest && !j.namesDigest(a):
			continue
		}
		if r.floor > left || r.floor == left && by != nil && a.name() < by.name() {
			left, by = r.floor, a
		}
	}
	return left, by
}

// named reports whether an allow rule names the upper deny rule it replaces, and
// every ceiling between them admits that.
func (s *Set) named(a, r *rule) bool {
	if !slices.Contains(a.lifts, r.id) && !slices.Contains(a.lifts, r.name()) {
		return false
	}
	for _, d := range s.docs {
		c := d.ceiling
		if c != nil && c.hasLifts && d.source.Layer < a.layer && !slices.Contains(c.lifts, r.id) && !slices.Contains(c.lifts, r.name()) {
			return false
		}
	}
	return true
}

func (j *judged) namesDigest(a *rule) bool {
	return j.step.File.Digest != "" && slices.Contains(a.when.tool, "sha256:"+j.step.File.Digest)
}
