package shell

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/prints"
)

// printNumbers reports that each of these commands prints lines of which every word is a number or a plain name, or,
// where end is given, the first one up to it.
func (w *walker) printNumbers(from []int, end string) bool {
	return len(from) > 0 && !slices.ContainsFunc(from, func(i int) bool { return !w.printsNumbers(i, 0, end) })
}

func (w *walker) printsNumbers(i, depth int, end string) bool {
	if i >= len(w.cmds) || depth > maxAlternatives {
		return false
	}
	c := &w.cmds[i]
	if c.Kind != External || c.Bounded || len(c.Globs) > 0 || len(c.Path) > 0 || slices.ContainsFunc(c.Redirects, func(r Redirect) bool { return r.Write }) || strings.IndexByte(strings.Join(c.Argv, ""), 0) >= 0 {
		return false
	}
	if shape, ok := prints.Shape(c.Argv); ok {
		return shape == "0"
	}
	if end != "" && prints.First(c.Argv, end) {
		return true
	}
	if only := prints.OnlyFirst(c.Argv); only != "" {
		end = only
	} else if !prints.Passes(c.Argv) {
		return false
	}
	var before []int
	for _, f := range w.flows {
		if f.To == i && f.Kind == FlowStdin {
			before = append(before, f.From)
		}
	}
	return !c.Mixed && len(before) > 0 && !slices.ContainsFunc(before, func(i int) bool { return !w.printsNumbers(i, depth+1, end) })
}
