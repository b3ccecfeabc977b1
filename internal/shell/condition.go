package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// test walks what stands in [[ ]]. Its numeric comparisons evaluate their operands
// as expressions.
func (w *walker) test(x syntax.TestExpr, st *state) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.arithmWord(word, st)
				}
			}
			return
		}
		w.test(x.X, st)
		w.test(x.Y, st)
	case *syntax.UnaryTest:
		if word, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			for _, t := range w.scalar(word, st) {
				if !t.known() || strings.ContainsRune(t.s, '[') && strings.ContainsAny(t.s, "$`") {
					w.opaque(st, "a subscript in a name can run code", nil, t.from)
				}
			}
			return
		}
		w.test(x.X, st)
	case *syntax.ParenTest:
		w.test(x.X, st)
	case *syntax.Word:
		w.word(x, st)
	}
}

// tristate is what is known of a condition before it is asked.
type tristate int8

const (
	maybe tristate = iota
	never
	always
)

func (t tristate) not() tristate { return [...]tristate{maybe, always, never}[t] }

func whether(holds bool) tristate {
	if holds {
		return always
	}
	return never
}

// tells says how a statement ends that only compares texts: what scripts ask about the system, and
// before they restore what they have saved. It is asked after the statement was walked, so that every
// value which a variable has meanwhile is among those that are compared.
func (w *walker) tells(s *syntax.Stmt, st *state) tristate {
	if s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return maybe
	}
	t := maybe
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Assigns) == 0 && len(c.Args) > 1 {
			t = w.bracket(c.Args, st)
		}
	case *syntax.TestClause:
		t = w.compares(c.X, st)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			if t = w.ends[c.X]; t == always {
				t = w.tells(c.Y, st)
			}
		case syntax.OrStmt:
			if t = w.ends[c.X]; t == never {
				t = w.tells(c.Y, st)
			}
		}
	case *syntax.Subshell:
		if len(c.Stmts) == 1 {
			t = w.tells(c.Stmts[0], st)
		}
	case *syntax.Block:
		if len(c.Stmts) == 1 {
			t = w.tells(c.Stmts[0], st)
		}
	}
	if s.Negated {
		return t.not()
	}
	return t
}

// leftSide walks what stands before && or || and keeps how it ends: a list of a thousand is not to be asked
// from its beginning for each of them.
func (w *walker) leftSide(s *syntax.Stmt, st *state) tristate {
	w.stmt(s, st)
	t := w.tells(s, st)
	if w.ends == nil {
		w.ends = map[*syntax.Stmt]tristate{}
	}
	w.ends[s] = t
	return t
}

// bracket is test and [, whose words may be split.
func (w *walker) bracket(args []*syntax.Word, st *state) tristate {
	head := args[0].Lit()
	switch {
	case w.isFunction(st, head):
		return maybe
	case head == "[" && args[len(args)-1].Lit() == "]":
		args = args[:len(args)-1]
	case head != "test":
		return maybe
	}
	args = args[1:]
	if len(args) > 2 && len(args) < 5 && args[0].Lit() == "!" {
		// "! = x" would compare.
		if len(args) == 4 || slices.Contains([]string{"-n", "-z", "-d", "-e"}, args[1].Lit()) {
			return w.brackets(args[1:], st).not()
		}
		return maybe
	}
	return w.brackets(args, st)
}

func (w *walker) brackets(args []*syntax.Word, st *state) tristate {
	switch len(args) {
	case 2:
		if op := args[0].Lit(); op == "-d" || op == "-e" {
			return w.holdsFile(args[1], st)
		}
		return w.measures(args[0].Lit(), args[1], st, true)
	case 3:
		switch args[1].Lit() {
		case "=", "==":
			return w.alike(args[0], args[2], st, true)
		case "!=":
			return w.alike(args[0], args[2], st, true).not()
		}
	}
	return maybe
}

