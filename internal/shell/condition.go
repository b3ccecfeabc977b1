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
