package advice

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/policy"
)

// TestAlternativesAreNeverEmpty: each refusal says how to go on, and none how to approve.
func TestAlternativesAreNeverEmpty(t *testing.T) {
	for rule := range alternativeOf() {
		p := &Refusal{Decision: policy.Decision{Action: policy.Confirm, Reasons: []policy.Reason{{Rule: rule, Action: policy.Confirm}}}}
		if got := p.Alternatives(); len(got) != 1 || strings.Contains(got[0], "approve") {
			t.Errorf("%s: %q", rule, got)
		}
	}
	p := &Refusal{Decision: policy.Decision{Action: policy.Deny, Reasons: []policy.Reason{{Rule: "user/mine", Action: policy.Deny}}}}
	if got := p.Alternatives(); len(got) != 1 {
		t.Errorf("a rule of a policy: %q", got)
	}
}
