package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// call walks a simple command: assignments, words, redirections, then what it runs.
func (w *walker) call(c *syntax.CallExpr, redirs []*syntax.Redirect, st *state) {
	at := w.at
	alts := []fields{{}}
	for _, word := range c.Args {
		next := w.fields(word, st)
		if len(alts) == 1 && len(next) == 1 {
			alts[0] = append(alts[0], next[0]...)
			continue
		}
		if len(alts)*len(next) > maxAlternatives {
			var from []int
			for _, a := range next {
				for _, f := range a {
					from = union(from, f.from)
				}
			}
			next = []fields{{{s: HoleSplit, from: from}}}
		}
		out := make([]fields, 0, len(alts)*len(next))
		for _, a := range alts {
			for _, b := range next {
				out = append(out, append(append(make(fields, 0, len(a)+len(b)), a...), b...))
			}
		}
		alts = out
	}
	io := w.redirect(redirs, st, false)
	inner := st
	var env []Assign
	if len(c.Assigns) > 0 {
		inner, env = w.prefix(c.Assigns, st)
	}
	var set map[string]*variable
	if inner != st {
		set = w.keeps(c.Assigns, alts, st, inner)
	}
	w.at = at
	in, out, fds := st.in, st.out, st.fds
	inner.in = io.in
	if io.moved {
		inner.out = io.out
	}
	var done *state
	for _, words := range alts {
		one := inner
		if len(alts) > 1 {
			one = inner.clone()
		}
		r := &run{words: words, io: io, env: env, bounded: len(alts) > 1}
		w.run(r, one)
		if len(alts) > 1 {
			if done == nil {
				done = one
			} else {
				w.join(done, one)
			}
		}
	}
	if done == nil {
		done = inner
	}
	if done != st {
		if inner != st {
			// Assignments before a command hold for it alone, or nearly so.
			w.restore(c.Assigns, st, done, set)
		}
		*st = *done
	}
	st.in, st.out = in, out
	if !w.persists(c) {
		st.fds = fds
	} else {
		w.persist(io, st)
	}
}

// prefix carries out the assignments in front of a command.
func (w *walker) prefix(list []*syntax.Assign, st *state) (*state, []Assign) {
	inner := st.clone()
	for _, a := range list {
		w.assign(a, inner, assignExport)
	}
	return inner, nil
}

// keeps returns what a prefix assigns if the command behind it may keep it: `c=x export
// c`, a function that does so, and in other shells than bash every special builtin. nil
// if it surely does not.
func (w *walker) keeps(list []*syntax.Assign, alts []fields, st, inner *state) map[string]*variable {
	for _, words := range alts {
		if len(words) == 0 || !words[0].exact() {
			break
		}
		n := words[0].s
		_, function := st.funcs[n]
		switch n {
		case "command", "builtin", "eval", "source", ".", "export", "readonly", "declare", "typeset", "local", "printf", "getopts":
		case ":", "break", "continue", "exec", "exit", "return", "set", "shift", "times", "trap", "unset":
			if w.o.Dialect == shelltext.Bash && !st.posix && !function {
				continue
			}
		default:
			if !function {
				continue
			}
		}
		set := map[string]*variable{}
		for _, a := range list {
			if a.Name != nil {
				set[a.Name.Value] = w.lookup(inner, a.Name.Value)
			}
		}
		return set
	}
	return nil
}

// restore undoes the assignments of a prefix; of those in set it is not known whether
// they are undone.
func (w *walker) restore(list []*syntax.Assign, st, done *state, set map[string]*variable) {
	done.own()
	for _, a := range list {
		if a.Name == nil {
			continue
		}
		if v := set[a.Name.Value]; v != nil {
			n := a.Name.Value
			old, last := w.lookup(st, n), w.lookup(done, n)
			if v.ref != old.ref || last.ref != old.ref {
				w.opaque(done, "a name that may stand for another one", nil, nil)
			}
			done.vars[n] = joinVariables(joinVariables(old, v), last)
			done.vars[n].local = true
			continue
		}
		if old := st.vars[a.Name.Value]; old != nil {
			done.vars[a.Name.Value] = old
		} else {
			delete(done.vars, a.Name.Value)
		}
	}
	done.ifs = st.ifs
}

// persists reports whether redirections outlive the command: "exec 3>f".
func (w *walker) persists(c *syntax.CallExpr) bool {
	return len(c.Args) == 1 && c.Args[0].Lit() == "exec"
}

func (w *walker) persist(io streams, st *state) {
	st.in = io.in
	if io.moved {
		st.out = io.out
	}
	fds := map[int]*sink{}
	for n, k := range st.fds {
		fds[n] = k
	}
	for n, k := range io.opens {
		fds[n] = k
	}
	st.fds = fds
}

// run is one simple command on its way to being listed.
type run struct {
	words   fields
	io      streams
	env     []Assign
	bounded bool
	noFunc  bool // command, builtin, exec: functions do not count
	noBuilt bool // exec: nor do builtins
}

