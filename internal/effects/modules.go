package effects

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// moduleRaises reports a module of Python whose words are program text that raises. Of
// one that serves a directory it adds that directory.
func (c *collector) moduleRaises(s *step.Step, module string) bool {
	at := slices.IndexFunc(s.Argv, func(w string) bool { return w == module || w == "-m"+module })
	if at < 0 {
		return false
	}
	switch module {
	case "timeit":
		raised := false
		for _, w := range s.Argv[at+1:] {
			c.peekCode(s, w)
			if step.Raises(w) {
				s.ShowRemoval(w)
				raised = true
			}
		}
		return raised
	case "http.server", "SimpleHTTPServer":
		for i, w := range s.Argv[at+1:] {
			dir, ok := strings.CutPrefix(w, "--directory=")
			if before := s.Argv[at+i]; before == "-d" || before == "--directory" {
				dir, ok = w, true
			}
			if ok {
				r := atip.Resource{Kind: "path", Value: dir, Access: atip.AccessRead, Recursive: true, Why: "--directory"}
				c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
				c.below(s)
			}
		}
	}
	return false
}
