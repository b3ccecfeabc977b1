package sandbox

import (
	"path/filepath"
	"strings"
)

// agentNames are settings that agents and editors run by themselves. A trailing slash
// marks a directory whose whole content counts.
func agentNames() []string {
	return []string{".agent-tools/", ".claude/", ".codex/", ".cursor/", ".gemini/", ".opencode/", ".windsurf/", ".idea/",
		".vscode/settings.json", ".vscode/tasks.json", ".vscode/launch.json", ".vscode/mcp.json", ".mcp.json",
		".envrc", ".mise.toml"}
}

// ciNames are what CI services run. A policy adds them: who works on them reviews the
// difference before it is pushed.
func ciNames() []string {
	return []string{".github/workflows/", ".github/actions/", ".gitlab-ci.yml", ".circleci/", ".buildkite/", "Jenkinsfile"}
}

// gitNames are what git runs or is redirected by, relative to a git directory.
func gitNames() []string {
	return []string{"hooks/", "config", "config.worktree", "commondir", "gitdir", "info/attributes"}
}

// protect lists the names in the writable workspace that must not change, whether they
// are there or not: what is planted today runs tomorrow, outside any sandbox.
func (d *deriver) protect() {
	ws := d.p.Workspace
	if ws == "" || !d.p.workspaceWritable() {
		return
	}
	for dir := ws; ; {
		for _, name := range agentNames() {
			d.protectName(dir + "/" + name)
		}
		if d.in.Policy.ProtectCI {
			for _, name := range ciNames() {
				d.protectName(dir + "/" + name)
			}
		}
		for _, name := range d.in.Policy.Protected {
			if !filepath.IsAbs(name) {
				d.protectName(dir + "/" + name)
			}
		}
		// Both a git directory and the file that names one elsewhere.
		d.protectName(dir + "/.git")
		d.gitDirectory(dir + "/.git")
		next := between(ws, dir, d.in.Cwd)
		if next == "" {
			break
		}
		dir = next
	}
	for _, name := range d.in.Policy.Protected {
		if filepath.IsAbs(name) && within(name, ws) {
			d.protectName(name)
		}
	}
	for _, g := range d.p.GitDirs {
		d.gitDirectory(g)
	}
}

func (d *deriver) gitDirectory(dir string) {
	for _, name := range gitNames() {
		d.protectName(dir + "/" + name)
	}
}

// protectName leaves out what the call was approved to change.
func (d *deriver) protectName(path string) {
	clean := strings.TrimSuffix(path, "/")
	for _, allowed := range d.in.ProtectAllow {
		if clean == allowed || strings.HasSuffix(path, "/") && within(allowed, clean) {
			return
		}
	}
	d.p.Protect = append(d.p.Protect, path)
}

// between is the next directory on the way from dir down to cwd, "" at its end.
func between(ws, dir, cwd string) string {
	if !within(cwd, ws) || cwd == dir || !within(cwd, dir) {
		return ""
	}
	name, _, _ := strings.Cut(cwd[len(dir)+1:], "/")
	return dir + "/" + name
}
