package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/prints"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// assignment is where an assignment stands.
type assignment uint8

const (
	assignPlain assignment = iota
	assignExport
	assignLocal
)

// assign carries out one assignment of a variable or an array.
func (w *walker) assign(a *syntax.Assign, st *state, how assignment) {
	if a.Name == nil {
		w.word(a.Value, st)
		return
	}
	n := w.deref(st, a.Name.Value)
	switch {
	case a.Index != nil:
		w.assignElement(st, n, a.Index, w.assigned(a.Value, st), a.Append)
	case a.Array != nil:
		w.assignArray(st, n, a)
	case a.Naked:
	case a.Append:
		old := w.lookup(st, n)
		add := w.assigned(a.Value, st)
		if old.array {
			w.assignElement(st, n, nil, add, true)
			return
		}
		w.assignValue(st, n, concatValues(old.val, add))
	default:
		w.assignValue(st, n, w.assigned(a.Value, st))
		if v := st.vars[n]; v != nil && !v.array && !v.integer && !v.cased && len(w.frames) == 0 {
			_, v.literal = w.told(a.Value, st, false)
		}
	}
	if how == assignExport {
		w.export(st, n)
	}
}

// assigned is the value of an assignment: tildes also expand after a colon.
func (w *walker) assigned(word *syntax.Word, st *state) value {
	if word == nil {
		return constant("")
	}
	v := w.scalar(word, st)
	out := make(value, 0, len(v))
	for _, t := range v {
		if strings.Contains(t.s, ":~") {
			if home, ok := w.home(st).one(); ok {
				t.s = strings.ReplaceAll(t.s, ":~/", ":"+home+"/")
			}
		}
		out = out.or(value{t})
	}
	return out
}

func concatValues(a, b value) value {
	if len(a)*len(b) > maxAlternatives {
		return unknown(union(a.sources(), b.sources()))
	}
	var out value
	for _, x := range a {
		x.unset = false
		for _, y := range b {
			out = out.or(value{concat(x, y)})
		}
	}
	return out
}

// assignValue sets a scalar and notices the variables that steer what runs.
func (w *walker) assignValue(st *state, n string, v value) {
	n = w.deref(st, n)
	if why := steers(n); why != "" && !(n == "PATH" && w.knownPath(st, v)) {
		w.opaque(st, why, nil, v.sources())
	}
	if n == "IFS" {
		if s, ok := v.one(); !ok || s != " \t\n" {
			st.ifs = true
		} else {
			st.ifs = false
		}
	}
	old := w.lookup(st, n)
	if old.array {
		w.assignElement(st, n, nil, v, false)
		return
	}
	clean := make(value, len(v))
	for i, t := range v {
		t.unset, t.glob = false, false
		t.s = strings.ReplaceAll(t.s, HoleSplit, Hole)
		clean[i] = t
	}
	w.set(st, n, &variable{val: clean, exported: old.exported || st.exportAll})
}

// evaluated is what an integer variable gets: values are expressions.
func (w *walker) evaluated(v value, st *state) value {
	for _, t := range v {
		switch {
		case !t.known():
			w.opaque(st, "text that is not known is evaluated as an expression, which can run code", nil, t.from)
		case !prints.IsNumber(t.s) && t.s != "":
			w.evaluate(t.s, st)
		default:
			continue
		}
		return number()
	}
	return v
}

// counts names the variables that hold numbers without being declared so.
func counts(n string) bool {
	switch n {
	case "RANDOM", "SRANDOM", "SECONDS", "HISTCMD", "OPTIND", "LINENO", "BASHPID", "BASH_SUBSHELL", "BASH_MONOSECONDS", "EPOCHSECONDS":
		return true
	}
	return false
}

// evaluateAll is what a variable of numbers holds after an assignment.
func (w *walker) evaluateAll(v *variable, st *state) {
	if !v.array {
		v.val = w.evaluated(v.val, st)
		return
	}
	for i := range v.elems {
		v.elems[i] = w.evaluated(v.elems[i], st)
	}
	if v.open {
		w.opaque(st, "text that is not known is evaluated as an expression, which can run code", nil, v.val.sources())
	}
}

// set stores a variable and remembers every value it ever had, for what a trap runs.
func (w *walker) set(st *state, n string, v *variable) {
	if old := st.vars[n]; old != nil && v.ref == "" {
		v.integer, v.cased = v.integer || old.integer, v.cased || old.cased
	}
	if n == "POSIXLY_CORRECT" {
		st.option("posix", true)
	}
	if v.integer || counts(n) {
		w.evaluateAll(v, st)
	}
	if v.cased || w.volatile[n] {
		v.val, v.open = unknown(v.val.sources()), v.array
	}
	st.set(n, v)
	if w.ever == nil {
		w.ever = map[string]value{}
	}
	val := v.val
	if v.array {
		val = unknown(v.val.sources())
	}
	if have, ok := w.ever[n]; ok {
		val = have.or(val)
	}
	w.ever[n] = val
}

func (w *walker) export(st *state, n string) {
	v := *w.lookup(st, n)
	v.exported = true
	w.set(st, n, &v)
}