// compares is [[ ]], in which nothing is split.
func (w *walker) compares(x syntax.TestExpr, st *state) tristate {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return w.compares(x.X, st)
	case *syntax.UnaryTest:
		word, _ := x.X.(*syntax.Word)
		switch {
		case x.Op == syntax.TsNot:
			return w.compares(x.X, st).not()
		case word != nil && (x.Op == syntax.TsNempStr || x.Op == syntax.TsEmpStr):
			return w.measures(x.Op.String(), word, st, false)
		}
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			if t := w.compares(x.X, st); t != always {
				return t
			}
			return w.compares(x.Y, st)
		case syntax.OrTest:
			if t := w.compares(x.X, st); t != never {
				return t
			}
			return w.compares(x.Y, st)
		}
		a, ok := x.X.(*syntax.Word)
		b, also := x.Y.(*syntax.Word)
		if !ok || !also {
			return maybe
		}
		switch x.Op {
		case syntax.TsMatch, syntax.TsMatchShort:
			return w.matches(a, b, st)
		case syntax.TsNoMatch:
			return w.matches(a, b, st).not()
		}
	}
	return maybe
}

// holdsFile reports a directory that surely is there: the file that is being read lies in it.
func (w *walker) holdsFile(word *syntax.Word, st *state) tristate {
	if v, ok := w.told(word, st, true); ok && w.file != "" && v.agreed(func(t text) tristate {
		return whether(t.exact() && !t.unset && filepath.IsAbs(t.s) && strings.HasPrefix(w.file, t.s+"/"))
	}) == always {
		return always
	}
	return maybe
}

// measures is -n and -z.
func (w *walker) measures(op string, word *syntax.Word, st *state, splits bool) tristate {
	if op != "-n" && op != "-z" {
		return maybe
	}
	v, ok := w.told(word, st, splits)
	if !ok {
		return maybe
	}
	return v.agreed(func(t text) tristate {
		switch {
		case t.s == "":
			return whether(op == "-z")
		case t.unset || t.rough || strings.Trim(plainHoles.Replace(t.s), Hole) == "":
			return maybe
		}
		return whether(op == "-n")
	})
}

func (w *walker) alike(a, b *syntax.Word, st *state, splits bool) tristate {
	x, ok := w.told(a, st, splits)
	y, also := w.told(b, st, splits)
	if !ok || !also {
		return maybe
	}
	return x.agreed(func(a text) tristate { return y.agreed(a.equals) })
}

