package effects

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// leftBehind notes a command that runs code in the background, as servers do: what follows in
// the text may talk to it.
func (c *collector) leftBehind(cmd *shell.Command, steps []*step.Step) {
	c.serves = c.serves || cmd.Background && c.site.Apart && slices.ContainsFunc(steps, func(s *step.Step) bool {
		return s.Strange() && s.Call.Effects[atip.Network].Value != atip.No
	})
}

// meet takes connections to a server of the text's own for what they are: they stay in the run,
// whose loopback is its own as long as none of its steps has a network beyond it.
func (c *collector) meet() {
	if !c.serves {
		return
	}
	var clients []*step.Step
	for _, s := range c.steps {
		local := len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h policy.HostUse) bool { return h.Kind != policy.HostLoopback })
		switch network := s.Call.Effects[atip.Network].Value; {
		case network == atip.No:
		case local && (s.RunsCode == policy.CodeNone || network == atip.Unknown):
			clients = append(clients, s)
		case network == atip.Yes || !s.Strange():
			return
		}
	}
	for _, s := range clients {
		for _, t := range [...]*step.Step{s, s.Known} {
			if t == nil {
				continue
			}
			t.Hosts = nil
			for _, e := range [...]atip.Effect{atip.Network, atip.RemoteMutation} {
				if t.Call.Effects[e].Value == atip.Yes {
					t.Call.Effects[e] = step.Harmless(e, "loopback of the run")
				}
			}
		}
	}
}

// ownJobs reports a kill of processes that are known only when it runs, in a text that left some
// behind: the run sees no others.
func (c *collector) ownJobs(argv []string) bool {
	return c.serves && !slices.ContainsFunc(argv[1:], func(w string) bool {
		return !strings.HasPrefix(w, shell.Hole) && !strings.HasPrefix(w, "-")
	})
}