// assignElement sets one element of an array; a nil subscript is the first.
func (w *walker) assignElement(st *state, n string, x syntax.ArithmExpr, v value, add bool) {
	if why := steers(w.deref(st, n)); why != "" {
		w.opaque(st, why, nil, v.sources())
	}
	key, ok := "0", true
	if x != nil {
		w.subscript(w.lookup(st, n), x, st)
		key, ok = w.key(w.lookup(st, n), x, st)
	}
	old := w.lookup(st, n)
	next := &variable{val: unknown(union(old.val.sources(), v.sources())), array: true, open: old.open, exported: old.exported, assoc: old.assoc}
	if old.counts() && v.numbers() {
		next.val = number()
	}
	next.keys, next.elems = append(next.keys, old.keys...), append(next.elems, old.elems...)
	if !old.array {
		if s, known := old.val.one(); !known {
			next.open = next.open || !old.val[0].unset
		} else if s != "" {
			next.keys, next.elems = []string{"0"}, []value{old.val}
		}
	}
	if !ok || len(next.keys) > maxWords {
		next.open = true
		w.set(st, n, next)
		return
	}
	for i, k := range next.keys {
		if k == key {
			if add {
				v = concatValues(next.elems[i], v)
			}
			next.elems[i] = v
			w.set(st, n, next)
			return
		}
	}
	next.keys, next.elems = append(next.keys, key), append(next.elems, v)
	w.set(st, n, next)
}

func (w *walker) assignArray(st *state, n string, a *syntax.Assign) {
	if why := steers(n); why != "" {
		w.opaque(st, why, nil, nil)
	}
	old := w.lookup(st, n)
	next := &variable{val: unknown(nil), array: true, exported: old.exported, assoc: old.assoc}
	if a.Append && old.array {
		next.open = old.open
		next.keys, next.elems = append(next.keys, old.keys...), append(next.elems, old.elems...)
	} else if a.Append {
		next.keys, next.elems = []string{"0"}, []value{old.val}
	}
	at := len(next.keys)
	var from []int
	whole := false
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			w.subscript(next, e.Index, st)
			key, ok := w.key(next, e.Index, st)
			v := w.scalar(e.Value, st)
			from = union(from, v.sources())
			if i, err := strconv.Atoi(key); err == nil {
				at = i + 1
			}
			next.open = next.open || !ok
			next.keys, next.elems = append(next.keys, key), append(next.elems, v)
			continue
		}
		alts := w.fields(e.Value, st)
		for _, alt := range alts {
			for _, f := range alt {
				from = union(from, f.from)
				whole = f.whole && len(a.Array.Elems) == 1 && len(alts) == 1 && len(alt) == 1 && !a.Append
				next.open = next.open || strings.Contains(f.s, HoleSplit) || f.glob
			}
		}
		if len(alts) > 1 {
			next.open = next.open || !sameCount(alts)
		}
		if next.open {
			continue
		}
		for i := range alts[0] {
			v := value{alts[0][i]}
			for _, alt := range alts[1:] {
				v = v.or(value{alt[i]})
			}
			next.keys, next.elems = append(next.keys, strconv.Itoa(at)), append(next.elems, v)
			at++
		}
	}
	next.open = next.open || len(next.keys) > 4*maxWords
	next.val = value{{s: Hole, from: from, whole: whole}}
	w.set(st, n, next)
}

func sameCount(alts []fields) bool {
	return !slices.ContainsFunc(alts[1:], func(a fields) bool { return len(a) != len(alts[0]) })
}

// printsVariables reports a declaration that may list what the shell holds: without a name, or with -p, -f or -F.
func printsVariables(c *syntax.DeclClause) bool {
	return !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Name != nil }) ||
		slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool {
			if a.Name != nil || a.Value == nil {
				return false
			}
			lit := a.Value.Lit()
			return lit == "" || lit[0] == '-' && strings.ContainsAny(lit, "pfF")
		})
}

