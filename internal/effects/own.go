package effects

import (
	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// ownCall reads the words of our own programs: what they wrap is judged as if it stood
// alone, and what only a person may do is denied by its verb. It returns false for any
// other program.
func (c *collector) ownCall(s *step.Step) bool {
	if !c.site.ownFile(s.ID.Canonical) || s.Missing != nil {
		return false
	}
	s.Verdict = trust.Verdict{Level: s.Verdict.Level, Reason: "own_program", Action: trust.Allow}
	s.Trust = policy.TrustFacts{Level: s.Verdict.Level.String(), Reason: s.Verdict.Reason, Action: policy.Allow}
	s.File.Believed = true
	c.out.Nestable = true
	line := step.ReadOwnLine(s.ID.Invoked, s.Argv[1:])
	if line.Unknown {
		s.Call = atip.UnknownCall(step.Shown(s.Argv), s.ID.Invoked)
		s.Call.Path = line.Verb
		s.RunsCode = policy.CodeOpaque
		return true
	}
	s.Call = atip.Call{Tool: "atip-exec", InvokedAs: s.ID.Invoked, Argv: s.Argv, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Resources: line.Resources, Nested: line.Nested, Secrets: []string{}, Chdir: line.Dir,
		Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "digest", Source: step.OwnSource}}
	for e := range s.Call.Effects {
		s.Call.Effects[e] = step.Harmless(atip.Effect(e), step.OwnSource)
	}
	s.Call.Effects[atip.Subprocess].Value = atip.Yes
	if len(line.Verb) > 0 {
		s.Call.Path = line.Verb
	} else {
		// As of a shell, what counts is what it runs.
		s.Call.Tool = ":"
	}
	for i := range s.Call.Resources {
		c.place(c.site.World, &s.Call.Resources[i], subpath.Join(s.Cwd, s.Call.Chdir))
		s.Raise(s.Call.Resources[i])
		if s.Call.Resources[i].Access&atip.AccessWrite != 0 {
			s.Call.Effects[atip.Write].Value = atip.Yes
		}
	}
	return true
}
