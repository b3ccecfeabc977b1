package cli

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// TestHowToAllow: a person at a terminal is told what rule would allow what asks.
func TestHowToAllow(t *testing.T) {
	d := plan.Document{Decision: policy.Confirm, Grants: []string{"network", "remoteMutation", "write"}, Steps: []plan.StepDocument{
		{Tool: ":", Action: policy.Confirm},
		{Tool: "ls", Action: policy.Allow},
		{Tool: "gh", Command: []string{"pr", "create"}, Action: policy.Confirm, Effects: map[string]any{"network": "yes", "remoteMutation": "unknown", "write": "no"},
			Trust: trust.Verdict{Action: trust.Confirm}, Executable: trust.Identity{Digest: "abc"}},
	}}
	want := `to allow it  an allow rule of your policy with when {"tool": "gh", "command": ["pr create"]} and grants ["network", "remoteMutation"]
             that names the file itself: "tool": "sha256:abc"
`
	if got := howToAllow(d); got != want {
		t.Errorf("%s", got)
	}
	for _, action := range []policy.Action{policy.Allow, policy.Deny} {
		d.Decision = action
		if got := howToAllow(d); got != "" {
			t.Errorf("%v: %s", action, got)
		}
	}
	if strings.Contains(PlanText(d), "to allow it") {
		t.Error("an agent is told")
	}
}