// declare is declare, local, export, readonly, typeset and nameref.
func (w *walker) declare(c *syntax.DeclClause, st *state) {
	if printsVariables(c) {
		st.out.write(text{s: Hole})
	}
	how, ref, function, integer, assoc, array, cased, global := assignPlain, c.Variant.Value == "nameref", false, false, false, false, false, false
	switch c.Variant.Value {
	case "export":
		how = assignExport
	case "local":
		how = assignLocal
	}
	options := true
	w.fixed = w.fixed || c.Variant.Value == "readonly"
	var from []Flow
	for _, a := range c.Args {
		if a.Name == nil && a.Naked {
			for _, alt := range w.fields(a.Value, st) {
				for _, f := range alt {
					switch {
					case !f.exact():
						w.opaque(st, "what is declared is not known", nil, f.from)
					case options && (strings.HasPrefix(f.s, "-") || strings.HasPrefix(f.s, "+")):
						on := f.s[0] == '-'
						w.fixed = w.fixed || strings.ContainsRune(f.s, 'r')
						if strings.ContainsRune(f.s, 'x') && on {
							how = assignExport
						}
						ref = ref || on && strings.ContainsRune(f.s, 'n')
						function = function || strings.ContainsAny(f.s, "fF")
						integer = integer || on && strings.ContainsRune(f.s, 'i')
						assoc = assoc || on && strings.ContainsRune(f.s, 'A')
						array = array || on && strings.ContainsAny(f.s, "aA")
						cased = cased || on && strings.ContainsAny(f.s, "luc")
						global = global || on && strings.ContainsRune(f.s, 'g')
					default:
						if integer || cased {
							w.opaque(st, "what is declared is not known", nil, nil)
						}
						w.declareWord(f.s, st, how, ref, function, array)
					}
				}
			}
			continue
		}
		if a.Name == nil {
			continue
		}
		options = false
		if global {
			w.unshadowed(st, a.Name.Value)
		} else if c.Variant.Value == "local" || c.Variant.Value == "declare" || c.Variant.Value == "typeset" {
			w.shadow(st, a.Name.Value)
		}
		if v := w.lookup(st, a.Name.Value); assoc && !v.assoc {
			w.set(st, a.Name.Value, &variable{val: unknown(nil), array: true, assoc: true, exported: v.exported})
		}
		switch {
		case function:
			w.exportFunction(st, how)
		case ref && a.Value != nil:
			if s, ok := w.scalar(a.Value, st).one(); ok && name(s) {
				w.set(st, a.Name.Value, &variable{val: constant(""), ref: s})
			} else {
				w.opaque(st, "the name that a reference stands for is not known", nil, nil)
			}
		default:
			if n := a.Name.Value; integer || cased {
				v := *w.lookup(st, n)
				v.integer, v.cased = v.integer || integer, v.cased || cased
				st.set(n, &v) // what it holds already stays as it is
			}
			if a.Value != nil && a.Index == nil && !a.Append && (array || w.lookup(st, a.Name.Value).array) {
				w.assignText(st, a.Name.Value, w.scalar(a.Value, st))
			}
			w.assign(a, st, how)
		}
	}
	w.emit(st, Command{Kind: Builtin, Argv: []string{c.Variant.Value}}, from...)
}

// assignText is what a declaration makes of a text that looks like the value of an
// array: `declare -a x='($(cmd))'` reads it as one, and so runs what stands in it.
func (w *walker) assignText(st *state, n string, v value) {
	for _, t := range v {
		switch {
		case strings.HasPrefix(t.s, "(") && t.exact():
			w.text(n+"="+t.s, st, "declare")
		case strings.HasPrefix(t.s, "(") || !t.known() && strings.IndexByte(t.s, 0) == 0:
			w.opaque(st, "a declaration reads text that is not known", nil, t.from)
		}
	}
}

// declareWord is a declaration that an expansion or a quoted word made.
func (w *walker) declareWord(s string, st *state, how assignment, ref, function, array bool) {
	n, val, set := strings.Cut(s, "=")
	n = strings.TrimSuffix(n, "+")
	switch {
	case function:
		w.exportFunction(st, how)
	case ref || !name(n):
		w.opaque(st, "what is declared is not known", nil, nil)
	case set:
		if array || w.lookup(st, n).array {
			w.assignText(st, n, constant(val))
		}
		w.assignValue(st, n, constant(val))
		if how == assignExport {
			w.export(st, n)
		}
	}
}

// exportFunction: another shell may run an exported function in place of a program.
func (w *walker) exportFunction(st *state, how assignment) {
	if how == assignExport {
		w.opaque(st, "it exports a function", nil, nil)
	}
}

// unshadowed is for `declare -g`, which sets the variable that a local one hides.
func (w *walker) unshadowed(st *state, n string) {
	for _, f := range w.frames {
		if _, hidden := f[n]; hidden {
			w.opaque(st, "it sets a variable that a local one hides", nil, nil)
			return
		}
	}
}

// shadow keeps the value that a local variable hides until its function ends.
func (w *walker) shadow(st *state, n string) {
	if len(w.frames) == 0 {
		return
	}
	f := w.frames[len(w.frames)-1]
	if _, have := f[n]; !have {
		f[n] = st.vars[n]
	}
}

// knownPath reports whether names are looked up in known directories after an assignment.
func (w *walker) knownPath(st *state, v value) bool {
	if w.o.KnownPath == nil || w.o.Dialect != shelltext.Bash {
		return false
	}
	cwd := ""
	if !st.cwdUnknown && len(st.cwds) == 1 {
		cwd = st.cwds[0]
	}
	return !slices.ContainsFunc(v, func(t text) bool { return t.rough || t.unset || !w.o.KnownPath(t.s, cwd) })
}

// steers says why assigning a variable makes it unknown what runs, "" if it does not.
func steers(n string) string {
	switch n {
	case "PATH", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "EXECIGNORE", "PS0", "BASH_CMDS", "BASH_ALIASES":
		return n + " decides what runs"
	}
	if strings.HasPrefix(n, "LD_") || strings.HasPrefix(n, "DYLD_") || strings.HasPrefix(n, "BASH_FUNC_") {
		return n + " decides what runs"
	}
	return ""
}
