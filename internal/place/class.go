package place

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// Classify returns the first class in order that abs, with links resolved,
// belongs to. A recursive access also has the class of what lies below, as far as
// that is known without listing directories.
func (w World) Classify(abs string, access atip.Access, recursive bool) atip.Class {
	if !filepath.IsAbs(abs) {
		return atip.ClassUnknown
	}
	isRoot := w.root(abs, access)
	t := w.target(abs, access, recursive && !isRoot)
	switch {
	case w.policySelf(t):
		return atip.ClassPolicySelf
	case device(abs):
		return atip.ClassDevice
	case w.secret(t):
		return atip.ClassSecret
	case w.startup(t):
		return atip.ClassStartup
	case isRoot:
		return atip.ClassRoot
	case w.Workspace != "" && within(abs, w.Workspace):
		return w.workspace(abs)
	case w.ownGitDir(abs):
		return atip.ClassWorkspaceVCS
	case w.tmp(abs):
		return atip.ClassTmp
	case system(abs):
		return atip.ClassSystem
	}
	return atip.ClassOutside
}

// target is a path under test. What lies below it counts too: for secrets if the
// access is recursive, for the rest only if it also changes something.
type target struct {
	abs      string
	inHome   bool
	home     string // abs relative to the home directory
	deep     bool
	deepEdit bool
}

func (w World) target(abs string, access atip.Access, deep bool) target {
	t := target{abs: abs, deep: deep, deepEdit: deep && access&(atip.AccessWrite|atip.AccessDelete) != 0}
	if t.inHome = w.Home != "" && within(abs, w.Home); t.inHome {
		t.home = rel(abs, w.Home)
	} else if home := otherHome(abs); home != "" {
		t.inHome, t.home = true, rel(abs, home)
	}
	return t
}

// otherHome is the home directory of somebody else that abs lies in, by custom.
func otherHome(abs string) string {
	if within(abs, "/root") {
		return "/root"
	}
	for _, homes := range [...]string{"/home/", "/Users/"} {
		if rest, ok := strings.CutPrefix(abs, homes); ok {
			if user, _, below := strings.Cut(rest, "/"); below && user != "" {
				return homes + user
			}
		}
	}
	return ""
}

// hits reports whether t is p or below it or, if deep, above it.
func (t target) hits(p string, deep bool) bool { return within(t.abs, p) || (deep && within(p, t.abs)) }

// hitsHome is hits for a path relative to the home directory.
func (t target) hitsHome(p string, deep bool) bool {
	return t.inHome && (within(t.home, p) || (deep && within(p, t.home)))
}

func (w World) policySelf(t target) bool {
	for _, dir := range [...]string{w.Config, w.Data, w.State, w.Runtime, w.Managed} {
		if dir != "" && t.hits(dir, t.deepEdit) {
			return true
		}
	}
	for _, p := range w.Programs {
		if t.hits(p, t.deepEdit) {
			return true
		}
	}
	return hasComponent(t.abs, ".agent-tools") || agentHook(t.abs)
}

// agentHook knows the files by which coding agents start programs.
func agentHook(abs string) bool {
	base := filepath.Base(abs)
	if base == ".mcp.json" {
		return true
	}
	switch filepath.Base(filepath.Dir(abs)) {
	case ".claude":
		return base == "settings.json" || base == "settings.local.json" || base == "hooks"
	case ".codex":
		return base == "config.toml" || base == "hooks.json"
	case ".cursor":
		return base == "hooks.json" || base == "mcp.json"
	case ".gemini":
		return base == "settings.json"
	case ".opencode", "opencode":
		return base == "opencode.json" || base == "plugin" || base == "plugins"
	case ".windsurf":
		return base == "hooks.json"
	}
	return hasComponents(abs, ".claude", "hooks") || hasComponents(abs, ".opencode", "plugins")
}

// device is everything in /dev that is not a stream, randomness or memory.
func device(abs string) bool {
	name, ok := strings.CutPrefix(abs, "/dev/")
	if !ok {
		return false
	}
	name, _, _ = strings.Cut(name, "/")
	return !harmlessDevice(name) && name != "shm"
}

func harmlessDevice(name string) bool {
	switch name {
	case "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "fd":
		return true
	}
	return false
}

// root is where a slip of the hand ends a machine or a home.
func (w World) root(abs string, access atip.Access) bool {
	parent := filepath.Dir(abs)
	switch {
	case parent == abs:
		return true
	case w.Workspace != "" && abs == w.Workspace:
		return access&atip.AccessDelete != 0
	case abs == w.Home, w.Home != "" && within(w.Home, abs), w.Workspace != "" && within(w.Workspace, abs):
		return true
	case filepath.Dir(parent) == parent:
		// "cp x /tmp" writes a file into it; only removing it is a disaster.
		return !w.tmp(abs) || access&atip.AccessDelete != 0
	}
	return false
}

func (w World) workspace(abs string) atip.Class {
	if hasComponent(rel(abs, w.Workspace), ".git") || hasComponent(rel(abs, w.Workspace), ".hg") ||
		hasComponent(rel(abs, w.Workspace), ".jj") || w.ownGitDir(abs) {
		return atip.ClassWorkspaceVCS
	}
	if w.Detail {
		return w.detail(abs)
	}
	return atip.ClassWorkspace
}

func (w World) ownGitDir(abs string) bool {
	for _, dir := range w.GitDirs {
		if within(abs, dir) {
			return true
		}
	}
	return false
}

// tmp includes the streams of /dev: writing there leaves nothing behind.
func (w World) tmp(abs string) bool {
	for _, dir := range w.TmpDirs {
		if within(abs, dir) {
			return true
		}
	}
	if name, ok := strings.CutPrefix(abs, "/dev/"); ok {
		name, _, _ = strings.Cut(name, "/")
		return harmlessDevice(name) || name == "shm"
	}
	return within(abs, "/tmp") || within(abs, "/var/tmp") || within(abs, "/private/tmp") || within(abs, "/private/var/tmp")
}

func system(abs string) bool {
	top, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(abs), "/"), "/")
	switch top {
	case "etc", "usr", "bin", "sbin", "boot", "opt", "var", "proc", "sys", "System", "Library":
		return true
	}
	return strings.HasPrefix(top, "lib")
}

func hasComponent(p, name string) bool {
	for p != "" {
		var c string
		if c, p = cutComponent(p); c == name {
			return true
		}
	}
	return false
}

// hasComponents reports whether a directly contains b somewhere in p.
func hasComponents(p, a, b string) bool {
	prev := ""
	for p != "" {
		var c string
		if c, p = cutComponent(p); c == b && prev == a {
			return true
		}
		prev = c
	}
	return false
}
