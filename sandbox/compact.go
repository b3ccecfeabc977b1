package sandbox

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// grantSet merges grants by path.
type grantSet struct {
	list []Grant
	at   map[string]int
}

// add unites the rights of equal paths; the first reason stays, as it is the wider one.
func (s *grantSet) add(g Grant) {
	if i, ok := s.at[g.Path]; ok {
		if !covered(s.list[i].Rights, g.Rights) && s.list[i].Rights&(Write|Remove) == 0 && g.Rights&(Write|Remove) != 0 {
			s.list[i].Why = g.Why
		}
		s.list[i].Rights |= g.Rights
		return
	}
	if s.at == nil {
		s.at = make(map[string]int, 48)
	}
	s.at[g.Path] = len(s.list)
	s.list = append(s.list, g)
}

// compact drops each grant whose rights its ancestors already give: the kernel
// unites the rights along the path, so the rule would only cost time.
func (s *grantSet) compact() []Grant {
	slices.SortFunc(s.list, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	kept := s.list[:0]
	for _, g := range s.list {
		var have Rights
		for _, k := range kept {
			if k.Dir && k.Path != g.Path && subpath.Within(g.Path, k.Path) {
				have |= k.Rights
			}
		}
		if !covered(have, g.Rights) {
			kept = append(kept, g)
		}
	}
	return kept
}
