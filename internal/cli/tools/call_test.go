package tools

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// TestParallelCalls: only calls of which it is known that they change nothing run side by
// side, and no call passes another one that conflicts with it.
func TestParallelCalls(t *testing.T) {
	kinds := map[byte]func(*plannedCall){
		'r': func(*plannedCall) {},
		'w': func(p *plannedCall) { p.effects[atip.Write].Value = atip.Yes },
		'd': func(p *plannedCall) { p.effects[atip.Delete].Value = atip.Yes },
		'm': func(p *plannedCall) { p.effects[atip.RemoteMutation].Value = atip.Yes },
		'b': func(p *plannedCall) { p.effects[atip.Billable].Value = atip.Yes },
		'?': func(p *plannedCall) { p.effects = atip.Effects{} },
		'u': func(p *plannedCall) { p.effects[atip.RemoteMutation].Value = atip.Unknown },
		// A call that is not run at all conflicts with nothing.
		'x': func(p *plannedCall) { p.effects, p.err = atip.Effects{}, fault.New("E1203", "no function") },
	}
	for line, want := range map[string]string{"": "", "rrr": "rrr", "rrrrrr": "rrrr rr", "rwr": "r w r", "ww": "w w", "rd": "r d", "dr": "d r", "mr": "m r", "rb": "r b", "??": "? ?", "ur": "u r", "rxr": "rxr", "xw": "x w", "rrwrr": "rr w rr"} {
		var calls []plannedCall
		for i := range len(line) {
			var p plannedCall
			for e := range p.effects {
				p.effects[e].Value = atip.No
			}
			kinds[line[i]](&p)
			p.Name = line[i : i+1]
			calls = append(calls, p)
		}
		var got []string
		for _, stretch := range sideBySide(calls) {
			text := ""
			for _, p := range stretch {
				text += p.Name
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s runs as %q, want %q", line, got, want)
		}
	}
}
