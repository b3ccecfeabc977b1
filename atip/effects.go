package atip

import "slices"

// level is what one node of the chain from command to root states.
type level struct {
	n       *node
	effects statement
	base    statement
	hasBase bool
}

// weigh is the effects of one reading, before readings are joined.
type weigh struct {
	*reading
	leaf, root level
	groups     []level // nearest first
	result     Effects
	nested     []Nested
	doubted    bool
	joining    bool // what is raised now is an upper bound
}

func (r *resolver) level(n *node) level {
	stated := n.v.get("effects")
	r.spend(stated.size())
	l := level{n: n, effects: readStatement(stated, false, nil)}
	if n.ext != nil && n.ext.base.ok() && r.rank > Inferred {
		l.base, l.hasBase = readStatement(n.ext.base, true, nil), true
	}
	return l
}

func (r *reading) weigh() *weigh {
	w := &weigh{reading: r, leaf: r.level(r.n)}
	n := r.n
	for n.parent != nil {
		n = n.parent
		if n.parent != nil {
			w.groups = append(w.groups, r.level(n))
		}
	}
	if n != r.n {
		w.root = r.level(n)
	}
	return w
}

// chain calls f for the command, its groups and the root.
func (w *weigh) chain(f func(*level)) {
	f(&w.leaf)
	for i := range w.groups {
		f(&w.groups[i])
	}
	if w.root.n != nil {
		f(&w.root)
	}
}

// extended calls f for those of them that have an x-atip-effects.
func (w *weigh) extended(f func(*level)) {
	w.chain(func(l *level) {
		if l.n.ext != nil {
			f(l)
		}
	})
}

func (w *weigh) fact(v Value, n *node, clause string) Fact {
	return Fact{Value: v, Source: w.source, Pointer: n.pointer, Clause: clause, Rank: w.rank}
}

// inherited is what the command states, else its nearest group that does; never the
// root. With bases, a base is a complete statement: an effect that effects states and
// base omits is claimed to be harmless, one that neither states stays unknown.
func (w *weigh) inherited(e Effect, bases bool) (Fact, bool) {
	if f, ok := w.stated(&w.leaf, w.groups, e, bases); ok {
		return f, true
	}
	for i := range w.groups {
		if f, ok := w.stated(&w.groups[i], w.groups[i+1:], e, bases); ok {
			return f, true
		}
	}
	return Fact{}, false
}

func (w *weigh) stated(l *level, above []level, e Effect, bases bool) (Fact, bool) {
	if bases && l.hasBase {
		if l.base.stated.Has(e) {
			return w.fact(l.base.value[e], l.n, "base"), true
		}
		known := l.effects.stated.Has(e)
		for i := range above {
			known = known || above[i].effects.stated.Has(e)
		}
		if known {
			return w.fact(harmless(e), l.n, "base"), true
		}
		return Fact{}, false
	}
	if l.effects.stated.Has(e) {
		return w.fact(l.effects.value[e], l.n, ""), true
	}
	return Fact{}, false
}

func harmless(e Effect) Value {
	if e.Dangerous() == Yes {
		return No
	}
	return Yes
}

// merged joins what the command and what the root states: a leaf may lower its
// group, but nothing lowers the root, which speaks of the whole program.
func (w *weigh) merged(e Effect, bases bool) (Fact, bool) {
	f, ok := w.inherited(e, bases)
	if w.root.n == nil {
		return f, ok
	}
	r, rootOK := w.stated(&w.root, nil, e, bases)
	return worse(e, f, ok, r, rootOK)
}

// worse is unknown if neither is stated, the stated one if one is, the dangerous one
// if both are.
func worse(e Effect, a Fact, aOK bool, b Fact, bOK bool) (Fact, bool) {
	switch {
	case !bOK:
		return a, aOK
	case !aOK, risk(e, b.Value) > risk(e, a.Value):
		return b, true
	}
	return a, true
}

// declared starts the result with what the document states and returns which effects
// it does.
func (w *weigh) declared() Set {
	var stated Set
	for i := range w.result {
		e := Effect(i)
		f, ok := w.merged(e, true)
		if ok {
			stated = stated.With(e)
		} else {
			f = w.fact(Unknown, w.leaf.n, "")
		}
		w.result[e] = f
	}
	return stated
}

// all weighs a reading whose command is known.
func (w *weigh) all() {
	stated := w.declared()
	fired := w.applyWhen(&stated)
	if w.bounded {
		w.joinUpper(&stated)
		if len(w.unknown) > 0 {
			w.unknownOptions()
		}
	} else {
		w.applyNarrow(fired, &stated)
	}
	w.applySublanguage(&stated)
	w.applyEnv(&stated)
	w.nested = w.collectNested(fired, &stated)
	w.derive(stated)
}

