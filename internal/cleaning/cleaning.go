// Package cleaning makes the filters that a run's output passes, out of its plan.
package cleaning

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/redact"
)

// Cleaning is what takes secrets out of the output of a run and out of texts about it.
type Cleaning struct {
	Set   *filter.Set
	Known filter.Known
	Off   bool     // the policy turned redaction off
	Notes []string // what the rules warn of
	Most  int64    // bytes that policy lets the tools of the run show of a stream, 0 for no bound
}

// Of gathers the values that no output of a plan's run may show. It may be called while the plan is still
// being decided. What the child gets beyond the caller's environment comes from policy.
func Of(p *plan.Plan) (*Cleaning, error) {
	x := &Cleaning{}
	var err error
	var rules redact.Rules
	src := filter.Sources{Env: p.Machine.Environ, Argv: p.Invocation.Words(), Home: p.Dirs.Home, Files: p.CredentialValues()}
	if p.Policies != nil {
		for name, value := range p.Policies.Env().Set {
			src.ChildEnv = append(src.ChildEnv, name+"="+value)
		}
		if rules, err = redact.Of(p.Policies.Output(), p.Tools()); err != nil {
			return nil, err
		}
		src.ExtraEnv = rules.Env
		for _, file := range rules.Files {
			src.ExtraFiles = append(src.ExtraFiles, p.Expand(file))
		}
		// What the workspace keeps secret shows in no output of a run there.
		src.ExtraFiles = append(src.ExtraFiles, p.SecretFiles...)
		x.Off, x.Notes, x.Most = rules.Config.Disabled, rules.Notes, rules.Most
	}
	for _, s := range p.Reading.Steps {
		src.AuthVars = append(src.AuthVars, s.Call.Secrets...)
	}
	if x.Known, err = filter.Collect(src); err != nil {
		return nil, err
	}
	if x.Set, err = filter.NewSet(rules.Config, x.Known, filter.TagKey{}); err != nil {
		return nil, err
	}
	x.Set.KeyFrom(p.TagKey)
	return x, nil
}

// NewCleaner reads policy and known values, to clean files as output is cleaned. The policies
// are files that tighten.
func NewCleaner(m caller.Machine, policies []string, opt redact.Options) (*redact.Cleaner, error) {
	p, err := plan.Open(plan.Invocation{Policies: policies}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out := p.Policies.Output()
	rules, err := redact.Of(out, nil)
	if err != nil {
		return nil, err
	}
	if opt.MaxOutput == 0 || out.MaxBytes > 0 && out.MaxBytes < opt.MaxOutput {
		opt.MaxOutput = out.MaxBytes
	}
	return redact.New(rules, opt, filter.Sources{Env: p.Machine.Environ, Home: p.Dirs.Home, Files: p.CredentialValues()}, p.TagKey, filepath.Join(p.Dirs.Cache, "output"))
}
