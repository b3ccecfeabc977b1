package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/layers"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// trustPolicy lets a project's policy loosen, within the ceilings above it, after a
// person has read all of it. It is asked on the person's own terminal, like a
// request: else an agent would trust what it wrote.
func trustPolicy(dirs []string) error {
	dir := ""
	if len(dirs) > 1 {
		return fault.New(errcode.Arguments, "policy trust: name at most one directory")
	}
	if len(dirs) == 1 {
		dir = dirs[0]
	}
	a, err := approvals.Open()
	if err != nil {
		return err
	}
	t, err := a.OwnTerminal()
	if err != nil {
		return err
	}
	defer t.Close()
	m := caller.Here()
	root, read, err := plan.ReadProject(m, dir)
	if err != nil {
		return err
	}
	if len(read) == 0 {
		return fault.New(errcode.NoInputFile, root+" has no policy").WithFix("there is nothing to trust", "")
	}
	names := map[string]any{}
	for name := range read {
		names[name] = nil
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var b strings.Builder
		fmt.Fprintf(&b, "--- %s\n", answer.Visible(name))
		for _, line := range strings.Split(strings.TrimRight(string(read[name]), "\n"), "\n") {
			b.WriteString(answer.Visible(strings.ReplaceAll(line, "\t", "    ")) + "\n")
		}
		if err := t.Say(b.String()); err != nil {
			return err
		}
	}
	if err := t.Confirm("These files of "+answer.Visible(root)+" may then loosen what your policy permits them to. Type yes to trust them: ", "nothing was trusted"); err != nil {
		return err
	}
	own, err := m.Dirs()
	if err != nil {
		return err
	}
	if err := layers.TrustProject(own, root, read); err != nil {
		return err
	}
	return t.Say("Trusted, until one of them changes.\n")
}
