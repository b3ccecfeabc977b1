package shell

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variable is what is known of a shell variable.
type variable struct {
	val      value
	array    bool
	keys     []string // of an array, in order
	elems    []value
	open     bool // an array whose elements are not all known
	exported bool
	local    bool // changed since the shell started
	ref      string
	integer  bool // declare -i: what is assigned is evaluated
	cased    bool // declare -l, -u, -c: what is assigned changes its letters
	assoc    bool // declare -A: subscripts are text
	mixed    bool // assoc in one of the states that were joined
	literal  bool // the text itself spells the value out, and nothing else sets it
}

func (v *variable) same(u *variable) bool {
	return v.val.same(u.val) && v.array == u.array && v.open == u.open && v.exported == u.exported && v.ref == u.ref && v.integer == u.integer && v.cased == u.cased && v.assoc == u.assoc && v.mixed == u.mixed &&
		slices.Equal(v.keys, u.keys) && slices.EqualFunc(v.elems, u.elems, value.same)
}

// counts reports an array that holds nothing but numbers, whatever its keys are.
func (v *variable) counts() bool {
	return v.array && (!v.open || v.val.numbers()) && !slices.ContainsFunc(v.elems, func(e value) bool { return !e.numbers() })
}

// all is every value an element may have.
func (v *variable) all() value {
	if v.counts() && (v.open || len(v.elems) == 0) {
		return append(value{{unset: true}}, number()...)
	}
	if v.open || len(v.elems) == 0 {
		return unknown(v.val.sources())
	}
	out := v.elems[0]
	for _, e := range v.elems[1:] {
		out = out.or(e)
	}
	return out
}

// sink collects what is written to a descriptor.
type sink struct {
	s     string
	from  []int
	whole bool // as of a text
	mixed bool // something in it is not the whole output of a command
}

// piped is what a reader gets of it.
func (k *sink) piped() *source {
	return &source{s: k.s, known: strings.IndexByte(k.s, 0) < 0 && len(k.from) == 0, from: k.from, whole: k.whole, mixed: k.mixed}
}

func (k *sink) write(t text) {
	if k == nil {
		return
	}
	if t.s != "" {
		k.whole = k.s == "" && t.whole
		k.mixed = k.mixed || !t.whole
	}
	switch {
	case strings.HasSuffix(k.s, Hole) && t.s == Hole:
	case len(k.s)+len(t.s) > maxText:
		k.s = Hole
	default:
		k.s += t.s
	}
	if t.rough {
		k.s += Hole
		k.whole = false
	}
	k.from = union(k.from, t.from)
}

// source is what is read from a descriptor.
type source struct {
	s     string
	known bool
	from  []int
	whole bool // as of a text
	mixed bool // as of a sink
}

// definition is what a function name may stand for.
type definition struct {
	bodies []*syntax.FuncDecl
	maybe  bool // or for nothing
}

// state is what is known of the shell at one point of its run.
type state struct {
	vars   map[string]*variable
	funcs  map[string]definition
	shared bool // vars and funcs belong to another state too

	params     []value
	paramsOpen bool
	name       value

	cwds       []string
	cwdUnknown bool
	oldCwds    []string
	stack      []string
	stackBad   bool

	in        *source
	out       *sink
	fds       map[int]*sink // other descriptors that exec opened; read only
	ifs       bool          // IFS is not the usual one
	exits     bool          // errexit: a command that fails ends the shell
	glob      bool          // set -f
	ended     bool          // nothing after this runs
	exportAll bool          // set -a
	posix     bool          // set -o posix: a prefix of a special builtin stays

	piped  bool // part of a pipeline or in the background
	behind bool // in the background
	ok     *state
}

func (st *state) clone() *state {
	st.shared = true
	c := *st
	c.ok = nil
	c.params = slices.Clip(st.params)
	return &c
}

func (st *state) own() {
	if st.shared {
		st.vars, st.funcs, st.shared = maps.Clone(st.vars), maps.Clone(st.funcs), false
	}
	if st.vars == nil {
		st.vars = map[string]*variable{}
	}
	if st.funcs == nil {
		st.funcs = map[string]definition{}
	}
}

// join makes st what holds whether st or o came about.
func (w *walker) join(st, o *state) {
	st.ok = nil
	switch {
	case o.ended:
		return
	case st.ended:
		in, out, fds := st.in, st.out, st.fds
		*st = *o.clone()
		st.in, st.out, st.fds = in, out, fds
		return
	}
	names := map[string]bool{}
	for n := range st.vars {
		names[n] = true
	}
	for n := range o.vars {
		names[n] = true
	}
	if len(names) > 0 {
		st.own()
	}
	w.nodes += len(names)
	for n := range names {
		a, b := w.lookup(st, n), w.lookup(o, n)
		if a != b && !a.same(b) {
			if a.ref != b.ref {
				w.opaque(st, "a name that may stand for another one", nil, nil)
			}
			st.vars[n] = joinVariables(a, b)
		}
	}
	w.joinFuncs(st, o)
	st.cwdUnknown = st.cwdUnknown || o.cwdUnknown
	st.addCwds(o.cwds)
	st.oldCwds = merge(st.oldCwds, o.oldCwds)
	if !slices.Equal(st.stack, o.stack) {
		st.stackBad = true
	}
	st.stackBad = st.stackBad || o.stackBad
	if !slices.EqualFunc(st.params, o.params, value.same) {
		st.params, st.paramsOpen = nil, true
	}
	st.paramsOpen = st.paramsOpen || o.paramsOpen
	st.posix = st.posix || o.posix
	st.ifs, st.glob, st.exits, st.exportAll = st.ifs || o.ifs, st.glob && o.glob, st.exits && o.exits, st.exportAll || o.exportAll
}

