package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// param expands a parameter to its alternatives as a part of a word.
func (w *walker) param(p *syntax.ParamExp, st *state, q quoting, splits bool) []piece {
	if p.Param == nil {
		w.opaque(st, "an expansion that is not known", nil, nil)
		return []piece{{fields: fields{{s: HoleSplit}}}}
	}
	if p.Index != nil {
		if i := shelltext.Index(p); i != "@" && i != "*" {
			w.subscript(w.lookup(st, w.deref(st, p.Param.Value)), p.Index, st)
		}
	}
	w.insides(p, st)
	plain := p.Exp == nil && p.Slice == nil && p.Repl == nil && !p.Length && !p.Excl && !p.Width && p.Names == 0
	if list, ok := w.keysOf(p, st); ok {
		return w.listPieces(p, list, st, q, splits)
	}
	if plain {
		if list, ok := w.list(p, st); ok {
			return w.listPieces(p, list, st, q, splits)
		}
	} else if list, ok := w.list(p, st); ok {
		// An operation on each of many values.
		return w.perElement(p, list, st, q, splits)
	}
	v := w.operate(p, w.value(p, st), st)
	if !plain {
		v = v.changed()
	}
	return pieces(v, q, splits, st)
}

// insides walks what runs inside an expansion's own words.
func (w *walker) insides(p *syntax.ParamExp, st *state) {
	if p.Repl != nil {
		w.word(p.Repl.Orig, st)
		w.word(p.Repl.With, st)
	}
	if p.Slice != nil {
		w.arithm(p.Slice.Offset, st)
		w.arithm(p.Slice.Length, st)
	}
}

// list is the values of $@, $* and whole arrays.
func (w *walker) list(p *syntax.ParamExp, st *state) (list []value, ok bool) {
	name, i := p.Param.Value, shelltext.Index(p)
	switch {
	case p.Excl && (i == "@" || i == "*"), p.Length:
		return nil, false
	case name == "@" || name == "*":
		if st.paramsOpen {
			return []value{{{s: HoleSplit}}}, true
		}
		return st.params, true
	case i == "@" || i == "*":
		v := w.lookup(st, w.deref(st, name))
		switch {
		case !v.array:
			if len(v.val) == 1 && v.val[0].unset {
				return nil, true
			}
			return []value{v.val}, true
		case v.open:
			return []value{{{s: HoleSplit, from: v.val.sources(), whole: v.val[0].whole}}}, true
		}
		return v.elems, true
	}
	return nil, false
}

// keysOf is ${!x[@]}: those of an array that is known, or numbers.
func (w *walker) keysOf(p *syntax.ParamExp, st *state) (list []value, ok bool) {
	if i := shelltext.Index(p); !p.Excl || i != "@" && i != "*" || p.Exp != nil || p.Slice != nil || p.Repl != nil || p.Length {
		return nil, false
	}
	v := w.lookup(st, w.deref(st, p.Param.Value))
	switch {
	case !v.array:
		return nil, false
	case !v.open:
		for _, k := range v.keys {
			list = append(list, constant(k))
		}
		return list, true
	}
	return []value{number()}, !v.assoc && !v.mixed
}

// listPieces is a list as a part of a word: "$@" is many words, "$*" one.
func (w *walker) listPieces(p *syntax.ParamExp, list []value, st *state, q quoting, splits bool) []piece {
	joined := p.Param.Value == "*" || shelltext.Index(p) == "*"
	alts := []fields{{}}
	for _, v := range list {
		if len(alts)*len(v) > maxAlternatives {
			v = value{{s: HoleSplit, from: v.sources()}}
		}
		if len(alts) == 1 && len(v) == 1 {
			t := v[0]
			t.unset = false
			alts[0] = append(alts[0], t)
			continue
		}
		next := make([]fields, 0, len(alts)*len(v))
		for _, a := range alts {
			for _, t := range v {
				t.unset = false
				next = append(next, append(append(fields(nil), a...), t))
			}
		}
		alts = next
	}
	out := make([]piece, 0, len(alts))
	for _, a := range alts {
		switch {
		case q == quoted && !joined:
			out = append(out, piece{fields: a, quoted: true})
		case q == unquoted && splits:
			x := piece{}
			for _, t := range a {
				x.fields = append(x.fields, split(t).fields...)
			}
			out = append(out, x)
		default:
			out = append(out, piece{fields: fields{joinFields(a)}, quoted: true})
		}
	}
	return out
}

func joinFields(a fields) text {
	t := text{}
	var b strings.Builder
	for i, f := range a {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.s)
		t.glob, t.rough = t.glob || f.glob, t.rough || f.rough
		t.from = union(t.from, f.from)
	}
	if t.s = b.String(); len(t.s) > maxText {
		t.s = Hole
	}
	return t
}

// perElement applies an operation to every value of a list.
func (w *walker) perElement(p *syntax.ParamExp, list []value, st *state, q quoting, splits bool) []piece {
	if p.Slice != nil {
		from, ok1 := w.integer(p.Slice.Offset, st)
		n, ok2 := len(list), true
		if p.Slice.Length != nil {
			n, ok2 = w.integer(p.Slice.Length, st)
		}
		if p.Param.Value == "@" || p.Param.Value == "*" {
			list = append([]value{st.name}, list...)
		}
		if !ok1 || !ok2 || from < 0 || n < 0 {
			var sources []int
			for _, v := range list {
				sources = union(sources, v.sources())
			}
			return []piece{{fields: fields{{s: HoleSplit, from: sources}}}}
		}
		list = list[min(from, len(list)):]
		list = list[:min(n, len(list))]
		return w.listPieces(p, list, st, q, splits)
	}
	if p.Exp != nil && len(list) == 0 {
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			return w.operand(p.Exp.Word, st, q, splits)
		}
	}
	if p.Exp != nil && len(list) > 0 {
		switch p.Exp.Op {
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			return w.operand(p.Exp.Word, st, q, splits)
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			w.word(p.Exp.Word, st)
			return w.listPieces(p, list, st, q, splits)
		}
	}
	out := make([]value, len(list))
	for i, v := range list {
		out[i] = w.operate(p, v, st).changed()
	}
	return w.listPieces(p, out, st, q, splits)
}

