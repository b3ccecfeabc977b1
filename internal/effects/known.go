package effects

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// knownPart is the step of a command without the words that are not known, for a plan that
// leaves them to the gate: nil if the program would not be started by an execve of its own.
func (c *collector) knownPart(s *step.Step, argv []string) (*step.Step, error) {
	if !c.site.Defers || c.peeking {
		return nil, nil
	}
	t := &step.Step{Executable: s.Executable, ID: s.ID, Verdict: s.Verdict, Missing: s.Missing}
	t.Step = s.Step
	t.Call, t.Hosts, t.ServiceHosts, t.Entitled, t.RunsCode = atip.Call{}, nil, nil, nil, policy.CodeNone
	t.Confidence = policy.Exact
	t.Argv = slices.DeleteFunc(slices.Clone(argv), func(w string) bool { return strings.IndexByte(w, 0) >= 0 })
	if strings.IndexByte(argv[0], 0) >= 0 {
		// As a builtin of the shell: it starts nothing that is not asked about.
		t.Argv = step.Shown(argv)
		t.Call = c.nothingYet(t.Argv)
		t.File = policy.FileFacts{Believed: true, SystemPath: true, Names: t.Argv[:1]}
		return t, nil
	}
	if err := c.resolve(t); err != nil {
		return nil, err
	}
	if s.RunsCode == policy.CodeOpaque {
		// The code is among the words: what it does is decided when it starts.
		t.RunsCode = policy.CodeNone
		for e := range t.Call.Effects {
			if t.Call.Effects[e].Value == atip.Unknown || atip.Effect(e) == atip.ExecOpaque {
				t.Call.Effects[e] = step.Harmless(atip.Effect(e), "decided at exec")
			}
		}
	}
	t.Argv = step.Shown(argv)
	return t, nil
}

// nothingYet is the call of a program that is not known before it starts.
func (c *collector) nothingYet(argv []string) atip.Call {
	call := atip.Call{Tool: argv[0], InvokedAs: argv[0], Argv: argv, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Resources: []atip.Resource{}, Nested: []atip.Nested{}, Secrets: []string{},
		Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "none", Source: "decided at exec"}}
	for e := range call.Effects {
		call.Effects[e] = step.Harmless(atip.Effect(e), "decided at exec")
	}
	return call
}
