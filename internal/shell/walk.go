package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// walker goes through a tree and lists what it can run.
type walker struct {
	o     Options
	cmds  []Command
	flows []Flow
	env   map[string]*variable

	nodes     int
	depth     int         // functions, eval, source
	repeat    int         // inside something that is walked more than once
	active    map[any]int // functions being walked
	seen      map[string]int
	at        syntax.Pos
	origin    int // tells texts apart that have positions of their own
	texts     int
	pipes     map[string]*source
	stopped   bool
	fixed     bool                      // a variable may hold something other than what was assigned to it last
	file      string                    // what is being sourced, "" for the text itself
	ends      map[*syntax.Stmt]tristate // how the left sides of && and || end that were walked last
	ever      map[string]value          // every value a variable had
	volatile  map[string]bool           // variables that a trap may set at any time
	frames    []map[string]*variable    // what locals hide
	traps     []trapText
	aliases   map[string]string // of a snapshot; not nil once aliases count
	expanding map[string]bool   // aliases being read
}

func (w *walker) start() *state {
	st := &state{vars: map[string]*variable{}, funcs: map[string]definition{}, paramsOpen: w.o.ArgsUnknown, name: constant(w.o.Name)}
	if w.o.Name == "" {
		st.name = constant("bash")
	}
	if w.o.Cwd == "" {
		st.cwdUnknown = true
	} else {
		st.cwds = []string{w.o.Cwd}
	}
	for _, a := range w.o.Args {
		st.params = append(st.params, constant(a))
	}
	if w.o.Stdin != nil {
		st.in = &source{s: *w.o.Stdin, known: true}
	}
	return st
}

// guard turns a panic into an opaque command: what cannot be read is never safe.
func (w *walker) guard(st *state, f func()) {
	defer func() {
		if r := recover(); r != nil {
			w.stopped = false
			w.emit(st, Command{Why: fmt.Sprintf("reading it failed: %v", r)})
			w.stopped = true
		}
	}()
	f()
}

// spend counts nodes and commands; beyond the limit the rest is one opaque command.
func (w *walker) spend(st *state) bool {
	if w.stopped {
		return false
	}
	w.nodes++
	if w.nodes > w.o.Limits.Nodes || len(w.cmds) >= w.o.Limits.Commands {
		w.cmds = append(w.cmds, Command{Why: "it is too long to be read whole", Cwds: st.cwds, CwdUnknown: st.cwdUnknown})
		w.stopped = true
	}
	return !w.stopped
}

// emit lists a command and connects it to what it reads and writes. It returns the
// command's index, -1 if there is none.
func (w *walker) emit(st *state, c Command, from ...Flow) int {
	if !w.spend(st) {
		return -1
	}
	if c.Cwds == nil {
		c.Cwds, c.CwdUnknown = st.cwds, st.cwdUnknown
	}
	c.Env = append(st.exports(), c.Env...)
	if v := st.vars["PATH"]; v != nil && v.local {
		for _, t := range v.val {
			c.Path = append(c.Path, t.s)
		}
	}
	c.Background = st.behind
	c.Line, c.Col = int(w.at.Line()), int(w.at.Col())
	index := len(w.cmds)
	if w.repeat > 0 {
		key := fmt.Sprint(w.origin, c.Kind, c.Line, c.Col, c.CwdUnknown, c.Argv, c.Cwds, c.Redirects, c.Env, c.Path)
		if w.seen == nil {
			w.seen = map[string]int{}
		}
		if have, ok := w.seen[key]; ok {
			index = have
		} else {
			w.seen[key] = index
		}
	}
	if index == len(w.cmds) {
		if st.in != nil && st.in.known {
			c.Stdin = &st.in.s
		}
		w.cmds = append(w.cmds, c)
	}
	for _, f := range from {
		w.flow(f.From, index, f.Kind)
	}
	if st.in != nil {
		w.cmds[index].Mixed = w.cmds[index].Mixed || st.in.mixed
		for _, i := range st.in.from {
			w.flow(i, index, FlowStdin)
		}
	}
	return index
}

func (w *walker) flow(from, to int, kind FlowKind) {
	f := Flow{from, to, kind}
	if from >= 0 && to >= 0 && (from != to || kind >= FlowSocket) && !slices.Contains(w.flows, f) {
		w.flows = append(w.flows, f)
	}
}

