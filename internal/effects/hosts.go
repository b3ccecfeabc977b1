package effects

import (
	"strconv"

	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/step"
)

// serviceHosts are the hosts that the metadata of a tool lists as its own. They can only
// narrow what it reaches, so an entry that cannot be read is left out.
func (c *collector) serviceHosts(s *step.Step) []string {
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
