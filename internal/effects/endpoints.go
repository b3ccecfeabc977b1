package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/hostword"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// redirected notes the hosts that variables of the command line make a tool talk to
// instead of its own service: `GH_HOST=evil gh pr list`, and what the caller's own
// environment does so.
func (c *collector) redirected(s *step.Step) {
	if s.Call.Effects[atip.Network].Value == atip.No {
		return
	}
	for _, a := range c.site.callerVariables() {
		if host, ok := step.Endpoint(s.Call.Endpoints, a); ok {
			s.Hosts = append(s.Hosts, host)
		}
	}
	if c.ctx == nil {
		return
	}
	if s.Call.Tool == "git" && c.remoteSet() {
		// What .git/config says will not be what it says now.
		s.Hosts = append(s.Hosts, policy.HostUse{})
	}
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if host, ok := step.Endpoint(s.Call.Endpoints, a); ok {
				s.Hosts = append(s.Hosts, host)
				continue
			}
			for _, h := range hostword.In(strings.ToLower(a.Name), a.Value) {
				s.Hosts = append(s.Hosts, policy.HostUseOf(h.Name, h.Port)) // PGHOST=…, X_URL=https://…
			}
		}
	}
}

// setting runs f with variables that a wrapper sets.
func (c *collector) setting(env []shell.Assign, f func() error) error {
	if len(env) == 0 {
		return f()
	}
	outer := c.ctx
	c.ctx = &surroundings{outer: outer, env: env}
	if outer != nil {
		c.ctx.globs, c.ctx.stdin, c.ctx.cwdUnknown, c.ctx.flows = outer.globs, outer.stdin, outer.cwdUnknown, outer.flows
	}
	defer func() { c.ctx = outer }()
	return f()
}

// remoteSet reports whether an earlier part of the text gives git another remote.
func (c *collector) remoteSet() bool {
	for _, s := range c.steps {
		if p := s.Call.Path; s.Call.Tool == "git" && len(p) > 0 && (p[0] == "config" && len(s.Call.Positionals) > 1 || p[0] == "remote" && len(p) > 1 && (p[1] == "add" || p[1] == "set-url" || p[1] == "rename")) {
			return true
		}
	}
	return false
}
