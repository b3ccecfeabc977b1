package shell

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/prints"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// builtin carries out a builtin of the shell; false if n is none.
func (w *walker) builtin(n string, r *run, st *state) bool {
	if w.o.Dialect == shelltext.POSIX && bashOnly(n) {
		return false
	}
	args := r.words[1:]
	switch n {
	case ":", "true", "false", "test", "[", "type", "jobs", "wait", "times", "umask", "ulimit", "dirs", "disown", "bg", "fg", "suspend",
		"logout", "caller", "help", "kill", "return", "break", "continue", "compopt":
		w.names(n, args, st)
		c := r.list(Builtin)
		for k := range args {
			if n == "kill" && args[k].rough {
				// $$, $! and their like are processes of this run.
				c.Argv[k+1] = "%"
			}
		}
		i := w.finish(r, c, st)
		for k, a := range args[:max(len(args)-1, 0)] {
			if n == "wait" && strings.HasPrefix(a.s, "-") && strings.HasSuffix(a.s, "p") && name(args[k+1].s) {
				// Set to a process, or not at all.
				w.set(st, args[k+1].s, &variable{val: append(value{{unset: true}}, number()...)})
			}
		}
		if n == "type" || n == "jobs" || n == "umask" || n == "ulimit" || n == "dirs" || n == "help" || n == "times" {
			w.produced(st, i)
		}
	case "echo":
		w.writes(r, st, w.echo(args))
	case "printf":
		w.printf(r, args, st)
	case "pwd":
		t := text{s: Hole}
		if !st.cwdUnknown && len(st.cwds) == 1 {
			t.s = st.cwds[0] + "\n"
		}
		w.writes(r, st, t)
	case "cd":
		w.finish(r, r.list(Builtin), st)
		w.cd(args, st)
	case "pushd", "popd":
		w.finish(r, r.list(Builtin), st)
		w.directoryStack(n, args, st)
	case "exit":
		w.finish(r, r.list(Builtin), st)
		// With a bad argument, or when a redirection fails, the shell goes on.
		st.ended = len(r.io.files) == 0 && (len(args) == 0 || len(args) == 1 && args[0].known() && prints.IsNumber(args[0].s))
	case "set":
		w.setOptions(r, args, st)
	case "shift":
		w.finish(r, r.list(Builtin), st)
		w.shift(args, st)
	case "eval":
		w.eval(r, args, st)
	case "source", ".":
		w.source(r, args, st)
	case "trap":
		w.trap(r, args, st)
	case "command", "builtin", "exec":
		w.indirectly(n, r, st)
	case "unset":
		w.unset(r, args, st)
	case "read", "mapfile", "readarray", "getopts":
		w.reads(n, r, args, st)
	case "let":
		for _, a := range args {
			if a.exact() {
				w.evaluate(a.s, st)
			} else {
				w.opaque(st, "text that is not known is evaluated as an expression, which can run code", nil, a.from)
			}
		}
		w.finish(r, r.list(Builtin), st)
	case "export", "readonly", "declare", "local", "typeset":
		w.fixed = true
		w.declareWords(n, r, args, st)
	case "hash", "enable", "shopt", "alias", "unalias", "bind", "complete", "compgen", "fc", "history":
		w.settings(n, r, args, st)
	default:
		return false
	}
	return true
}

// bashOnly names the builtins that other shells look up in PATH.
func bashOnly(n string) bool {
	switch n {
	case "declare", "typeset", "pushd", "popd", "dirs", "mapfile", "readarray", "source", "builtin", "let", "shopt", "enable", "compgen",
		"complete", "compopt", "bind", "history", "disown", "caller", "help", "logout", "suspend":
		return true
	}
	return false
}

// names looks at words that a builtin takes for variable names: a subscript in one
// is evaluated.
func (w *walker) names(n string, args fields, st *state) {
	for i, a := range args {
		takes := n == "unset" || n == "read" || n == "mapfile" || n == "readarray" || n == "getopts" || n == "printf" ||
			i > 0 && (n == "test" || n == "[") && (args[i-1].s == "-v" || args[i-1].s == "-R") || n == "wait" && i > 0 && args[i-1].s == "-p"
		base, _, _ := strings.Cut(a.s, "[")
		if why := steers(w.deref(st, base)); why != "" && takes && n != "test" && n != "[" {
			w.opaque(st, why, nil, a.from)
		}
		if !takes || a.known() && !strings.ContainsRune(a.s, '[') {
			continue
		}
		if !a.known() || strings.ContainsAny(a.s, "$`") {
			w.opaque(st, "a subscript in a name can run code", nil, a.from)
		}
	}
}

