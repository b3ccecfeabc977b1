package effects

import (
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// split finds out what a command does that fetches what the project declares, once that was
// fetched for it.
func (c *collector) split(s *step.Step) error {
	if !c.site.Splits || c.peeking || len(s.Via) > 0 || s.Confidence != policy.Exact || s.Call.Provenance.Rank < atip.Org || s.File.InWorkspace {
		return nil
	}
	f := s.Call.Splits()
	if f == nil || !subpath.Within(s.Cwd, c.site.Workspace) || s.Call.Effects[atip.Network].Value == atip.No {
		return nil
	}
	for x := c.ctx; x != nil; x = x.outer {
		if x.cwdUnknown || slices.ContainsFunc(x.env, func(a shell.Assign) bool { have, set := c.site.lookupEnv(a.Name); return !set || have != a.Value }) {
			return nil // the call that fetches has the caller's variables
		}
	}
	for path := range c.writers {
		if slices.Contains(f.Inputs, filepath.Base(path)) {
			return nil // by then another project may be declared
		}
	}
	for _, before := range c.steps {
		switch {
		case before == s, before.Split != nil:
		case before.Call.Effects[atip.Network].Value == atip.Yes, before.RunsCode != policy.CodeNone, before.Call.Tool == "git" && before.Call.Effects[atip.Write].Value == atip.Yes:
			return nil // so may a pull, a checkout or code that runs before it
		}
	}
	t := &step.Step{Argv: append(slices.Clone(s.Argv), f.OfflineWords...), Executable: s.Executable, ID: s.ID, Verdict: s.Verdict, Missing: s.Missing}
	t.Step = s.Step
	t.Call, t.Hosts, t.ServiceHosts, t.Entitled, t.RunsCode = atip.Call{}, nil, nil, nil, policy.CodeNone
	if err := c.resolve(t); err != nil {
		return err
	}
	if err := c.nested(t); err != nil {
		return err
	}
	t.Call.Effects[atip.Network] = atip.Fact{Value: atip.No, Source: "fetched beforehand", Rank: atip.Vendor}
	t.Hosts, t.ServiceHosts = nil, nil
	t.Argv = s.Argv
	s.Split, s.Apart = f, t
	return nil
}
