package shell

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/prints"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// trapText is a trap that may run at any time after it was set.
type trapText struct {
	file *syntax.File
	st   *state
}

// eval runs its words as text.
func (w *walker) eval(r *run, args fields, st *state) {
	if len(args) > 0 && args[0].exact() && args[0].s == "--" {
		args = args[1:]
	}
	t := joinFields(args)
	if !t.exact() {
		c := r.list(Opaque)
		c.Why = "eval runs text that is not known"
		i := w.finish(r, c, st)
		w.codeFlows(i, args)
		w.produced(st, i)
		return
	}
	if len(r.io.files) > 0 {
		w.finish(r, r.list(Builtin), st)
	}
	w.text(t.s, st, "eval")
}

func (w *walker) codeFlows(i int, args fields) {
	for _, a := range args {
		for _, from := range a.from {
			w.flow(from, i, FlowCode)
		}
	}
}

// text walks another text in the same shell.
func (w *walker) text(s string, st *state, what string) {
	file := w.parseText(s, st, what)
	if file == nil {
		return
	}
	at, origin := w.at, w.origin
	w.texts++
	w.origin = w.texts
	w.depth++
	w.stmts(file.Stmts, st)
	w.depth--
	w.at, w.origin = at, origin
}

func (w *walker) parseText(s string, st *state, what string) *syntax.File {
	if w.depth >= w.o.Limits.Nesting {
		w.opaque(st, what+" is nested too deeply", nil, nil)
		return nil
	}
	if len(s) > maxFile || strings.IndexByte(s, 0) >= 0 || shelltext.Deep(s) {
		w.opaque(st, what+" runs text that cannot be read", nil, nil)
		return nil
	}
	if why := shelltext.Suspicious(s); why != "" {
		w.opaque(st, what+": "+why, nil, nil)
	}
	file, err := w.o.Dialect.Parser().Parse(strings.NewReader(s), "")
	for n := 0; err != nil && n < maxForeign; n++ {
		other, ok := withoutForeign(s, err)
		if !ok {
			break
		}
		s = other
		file, err = w.o.Dialect.Parser().Parse(strings.NewReader(s), "")
	}
	if err != nil {
		w.opaque(st, what+" runs text that cannot be read: "+shelltext.Cause(err).Error(), nil, nil)
		return nil
	}
	return file
}

// maxForeign bounds the expansions of another shell in one text.
const maxForeign = 8

// withoutForeign puts something that is not known in the place of an expansion which only another shell
// has. Files that several shells read hold such, each where only that shell comes: to the others it is an
// error at the time when it is expanded, not when it is read.
func withoutForeign(s string, err error) (string, bool) {
	at := -1
	var lang syntax.LangError
	var parse syntax.ParseError
	switch {
	case errors.As(err, &lang):
		at = int(lang.Pos.Offset())
	case errors.As(err, &parse):
		at = int(parse.Pos.Offset()) - len("${")
	}
	if at < 0 || at >= len(s) || !strings.HasPrefix(s[at:], "${") {
		return "", false
	}
	end := strings.IndexAny(s[at+2:], "}\"'`\\${\n")
	if end < 0 || s[at+2+end] != '}' {
		return "", false
	}
	return s[:at] + "${BASH_FOREIGN}" + s[at+2+end+1:], true
}

