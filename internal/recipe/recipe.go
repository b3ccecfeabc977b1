// Package recipe reads Makefiles: which commands a target runs. It runs nothing, and
// what only make can tell stays unknown.
package recipe

import (
	"slices"
	"strings"
)

// Recipe is a named list of commands that runs after others.
type Recipe struct {
	deps  []string
	Lines []string
}

// Reachable lists the recipes that running the named ones runs; a pattern such as %.o
// serves a name that has no recipe of its own.
func Reachable(names []string, all map[string]*Recipe) []string {
	var out []string
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		r := all[name]
		if r != nil {
			out, names = append(out, name), append(names, r.deps...)
		}
		if r != nil && len(r.Lines) > 0 {
			continue
		}
		for pattern := range all {
			before, after, ok := strings.Cut(pattern, "%")
			if ok && !seen[pattern] && len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
				names = append(names, pattern)
			}
		}
	}
	slices.Sort(out)
	return out
}
