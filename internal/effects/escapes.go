package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// shellLines judges the commands of the shell that stand in the program text of an
// editor, a debugger or Tcl: "!rm x" of ed, "shell rm x" of gdb, "exec rm x". Where such a line could
// stand in another form, what runs is not known.
func (c *collector) shellLines(s *step.Step, n atip.Nested, text string, via []string) error {
	if n.Language != "ed" && n.Language != "gdb" && n.Language != "tcl" {
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		command, ok := step.Escape(n.Language, line)
		switch {
		case ok && command != "":
			if err := c.shell(s, command, via); err != nil {
				return err
			}
		case !ok:
			s.RunsCode = policy.CodeOpaque
		}
	}
	return nil
}
