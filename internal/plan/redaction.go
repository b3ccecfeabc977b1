package plan

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/redact"
)

// Tools are what the steps of a plan start, as the rules of redaction name it. It may be called while
// the plan is still being decided.
func (p *Plan) Tools() []redact.Tool {
	out := make([]redact.Tool, len(p.Reading.Steps))
	for i, s := range p.Reading.Steps {
		out[i] = redact.Tool{Name: s.Call.Tool, InWorkspace: s.File.InWorkspace}
	}
	return out
}

// TagKey is the key of the tags of redacted values. Without one that lasts, they are good for
// this run.
func (p *Plan) TagKey() filter.TagKey {
	key, _ := filter.LoadTagKey(above(p.Dirs.Runtime), above(p.Dirs.State))
	return key
}

// CredentialValues are the user's credential files, whose values no output may show.
func (p *Plan) CredentialValues() []filter.CredentialFile {
	var out []filter.CredentialFile
	for _, f := range place.Credentials(p.Dirs.Home, p.Machine.Getenv) {
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
