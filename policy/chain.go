package policy

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// narrowed is the set under a delegation: the meet of its blocks with everything
// else. What cannot be read denies.
func (s *Set) narrowed(chain []Restrict) (*Set, string) {
	n := *s
	n.allow = append([]*rule(nil), s.allow...)
	n.restrict = append([]*rule(nil), s.restrict...)
	for i := range chain {
		c := &chain[i]
		add := func(r rule) {
			r.layer, r.file = LayerDelegated, "delegation"
			n.restrict = append(n.restrict, &r)
		}
		if c.Profile != "" {
			if !shippedProfile(c.Profile) {
				return s, "the delegation names an unknown profile " + c.Profile
			}
			n.switches &= profileSwitches(c.Profile)
		}
		switch c.Default {
		case "", "confirm":
		case "deny":
			n.setDefault(Deny, LayerDelegated)
		default:
			return s, "the delegation's default is neither confirm nor deny"
		}
		if c.AllowedTools != nil {
			add(rule{id: "delegation.allowed_tools", when: when{toolNotIn: c.AllowedTools}, reason: "not among the tools that were delegated"})
		}
		for _, words := range c.DeniedCommands {
			f := strings.Fields(words)
			if len(f) == 0 {
				return s, "the delegation denies an empty command"
			}
			add(deniedCommand(f))
		}
		for key, permitted := range c.EffectRestrictions {
			e, ok := atip.EffectByKey(key)
			if !ok {
				return s, "the delegation restricts an unknown effect " + key
			}
			if r, withhold, restricts := restrictEffect(e, permitted); restricts {
				n.withhold |= withhold
				add(r)
			}
		}
		if c.Hosts != nil {
			var list []hostPattern
			for _, h := range c.Hosts {
				p, ok := parseHostPattern(h)
				if !ok {
					return s, "the delegation names a host that is none: " + h
				}
				list = append(list, p)
			}
			x := rule{id: "delegation.hosts", onUnknown: Confirm, when: when{effects: []effectCond{{atip.Network, true}}},
				reason: "the host was not delegated"}
			if len(list) > 0 {
				x.unless = []when{{host: list}}
			}
			add(x)
		}
		if c.Paths != nil {
			var globs []string
			for _, p := range c.Paths {
				p = strings.TrimSuffix(p, "/")
				if !strings.HasPrefix(p, "/") {
					return s, "the delegation names a path that is not absolute: " + p
				}
				globs = append(globs, p, p+"/**")
			}
			modify := atip.AccessWrite | atip.AccessDelete
			x := rule{id: "delegation.paths", onUnknown: Confirm, when: when{path: &pathCond{access: modify}},
				reason: "the path was not delegated"}
			if len(globs) > 0 {
				x.unless = []when{{path: &pathCond{access: modify, glob: globs}}}
			}
			add(x)
		}
	}
	if n.switches != s.switches {
		kept := n.allow[:0]
		for _, a := range n.allow {
			if n.switches.has(a.sw) {
				kept = append(kept, a)
			}
		}
		n.allow = kept
	}
	return &n, ""
}