func (w *walker) setOptions(r *run, args fields, st *state) {
	w.finish(r, r.list(Builtin), st)
	for i, a := range args {
		switch {
		case !a.known():
			w.opaque(st, "the options that are set are not known", nil, a.from)
			st.params, st.paramsOpen = nil, true
			return
		case a.s == "--" || a.s == "-" || a.s == "" || a.s[0] != '-' && a.s[0] != '+':
			if a.s == "--" || a.s == "-" {
				i++
			}
			w.setParams(args[i:], st)
			return
		case a.s == "-o" || a.s == "+o":
			if i+1 < len(args) {
				w.option(args[i+1].s, a.s[0] == '-', st)
			}
			rest := args[min(i+2, len(args)):]
			if len(rest) > 0 {
				w.setOptions(&run{words: append(fields{{s: "set"}}, rest...)}, rest, st)
			}
			return
		}
		on := a.s[0] == '-'
		for _, c := range a.s[1:] {
			switch c {
			case 'e':
				st.option("errexit", on)
			case 'f':
				st.option("noglob", on)
			case 'a':
				st.option("allexport", on)
			case 'k', 'T', 'P':
				w.opaque(st, "set -"+string(c)+" changes what words mean", nil, nil)
			case 'B':
				w.option("braceexpand", on, st)
			case 'H':
				w.option("histexpand", on, st)
			case 'o':
				if i+1 < len(args) {
					w.option(args[i+1].s, on, st)
				}
			}
		}
		if strings.ContainsRune(a.s, 'o') && i+1 < len(args) {
			rest := args[i+2:]
			if len(rest) > 0 {
				w.setOptions(&run{words: append(fields{{s: "set"}}, rest...)}, rest, st)
			}
			return
		}
	}
}

// option switches an option by its name. Braces that are not expanded and words that
// come from the history are read as something else from here on.
func (w *walker) option(n string, on bool, st *state) {
	if n == "braceexpand" && !on || (n == "histexpand" || n == "history") && on {
		w.opaque(st, "set -o "+n+" changes what words mean", nil, nil)
	}
	st.option(n, on)
}

func (st *state) option(n string, on bool) {
	switch n {
	case "posix":
		st.posix = true
		fallthrough
	case "physical", "keyword", "functrace":
		// Words or directories would mean something else from here on.
		st.ifs, st.cwdUnknown = true, true
	case "errexit":
		st.exits = on
	case "noglob":
		st.glob = on
	case "allexport":
		st.exportAll = on
	}
}

func (w *walker) setParams(args fields, st *state) {
	st.params, st.paramsOpen = nil, false
	for _, f := range args {
		st.paramsOpen = st.paramsOpen || strings.Contains(f.s, HoleSplit) || f.glob
		f.glob, f.lead = false, false
		st.params = append(st.params, value{f})
	}
	if st.paramsOpen {
		st.params = nil
	}
}

func (w *walker) shift(args fields, st *state) {
	n := 1
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0].s); err != nil || n < 0 {
			st.params, st.paramsOpen = nil, true
			return
		}
	}
	if n <= len(st.params) {
		st.params = st.params[n:]
	}
}

// indirectly is command, builtin and exec: they run the rest of their words.
func (w *walker) indirectly(n string, r *run, st *state) {
	rest := r.words[1:]
	for len(rest) > 0 && len(rest[0].s) > 1 && rest[0].s[0] == '-' && rest[0].known() {
		o := rest[0].s
		rest = rest[1:]
		switch {
		case o == "--":
		case n == "command" && strings.ContainsAny(o, "vV"):
			w.produced(st, w.finish(r, r.list(Builtin), st))
			return
		case n == "command":
			w.opaque(st, "command -p looks in another PATH", nil, nil)
		case n == "exec" && o == "-a" && len(rest) > 0:
			rest = rest[1:]
			w.opaque(st, "exec -a runs a program under another name", nil, nil)
		default:
			continue
		}
		if o == "--" {
			break
		}
	}
	if len(rest) == 0 {
		w.finish(r, r.list(Builtin), st)
		return
	}
	inner := *r
	inner.words, inner.noFunc, inner.noBuilt = rest, true, n == "exec"
	head := rest[0]
	if n == "builtin" && head.exact() {
		if !w.builtin(head.s, &inner, st) {
			w.finish(r, r.list(Builtin), st)
		}
		return
	}
	w.run(&inner, st)
}