// opaque lists something that cannot be read, built from the output of sources.
func (w *walker) opaque(st *state, why string, argv []string, sources []int) int {
	from := make([]Flow, 0, len(sources))
	for _, i := range sources {
		from = append(from, Flow{From: i, Kind: FlowCode})
	}
	i := w.emit(st, Command{Why: why, Argv: argv}, from...)
	w.produced(st, i)
	return i
}

// produced notes that a command wrote something unknown to its output.
func (w *walker) produced(st *state, i int) {
	if i >= 0 {
		st.out.write(text{s: Hole, from: []int{i}, whole: true})
	}
}

func (w *walker) stmts(list []*syntax.Stmt, st *state) {
	for _, s := range list {
		if w.stopped {
			return
		}
		w.stmt(s, st)
	}
}

func (w *walker) stmt(s *syntax.Stmt, st *state) {
	if s == nil || !w.spend(st) {
		return
	}
	w.at = s.Pos()
	st.ok = nil
	switch {
	case s.Background || s.Coprocess || s.Disown:
		sub := st.clone()
		sub.piped, sub.behind = true, true
		w.command(s, sub)
	default:
		w.command(s, st)
	}
	if s.Negated {
		st.ok = nil
	}
}

// command walks what a statement runs, inside its redirections.
func (w *walker) command(s *syntax.Stmt, st *state) {
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if isCall && len(call.Args) > 0 {
		w.call(call, s.Redirs, st)
		return
	}
	if len(s.Redirs) == 0 {
		if s.Cmd != nil {
			w.compound(s.Cmd, st)
		}
		return
	}
	// The descriptors of a group belong to a command of their own.
	io := w.redirect(s.Redirs, st, true)
	in, out := st.in, st.out
	before := -1
	if len(io.files) > 0 || io.flows != nil {
		before = w.emit(st, Command{Kind: Builtin, Redirects: io.files}, io.flows...)
		if io.in != nil && len(io.in.from) == 0 && !io.in.known && before >= 0 {
			io.in.from, io.in.whole = []int{before}, true
		}
	}
	if io.in != nil {
		st.in = io.in
	}
	if io.moved {
		st.out = io.out
	}
	if s.Cmd != nil {
		w.compound(s.Cmd, st)
	}
	st.in, st.out = in, out
	if io.file != nil && before >= 0 && before < len(w.cmds) {
		for _, i := range io.file.from {
			w.flow(i, before, FlowStdin)
		}
		w.content(before, io.file)
	}
	if st.ended && s.Cmd == nil {
		st.ended = false
	}
}

// content notes what is written to the file a command's output goes to.
func (w *walker) content(index int, k *sink) {
	for i := range w.cmds[index].Redirects {
		r := &w.cmds[index].Redirects[i]
		if r.Write && !r.Read && strings.IndexByte(k.s, 0) < 0 {
			s := k.s
			r.Content = &s
		}
	}
}

func (w *walker) compound(c syntax.Command, st *state) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		for _, a := range c.Assigns {
			w.assign(a, st, assignPlain)
		}
	case *syntax.Block:
		w.stmts(c.Stmts, st)
	case *syntax.Subshell:
		sub := st.clone()
		w.stmts(c.Stmts, sub)
	case *syntax.BinaryCmd:
		w.binary(c, st)
	case *syntax.IfClause:
		w.ifClause(c, st)
	case *syntax.WhileClause:
		w.loop(st, func(st *state) {
			w.stmts(c.Cond, st)
			body := st.clone()
			if st.ok != nil && !c.Until {
				body = st.ok.clone()
			}
			body.in, body.out = st.in, st.out
			w.stmts(c.Do, body)
			w.join(st, body)
		})
	case *syntax.ForClause:
		w.forClause(c, st)
	case *syntax.CaseClause:
		w.caseClause(c, st)
	case *syntax.FuncDecl:
		w.define(c, st)
	case *syntax.ArithmCmd:
		w.arithm(c.X, st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithm(x, st)
		}
	case *syntax.TestClause:
		w.test(c.X, st)
	case *syntax.DeclClause:
		w.declare(c, st)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(timed(c.Stmt), st)
		}
	case *syntax.CoprocClause:
		sub := st.clone()
		sub.piped, sub.in, sub.out = true, nil, nil
		w.stmt(c.Stmt, sub)
	default:
		w.opaque(st, fmt.Sprintf("%T is not known", c), nil, nil)
	}
}