// source runs a file in the shell itself.
func (w *walker) source(r *run, args fields, st *state) {
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	i := w.finish(r, r.list(Builtin), st)
	if len(args) == 0 {
		return
	}
	raw, path, ok := w.readSource(args[0], st)
	if args[0].exact() && filepath.IsAbs(args[0].s) && w.o.Trusted != nil && w.o.Trusted(args[0].s) {
		if ok {
			w.snapshot(raw, st)
		}
		return
	}
	if !ok {
		w.fixed = true // what is taken in unread may make any variable readonly
		var from []int
		for _, a := range args {
			from = union(from, a.from)
		}
		if st.in != nil && (path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0" || path == "-") {
			from = union(from, st.in.from)
		}
		c := Command{Why: "what " + r.words[0].s + " runs cannot be read", Argv: []string{r.words[0].s, args[0].s}, CodeFile: path}
		k := w.emit(st, c)
		for _, f := range from {
			w.flow(f, k, FlowCode)
		}
		w.produced(st, k)
		return
	}
	for k := range w.cmds[:max(i, 0)] {
		for _, red := range w.cmds[k].Redirects {
			if !red.Write || !w.sameFile(k, red.Path, path) {
				continue
			}
			if red.Content == nil {
				w.opaque(st, "what "+r.words[0].s+" runs was written just before", []string{r.words[0].s, args[0].s}, []int{k})
				return
			}
			if *red.Content != raw {
				raw += "\n" + *red.Content
			}
		}
	}
	params, open := st.params, st.paramsOpen
	if len(args) > 1 {
		w.setParams(args[1:], st)
	}
	file := w.file
	w.file = path
	w.text(raw, st, r.words[0].s)
	w.file = file
	st.params, st.paramsOpen = params, open
	st.ended = false
}

func (w *walker) sameFile(command int, name, abs string) bool {
	if filepath.IsAbs(name) {
		return filepath.Clean(name) == abs
	}
	if slices.ContainsFunc(w.cmds[command].Cwds, func(dir string) bool { return filepath.Join(dir, name) == abs }) {
		return true
	}
	return w.cmds[command].CwdUnknown || strings.IndexByte(name, 0) >= 0
}

// readSource reads what source names: through PATH if it has no slash, then here.
func (w *walker) readSource(t text, st *state) (raw, path string, ok bool) {
	if !t.exact() || t.glob || t.s == "" {
		return "", "", false
	}
	if strings.HasPrefix(t.s, "/dev/") || strings.HasPrefix(t.s, "/proc/") || t.s == "-" {
		if (t.s == "/dev/stdin" || t.s == "/dev/fd/0" || t.s == "/proc/self/fd/0") && st.in != nil && st.in.known {
			return st.in.s, t.s, true
		}
		if in := w.pipes[t.s]; in != nil && in.known {
			return in.s, t.s, true
		}
		return "", t.s, false
	}
	if w.o.ReadFile == nil || st.cwdUnknown && !filepath.IsAbs(t.s) || len(st.cwds) != 1 && !filepath.IsAbs(t.s) {
		return "", "", false
	}
	var candidates []string
	if strings.IndexByte(t.s, '/') < 0 {
		if dirs, known := w.lookup(st, "PATH").val.one(); known {
			for dir := range strings.SplitSeq(dirs, ":") {
				if filepath.IsAbs(dir) {
					candidates = append(candidates, filepath.Join(dir, t.s))
				}
			}
		} else {
			return "", "", false
		}
	}
	if filepath.IsAbs(t.s) {
		candidates = append(candidates, filepath.Clean(t.s))
	} else {
		candidates = append(candidates, filepath.Join(st.cwds[0], t.s))
	}
	for _, c := range candidates {
		if b, err := w.o.ReadFile(c); err == nil && len(b) <= maxFile {
			return string(b), c, true
		}
	}
	// A file that was only just written.
	last := candidates[len(candidates)-1]
	for k := range w.cmds {
		for _, red := range w.cmds[k].Redirects {
			if red.Write && red.Content != nil && w.sameFile(k, red.Path, last) {
				return *red.Content, last, true
			}
		}
	}
	return "", last, false
}

// trap sets what runs on a signal or at the end.
func (w *walker) trap(r *run, args fields, st *state) {
	w.finish(r, r.list(Builtin), st)
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[0].s == "-" || args[0].s == "" || args[0].s == "-p" || args[0].s == "-l" {
		return
	}
	for _, a := range args[1:] {
		if sig := strings.ToUpper(a.s); sig == "DEBUG" || sig == "RETURN" || !a.known() {
			w.opaque(st, "a trap that runs between commands", nil, nil)
			return
		}
	}
	if !args[0].exact() {
		w.opaque(st, "what the trap runs is not known", nil, args[0].from)
		return
	}
	sub := st.clone()
	sub.in, sub.out = nil, nil
	w.repeat++
	w.text(args[0].s, sub, "trap")
	w.repeat--
	if sub.ended = false; !onlyExit(args[1:]) {
		w.anyTime(st, sub)
	}
	if file := w.parseText(args[0].s, st, "trap"); file != nil {
		w.traps = append(w.traps, trapText{file: file, st: st.clone()})
	}
}

