package run

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/ip"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// hostList is what the proxy of a run is told.
type hostList struct {
	rules   *proxy.Rules
	forward map[int]string // port inside the run: service of this machine
}

// network turns the network that policy granted into one that this run is held to.
func (p *Plan) network() (sandbox.Net, error) {
	g := p.Decision.Grants
	switch g.Net {
	case policy.NetLoopback:
		return sandbox.Net{Mode: sandbox.NetLoopback}, nil
	case policy.NetFull:
		net := sandbox.Net{Mode: sandbox.NetFull}
		if len(p.policies.Network().Deny) > 0 {
			net.Because = "which hosts the tool's own service has is not known, so network.deny is not held"
		}
		return net, nil
	case policy.NetAllowlist:
	default:
		return sandbox.Net{}, nil
	}
	forced, _ := sandbox.TierByName(p.policies.Sandbox().Tier)
	if p.policies.Sandbox().Confine == "none" || !p.host.HostLists(forced) && g.NetKnown && !p.hostsDelegated() {
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
	np := p.policies.Network()
	config := proxy.Config{Deny: np.Deny, Private: np.Private, Upstream: np.Upstream}
	p.hostList.forward = map[int]string{}
	for _, service := range np.Forward {
		if _, port := effects.SplitPort(service); port != 0 {
			p.hostList.forward[port] = service
		}
	}
	for _, h := range g.Hosts {
		for _, host := range withPorts(h) {
			if name, port := effects.SplitPort(host); ownLoopback(name) {
				// The run has a loopback of its own; the service lies on the machine's.
				p.hostList.forward[port] = host
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
	if p.hostList.rules, err = proxy.Compile(config); err != nil {
		return net, &policy.ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: err.Error()}
	}
	net.Allow, net.Direct = config.Allow, direct(config.Allow)
	for port := range p.hostList.forward {
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
		name, port := effects.SplitPort(strings.ToLower(h))
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
	if _, port := effects.SplitPort(host); port != 0 {
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

// serve is how the sandbox hands over the listeners of the run.
func (x *execution) serve(list []sandbox.Listener) {
	h := &x.plan.hostList
	for _, l := range list {
		switch l.Service {
		case "http":
			x.proxy.ServeHTTP(l.File)
		case "socks":
			x.proxy.ServeSOCKS(l.File)
		case "direct":
			x.proxy.ServeDirect(l.File, l.Host, l.Port)
		default:
			if err := x.proxy.ServeForward(l.File, h.forward[l.Port]); err != nil {
				x.warn(err.Error())
			}
		}
	}
}

// maxRefusals is how many refusals are told one by one.
const maxRefusals = 20

// settleNetwork tells what the proxy refused. Host names are words of the command and may
// carry what it read.
func (x *execution) settleNetwork() {
	if x.proxy == nil {
		return
	}
	x.network = x.proxy.Close()
	type refusal struct{ host, reason string }
	seen, order := map[refusal]int{}, []refusal{}
	texts := map[refusal]string{}
	for i := range x.network.Log {
		e := &x.network.Log[i]
		e.Host = x.clean(e.Host)
		if e.Decision != "deny" {
			continue
		}
		host := e.Host
		if e.Port != 0 {
			host += ":" + strconv.Itoa(e.Port)
		}
		r := refusal{host, e.Reason}
		if seen[r]++; seen[r] == 1 {
			order = append(order, r)
			texts[r] = e.Explain()
		}
	}
	for i, r := range order {
		if i == maxRefusals {
			x.warn(strconv.Itoa(len(order)-i) + " more hosts were refused; the status file and the audit record list them")
			break
		}
		x.refusals = append(x.refusals, sandbox.Refused(r.host, texts[r], seen[r]))
	}
}

// settleFailures says why granted hosts were not reached by a command that failed: its
// client can only tell what the proxy answered.
func (x *execution) settleFailures() {
	var told []string
	for i := range x.network.Log {
		e := &x.network.Log[i]
		if e.Decision != "allow" || e.Reason == "" || len(told) == maxRefusals {
			continue
		}
		text := "could not connect to " + e.Host + ":" + strconv.Itoa(e.Port) + ": " + e.Explain()
		if !slices.Contains(told, text) {
			told = append(told, text)
			x.warn(text)
		}
	}
}

// receipt is what was enforced, with what happened on the network.
type receipt struct {
	sandbox.Receipt
	Net netReceipt `json:"net"`
}

type netReceipt struct {
	sandbox.Net
	*proxy.Report
}

func (x *execution) withNetwork(r sandbox.Receipt) any {
	if x.proxy == nil {
		return r
	}
	return receipt{Receipt: r, Net: netReceipt{r.Net, &x.network}}
}
