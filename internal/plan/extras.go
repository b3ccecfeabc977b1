package plan

import (
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Open finds the place of an invocation and the policies in force there, and plans nothing. The
// caller closes the plan.
func Open(inv Invocation, m caller.Machine) (*Plan, error) {
	p := New(inv, m)
	if err := p.settle(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Policies loads every layer that is in force in the current directory.
func Policies(m caller.Machine) (*policy.Set, error) {
	p, err := Open(Invocation{}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Policies, nil
}

// SandboxPolicy is the sandbox object of the policy of this place, as a run would take it.
func SandboxPolicy(m caller.Machine) (sandbox.PolicyProfile, error) {
	set, err := Policies(m)
	if err != nil {
		return sandbox.PolicyProfile{}, err
	}
	return policyProfile(set.Sandbox(), set)
}