func (w *walker) unset(r *run, args fields, st *state) {
	w.names("unset", args, st)
	w.finish(r, r.list(Builtin), st)
	functions, variables := true, true
	for _, a := range args {
		switch {
		case !a.known():
			w.opaque(st, "what is unset is not known", nil, a.from)
		case a.s == "-f":
			variables = false
		case a.s == "-v":
			functions = false
		case name(a.s) && variables && (st.vars[a.s] != nil || !w.isFunction(st, a.s) || !functions):
			if why := steers(a.s); why != "" {
				w.opaque(st, why, nil, nil)
			}
			if a.s == "IFS" {
				st.ifs = false
			}
			w.set(st, a.s, &variable{val: value{{unset: true}}})
		case functions && w.isFunction(st, a.s):
			st.own()
			delete(st.funcs, a.s)
		}
	}
}

func (w *walker) isFunction(st *state, n string) bool {
	_, ok := st.funcs[n]
	return ok
}

// reads is read, mapfile and getopts: they set variables to what they read.
func (w *walker) reads(n string, r *run, args fields, st *state) {
	i := w.finish(r, r.list(Builtin), st)
	var from []int
	if st.in != nil {
		from = st.in.from
	}
	if i >= 0 && slices.ContainsFunc(r.io.files, func(f Redirect) bool { return w.pipes[f.Path] == nil }) {
		from = union(from, []int{i})
	}
	if n == "getopts" {
		if len(args) > 1 && args[1].exact() && name(args[1].s) {
			w.assignValue(st, args[1].s, unknown(nil))
		}
		w.assignValue(st, "OPTARG", unknown(nil))
		return
	}
	array := n != "read"
	// A line as it is: nothing but white space around it goes.
	plain := !st.ifs
	if s, ok := w.lookup(st, "IFS").val.one(); ok && s == "" {
		plain = true
	}
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' {
		o := args[0]
		args = args[1:]
		plain = plain && (o.s == "-r" || (o.s == "-d" || o.s == "-rd") && len(args) > 0 && args[0].exact() && args[0].s == "")
		last := o.s[len(o.s)-1]
		switch {
		case o.s == "--":
		case n != "read" && strings.ContainsRune(o.s, 'C'):
			w.opaque(st, n+" -C runs code for what it reads", nil, nil)
			return
		case n == "read" && strings.ContainsRune(o.s, 'a'):
			array = true
			if last != 'a' {
				w.opaque(st, "the name that is read into is not known", nil, nil)
			}
			continue
		case n == "read" && strings.IndexByte("dinNptu", last) >= 0, n != "read" && strings.IndexByte("dnOsucC", last) >= 0:
			if len(args) > 0 {
				args = args[1:]
			}
		}
		if o.s == "--" {
			break
		}
	}
	w.names(n, args, st)
	if array {
		target := "MAPFILE"
		if len(args) > 0 {
			target = args[0].s
		}
		next := &variable{val: unknown(from), array: true, open: true}
		lines := n != "read" && st.in != nil && plainMapfile(r.words[1:])
		next.val[0].whole = lines && len(from) == 1 && st.in.whole
		if lines && st.in.known && len(from) == 0 && strings.Count(st.in.s, "\n") <= maxWords {
			next.open = false
			for i, line := range strings.Split(strings.TrimSuffix(st.in.s, "\n"), "\n") {
				next.keys, next.elems = append(next.keys, strconv.Itoa(i)), append(next.elems, constant(line))
			}
		}
		w.set(st, target, next)
		return
	}
	if len(args) == 0 {
		args = fields{{s: "REPLY"}}
	}
	v := unknown(from)
	v[0].whole = len(args) == 1 && len(from) == 1 && plain && st.in != nil && st.in.whole
	if st.in != nil && st.in.known && len(from) == 0 {
		v = w.linesOf(st.in.s, len(args))
	}
	numbers := st.in != nil && !st.in.mixed && w.printNumbers(from, "")
	first := numbers || st.in != nil && !st.in.mixed && !st.ifs && len(args) > 1 && w.printNumbers(from, " ")
	for i, a := range args {
		v := v
		if numbers || first && i == 0 {
			v = number().or(constant("")) // where there is nothing more to read
		}
		switch {
		case !a.exact():
			w.opaque(st, "the name that is read into is not known", nil, a.from)
		case name(a.s):
			w.assignValue(st, a.s, v)
		}
	}
}

// plainMapfile reports that every line becomes an element.
func plainMapfile(args fields) bool {
	return !slices.ContainsFunc(args, func(a text) bool { return !a.exact() || strings.HasPrefix(a.s, "-") && a.s != "-t" }) && len(args) > 0 && args[0].s == "-t"
}