// timed is what `time` runs: the shell takes one "--" for the end of its options, where
// the parser sees a command of that name.
func timed(s *syntax.Stmt) *syntax.Stmt {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || call.Args[0].Lit() != "--" {
		return s
	}
	out, inner := *s, *call
	inner.Args = call.Args[1:]
	out.Cmd = &inner
	return &out
}

func (w *walker) binary(c *syntax.BinaryCmd, st *state) {
	switch c.Op {
	case syntax.AndStmt:
		if w.leftSide(c.X, st) == never {
			st.ok = nil
			return
		}
		y := st.clone()
		if st.ok != nil {
			y = st.ok.clone()
		}
		y.in, y.out, y.fds = st.in, st.out, st.fds
		w.stmt(c.Y, y)
		ok := y
		if y.ok != nil {
			ok = y.ok
		}
		ok = ok.clone()
		w.join(st, y)
		if !ok.ended {
			st.ok = ok
		}
	case syntax.OrStmt:
		if w.leftSide(c.X, st) == always {
			return
		}
		ok := st.ok
		y := st.clone()
		w.stmt(c.Y, y)
		if y.ended && ok != nil {
			// "cd x || exit": what follows runs only where it worked.
			in, out, fds := st.in, st.out, st.fds
			*st = *ok.clone()
			st.in, st.out, st.fds = in, out, fds
			return
		}
		w.join(st, y)
	default:
		w.pipe(c, st)
	}
}

// pipe walks a pipeline; each part is a shell of its own.
func (w *walker) pipe(c *syntax.BinaryCmd, st *state) {
	var parts []*syntax.Stmt
	for {
		parts = append(parts, c.Y)
		x, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || x.Op != syntax.Pipe && x.Op != syntax.PipeAll || c.X.Negated || c.X.Background || len(c.X.Redirs) > 0 {
			parts = append(parts, c.X)
			break
		}
		c = x
	}
	slices.Reverse(parts)
	in := st.in
	for i, part := range parts {
		if w.stopped {
			return
		}
		sub := st.clone()
		sub.in, sub.piped = in, true
		if i < len(parts)-1 {
			sub.out = &sink{}
		}
		w.stmt(part, sub)
		if i == len(parts)-1 && w.o.Dialect == shelltext.Mksh {
			// Some Korn shells run the last part themselves.
			w.join(st, sub)
		}
		if i < len(parts)-1 {
			in = sub.out.piped()
		}
	}
	st.ok = nil
}

func (w *walker) ifClause(c *syntax.IfClause, st *state) {
	w.nodes += len(st.vars)
	if len(c.Cond) > 0 {
		w.stmts(c.Cond, st)
	}
	then := st.clone()
	if st.ok != nil {
		then = st.ok.clone()
	}
	then.in, then.out = st.in, st.out
	holds := maybe
	if len(c.Cond) == 1 {
		holds = w.tells(c.Cond[0], st)
	}
	if holds == never {
		then.ended = true
	} else {
		w.stmts(c.Then, then)
	}
	switch {
	case holds == always:
		st.ended = true
	case c.Else == nil:
	case len(c.Else.Cond) == 0:
		w.stmts(c.Else.Then, st)
	default:
		w.ifClause(c.Else, st)
	}
	w.join(st, then)
}

func (w *walker) caseClause(c *syntax.CaseClause, st *state) {
	w.word(c.Word, st)
	end, falls, taken := st.clone(), false, false
	end.ended = true
	for _, item := range c.Items {
		matches, any := never, false
		for _, p := range item.Patterns {
			w.word(p, st)
			any = any || p.Lit() == "*"
			if matches == never {
				matches = w.matches(c.Word, p, st)
			}
		}
		if matches == never && !falls {
			continue
		}
		falls, taken = item.Op != syntax.Break, taken || any
		branch := st.clone()
		w.stmts(item.Stmts, branch)
		w.join(end, branch)
		if item.Op != syntax.Break {
			// The next branch may begin where this one ends.
			w.join(st, branch)
		}
	}
	st.ended = st.ended || taken // one of the branches was
	w.join(st, end)
}

func (w *walker) define(c *syntax.FuncDecl, st *state) {
	if c.Name == nil {
		w.opaque(st, "a function without a name", nil, nil)
		return
	}
	name := c.Name.Value
	if name == "command_not_found_handle" {
		w.opaque(st, "it defines "+name, nil, nil)
	}
	st.own()
	st.funcs[name] = definition{bodies: []*syntax.FuncDecl{c}}
}
