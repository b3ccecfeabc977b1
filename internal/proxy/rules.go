package proxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// Config is what the policy says about the hosts of a run.
type Config struct {
	// Allow and Deny list "name", "*.below", an address, or any of them with ":port".
	// Without a port an allowed host means its port 443, a denied one all its ports. Deny
	// may also list address ranges and "loopback", "private" and "metadata".
	Allow, Deny []string
	// Within are further lists, each of which must allow a host too, at any port if it
	// names none: a delegation can only take away.
	Within [][]string
	// Private lists the address ranges that names may resolve to although they are not
	// on the public internet.
	Private []string
	// Upstream is the proxy that this machine itself must use, "http://[user:password@]host:port".
	Upstream string
}

// Rules is a compiled Config. The zero Rules allows nothing.
type Rules struct {
	allow, deny []pattern
	within      [][]pattern
	denied      []denied
	private     []ip.CIDR
	upstream    *upstream
}

// pattern is one entry of a list.
type pattern struct {
	text   string
	host   string // exact
	suffix string // with its leading dot
	port   int    // 0: any
	any    bool   // every name, and every address of the public internet
}

// denied is an entry of Config.Deny that is about addresses.
type denied struct {
	kind string // "" for a range
	cidr ip.CIDR
	port int // 0: any
}

func (d *denied) match(a ip.Addr, port int) bool {
	if d.port != 0 && d.port != port {
		return false
	}
	special := a.Special()
	switch d.kind {
	case "":
		return d.cidr.Contains(a) || d.cidr.Contains(a.Unwrap())
	case "public":
		return special == ""
	case "loopback":
		return special == "loopback" || special == "unspecified"
	case "metadata":
		return a.Metadata()
	}
	return special != "" // private
}

// Compile reads a Config. What it cannot read it refuses: an entry that is skipped would
// be missing from a list of what to deny.
func Compile(c Config) (*Rules, error) {
	r := &Rules{}
	var err error
	if r.allow, err = patterns("network.allow", c.Allow, 443); err != nil {
		return nil, err
	}
	for _, list := range c.Within {
		var only []pattern
		for _, text := range list {
			switch text {
			case "public":
				// What names resolve to is looked at in any case.
				only = append(only, pattern{text: text, any: true})
			case "named", "service", "loopback", "private", "metadata":
				// Nothing that a run names by itself is known to be one of these.
			default:
				p, err := patterns("delegation", []string{text}, 0)
				if err != nil {
					return nil, err
				}
				only = append(only, p...)
			}
		}
		r.within = append(r.within, only)
	}
	for _, text := range c.Deny {
		word, number, ported := strings.Cut(strings.ToLower(text), ":")
		d := denied{kind: word, port: parsePort(number)}
		switch {
		case word == "loopback" || word == "private" || word == "metadata" || word == "public":
			if ported && d.port == 0 {
				return nil, fmt.Errorf("network.deny: %q has no proper port", text)
			}
			r.denied = append(r.denied, d)
		case word == "service" || word == "named":
			// They say how a command names its host, which the decision has looked at.
		case strings.IndexByte(text, '/') >= 0:
			d, ok := denied{}, false
			whole := strings.ToLower(text)
			if i := strings.LastIndexByte(whole, ':'); i > strings.IndexByte(whole, '/') {
				d.port = parsePort(whole[i+1:])
				whole = strings.Trim(whole[:i], "[]")
				if d.port == 0 {
					return nil, fmt.Errorf("network.deny: %q has no proper port", text)
				}
			}
			if d.cidr, ok = ip.ParseCIDR(whole); !ok {
				return nil, fmt.Errorf("network.deny: %q is not an address range", text)
			}
			r.denied = append(r.denied, d)
		default:
			p, err := patterns("network.deny", []string{text}, 0)
			if err != nil {
				return nil, err
			}
			r.deny = append(r.deny, p...)
		}
	}
	for _, text := range c.Private {
		whole := text
		if a, ok := ip.Parse(strings.Trim(text, "[]")); ok && strings.IndexByte(text, '/') < 0 {
			whole = a.String() + "/128"
			if a.Is4() {
				whole = a.String() + "/32"
			}
		}
		cidr, ok := ip.ParseCIDR(whole)
		if !ok {
			return nil, fmt.Errorf("network.private: %q is not an address range such as \"10.1.0.0/16\"", text)
		}
		r.private = append(r.private, cidr)
	}
	if c.Upstream != "" {
		if r.upstream, err = parseUpstream(c.Upstream); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// noPort is what parseTarget gives for an entry without a port: no port is that high.
const noPort = 1 << 16

func patterns(where string, list []string, port int) ([]pattern, error) {
	var out []pattern
	for _, text := range list {
		p := pattern{text: text, port: port}
		s, below := strings.CutPrefix(strings.ToLower(text), "*.")
		if strings.Count(s, ":") > 1 && s[0] != '[' {
			s = "[" + s + "]" // an address without a port
		}
		t, ok := parseTarget(s, noPort)
		if !ok || below && t.ip {
			return nil, fmt.Errorf("%s: %q is not a host", where, text)
		}
		if t.port != noPort {
			p.port = t.port
		}
		if p.host = t.host; below {
			p.host, p.suffix = "", "."+t.host
		}
		out = append(out, p)
	}
	return out, nil
}

func (p *pattern) match(t target) bool {
	if p.port != 0 && p.port != t.port {
		return false
	}
	if p.any {
		return !t.ip || t.addr.Special() == ""
	}
	if p.suffix != "" {
		return !t.ip && len(t.host) > len(p.suffix) && strings.HasSuffix(t.host, p.suffix)
	}
	return p.host == t.host
}

// name decides by name alone. rule is the entry that decided, reason is empty for a host
// that may be looked up.
func (r *Rules) name(t target) (rule, reason string) {
	for i := range r.deny {
		if r.deny[i].match(t) {
			return r.deny[i].text, "denied"
		}
	}
	for _, list := range r.within {
		if _, ok := first(list, t); !ok {
			return "", "not-delegated"
		}
	}
	if p, ok := first(r.allow, t); ok {
		return p.text, ""
	}
	return "", "not-listed"
}

func first(list []pattern, t target) (pattern, bool) {
	for i := range list {
		if list[i].match(t) {
			return list[i], true
		}
	}
	return pattern{}, false
}

// address says why an address that a listed host resolved to must not be connected to.
// A literal was listed itself.
func (r *Rules) address(a ip.Addr, t target, own []ip.Addr) string {
	seen := a.Unwrap()
	for i := range r.denied {
		if r.denied[i].match(a, t.port) {
			return "denied"
		}
	}
	permitted := t.ip
	for _, c := range r.private {
		// Credentials of the whole machine are not handed out by a range around them.
		permitted = permitted || c.Contains(seen) && (c.Single() || !a.Metadata())
	}
	if permitted {
		return ""
	}
	if special := a.Special(); special != "" {
		return special
	}
	if slices.ContainsFunc(own, func(o ip.Addr) bool { return o.Unwrap() == seen }) {
		return "own address"
	}
	return ""
}