// list is the command as it stands, of the given kind.
func (r *run) list(kind Kind) Command {
	c := Command{Kind: kind, Redirects: slices.Clone(r.io.files), Bounded: r.bounded, Env: r.env}
	dashes := false
	for i, f := range r.words {
		if f.whole && (f.s == Hole || f.s == HoleSplit) {
			if c.Printed == 0 {
				c.Printed, c.PrintedBy = i, f.from
			} else {
				c.Printed = -1
			}
		}
		c.Argv = append(c.Argv, f.s)
		c.Bounded = c.Bounded || f.rough || strings.Contains(f.s, HoleSplit)
		if f.lead && !dashes && strings.IndexByte(f.s, 0) < 0 {
			c.Globs = append(c.Globs, f.s)
		}
		dashes = dashes || f.s == "--"
	}
	c.Printed = max(c.Printed, 0)
	return c
}

// sources is where the words come from, as flows into the command.
func (r *run) sources() []Flow {
	flows := slices.Clone(r.io.flows)
	for i, f := range r.words {
		kind := FlowWord
		if i == 0 {
			kind = FlowCode
		}
		for _, from := range f.from {
			flows = append(flows, Flow{From: from, Kind: kind})
		}
	}
	return flows
}

// finish lists the command and connects its output.
func (w *walker) finish(r *run, c Command, st *state) int {
	i := w.emit(st, c, r.sources()...)
	if i < 0 {
		return i
	}
	for _, f := range r.io.flows {
		if f.Kind == FlowSocket {
			w.flow(i, i, FlowSocket)
		}
	}
	return i
}

// run decides what a simple command is.
func (w *walker) run(r *run, st *state) {
	st.ok = nil
	if len(r.words) == 0 {
		// Every word expanded to nothing.
		if len(r.io.files) > 0 || len(r.io.flows) > 0 {
			w.finish(r, r.list(Builtin), st)
		}
		return
	}
	head := r.words[0]
	slash := strings.LastIndexByte(head.s, '/')
	if slash+1 < len(head.s) && strings.IndexByte(head.s, 0) >= 0 && strings.IndexByte(head.s[slash+1:], 0) < 0 && !head.rough && !head.glob {
		w.external(r, st) // by a known name, in a directory that only the run knows
		return
	}
	if !head.exact() || head.glob {
		c := r.list(Opaque)
		c.Why = "the command word is not known"
		c.Numbered = head.known() && head.rough && !head.glob && slash >= 0
		w.produced(st, w.finish(r, c, st))
		return
	}
	if w.aliases != nil && !r.noFunc {
		w.alias(r, st)
	}
	if d, ok := st.funcs[head.s]; ok && !r.noFunc {
		w.function(head.s, d, r, st)
		if !d.maybe {
			return
		}
	}
	if !r.noBuilt && w.builtin(head.s, r, st) {
		return
	}
	w.external(r, st)
}

// external lists a program.
func (w *walker) external(r *run, st *state) {
	if r.words[0].s == "" {
		c := r.list(Opaque)
		c.Why = "the command word is empty"
		w.finish(r, c, st)
		return
	}
	i := w.finish(r, r.list(External), st)
	if r.words[0].s == "cat" && len(r.words) == 1 && st.in != nil && st.in.known {
		// What it copies is known.
		st.out.write(text{s: st.in.s})
		w.toFile(i, r, st.in.s)
		return
	}
	w.produced(st, i)
}

// toFile notes constant text that goes to a file.
func (w *walker) toFile(i int, r *run, s string) {
	if i >= 0 && r.io.file != nil && i < len(w.cmds) {
		w.content(i, &sink{s: s})
	}
}

// function walks the body of a function with its arguments.
func (w *walker) function(n string, d definition, r *run, st *state) {
	for _, body := range d.bodies {
		if w.active[body] > 0 || w.depth >= w.o.Limits.Nesting {
			c := r.list(Opaque)
			c.Why = "the function " + n + " calls itself"
			i := w.finish(r, c, st)
			w.produced(st, i)
			if i >= 0 && st.piped && w.active[body] > 0 {
				w.flow(i, i, FlowForkBomb)
			}
			return
		}
	}
	if len(r.io.files) > 0 || len(r.io.flows) > 0 {
		c := r.list(Builtin)
		i := w.finish(r, c, st)
		if st.in != nil && len(st.in.from) == 0 && !st.in.known && i >= 0 && r.io.in == st.in {
			st.in.from = []int{i}
		}
		defer func() {
			if r.io.file != nil && i >= 0 {
				for _, from := range r.io.file.from {
					w.flow(from, i, FlowStdin)
				}
			}
		}()
	}
	params, open := st.params, st.paramsOpen
	st.params, st.paramsOpen = nil, false
	for _, f := range r.words[1:] {
		st.paramsOpen = st.paramsOpen || strings.Contains(f.s, HoleSplit) || f.glob
		f.glob, f.lead = false, false
		st.params = append(st.params, value{f})
	}
	if st.paramsOpen {
		st.params = nil
	}
	at := w.at
	w.depth++
	w.repeat++
	frame := map[string]*variable{}
	w.frames = append(w.frames, frame)
	entry := st.clone()
	for i, body := range d.bodies {
		one := st
		if i > 0 {
			one = entry.clone()
			one.in, one.out = st.in, st.out
		}
		w.active[body]++
		w.stmt(body.Body, one)
		w.active[body]--
		if one != st {
			w.join(st, one)
		}
	}
	w.frames = w.frames[:len(w.frames)-1]
	for n, old := range frame {
		st.own()
		if old != nil {
			st.vars[n] = old
		} else {
			delete(st.vars, n)
		}
	}
	w.depth--
	w.repeat--
	w.at = at
	st.params, st.paramsOpen = params, open
	st.ok = nil
}