// linesOf is what one name may be read from constant text: any of its lines, any of
// whose words if there are several names.
func (w *walker) linesOf(s string, names int) value {
	v := constant("")
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		if names == 1 {
			v = v.or(constant(strings.TrimSpace(line)))
			continue
		}
		for _, f := range strings.Fields(line) {
			v = v.or(constant(f))
		}
		v = v.or(constant(strings.TrimSpace(line)))
	}
	if len(v) > 1 {
		v = v[1:]
	}
	if names > 1 {
		v = v.or(unknown(nil))
	}
	return v
}

func (w *walker) declareWords(n string, r *run, args fields, st *state) {
	w.produced(st, w.finish(r, r.list(Builtin), st))
	how, ref, function, array, global := assignPlain, false, false, false, false
	if n == "export" {
		how = assignExport
	}
	for i, a := range args {
		switch {
		case !a.known():
			left, _, _ := strings.Cut(a.s, "=")
			if name(left) && left != a.s {
				w.assignValue(st, left, unknown(a.from))
				if how == assignExport {
					w.export(st, left)
				}
				continue
			}
			w.opaque(st, "what is declared is not known", nil, a.from)
		case a.s == "":
		case a.s[0] == '-' || a.s[0] == '+':
			if i == 0 || args[i-1].s[0] == '-' {
				if strings.ContainsRune(a.s, 'x') {
					how = assignExport
				}
				ref = ref || strings.ContainsRune(a.s, 'n') && n != "export"
				function = function || strings.ContainsAny(a.s, "fF")
				global = global || a.s[0] == '-' && strings.ContainsRune(a.s, 'g')
				array = array || a.s[0] == '-' && strings.ContainsAny(a.s, "aA")
				if a.s[0] == '-' && n != "export" && strings.ContainsAny(a.s, "iluc") {
					w.opaque(st, "what is assigned is not what the variable holds", nil, nil)
				}
			}
		default:
			left, _, _ := strings.Cut(a.s, "=")
			if global {
				w.unshadowed(st, strings.TrimSuffix(left, "+"))
			} else if n != "export" && n != "readonly" {
				w.shadow(st, strings.TrimSuffix(left, "+"))
			}
			w.declareWord(a.s, st, how, ref, function, array)
			if how == assignExport && name(a.s) {
				w.export(st, a.s)
			}
		}
	}
}

// history reads or writes the file that it names, or the one of HISTFILE.
func (w *walker) history(args fields, st *state) []Redirect {
	var out []Redirect
	for i, a := range args {
		if !a.known() || len(a.s) < 2 || a.s[0] != '-' {
			continue
		}
		red := Redirect{Read: strings.ContainsAny(a.s, "rn"), Write: strings.ContainsAny(a.s, "wa")}
		if !red.Read && !red.Write {
			continue
		}
		switch v, set := w.lookup(st, "HISTFILE").val.one(); {
		case i+1 < len(args):
			red.Path = args[i+1].s
		case set:
			red.Path = v
		default:
			continue // a shell that runs a text has none
		}
		out = append(out, red)
	}
	return out
}

// settings are builtins that change how names are looked up or keys are read.
func (w *walker) settings(n string, r *run, args fields, st *state) {
	listed := r.list(Builtin)
	if n == "history" {
		listed.Redirects = append(listed.Redirects, w.history(args, st)...)
	}
	w.produced(st, w.finish(r, listed, st))
	why := ""
	for _, a := range args {
		switch {
		case !a.known():
			why = n + " with words that are not known"
		case n == "hash" && strings.HasPrefix(a.s, "-p"), n == "enable" && a.s != "-a" && a.s != "-p" && a.s != "-s",
			n == "bind" && (a.s == "-x" || a.s == "-f"), (n == "complete" || n == "compgen") && (a.s == "-C" || a.s == "-F" || strings.ContainsAny(a.s, "$`")),
			n == "shopt" && (a.s == "expand_aliases" || a.s == "extdebug" || a.s == "lastpipe" || a.s == "xpg_echo" || a.s == "cdable_vars" || strings.HasPrefix(a.s, "compat")):
			why = n + " " + a.s + " changes what runs"
		}
	}
	if n == "fc" || n == "alias" && w.aliases != nil && len(args) > 0 || n == "alias" && w.o.Dialect != shelltext.Bash && len(args) > 0 {
		why = n + " changes what runs"
	}
	if why != "" {
		w.opaque(st, why, nil, nil)
	}
}
