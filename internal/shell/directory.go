package shell

import (
	"path/filepath"
	"slices"
	"strings"
)

// cd changes the directory. Whether it worked is not known, unless the directory
// is there: then, and after &&, only the new one counts.
func (w *walker) cd(args fields, st *state) {
	physical := false
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' && strings.Trim(args[0].s[1:], "LPe@") == "" {
		physical = physical || strings.IndexByte(args[0].s, 'P') > 0
		args = args[1:]
	}
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	var to []string
	sure, exists := true, true
	switch {
	case st.vars["CDPATH"] != nil, physical && len(args) > 0 && strings.Contains(args[0].s, ".."):
		sure = false
	case len(args) == 0:
		for _, h := range w.home(st) {
			sure = sure && h.exact()
			to = append(to, h.s)
		}
	case args[0].s == "-":
		to, sure = st.oldCwds, len(st.oldCwds) > 0
	case args[0].known() && args[0].glob && w.o.Match != nil:
		// What matches now is where it most likely leads.
		sure = false
		patterns, _ := st.resolve(args[0].s)
		for _, p := range patterns {
			to = append(to, w.o.Match(p)...)
		}
	case !args[0].known() || args[0].glob:
		sure = false
	case args[0].s == "":
		to = st.cwds
	default:
		exists = !args[0].rough
		to, sure = st.resolve(args[0].s)
	}
	w.enter(st, to, sure, exists)
}

// resolve is a path from every directory the shell may be in.
func (st *state) resolve(path string) (to []string, sure bool) {
	if filepath.IsAbs(path) {
		return []string{filepath.Clean(path)}, true
	}
	for _, dir := range st.cwds {
		to = append(to, filepath.Join(dir, path))
	}
	return to, !st.cwdUnknown
}

func (w *walker) enter(st *state, to []string, sure, exists bool) {
	old, oldUnknown := st.cwds, st.cwdUnknown
	for _, dir := range to {
		exists = exists && w.o.IsDir != nil && w.o.IsDir(dir)
	}
	success := st.clone()
	success.cwds, success.cwdUnknown, success.oldCwds = to, !sure, old
	if len(to) > maxCwds {
		success.cwds, success.cwdUnknown = to[:maxCwds], true
	}
	if len(to) == 0 {
		success.cwdUnknown = true
	}
	if delete := st.vars["PWD"]; delete != nil {
		success.own()
		success.vars["PWD"] = &variable{val: unknown(nil), exported: true}
	}
	if sure && exists || st.exits {
		in, out, fds := st.in, st.out, st.fds
		*st = *success.clone()
		st.in, st.out, st.fds = in, out, fds
	} else {
		st.cwds, st.cwdUnknown = success.cwds, success.cwdUnknown
		st.addCwds(old)
		st.cwdUnknown = st.cwdUnknown || oldUnknown
		st.oldCwds = merge(st.oldCwds, old)
	}
	st.ok = success
}

func (w *walker) directoryStack(n string, args fields, st *state) {
	if len(args) > 0 && args[0].s == "-n" || len(st.cwds) != 1 || st.cwdUnknown || st.stackBad {
		st.stackBad = true
		w.enter(st, nil, false, false)
		return
	}
	here := st.cwds[0]
	if n == "pushd" && len(args) == 1 && args[0].glob {
		st.stackBad = true
		w.cd(args, st)
		return
	}
	switch {
	case n == "pushd" && len(args) == 1 && args[0].exact() && !args[0].glob && args[0].s != "" && args[0].s[0] != '+' && args[0].s[0] != '-':
		st.stack = append(slices.Clone(st.stack), here)
		to, sure := st.resolve(args[0].s)
		stack := st.stack
		w.enter(st, to, sure, true)
		st.stack, st.ok.stack = stack, stack
	case n == "popd" && len(args) == 0 && len(st.stack) > 0:
		to := st.stack[len(st.stack)-1]
		st.stack = st.stack[:len(st.stack)-1]
		w.enter(st, []string{to}, true, true)
	case n == "popd" && len(args) == 0:
	default:
		st.stackBad = true
		w.enter(st, nil, false, false)
	}
}
