package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/prints"
)

// integer evaluates an expression that is constant.
func (w *walker) integer(x syntax.ArithmExpr, st *state) (int, bool) {
	if x == nil {
		return 0, false
	}
	s, ok := w.arithm(x, st).one()
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// subscript walks the subscript of an array. That of an associative one is a string,
// but in an indexed one the value of a variable is evaluated as an expression.
func (w *walker) subscript(v *variable, x syntax.ArithmExpr, st *state) {
	word, plain := x.(*syntax.Word)
	switch {
	case x == nil:
	case v.assoc && plain:
		w.word(word, st)
	default:
		w.arithm(x, st)
	}
}

// arithm evaluates an expression and walks what runs inside it. The shell evaluates
// the value of a variable as an expression too, in which a subscript can run code;
// so text from outside is opaque there.
func (w *walker) arithm(x syntax.ArithmExpr, st *state) value {
	switch x := x.(type) {
	case nil:
		return number()
	case *syntax.Word:
		return w.arithmWord(x, st)
	case *syntax.ParenArithm:
		return w.arithm(x.X, st)
	case *syntax.UnaryArithm:
		v := w.arithm(x.X, st)
		switch x.Op {
		case syntax.Inc, syntax.Dec:
			w.arithmAssign(x.X, number(), st)
			return number()
		}
		s, ok := v.one()
		n, err := strconv.Atoi(s)
		if !ok || err != nil {
			return number()
		}
		switch x.Op {
		case syntax.Minus:
			n = -n
		case syntax.BitNegation:
			n = ^n
		case syntax.Not:
			n = truth(n == 0)
		}
		return constant(strconv.Itoa(n))
	case *syntax.BinaryArithm:
		return w.arithmBinary(x, st)
	case *syntax.FlagsArithm:
		return w.arithm(x.X, st)
	}
	w.opaque(st, "an arithmetic expression that is not known", nil, nil)
	return number()
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *walker) arithmBinary(x *syntax.BinaryArithm, st *state) value {
	switch x.Op {
	case syntax.Assgn:
		v := w.arithm(x.Y, st)
		w.arithmAssign(x.X, v, st)
		return v
	case syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn,
		syntax.ShlAssgn, syntax.ShrAssgn, syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
		w.arithm(x.X, st)
		w.arithm(x.Y, st)
		w.arithmAssign(x.X, number(), st)
		return number()
	}
	a, okA := w.arithm(x.X, st).one()
	b, okB := w.arithm(x.Y, st).one()
	m, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !okA || !okB || err1 != nil || err2 != nil {
		return number()
	}
	f := binary[x.Op]
	if f == nil || n == 0 && (x.Op == syntax.Quo || x.Op == syntax.Rem) || (n < 0 || n > 62) && (x.Op == syntax.Shl || x.Op == syntax.Shr) {
		return number()
	}
	return constant(strconv.Itoa(f(m, n)))
}

// binary are the operators of two numbers.
var binary = map[syntax.BinAritOperator]func(m, n int) int{
	syntax.Add:     func(m, n int) int { return m + n },
	syntax.Sub:     func(m, n int) int { return m - n },
	syntax.Mul:     func(m, n int) int { return m * n },
	syntax.Quo:     func(m, n int) int { return m / n },
	syntax.Rem:     func(m, n int) int { return m % n },
	syntax.And:     func(m, n int) int { return m & n },
	syntax.Or:      func(m, n int) int { return m | n },
	syntax.Xor:     func(m, n int) int { return m ^ n },
	syntax.Shl:     func(m, n int) int { return m << n },
	syntax.Shr:     func(m, n int) int { return m >> n },
	syntax.Eql:     func(m, n int) int { return truth(m == n) },
	syntax.Neq:     func(m, n int) int { return truth(m != n) },
	syntax.Lss:     func(m, n int) int { return truth(m < n) },
	syntax.Gtr:     func(m, n int) int { return truth(m > n) },
	syntax.Leq:     func(m, n int) int { return truth(m <= n) },
	syntax.Geq:     func(m, n int) int { return truth(m >= n) },
	syntax.AndArit: func(m, n int) int { return truth(m != 0 && n != 0) },
	syntax.OrArit:  func(m, n int) int { return truth(m != 0 || n != 0) },
	syntax.Comma:   func(_, n int) int { return n },
}

func (w *walker) arithmAssign(x syntax.ArithmExpr, v value, st *state) {
	word, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	if n := word.Lit(); name(n) {
		w.assignValue(st, n, v)
		return
	}
	if len(word.Parts) == 1 {
		if p, ok := word.Parts[0].(*syntax.ParamExp); ok && p.Param != nil && p.Index != nil {
			w.assignElement(st, p.Param.Value, p.Index, v, false)
		}
	}
}

// arithmWord is a word inside an expression: a number, a name, an expansion.
func (w *walker) arithmWord(word *syntax.Word, st *state) value {
	v := w.scalar(word, st)
	if len(word.Parts) == 1 {
		if p, ok := word.Parts[0].(*syntax.ParamExp); ok && p.Short && p.Index != nil {
			w.subscriptTwice(p, st)
		}
	}
	if n := word.Lit(); n != "" {
		switch {
		case name(n):
			v = w.named(n, st)
		case len(n) > 1 && n[0] == '0': // octal, or 0x and hexadecimal
			if i, err := strconv.ParseInt(n, 0, 63); err == nil {
				return constant(strconv.FormatInt(i, 10))
			}
			return number()
		}
	}
	for _, t := range v {
		switch {
		case t.unset && len(t.from) == 0:
		case !t.known():
			w.expression(st, t)
			return number()
		case t.s == "" || prints.IsNumber(t.s):
		case name(t.s):
			return number()
		case strings.ContainsAny(t.s, "[$`"):
			w.evaluate(t.s, st)
			return number()
		default:
			return number()
		}
	}
	if s, ok := v.one(); ok && s == "" {
		return constant("0")
	}
	if !v.known() {
		return number()
	}
	return v
}

// expression lists text that is evaluated as an expression.
func (w *walker) expression(st *state, t text) {
	if i := w.opaque(st, "text that is not known is evaluated as an expression, which can run code", nil, t.from); i >= 0 {
		w.cmds[i].Expression = true
	}
}

// subscriptTwice walks the subscript of an associative array in an expression, ((c[$k]++)), which the shell expands twice.
func (w *walker) subscriptTwice(p *syntax.ParamExp, st *state) {
	word, plain := p.Index.(*syntax.Word)
	if !plain || !w.lookup(st, p.Param.Value).assoc {
		return
	}
	for _, t := range w.scalar(word, st) {
		if !t.known() || strings.ContainsAny(t.s, "$`") {
			w.expression(st, t)
		}
	}
}

// evaluate reads constant text as an expression of its own.
func (w *walker) evaluate(s string, st *state) {
	if w.depth >= w.o.Limits.Nesting {
		w.opaque(st, "nested too deeply", nil, nil)
		return
	}
	x, err := w.o.Dialect.Parser().Arithmetic(strings.NewReader(s))
	if err != nil || x == nil {
		w.opaque(st, "text that is evaluated as an expression cannot be read", nil, nil)
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	w.arithm(x, st)
}
