package run

import (
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Policies loads every layer that is in force in the current directory.
func Policies(m Machine) (*policy.Set, error) {
	p := &Plan{machine: m}
	if err := p.locate(); err != nil {
		return nil, err
	}
	if err := p.loadPolicy(); err != nil {
		return nil, err
	}
	return p.policies, nil
}

// SandboxPolicy is the sandbox object of the policy of this place, as a run would take it.
func SandboxPolicy(m Machine) (sandbox.PolicyProfile, error) {
	p := &Plan{machine: m}
	if err := p.locate(); err != nil {
		return sandbox.PolicyProfile{}, err
	}
	defer p.Close()
	if err := p.loadPolicy(); err != nil {
		return sandbox.PolicyProfile{}, err
	}
	return policyProfile(p.policies.Sandbox(), p.policies)
}
