package plan

import (
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// workspaceSecrets are the files of secrets in the workspace, for the sandbox and the output filter.
// The same search finds the files that mark a package, which may lie anywhere in a repository.
func (at Place) workspaceSecrets() (secrets []string, packages map[string]bool) {
	packages = map[string]bool{}
	for _, f := range packageFamilies() {
		for _, name := range f.files {
			packages[name] = false
		}
	}
	secrets = place.FindSecrets(at.Workspace, at.Cwd, func(path string) bool {
		name := filepath.Base(path)
		if _, marks := packages[name]; marks {
			packages[name] = true
		}
		return at.World.Classify(path, atip.AccessRead, false) == atip.ClassSecret
	})
	return secrets, packages
}

// hiddenSecrets are those of them that the run must not find. Code of the project keeps them,
// as it is what they are for, and so does a call that names one and may read it. Git
// needs the files that it tracks, and any that it is to add.
func (p *Plan) hiddenSecrets(mode sandbox.EnvFiles, networked bool) []string {
	if mode == sandbox.EnvFilesAllow {
		return nil
	}
	project, git, changes := false, false, false
	for _, s := range p.Steps {
		project = project || s.RunsCode == policy.CodeProject
		if s.Call.Tool == "git" {
			git, changes = true, changes || s.Call.Effects[atip.Write].Value != atip.No
		}
	}
	if mode == sandbox.EnvFilesNetwork && !networked && (project || changes) {
		return nil
	}
	var out []string
	for _, path := range p.SecretFiles {
		if p.namesSecret(path) || git && (changes || p.World.Tracked(path)) {
			continue
		}
		out = append(out, path)
	}
	return out
}

// namesSecret reports whether a step names the file itself, so that it was judged, or removes a
// directory above it, where a cover would stay in the way.
func (p *Plan) namesSecret(path string) bool {
	return slices.ContainsFunc(p.Steps, func(s *step.Step) bool {
		return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			if r.Kind != "path" || r.Abs == "" {
				return false
			}
			return filepath.Clean(r.Abs) == path || r.Access&atip.AccessDelete != 0 && subpath.Within(path, filepath.Clean(r.Abs))
		})
	})
}
