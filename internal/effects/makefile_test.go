package effects

import "testing"

// Files that make cannot read either are no trouble here.
func FuzzMakefile(f *testing.F) {
	f.Add("all: x\n\techo $(shell ls) ${A}\nA = $(A)\n")
	f.Add("define X\n\trm\nendef\n$(eval $(X))\n%: ; $@\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := &makefile{c: &collector{site: &Site{names: []string{}}, out: &Reading{}}, s: &Step{}, dir: "/nonexistent", vars: map[string]string{}, rules: map[string]*recipe{}, fixed: map[string]bool{}}
		m.c.site.World.Workspace = "/nonexistent/ws"
		m.read(text)
		for name, r := range m.rules {
			for _, line := range r.lines {
				m.expand(line, name, 0)
			}
		}
		reachable([]string{m.first}, m.rules)
		readJustfile(text)
	})
}
