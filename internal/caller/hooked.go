package caller

import (
	"strings"

	"github.com/atip-dev/atip-exec/internal/shell"
)

// Wrapped reports whether a text is one call of this program that wraps a command and says
// nothing else: wrapping it again would judge it twice. policies says that a flag in it picks
// policies, which no caller may.
func (m Machine) Wrapped(text string) (wrapped, policies bool) {
	script, err := shell.Read(text, shell.Options{Cwd: "/"})
	if err != nil {
		return false, false
	}
	for _, c := range script.Commands {
		if len(c.Argv) < 2 || c.Argv[0] != m.Self {
			continue
		}
		for _, w := range c.Argv[1:] {
			if w == "--" || w == "-c" || w == "" || w[0] != '-' {
				break
			}
			if name, _, _ := strings.Cut(w, "="); name == "--policy" || name == "--profile" || name == "--prime" {
				policies = true
			}
		}
		wrapped = script.Simple && len(script.Commands) == 1 && len(c.Argv) > 2 && (c.Argv[1] == "--" || c.Argv[1] == "-c" && len(c.Argv) == 3)
	}
	return wrapped, policies
}
