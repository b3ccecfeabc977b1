package run

import (
	"io"
	"os"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/fault"
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

// Redact copies in to out as the output of a command would be shown.
func Redact(in io.Reader, out io.Writer) error {
	p := &Plan{machine: Here()}
	if err := p.locate(); err != nil {
		return err
	}
	if err := p.loadPolicy(); err != nil {
		return err
	}
	known, err := filter.Collect(filter.Sources{Env: p.machine.Environ, Home: p.dirs.Home, Getenv: p.machine.Getenv})
	if err != nil {
		return err
	}
	key, _ := filter.LoadTagKey(above(p.dirs.Runtime), above(p.dirs.State))
	rules, err := redactionPolicy(p.policies.Output(), nil)
	if err != nil {
		return err
	}
	set, err := filter.NewSet(rules.config, known, key)
	if err != nil {
		return err
	}
	w := set.Writer(out, filter.Stdout)
	if _, err := io.Copy(w, in); err != nil {
		if os.IsNotExist(err) {
			return fault.New("E1005", err.Error())
		}
		return fault.New("E4005", err.Error())
	}
	if err := w.Close(); err != nil {
		return fault.New("E4005", err.Error())
	}
	return nil
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
