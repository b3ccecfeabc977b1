package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/hostword"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
)

// redirected notes the hosts that variables of the command line make a tool talk to
// instead of its own service: `GH_HOST=evil gh pr list`, and what the caller's own
// environment does so.
func (c *collector) redirected(s *Step) {
	if s.Call.Effects[atip.Network].Value == atip.No {
		return
	}
	for _, a := range c.site.callerVariables() {
		if host, ok := endpoint(s.Call.Endpoints, a); ok {
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
			if host, ok := endpoint(s.Call.Endpoints, a); ok {
				s.Hosts = append(s.Hosts, host)
				continue
			}
			for _, h := range hostword.In(strings.ToLower(a.Name), a.Value) {
				s.Hosts = append(s.Hosts, policy.HostUseOf(h.Name, h.Port)) // PGHOST=…, X_URL=https://…
			}
		}
	}
}

func endpoint(names []string, a shell.Assign) (policy.HostUse, bool) {
	named := false
	for _, n := range names {
		prefix, wild := strings.CutSuffix(n, "*")
		named = named || n == a.Name || wild && strings.HasPrefix(a.Name, prefix)
	}
	// GH_REPO is [HOST/]OWNER/NAME.
	if !named || a.Value == "" || strings.HasSuffix(a.Name, "_REPO") && strings.Count(a.Value, "/") < 2 {
		return policy.HostUse{}, false
	}
	if strings.IndexByte(a.Value, 0) >= 0 {
		return policy.HostUse{}, true
	}
	host := a.Value
	if _, rest, ok := strings.Cut(host, "://"); ok {
		host = rest
	}
	host, _, _ = strings.Cut(host, "/")
	if _, rest, ok := strings.Cut(host, "@"); ok {
		host = rest
	}
	name, port := SplitPort(host)
	return policy.HostUseOf(name, port), true
}

// assigned lists the variables that `env` sets for the command it runs.
func assigned(s *Step, inner []string) []shell.Assign {
	if s.Call.Tool != "env" && s.Call.Tool != "sudo" && s.Call.Tool != "doas" {
		return nil
	}
	var out []shell.Assign
	for _, w := range s.Argv[1:max(1, len(s.Argv)-len(inner))] {
		name, value, ok := strings.Cut(w, "=")
		if ok && name != "" && !strings.HasPrefix(w, "-") {
			out = append(out, shell.Assign{Name: name, Value: value})
		}
	}
	return out
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
