package run

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/place"
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
	var rules redaction
	src := filter.Sources{Env: p.machine.Environ, Argv: p.inv.words(), Home: p.dirs.Home, Files: p.credentialValues()}
	if p.policies != nil {
		for name, value := range p.policies.Env().Set {
			src.ChildEnv = append(src.ChildEnv, name+"="+value)
		}
		if rules, err = redactionPolicy(p.policies.Output(), p.steps); err != nil {
			return err
		}
		src.ExtraEnv = rules.env
		for _, file := range rules.files {
			src.ExtraFiles = append(src.ExtraFiles, p.expand(file))
		}
		// What the workspace keeps secret shows in no output of a run there.
		src.ExtraFiles = append(src.ExtraFiles, p.secretFiles...)
		x.redactionOff, x.redactionNotes, x.outputMost = rules.config.Disabled, rules.notes, rules.most
	}
	for _, s := range p.steps {
		src.AuthVars = append(src.AuthVars, s.Call.Secrets...)
	}
	if x.known, err = filter.Collect(src); err != nil {
		return err
	}
	if x.redact, err = filter.NewSet(rules.config, x.known, filter.TagKey{}); err != nil {
		return err
	}
	x.redact.KeyFrom(func() filter.TagKey {
		// Without a key that lasts, tags are good for this run.
		key, _ := filter.LoadTagKey(above(p.dirs.Runtime), above(p.dirs.State))
		return key
	})
	return nil
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