// raise joins danger or doubt into one effect.
func (w *weigh) raise(e Effect, v Value, n *node, clause string, stated *Set) {
	if !stated.Has(e) && e >= SecretRead && v != e.Dangerous() {
		// The standard cannot state these; what is derived for them below is
		// the doubt already.
		return
	}
	if risk(e, v) > risk(e, w.result[e].Value) || !stated.Has(e) && risk(e, v) == 2 {
		w.result[e] = w.fact(v, n, clause)
		w.result[e].Upper = w.joining
	}
	*stated = stated.With(e)
}

// doubt turns every harmless value into unknown, those that are derived later too.
func (w *weigh) doubt(n *node, clause string) {
	w.doubted = true
	for i := range w.result {
		if e := Effect(i); risk(e, w.result[e].Value) == 0 {
			w.result[e] = w.fact(Unknown, n, clause)
		}
	}
}

// joinUpper joins the upper bound: effects, base and all that any when adds.
func (w *weigh) joinUpper(stated *Set) {
	w.joining = len(w.unknown) > 0 && !w.suspicious
	for i := range w.result {
		e := Effect(i)
		if f, ok := w.merged(e, false); ok && risk(e, f.Value) > risk(e, w.result[e].Value) {
			f.Upper = w.joining
			w.result[e] = f
			*stated = stated.With(e)
		}
	}
	w.extended(func(l *level) {
		for i := range l.n.ext.when {
			w.addDanger(l.n, &l.n.ext.when[i], stated)
		}
	})
	w.joining = false
}

func (w *weigh) addDanger(n *node, c *clause, stated *Set) {
	add := c.body.get("add")
	if !add.ok() {
		return
	}
	st := readStatement(add, true, nil)
	for i := range st.value {
		if e := Effect(i); st.stated.Has(e) && risk(e, st.value[e]) > 0 {
			w.raise(e, st.value[e], n, c.id, stated)
		}
	}
}

// firedClause is a when whose condition is true or may be.
type firedClause struct {
	n *node
	c *clause
}

func (w *weigh) applyWhen(stated *Set) []firedClause {
	var fired []firedClause
	w.extended(func(l *level) {
		for i := range l.n.ext.when {
			c := &l.n.ext.when[i]
			if w.eval(c.cond) != triFalse {
				fired = append(fired, firedClause{l.n, c})
			}
		}
	})
	for _, f := range fired {
		w.addDanger(f.n, f.c, stated)
		if f.c.body.get("addAll").isTrue() {
			w.joinUpper(stated)
		}
	}
	// Doubt comes last: it must see what all others have raised, in any order.
	for _, f := range fired {
		if f.c.body.get("unknown").isTrue() {
			w.doubt(f.n, f.c.id)
		}
	}
	return fired
}

// applyNarrow replaces the result by what the narrows that hold claim. It takes a
// call without any doubt, a source of rank, and no when that the narrow has not seen.
func (w *weigh) applyNarrow(fired []firedClause, stated *Set) {
	var joined Effects
	any := false
	w.extended(func(l *level) {
		for i := range l.n.ext.narrow {
			c := &l.n.ext.narrow[i]
			switch {
			case !w.narrowHolds(l.n, c, fired):
			case any:
				joined = JoinEffects(joined, w.narrowed(l, c))
			default:
				joined, any = w.narrowed(l, c), true
			}
		}
	})
	if any {
		w.result, *stated = joined, SetOf()
		for i := range joined {
			*stated = stated.With(Effect(i))
		}
	}
}

func (w *weigh) narrowHolds(n *node, c *clause, fired []firedClause) bool {
	// commands[""] is its parent called without a subcommand.
	own := n == w.leaf.n || w.leaf.n.name == "" && w.leaf.n.parent == n
	if !own && !c.body.get("inherit").isTrue() {
		return false
	}
	minRank := Org
	if m := c.body.get("minRank"); m.ok() {
		minRank, _ = RankByName(m.str())
	}
	if w.rank < minRank || w.rank == Inferred || w.eval(c.cond) != triTrue || w.anyBadExt() {
		return false
	}
	despite := c.body.get("despite")
	return !slices.ContainsFunc(fired, func(f firedClause) bool { return !listHas(despite, []string{f.c.id}) })
}

