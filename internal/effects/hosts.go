package effects

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/hostword"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/policy"
)

// hosts says whom a step may talk to, as far as its words tell. configured says that it talks to
// remotes of a configuration, whose hosts are known already.
func hosts(s *Step, configured bool) []policy.HostUse {
	var out []policy.HostUse
	for _, r := range s.Call.Resources {
		if strings.HasPrefix(r.Why, "remote ") {
			continue
		}
		if s.Call.Tool == "git" && r.Kind == "url" && r.Scheme == "" && !strings.ContainsAny(r.Value, ":/") && len(hostword.In("", r.Value)) == 0 {
			continue // the name of a remote
		}
		if (r.Kind == "url" || r.Kind == "host") && r.Host != "" && r.Scheme != "file" {
			out = append(out, policy.HostUseOf(r.Host, portOf(s.Call.Tool, r)))
		}
	}
	named := len(out) > 0
	if s.Call.Effects[atip.Network].Value == atip.No {
		return out
	}
	for _, h := range looseHosts(s) {
		named = named || policy.GenericClient(s.Call.Tool)
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	if named || configured {
		return out // a client that is told where to go
	}
	switch {
	case s.Call.Tool == "git" && s.Call.Effects[atip.Network].Value == atip.Yes:
		// Without a URL git talks to a remote of its configuration, whose URLs the
		// check of .git/config has seen.
		out = append(out, policy.HostUse{Kind: policy.HostNamed})
	case s.Call.Provenance.Rank >= atip.Org && s.Call.Effects[atip.Network].Value == atip.Yes:
		out = append(out, policy.HostUse{Kind: policy.HostService}) // beside the hosts in its words
	}
	return out
}

// looseHosts are the hosts in words whose meaning no document states. A tool that has the
// network may connect to any of them.
func looseHosts(s *Step) []policy.HostUse {
	var out []policy.HostUse
	for _, l := range s.Call.Loose {
		found := hostword.In(l.Name, l.Value)
		switch s.Call.Tool {
		case "scp", "sftp", "rsync":
			if h, ok := hostword.Remote(l.Value); ok && strings.HasPrefix(l.Why, "argv[") {
				found = []hostword.Host{h}
			}
		}
		for _, h := range found {
			port := h.Port
			if port == 0 {
				port = schemePort(h.Scheme)
			}
			use := policy.HostUseOf(h.Name, port)
			if use.Kind == policy.HostPublic && slices.Contains(s.Call.Service, use.Host) {
				continue
			}
			out = append(out, use)
		}
	}
	return out
}

// serviceHosts are the hosts that the metadata of a tool lists as its own. They can only
// narrow what it reaches, so an entry that cannot be read is left out.
func (c *collector) serviceHosts(s *Step) []string {
	var out []string
	for _, h := range s.Call.Hosts {
		if _, err := proxy.Compile(proxy.Config{Allow: []string{h}}); err != nil {
			c.out.Warnings = append(c.out.Warnings, "metadata of "+s.Call.Tool+": x-atip-hosts: "+strconv.Quote(h)+" is not a host")
			continue
		}
		out = append(out, h)
	}
	if len(out) == 0 && len(s.Call.Hosts) > 0 {
		out = []string{"none.invalid"} // a list was meant; RFC 2606 keeps this name without an address
	}
	return out
}
