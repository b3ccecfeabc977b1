package plan

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/trust"
)

// strictDelete reports a ceiling that lists write and not delete: the sandbox then
// withholds the right to remove, which it otherwise grants together with write.
func (p *Plan) strictDelete() bool {
	c := p.Invocation.Ceiling
	return c != nil && c.Effects.Has(atip.Write) && !c.Effects.Has(atip.Delete)
}

// belowCeiling takes from the profile what the ceiling of the script does not list,
// whoever granted it: the decision has already withheld the effects, and this holds for
// paths and sockets that a policy or the metadata of a tool adds.
func (p *confining) belowCeiling() {
	c := p.Invocation.Ceiling
	if c == nil {
		return
	}
	if !c.Effects.Has(atip.Network) {
		p.Profile.Unix = nil
	}
	if paths := p.ceilingPaths(); paths != nil {
		p.writeWithin(paths)
		p.Profile.HostWrite = len(paths) > 0 && p.Profile.HostWrite
	}
}

// ceilingPaths lists where the ceiling lets the run write, nil for wherever it was granted.
func (p *Plan) ceilingPaths() []string {
	c := p.Invocation.Ceiling
	if !c.Effects.Has(atip.Write) && !c.Effects.Has(atip.Delete) {
		return []string{}
	}
	if c.Paths == nil {
		return nil
	}
	paths := make([]string, len(c.Paths))
	for i, path := range c.Paths {
		paths[i] = filepath.Clean(subpath.Join(p.Cwd, path))
	}
	return paths
}

// mayStart refuses a script that starts programs under a ceiling without subprocess: the
// kernel would refuse the first of them with an error that says nothing about the reason.
func (p *judging) mayStart() error {
	c := p.Invocation.Ceiling
	if c == nil {
		return nil
	}
	if p.Host.ABI == 0 || p.Policies.Sandbox().Confine == "none" {
		return fault.New(errcode.GuaranteeMissing, "the ceiling of the script cannot be enforced: nothing confines commands here")
	}
	if c.Effects.Has(atip.Subprocess) {
		return nil
	}
	why, main := "", p.Steps[0]
	for _, s := range p.Steps[1:] {
		// A builtin of the shell has no file.
		if why == "" && (s.Missing != nil || s.ID.Canonical != "" && s.ID.Canonical != main.ID.Canonical) {
			why = "it starts " + quote.Words(s.Argv[:1])
		}
	}
	switch {
	case why != "":
	case p.Steps[0].Missing == nil && p.Steps[0].ID.Form != trust.FormELF:
		why = p.Steps[0].ID.Invoked + " is itself a script, which starts other programs"
	default:
		return nil
	}
	return fault.New(errcode.Denied, "the ceiling of the script permits no subprocess effect, but "+why).WithFix("add subprocess to the effects of the script", "# @effects subprocess").With("rules", []string{"flag/ceiling.subprocess"})
}