// narrowed is the complete statement of a narrow: what it omits is claimed to be
// harmless. It is still joined with the root's, unless the root itself narrows.
func (w *weigh) narrowed(l *level, c *clause) Effects {
	var out Effects
	st := readStatement(c.body.get("effects"), true, nil)
	for i := range out {
		e := Effect(i)
		f := w.fact(harmless(e), l.n, c.id)
		if st.stated.Has(e) {
			f.Value = st.value[e]
		}
		if w.root.n != nil && l.n != w.root.n {
			r, ok := w.stated(&w.root, nil, e, true)
			f, _ = worse(e, f, true, r, ok)
		}
		out[e] = f
	}
	return out
}

func (w *weigh) anyBadExt() bool {
	bad := false
	w.chain(func(l *level) { bad = bad || l.n.extBad })
	return bad
}

// unknownOptions weighs flags the document does not know.
func (w *weigh) unknownOptions() {
	if w.suspicious {
		for _, e := range [...]Effect{Destructive, Subprocess} {
			if risk(e, w.result[e].Value) == 0 {
				w.result[e] = w.fact(Unknown, w.leaf.n, "unknown-option")
			}
		}
	}
	w.chain(func(l *level) {
		if l.n.ext != nil && l.n.ext.unknownAll {
			w.doubt(l.n, "unknown-option")
			for i := range w.result {
				f := &w.result[i]
				f.Upper = f.Upper || f.Clause == "unknown-option" && !w.suspicious
			}
		}
	})
}

// Effect names one thing a command may do. Idempotent and Reversible are
// dangerous when "no", all others when "yes".
type Effect uint8

// The effects of ATIP 0.6 section 3.6, then those of x-atip-effects.
const (
	Read Effect = iota // filesystem.read
	Write
	Delete
	Network
	Subprocess
	Destructive
	Billable
	Idempotent
	Reversible
	SecretRead
	Privileged
	Persistence
	RemoteMutation
	ExecOpaque
	NumEffects int = iota
)

var effectKeys = [NumEffects]string{
	"read", "write", "delete", "network", "subprocess", "destructive", "billable", "idempotent",
	"reversible", "secretRead", "privileged", "persistence", "remoteMutation", "execOpaque",
}

// String returns the key under which the effect appears in plans and policies.
func (e Effect) String() string { return effectKeys[e] }

// EffectByKey finds an effect by its key, with or without the prefixes that ATIP
// forms use ("effects.", "filesystem.", "cost.").
func EffectByKey(key string) (Effect, bool) {
	for _, prefix := range []string{"effects.", "filesystem.", "cost."} {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			key = key[len(prefix):]
		}
	}
	for i, k := range effectKeys {
		if k == key {
			return Effect(i), true
		}
	}
	return 0, false
}

// Dangerous is the value of e that can do harm.
func (e Effect) Dangerous() Value {
	if e == Idempotent || e == Reversible {
		return No
	}
	return Yes
}

// Rank is how far the source of a document is believed; each rank may claim all
// that lower ranks may. The zero value, Inferred, may claim danger only.
type Rank uint8

// Ranks in ascending order.
const (
	Inferred Rank = iota
	User
	Community
	Org
	Vendor
)

// String returns the name the protocol uses in trust.source.
func (r Rank) String() string {
	return [...]string{"inferred", "user", "community", "org", "vendor"}[r]
}

// MarshalText implements encoding.TextMarshaler.
func (r Rank) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Fact is one effect of one call with where it came from.
type Fact struct {
	Value   Value  `json:"value"`
	Source  string `json:"source,omitempty"`  // "builtin:gh", "user:FILE"
	Pointer string `json:"pointer,omitempty"` // JSON pointer into that document
	Clause  string `json:"clause,omitempty"`  // id of the x-atip-effects clause
	Upper   bool   `json:"-"`                 // the clause does not hold, but for what an option may be that is not known and does not speak of harm
	Rank    Rank   `json:"rank"`
}

// Effects holds a Fact for every Effect, indexed by it.
type Effects [NumEffects]Fact

// Set is a set of effects. In a policy's grants a member means that the dangerous
// value of the effect is covered: Reversible stands for "irreversible".
type Set uint32

// SetOf builds a Set.
func SetOf(effects ...Effect) Set {
	var s Set
	for _, e := range effects {
		s |= 1 << e
	}
	return s
}

// Has reports whether e is in the set.
func (s Set) Has(e Effect) bool { return s&(1<<e) != 0 }

// With returns s with e added.
func (s Set) With(e Effect) Set { return s | 1<<e }

// Without returns s with e removed.
func (s Set) Without(e Effect) Set { return s &^ (1 << e) }
