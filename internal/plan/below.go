package plan

import (
	"slices"
	"strings"
)

// Below decides one start of this run: the same place, policies and machine, with the environment of
// the process. What was typed is held to all policies, and code of the workspace to the documents
// that someone wrote. The caller closes the plan.
func (p *Plan) Below(words []string, cwd string, env []string, typed bool) (*Plan, error) {
	sub := New(Invocation{Argv: words, Policies: p.Invocation.Policies, Profiles: p.Invocation.Profiles, CI: p.Invocation.CI, Ceiling: p.Invocation.Ceiling}, p.Machine)
	sub.Machine.Environ = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "ATIP_") })
	for _, entry := range p.Machine.Environ {
		if strings.HasPrefix(entry, "ATIP_") {
			sub.Machine.Environ = append(sub.Machine.Environ, entry)
		}
	}
	sub.Place, sub.Rules, sub.Host, sub.files = p.Place.from(cwd), p.Rules, p.Host, p.files
	if !typed {
		sub.Rules = p.Rules.written()
	}
	if err := stages(sub.identify, sub.decide); err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// from is the place as a process sees it that works in another directory.
func (at Place) from(cwd string) Place {
	at.Cwd, at.World.Cwd = cwd, cwd
	return at
}

// written are the rules that someone wrote, without the built-in ones.
func (r Rules) written() Rules {
	r.Policies = r.Policies.Written()
	return r
}
