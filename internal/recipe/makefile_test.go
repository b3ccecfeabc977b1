package recipe

import "testing"

// Files that make cannot read either are no trouble here.
func FuzzMakefile(f *testing.F) {
	f.Add("all: x\n\techo $(shell ls) ${A}\nA = $(A)\n")
	f.Add("define X\n\trm\nendef\n$(eval $(X))\n%: ; $@\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := NewMakefile("/nonexistent", "/nonexistent/home")
		m.Read(text)
		for name, r := range m.rules {
			for _, line := range r.Lines {
				m.expand(line, name, 0)
			}
		}
		Reachable([]string{m.first}, m.rules)
	})
}
