package plan

import (
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Bounds of the search for files of secrets in a workspace: every run pays for it.
const (
	maxSecretDirs    = 48
	maxSecretEntries = 2048
	maxSecretDepth   = 4
)

// findSecrets lists the regular files of a workspace whose names are those of secrets, what lies
// near its top first. Directories that tools fill are left out.
func findSecrets(workspace, cwd string, secret func(path string) bool) []string {
	if workspace == "" {
		return nil
	}
	var out []string
	queue, dirs, entries := []string{workspace}, 0, 0
	if cwd != workspace && subpath.Within(cwd, workspace) {
		for dir := cwd; dir != workspace && dir != "/"; dir = filepath.Dir(dir) {
			queue = append(queue, dir)
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 && dirs < maxSecretDirs && entries < maxSecretEntries {
		dir := queue[0]
		queue = queue[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		dirs++
		f, err := regular.OpenDir(dir)
		if err != nil {
			continue
		}
		list, _ := f.ReadDir(maxSecretEntries - entries)
		f.Close()
		entries += len(list)
		for _, e := range list {
			path := dir + "/" + e.Name()
			switch {
			case e.Type().IsRegular() && secret(path):
				out = append(out, path)
			case e.IsDir() && !generated(e.Name()) && depthBelow(path, workspace) < maxSecretDepth:
				queue = append(queue, path)
			}
		}
	}
	return out
}

func depthBelow(path, top string) int {
	n := 0
	for ; path != top && path != "/"; path = filepath.Dir(path) {
		n++
	}
	return n
}

// generated names directories that git, package managers and builds fill.
func generated(name string) bool {
	switch name {
	case ".git", "node_modules", "vendor", "target", "dist", "build", "out", "coverage", ".venv", "venv", ".tox", ".next", ".cache", "__pycache__":
		return true
	}
	return false
}

// workspaceSecrets are the files of secrets in the workspace, for the sandbox and the output filter.
// The same search finds the files that mark a package, which may lie anywhere in a repository.
func (at Place) workspaceSecrets() (secrets []string, packages map[string]bool) {
	packages = map[string]bool{}
	for _, f := range packageFamilies() {
		for _, name := range f.files {
			packages[name] = false
		}
	}
	secrets = findSecrets(at.Workspace, at.Cwd, func(path string) bool {
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
	return slices.ContainsFunc(p.Steps, func(s *effects.Step) bool {
		return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			if r.Kind != "path" || r.Abs == "" {
				return false
			}
			return filepath.Clean(r.Abs) == path || r.Access&atip.AccessDelete != 0 && subpath.Within(path, filepath.Clean(r.Abs))
		})
	})
}