// anyTime is for a trap that may run between any two commands: what it assigns is not
// known from here on, whatever else is assigned to it.
func (w *walker) anyTime(st, after *state) {
	same := after.clone()
	same.vars = st.vars
	if !w.settled(st, same) {
		w.opaque(st, "a trap changes what later commands mean", nil, nil)
	}
	for n, v := range after.vars {
		if old := st.vars[n]; old == v || old != nil && old.same(v) {
			continue
		}
		if v.ref != "" {
			w.opaque(st, "a name that may stand for another one", nil, nil)
		}
		if w.volatile == nil {
			w.volatile = map[string]bool{}
		}
		w.volatile[n] = true
		w.set(st, n, v)
	}
}

// onlyExit reports a trap that runs when the shell ends and at no other time.
func onlyExit(signals fields) bool {
	return !slices.ContainsFunc(signals, func(f text) bool {
		s := strings.ToUpper(f.s)
		return s != "EXIT" && s != "0"
	})
}

// runTraps walks every trap once more with all values its variables ever had and in
// every directory any command may run in.
func (w *walker) runTraps(st *state) {
	for i := 0; i < len(w.traps) && i < maxNesting; i++ {
		t := w.traps[i]
		late := st.clone()
		late.in, late.out, late.ended = nil, nil, false
		late.own()
		for n, v := range w.ever {
			u := *w.lookup(st, n)
			u.val, u.open, u.local = v.or(u.val), u.open || u.array, true
			late.vars[n] = &u
		}
		for n, d := range t.st.funcs {
			if _, have := late.funcs[n]; !have {
				late.funcs[n] = d
			}
		}
		for k := range w.cmds {
			late.cwds = merge(late.cwds, w.cmds[k].Cwds)
			late.cwdUnknown = late.cwdUnknown || w.cmds[k].CwdUnknown
		}
		if len(late.cwds) > maxCwds {
			late.cwds, late.cwdUnknown = late.cwds[:maxCwds], true
		}
		w.repeat++
		w.depth++
		w.stmts(t.file.Stmts, late)
		w.depth--
		w.repeat--
	}
}

// printed is the program that printed all that was written, once; nil if there is none.
func (w *walker) printed(st *state) *Command {
	if st.out.s != Hole || len(st.out.from) != 1 || st.out.from[0] < 0 || st.out.from[0] >= len(w.cmds) {
		return nil
	}
	c := &w.cmds[st.out.from[0]]
	if c.Kind != External || len(c.Path) > 0 {
		return nil
	}
	return c
}

// shape says what the output of a substitution looks like where that does not
// matter in detail: a number, a date, the name of a new temporary file.
func (w *walker) shape(c *syntax.CmdSubst, st *state) (string, bool) {
	last := w.printed(st)
	if len(c.Stmts) != 1 || last == nil || last.Bounded || len(last.Globs) > 0 {
		return "", false
	}
	for _, a := range last.Argv[1:] {
		if strings.IndexByte(a, 0) >= 0 && last.Argv[0] != "wc" && last.Argv[0] != "stat" {
			return "", false
		}
	}
	if w.printNumbers(st.out.from, "") {
		return "0", true
	}
	return prints.Shape(last.Argv)
}

// printsName reports that what was printed last holds no slash.
func (w *walker) printsName(st *state) bool {
	last := w.printed(st)
	if last == nil {
		return false
	}
	return prints.Name(last.Argv)
}

// systemName is what `uname` calls this system, "" if that is not known. OSTYPE of a shell begins with it, in
// small letters.
func systemName() string {
	if runtime.GOOS == "linux" {
		return "Linux"
	}
	return ""
}
