package drive

import (
	"slices"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Network is the proxy of a run that reaches some hosts and no others. A nil one is that of a run
// without a proxy.
type Network struct {
	Report   proxy.Report     // what the run asked the proxy for
	Refusals []sandbox.Denial // of the proxy

	proxy   *proxy.Server
	forward map[int]string // port inside the run: service of this machine
	warn    func(string)
	clean   func(string) string
}

// NewNetwork starts the proxy of a run. Host names are cleaned before they are shown.
func NewNetwork(rules *proxy.Rules, forward map[int]string, warn func(string), clean func(string) string) *Network {
	return &Network{proxy: proxy.New(rules), forward: forward, warn: warn, clean: clean}
}

// Serve is how the sandbox hands over the listeners of the run.
func (x *Network) Serve(list []sandbox.Listener) {
	for _, l := range list {
		switch l.Service {
		case "http":
			x.proxy.ServeHTTP(l.File)
		case "socks":
			x.proxy.ServeSOCKS(l.File)
		case "direct":
			x.proxy.ServeDirect(l.File, l.Host, l.Port)
		default:
			if err := x.proxy.ServeForward(l.File, x.forward[l.Port]); err != nil {
				x.warn(err.Error())
			}
		}
	}
}

// maxRefusals is how many refusals are told one by one.
const maxRefusals = 20

// Settle ends the proxy and notes what it refused. Host names are words of the command and may
// carry what it read.
func (x *Network) Settle() {
	if x == nil {
		return
	}
	x.Report = x.proxy.Close()
	type refusal struct{ host, reason string }
	seen, order := map[refusal]int{}, []refusal{}
	texts := map[refusal]string{}
	for i := range x.Report.Log {
		e := &x.Report.Log[i]
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
		x.Refusals = append(x.Refusals, sandbox.Refused(r.host, texts[r], seen[r]))
	}
}

// Refused reports whether the proxy refused a host.
func (x *Network) Refused() bool { return x != nil && len(x.Refusals) > 0 }

// Failures says why granted hosts were not reached by a command that failed: its
// client can only tell what the proxy answered.
func (x *Network) Failures() {
	if x == nil {
		return
	}
	var told []string
	for i := range x.Report.Log {
		e := &x.Report.Log[i]
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

// Receipt is what was enforced, with what happened on the network.
func (x *Network) Receipt(r sandbox.Receipt) any {
	if x == nil {
		return r
	}
	return receipt{Receipt: r, Net: netReceipt{r.Net, &x.Report}}
}