// matches compares with a pattern. nocasematch may be set, so that the case of letters does not count.
func (w *walker) matches(word, pattern *syntax.Word, st *state) tristate {
	begin, open := pattern, false
	if lit := pattern.Lit(); lit != "" {
		if i := strings.IndexAny(lit, `*?[\`); i >= 0 {
			begin, open = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: lit[:i]}}}, true
		}
	}
	x, ok := w.told(word, st, false)
	y, also := w.told(begin, st, false)
	if !ok || !also {
		return maybe
	}
	return x.agreed(func(a text) tristate {
		return y.agreed(func(b text) tristate {
			if strings.ContainsAny(b.s, `+@!(*?[\`) {
				return maybe
			}
			if open {
				b.s += Hole
			}
			if a.equals(b) == always {
				return always
			}
			if a.s, b.s = strings.ToLower(a.s), strings.ToLower(b.s); a.equals(b) == never {
				return never
			}
			return maybe
		})
	})
}

// equals compares two texts as far as they are known.
func (t text) equals(u text) tristate {
	switch {
	case t.rough || u.rough || t.unset || u.unset:
		return maybe
	case apart(t.s, u.s):
		return never
	case t.known() && u.known():
		return always
	}
	return maybe
}

// apart reports that two texts, of which only what stands before a hole counts, begin differently.
func apart(a, b string) bool {
	x, _, open := strings.Cut(a, Hole)
	y, _, also := strings.Cut(b, Hole)
	n := min(len(x), len(y))
	return x[:n] != y[:n] || !open && len(x) < len(y) || !also && len(y) < len(x)
}

// agreed is what f says of every alternative, maybe if they differ.
func (v value) agreed(f func(text) tristate) tristate {
	t := f(v[0])
	for _, other := range v[1:] {
		if f(other) != t {
			return maybe
		}
	}
	return t
}

// told is the value of a word of which it is sure what it will be: it is made of text, of variables that the
// text sets to such words or that come from the environment, and of what this system is called. What the
// shell finds out itself, such as $PWD and $0, is good enough for the words of a command, whose program sees them,
// and not for leaving out a part of the text. splits: what is not quoted becomes words.
func (w *walker) told(word *syntax.Word, st *state, splits bool) (value, bool) {
	v := constant("")
	add := func(u value) bool {
		var out value
		for _, a := range v {
			for _, b := range u {
				out = append(out, concat(a, b))
			}
		}
		v = out
		return len(v) <= maxAlternatives
	}
	if word == nil {
		return v, true
	}
	if w.fixed {
		return nil, false
	}
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(part.Value, `*?[\{`) || strings.HasPrefix(part.Value, "~") || !add(constant(part.Value)) {
				return nil, false
			}
		case *syntax.SglQuoted:
			if part.Dollar || !add(constant(part.Value)) {
				return nil, false
			}
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				u, ok := value(nil), false
				switch inner := inner.(type) {
				case *syntax.Lit:
					u, ok = constant(inner.Value), !strings.Contains(inner.Value, `\`)
				case *syntax.ParamExp:
					u, ok = w.sure(inner, st)
				case *syntax.CmdSubst:
					u, ok = w.system(inner, st)
				}
				if !ok || !add(u) {
					return nil, false
				}
			}
		case *syntax.ParamExp:
			u, ok := w.sure(part, st)
			if !ok || splits && (st.ifs || slices.ContainsFunc(u, func(t text) bool { return !t.exact() || t.unset || t.s == "" || strings.ContainsAny(t.s, " \t\n*?[\\") })) || !add(u) {
				return nil, false
			}
		case *syntax.CmdSubst:
			if u, ok := w.system(part, st); splits || !ok || !add(u) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

// sure is the value of a variable of which nothing but the text or the environment decides.
func (w *walker) sure(p *syntax.ParamExp, st *state) (value, bool) {
	if p.Param == nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Excl || p.Length || p.Width || p.Names != 0 ||
		p.Exp != nil && (!defaults(p.Exp.Op) || p.Exp.Word != nil && p.Exp.Word.Lit() == "") {
		return nil, false
	}
	n := p.Param.Value
	if !name(n) || strings.HasPrefix(n, "BASH") || strings.HasPrefix(n, "COMP_") || counts(n) || w.volatile[n] {
		return nil, false
	}
	switch n {
	case "PWD", "OLDPWD", "HOME", "PATH", "IFS", "UID", "EUID", "PPID", "SHLVL", "SHELLOPTS", "FUNCNAME", "GROUPS", "DIRSTACK", "PIPESTATUS", "LINES", "COLUMNS", "HOSTNAME", "HOSTTYPE", "MACHTYPE",
		"OPTARG", "REPLY", "EPOCHREALTIME", "PS4", "_":
		return nil, false
	}
	if have := st.vars[n]; have != nil && !have.literal {
		return nil, false
	}
	return w.operate(p, w.value(p, st), st), true
}

// system is what `uname` prints.
func (w *walker) system(c *syntax.CmdSubst, st *state) (value, bool) {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 || c.Stmts[0].Negated || c.Stmts[0].Background || systemName() == "" || w.isFunction(st, "uname") || st.vars["PATH"] != nil {
		return nil, false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || len(call.Args) > 2 || call.Args[0].Lit() != "uname" || len(call.Args) == 2 && call.Args[1].Lit() != "-s" {
		return nil, false
	}
	return constant(systemName()), true
}
