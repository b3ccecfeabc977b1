package shell

import (
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

// neverHolds reports the condition [ -n "$x" ] where x is surely empty: what scripts ask before
// they restore something that they have not saved.
func (w *walker) neverHolds(cond []*syntax.Stmt, st *state) bool {
	if len(cond) != 1 || cond[0].Negated || cond[0].Background || cond[0].Coprocess || len(cond[0].Redirs) > 0 {
		return false
	}
	call, ok := cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) < 3 || call.Args[1].Lit() != "-n" {
		return false
	}
	if head := call.Args[0].Lit(); head == "[" && (len(call.Args) != 4 || call.Args[3].Lit() != "]") || head == "test" && len(call.Args) != 3 || head != "[" && head != "test" || w.isFunction(st, head) {
		return false
	}
	parts := call.Args[2].Parts
	if len(parts) != 1 {
		return false
	}
	q, ok := parts[0].(*syntax.DblQuoted)
	if !ok || len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Excl || p.Length || p.Exp != nil && (!defaults(p.Exp.Op) || p.Exp.Word != nil) {
		return false
	}
	v := w.operate(p, w.value(p, st), st)
	return len(v) == 1 && v[0].exact() && v[0].s == ""
}
