package run

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/redact"
)

// redaction waits until the values that must not be shown are collected.
func (x *execution) redaction() error {
	switch {
	case x.collecting:
		x.collecting = false
		x.collectErr = <-x.collected
	case x.redact == nil && x.collectErr == nil:
		// The plan failed early; its words still pass through the filter.
		x.collectErr = x.collect()
	}
	return x.collectErr
}

// collect gathers the values that must not be shown, before the child can show
// them. What the child gets beyond the caller's environment comes from policy.
func (x *execution) collect() (err error) {
	p := x.plan
	var rules redact.Rules
	src := filter.Sources{Env: p.machine.Environ, Argv: p.inv.words(), Home: p.dirs.Home, Files: p.credentialValues()}
	if p.policies != nil {
		for name, value := range p.policies.Env().Set {
			src.ChildEnv = append(src.ChildEnv, name+"="+value)
		}
		if rules, err = redact.Of(p.policies.Output(), p.tools()); err != nil {
			return err
		}
		src.ExtraEnv = rules.Env
		for _, file := range rules.Files {
			src.ExtraFiles = append(src.ExtraFiles, p.expand(file))
		}
		// What the workspace keeps secret shows in no output of a run there.
		src.ExtraFiles = append(src.ExtraFiles, p.secretFiles...)
		x.redactionOff, x.redactionNotes, x.outputMost = rules.Config.Disabled, rules.Notes, rules.Most
	}
	for _, s := range p.steps {
		src.AuthVars = append(src.AuthVars, s.Call.Secrets...)
	}
	if x.known, err = filter.Collect(src); err != nil {
		return err
	}
	if x.redact, err = filter.NewSet(rules.Config, x.known, filter.TagKey{}); err != nil {
		return err
	}
	x.redact.KeyFrom(p.tagKey)
	return nil
}

// tools are what the steps of a plan start, as the rules of redaction name it.
func (p *Plan) tools() []redact.Tool {
	out := make([]redact.Tool, len(p.steps))
	for i, s := range p.steps {
		out[i] = redact.Tool{Name: s.Call.Tool, InWorkspace: s.File.InWorkspace}
	}
	return out
}

// tagKey is the key of the tags of redacted values. Without one that lasts, they are good for
// this run.
func (p *Plan) tagKey() filter.TagKey {
	key, _ := filter.LoadTagKey(above(p.dirs.Runtime), above(p.dirs.State))
	return key
}

// NewCleaner reads policy and known values, to clean files as output is cleaned. The policies
// are files that tighten.
func NewCleaner(m Machine, policies []string, opt redact.Options) (*redact.Cleaner, error) {
	p := &Plan{machine: m, inv: Invocation{Policies: policies}}
	if err := p.locate(); err != nil {
		return nil, err
	}
	if err := p.loadPolicy(); err != nil {
		return nil, err
	}
	out := p.policies.Output()
	rules, err := redact.Of(out, nil)
	if err != nil {
		return nil, err
	}
	if opt.MaxOutput == 0 || out.MaxBytes > 0 && out.MaxBytes < opt.MaxOutput {
		opt.MaxOutput = out.MaxBytes
	}
	return redact.New(rules, opt, filter.Sources{Env: p.machine.Environ, Home: p.dirs.Home, Files: p.credentialValues()}, p.tagKey, filepath.Join(p.dirs.Cache, "output"))
}

// credentialValues are the user's credential files, whose values no output may show.
func (p *Plan) credentialValues() []filter.CredentialFile {
	var out []filter.CredentialFile
	for _, f := range place.Credentials(p.dirs.Home, p.machine.Getenv) {
		out = append(out, filter.CredentialFile{Source: f.Source, Path: f.Path, Format: string(f.Format)})
	}
	return out
}

// above is the directory that holds ours; package filter adds its own name.
func above(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Dir(dir)
}
