package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// Ceiling is the most that one run may do, whatever else permits it: what the author of a
// script wrote above it. It only narrows. Write, delete and network are withheld by the
// sandbox; what no kernel sees is denied where it is stated. Its zero value permits no
// effect at all.
type Ceiling struct {
	Effects atip.Set
	// Paths, if not nil, are the only places where the run may write or remove files.
	Paths []string
}

// CeilingWords are the words of a ceiling, "none" apart; write and delete can name a path
// behind a colon.
func CeilingWords() []string {
	return []string{"network", "write", "delete", "subprocess", "destructive", "irreversible", "billable"}
}

// ParseCeiling reads the words of a ceiling. The error names the word that is none.
func ParseCeiling(words []string) (*Ceiling, error) {
	c := &Ceiling{}
	everywhere := false
	for _, word := range words {
		name, path, named := strings.Cut(word, ":")
		e, known := atip.EffectByKey(name)
		switch {
		case word == "none":
			continue
		case name == "irreversible":
			e = atip.Reversible
		case !known || !slices.Contains(CeilingWords(), name):
			return nil, fmt.Errorf("%q is not one of none, %s", word, strings.Join(CeilingWords(), ", "))
		}
		modifies := e == atip.Write || e == atip.Delete
		if named && (!modifies || path == "") {
			return nil, fmt.Errorf("%q: only write and delete take a path", word)
		}
		c.Effects = c.Effects.With(e)
		everywhere = everywhere || modifies && !named
		if named {
			c.Paths = append(c.Paths, path)
		}
	}
	if everywhere {
		c.Paths = nil
	}
	return c, nil
}

// below is the set under a ceiling.
func (s *Set) below(c *Ceiling) *Set {
	n := *s
	n.restrict = append([]*rule(nil), s.restrict...)
	n.withhold |= atip.SetOf(atip.Write, atip.Delete, atip.Network) &^ c.Effects
	for _, e := range [...]atip.Effect{atip.Destructive, atip.Reversible, atip.Billable} {
		if c.Effects.Has(e) {
			continue
		}
		// What is unknown stays unknown: a ceiling that nothing enforces is no evidence.
		x := rule{id: "ceiling." + strings.ToLower(DangerName(e)), decision: Deny, floor: Deny, onUnknown: Allow, layer: LayerFlag, file: "--ceiling",
			reason: "the ceiling of the script permits no " + DangerName(e) + " effect"}
		x.when.effects = []effectCond{{e, e != atip.Reversible}}
		n.restrict = append(n.restrict, &x)
	}
	return &n
}
