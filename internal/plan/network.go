package plan

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/ip"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// HostList is what the proxy of a run is told.
type HostList struct {
	Rules   *proxy.Rules
	Forward map[int]string // port inside the run: service of this machine
}

// network turns the network that policy granted into one that this run is held to.
func (p *confining) network() (sandbox.Net, error) {
	g := p.Decision.Grants
	switch g.Net {
	case policy.NetLoopback:
		return sandbox.Net{Mode: sandbox.NetLoopback}, nil
	case policy.NetFull:
		net := sandbox.Net{Mode: sandbox.NetFull}
		if len(p.Policies.Network().Deny) > 0 {
			net.Because = "which hosts the tool's own service has is not known, so network.deny is not held"
		}
		return net, nil
	case policy.NetAllowlist:
	default:
		return sandbox.Net{}, nil
	}
	forced, _ := sandbox.TierByName(p.Policies.Sandbox().Tier)
	if p.Policies.Sandbox().Confine == "none" || !p.Host.HostLists(forced) && g.NetKnown && !p.hostsDelegated() {
		// Landlock knows ports, not hosts: a known tool that was granted a list gets the
		// full network, which is a gap of the receipt. A policy that requires the guarantee
		// does not accept it; a delegation of hosts, and a tool that nobody vouches for, are
		// refused where the list is selected.
		return sandbox.Net{Mode: sandbox.NetFull, Unbounded: g.Hosts}, nil
	}
	if g.NetKnown && !p.hostsDelegated() && slices.ContainsFunc(g.Hosts, unknownWord) {
		// A person agreed to a host that is known only when the command runs.
		net := sandbox.Net{Mode: sandbox.NetFull, Because: "a host is not known before the command runs"}
		for _, h := range g.Hosts {
			if unknownWord(h) {
				h = "?"
			}
			net.Unbounded = append(net.Unbounded, h)
		}
		return net, nil
	}
	net := sandbox.Net{Mode: sandbox.NetAllowlist}
	np := p.Policies.Network()
	config := proxy.Config{Deny: np.Deny, Private: np.Private, Upstream: np.Upstream}
	p.HostList.Forward = map[int]string{}
	for _, service := range np.Forward {
		if _, port := step.SplitPort(service); port != 0 {
			p.HostList.Forward[port] = service
		}
	}
	for _, h := range g.Hosts {
		for _, host := range withPorts(h) {
			if name, port := step.SplitPort(host); ownLoopback(name) {
				// The run has a loopback of its own; the service lies on the machine's.
				p.HostList.Forward[port] = host
				continue
			}
			if _, err := proxy.Compile(proxy.Config{Allow: []string{host}}); err != nil {
				continue // no host at all: there is nothing to reach
			}
			config.Allow = append(config.Allow, host)
		}
	}
	for _, h := range np.Allow {
		if !strings.Contains(h, "/") { // a range covers addresses in words, which were granted one by one
			config.Allow = append(config.Allow, h)
		}
	}
	for i := range p.chain {
		if p.chain[i].Hosts != nil {
			config.Within = append(config.Within, p.chain[i].Hosts)
		}
	}
	var err error
	if p.HostList.Rules, err = proxy.Compile(config); err != nil {
		return net, &policy.ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: err.Error()}
	}
	net.Allow, net.Direct = config.Allow, direct(config.Allow)
	for port := range p.HostList.Forward {
		net.Forward = append(net.Forward, port)
	}
	slices.Sort(net.Forward)
	return net, nil
}

// unknownWord reports a host in a word that the reader of shell strings could not know.
func unknownWord(host string) bool { return strings.IndexByte(host, 0) >= 0 }

// direct lists the hosts that are known by name and port: those that programs can reach
// which do not ask a proxy.
func direct(hosts []string) []sandbox.Direct {
	var out []sandbox.Direct
	for _, h := range hosts {
		name, port := step.SplitPort(strings.ToLower(h))
		if port == 0 {
			port = 443 // of network.allow
		}
		d := sandbox.Direct{Host: name, Port: port}
		if _, address := ip.Parse(strings.Trim(name, "[]")); address || strings.HasPrefix(name, "*") || slices.Contains(out, d) || len(out) == sandbox.MaxDirect {
			continue
		}
		out = append(out, d)
	}
	return out
}

// hostsDelegated reports whether this run was lent some hosts and no others.
func (p *Plan) hostsDelegated() bool {
	return slices.ContainsFunc(p.chain, func(r policy.Restrict) bool { return r.Hosts != nil })
}

// withPorts completes a granted host. One whose words leave the port open is a web server.
func withPorts(host string) []string {
	if _, port := step.SplitPort(host); port != 0 {
		return []string{host}
	}
	if strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return []string{host + ":443", host + ":80"}
}

func ownLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == "::1"
}