// operand expands the word of ${x:-word} where the expansion stands.
func (w *walker) operand(word *syntax.Word, st *state, q quoting, splits bool) []piece {
	if word == nil {
		return []piece{{quoted: q != unquoted, fields: fields{{}}}}
	}
	var out []piece
	for _, a := range w.parts(word.Parts, st, q, splits) {
		out = append(out, piece{fields: a.finish(), quoted: true})
	}
	return out
}

// defaults reports operators with which a text says what holds where a variable is not set.
func defaults(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return true
	}
	return false
}

// value is what a parameter holds before any operator.
func (w *walker) value(p *syntax.ParamExp, st *state) value {
	n := p.Param.Value
	if p.Index == nil {
		if p.Exp != nil && defaults(p.Exp.Op) && name(n) && st.vars[n] == nil && w.o.Absent != nil && w.o.Absent(n) {
			return value{{unset: true}}
		}
		return w.named(n, st)
	}
	v := w.lookup(st, w.deref(st, n))
	if !v.array {
		if n, ok := w.integer(p.Index, st); ok && n == 0 {
			return v.val
		}
		return v.val.or(value{{unset: true}})
	}
	key, ok := w.key(v, p.Index, st)
	if !ok || v.open {
		return v.all()
	}
	for i, k := range v.keys {
		if k == key {
			return v.elems[i]
		}
	}
	return value{{unset: true}}
}

// key is a subscript as the key of an element.
func (w *walker) key(v *variable, x syntax.ArithmExpr, st *state) (string, bool) {
	if word, ok := x.(*syntax.Word); ok {
		s, ok := w.scalar(word, st).one()
		if ok && s != "" {
			if _, err := strconv.Atoi(s); err != nil && !v.assoc {
				if v := w.lookup(st, s); len(v.val) == 1 && v.val[0].exact() && !v.val[0].unset {
					if _, err := strconv.Atoi(v.val[0].s); err == nil {
						return v.val[0].s, true
					}
				}
			}
			return s, true
		}
		return "", false
	}
	n, ok := w.integer(x, st)
	return strconv.Itoa(n), ok
}

// named is the value of a variable or a special parameter.
func (w *walker) named(name string, st *state) value {
	switch name {
	case "!", "COLUMNS", "LINES", "PIPESTATUS":
		// Empty until something ran in the background, and without a terminal.
		if st.vars[name] == nil {
			return append(constant(""), number()...)
		}
	case "UID", "EUID", "BASHPID", "LINENO", "EPOCHSECONDS", "RANDOM", "SRANDOM", "SECONDS":
		// A shell that is not bash may not have them.
		if st.vars[name] == nil {
			if w.o.Dialect != shelltext.Bash {
				return append(constant(""), number()...)
			}
			return number()
		}
	case "#", "?", "$", "PPID", "SHLVL":
		if name == "#" && !st.paramsOpen {
			return constant(strconv.Itoa(len(st.params)))
		}
		return number()
	case "OPTIND":
		if st.vars[name] == nil {
			return number()
		}
	case "-", "_", "FUNCNAME", "DIRSTACK", "GROUPS", "HOSTNAME", "BASH", "REPLY", "OPTARG", "SHELLOPTS", "BASHOPTS", "HOSTTYPE", "MACHTYPE", "HISTCMD", "EPOCHREALTIME", "PS4", "COMP_WORDBREAKS":
		if st.vars[name] == nil {
			return unknown(nil)
		}
	case "OSTYPE":
		if v := w.lookup(st, name).val; w.o.Dialect == shelltext.Bash && len(v) == 1 && v[0].unset {
			return value{{s: strings.ToLower(systemName()) + Hole}} // linux-gnu, linux-musl and more
		}
	case "0":
		return st.name
	case "PWD":
		if st.vars[name] == nil {
			return cwdValue(st.cwds, st.cwdUnknown)
		}
	case "OLDPWD":
		if st.vars[name] == nil {
			return cwdValue(st.oldCwds, len(st.oldCwds) == 0)
		}
	case "HOME":
		return w.home(st)
	}
	if strings.HasPrefix(name, "BASH_") && st.vars[name] == nil {
		return unknown(nil) // the text itself, among others
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		switch {
		case n <= len(st.params):
			return st.params[n-1]
		case st.paramsOpen:
			return unknown(nil)
		}
		return value{{unset: true}}
	}
	v := w.lookup(st, w.deref(st, name))
	if v.array {
		if v.open {
			return v.all()
		}
		for i, k := range v.keys {
			if k == "0" {
				return v.elems[i]
			}
		}
		return value{{unset: true}}
	}
	return v.val
}

func cwdValue(dirs []string, open bool) value {
	if open || len(dirs) == 0 {
		return unknown(nil)
	}
	v := value{}
	for _, d := range dirs {
		v = append(v, text{s: d})
	}
	return v
}
