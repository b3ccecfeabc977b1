package plan

import (
	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/trust"
)

// Subprocess is what the metadata of all steps says about starting other programs.
func (p *Plan) Subprocess() atip.Value {
	if c := p.Invocation.Ceiling; c != nil && !c.Effects.Has(atip.Subprocess) {
		return atip.No // mayStart refuses what could not run so
	}
	if len(p.Steps) > 1 {
		// Several commands in one line need a process each.
		return atip.Yes
	}
	value := atip.No
	for _, s := range p.Steps {
		if s.ID.Form != trust.FormELF {
			// What metadata says of a tool holds for its program, not for the script that
			// a distribution or a version manager puts in front of it.
			return atip.Yes
		}
		value = worse(value, s.Call.Effects[atip.Subprocess].Value)
	}
	return value
}