func (w *walker) joinFuncs(st, o *state) {
	names := map[string]bool{}
	for n := range st.funcs {
		names[n] = true
	}
	for n := range o.funcs {
		names[n] = true
	}
	if len(names) == 0 {
		return
	}
	st.own()
	for n := range names {
		a, inA := st.funcs[n]
		b, inB := o.funcs[n]
		d := definition{bodies: slices.Clone(a.bodies), maybe: !inA || !inB || a.maybe || b.maybe}
		for _, f := range b.bodies {
			if !slices.Contains(d.bodies, f) {
				d.bodies = append(d.bodies, f)
			}
		}
		st.funcs[n] = d
	}
}

func joinVariables(a, b *variable) *variable {
	if !a.array && !b.array && a.ref == b.ref {
		return &variable{val: a.val.or(b.val), exported: a.exported || b.exported, local: a.local || b.local, ref: a.ref, integer: a.integer || b.integer, cased: a.cased || b.cased}
	}
	if a.counts() && b.counts() && a.assoc && b.assoc {
		return &variable{val: number(), array: true, open: true, local: true, assoc: true, exported: a.exported || b.exported}
	}
	from := union(union(a.val.sources(), b.val.sources()), union(a.all().sources(), b.all().sources()))
	return &variable{val: unknown(from), array: true, open: true, local: true, exported: a.exported || b.exported, assoc: a.assoc && b.assoc, mixed: a.assoc || b.assoc || a.mixed || b.mixed,
		integer: a.integer || b.integer, cased: a.cased || b.cased}
}

// addCwds adds directories in which the shell may be.
func (st *state) addCwds(dirs []string) {
	st.cwds = merge(st.cwds, dirs)
	if len(st.cwds) > maxCwds {
		st.cwdUnknown = true
		st.cwds = st.cwds[:maxCwds]
	}
}

func merge(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// settled reports whether two states say the same.
func (w *walker) settled(a, b *state) bool {
	if a.cwdUnknown != b.cwdUnknown || a.paramsOpen != b.paramsOpen || a.stackBad != b.stackBad || a.ifs != b.ifs || !slices.Equal(a.cwds, b.cwds) ||
		!slices.EqualFunc(a.params, b.params, value.same) || len(a.vars) != len(b.vars) || len(a.funcs) != len(b.funcs) {
		return false
	}
	for n, v := range a.vars {
		if u := b.vars[n]; u == nil || u != v && !u.same(v) {
			return false
		}
	}
	for n, d := range a.funcs {
		if len(b.funcs[n].bodies) != len(d.bodies) {
			return false
		}
	}
	return true
}

// widen gives up on whatever two states differ in.
func (w *walker) widen(a, b *state) {
	a.own()
	for n, v := range b.vars {
		if u := a.vars[n]; u == nil || !u.same(v) {
			from, integer, cased := v.val.sources(), v.integer, v.cased
			if u != nil {
				from, integer, cased = union(from, u.val.sources()), integer || u.integer, cased || u.cased
			}
			if v.ref != "" || u != nil && u.ref != "" {
				w.opaque(a, "a name that may stand for another one", nil, nil)
			}
			a.vars[n] = &variable{val: unknown(from), array: v.array, open: v.array, exported: v.exported, local: true, integer: integer, cased: cased}
		}
	}
	if !slices.Equal(a.cwds, b.cwds) || b.cwdUnknown {
		a.addCwds(b.cwds)
		a.cwdUnknown = true
	}
	if !slices.EqualFunc(a.params, b.params, value.same) || b.paramsOpen {
		a.params, a.paramsOpen = nil, true
	}
	a.stackBad, a.ifs = a.stackBad || b.stackBad, a.ifs || b.ifs
}

// lookup is what is known of a name; never nil.
func (w *walker) lookup(st *state, name string) *variable {
	if v := st.vars[name]; v != nil {
		return v
	}
	if v := w.env[name]; v != nil {
		return v
	}
	v := &variable{val: unknown(nil)}
	switch {
	case name == "BASH_VERSINFO" || name == "BASH_LINENO" || name == "BASH_ARGC" || name == "GROUPS" || name == "PIPESTATUS":
		v.val = number()
	case name == "FUNCNAME" || name == "DIRSTACK" || strings.HasPrefix(name, "BASH_"):
		v.array, v.open = true, true // the shell's own
	case w.o.Getenv != nil:
		if s, set, known := w.o.Getenv(name); known {
			v = &variable{val: value{{s: s, unset: !set}}, exported: set}
		} else if w.o.Absent != nil && w.o.Absent(name) {
			v.val[0].unset = true // as a number it is 0
		}
	}
	w.env[name] = v
	return v
}

// deref follows namerefs.
func (w *walker) deref(st *state, name string) string {
	for range 4 {
		v := st.vars[name]
		if v == nil || v.ref == "" {
			return name
		}
		name = v.ref
	}
	return name
}

func (st *state) set(name string, v *variable) {
	st.own()
	v.local = true
	st.vars[name] = v
}

// exports lists the variables a command gets besides the shell's own environment.
func (st *state) exports() []Assign {
	var out []Assign
	for n, v := range st.vars {
		if v.exported && v.local && !v.array {
			s := Hole
			if len(v.val) == 1 {
				s = v.val[0].s
			}
			out = append(out, Assign{n, s})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
