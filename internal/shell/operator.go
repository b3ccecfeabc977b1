package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// operate applies the operator of an expansion.
func (w *walker) operate(p *syntax.ParamExp, v value, st *state) value {
	switch {
	case p.Names != 0, p.Width, p.Excl && p.Index != nil && (shelltext.Index(p) == "@" || shelltext.Index(p) == "*"):
		return value{{s: HoleSplit}}
	case p.Length:
		if s, ok := v.one(); ok && p.Index == nil && p.Param.Value != "@" && p.Param.Value != "*" {
			return constant(strconv.Itoa(len([]rune(s))))
		}
		return number()
	case p.Excl:
		v = w.indirect(v, st)
	}
	switch {
	case p.Slice != nil:
		return w.slice(p.Slice, v, st)
	case p.Repl != nil:
		return w.replace(p.Repl, v, st)
	case p.Exp != nil:
		return w.expansion(p, v, st)
	}
	return v
}

// indirect is ${!x}: the variable that x names.
func (w *walker) indirect(v value, st *state) value {
	var out value
	for _, t := range v {
		switch {
		case !t.exact():
			out = out.or(unknown(t.from))
		case name(t.s) || len(t.s) == 1 || strings.Trim(t.s, "0123456789") == "":
			out = out.or(w.named(t.s, st))
		default:
			if strings.ContainsAny(t.s, "[") {
				w.opaque(st, "a subscript in the value of a variable can run code", nil, t.from)
			}
			out = out.or(unknown(t.from))
		}
	}
	return out
}

func name(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (w *walker) slice(s *syntax.Slice, v value, st *state) value {
	from, ok1 := w.integer(s.Offset, st)
	n, ok2 := 0, true
	if s.Length != nil {
		n, ok2 = w.integer(s.Length, st)
	}
	if !ok1 || !ok2 {
		return unknown(v.sources())
	}
	return v.each(func(t string) string {
		r := []rune(t)
		at := from
		if at < 0 {
			at += len(r)
		}
		if at < 0 || at > len(r) {
			return ""
		}
		end := len(r)
		switch {
		case s.Length == nil:
		case n < 0:
			end = max(at, len(r)+n)
		default:
			end = min(len(r), at+n)
		}
		return string(r[at:end])
	})
}

// replace folds ${x/a/b} for patterns without special characters.
func (w *walker) replace(r *syntax.Replace, v value, st *state) value {
	from, ok1 := w.scalar(r.Orig, st).one()
	to, ok2 := "", true
	if r.With != nil {
		to, ok2 = w.scalar(r.With, st).one()
	}
	if ok1 && ok2 && r.All && from == "/" && strings.IndexByte(to, '/') < 0 && !v.known() {
		return v.eachName()
	}
	if !ok1 || !ok2 || strings.ContainsAny(from, `*?[\(`) || strings.IndexByte(to, '&') >= 0 || from == "" || from[0] == '#' || from[0] == '%' || !v.known() {
		return unknown(v.sources())
	}
	return v.each(func(t string) string {
		if r.All {
			return strings.ReplaceAll(t, from, to)
		}
		return strings.Replace(t, from, to, 1)
	})
}

func (w *walker) expansion(p *syntax.ParamExp, v value, st *state) value {
	op := p.Exp.Op
	switch op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
		syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return w.fallback(p, v, st)
	}
	arg := w.scalar(p.Exp.Word, st)
	pattern, ok := arg.one()
	switch op {
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return v.trim(op, pattern, ok)
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		if !ok || pattern != "" {
			return unknown(v.sources())
		}
		return v.each(func(t string) string { return changeCase(op, t) })
	case syntax.OtherParamOps:
		if pattern == "P" {
			// Expanding a value as a prompt runs the substitutions in it.
			for _, t := range v {
				if !t.known() || strings.ContainsAny(t.s, "$`") {
					w.opaque(st, "expanding a value as a prompt can run code", nil, t.from)
				}
			}
		}
		return unknown(v.sources())
	}
	return unknown(v.sources())
}

// trim folds ${x%y} and its like.
func (v value) trim(op syntax.ParExpOperator, pattern string, ok bool) value {
	out := make(value, 0, len(v))
	for _, t := range v {
		switch {
		case !ok:
			out = out.or(unknown(t.from))
			continue
		case !t.known() && (op == syntax.RemLargePrefix && pattern == "*/" || t.name()):
			out = out.or(value{{s: HoleName, from: t.from}})
			continue
		case !t.known() || strings.ContainsAny(pattern, `?[\(`):
			out = out.or(unknown(t.from))
			continue
		}
		s, fine := trimOne(op, t.s, pattern)
		if !fine {
			out = out.or(unknown(t.from))
			continue
		}
		t.s = s
		out = out.or(value{t})
	}
	return out
}

// trimOne handles patterns of literal text with at most one star at the end where
// the cut is: "*/", ".*", "##*/", "%%.*".
func trimOne(op syntax.ParExpOperator, s, pattern string) (string, bool) {
	star := strings.Count(pattern, "*")
	switch op {
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if star == 0 {
			return strings.TrimSuffix(s, pattern), true
		}
		lit, found := strings.CutSuffix(pattern, "*")
		if !found || star > 1 {
			return "", false
		}
		i := strings.LastIndex(s, lit)
		if op == syntax.RemLargeSuffix {
			i = strings.Index(s, lit)
		}
		if i < 0 {
			return s, true
		}
		return s[:i], true
	}
	if star == 0 {
		return strings.TrimPrefix(s, pattern), true
	}
	lit, found := strings.CutPrefix(pattern, "*")
	if !found || star > 1 {
		return "", false
	}
	i := strings.Index(s, lit)
	if op == syntax.RemLargePrefix {
		i = strings.LastIndex(s, lit)
	}
	if i < 0 {
		return s, true
	}
	return s[i+len(lit):], true
}

func changeCase(op syntax.ParExpOperator, s string) string {
	switch op {
	case syntax.UpperAll:
		return strings.ToUpper(s)
	case syntax.LowerAll:
		return strings.ToLower(s)
	}
	r := []rune(s)
	if len(r) == 0 {
		return s
	}
	if op == syntax.UpperFirst {
		return strings.ToUpper(string(r[0])) + string(r[1:])
	}
	return strings.ToLower(string(r[0])) + string(r[1:])
}

// fallback is ${x:-y} and its like.
func (w *walker) fallback(p *syntax.ParamExp, v value, st *state) value {
	op := p.Exp.Op
	null := op == syntax.DefaultUnsetOrNull || op == syntax.AssignUnsetOrNull || op == syntax.ErrorUnsetOrNull || op == syntax.AlternateUnsetOrNull
	var present value
	absent := false
	for _, t := range v {
		switch {
		case !t.known():
			// It may be absent, or empty.
			present, absent = append(present, t), true
		case t.unset, null && t.s == "":
			absent = true
		default:
			present = append(present, t)
		}
	}
	word := value(nil)
	if absent || op == syntax.AlternateUnset || op == syntax.AlternateUnsetOrNull {
		word = w.scalar(p.Exp.Word, st)
	} else {
		w.word(p.Exp.Word, st)
	}
	out := present
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		out = nil
		if len(present) > 0 {
			out = word
		}
		if absent {
			out = append(value{}, out...).or(constant(""))
		}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
	default:
		if absent {
			out = append(value{}, out...).or(word)
			if op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull {
				w.assignValue(st, p.Param.Value, out)
			}
		}
	}
	if len(out) == 0 {
		return constant("")
	}
	return out
}
