package advice

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
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

// TestSuggestionForRemotes: what destroys at a remote is not compared with what git does in the workspace.
func TestSuggestionForRemotes(t *testing.T) {
	for remote, want := range map[atip.Value]string{atip.Yes: alternativeOf()["builtin/remote"], atip.No: alternativeOf()["builtin/destructive"]} {
		s := &step.Step{}
		s.Call.Effects[atip.RemoteMutation] = atip.Fact{Value: remote}
		p := &Refusal{Steps: []*step.Step{s}, Decision: policy.Decision{Action: policy.Confirm, Reasons: []policy.Reason{{Rule: "builtin/destructive", Action: policy.Confirm}, {Rule: "builtin/remote", Action: policy.Confirm}}}}
		if got := p.Suggestion(); got != want {
			t.Errorf("%v: %q", remote, got)
		}
	}
}
