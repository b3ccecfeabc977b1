package place

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Classify returns the first class in order that abs, with links resolved,
// belongs to. A recursive access also has the class of what lies below, as far as
// that is known without listing directories.
func (w World) Classify(abs string, access atip.Access, recursive bool) atip.Class {
	if !filepath.IsAbs(abs) {
		return atip.ClassUnknown
	}
	isRoot := w.root(abs, access)
	// To rename a directory is to take away all that lies in it.
	whole := recursive || access&atip.AccessDelete != 0 && isDir(abs)
	t := w.target(abs, access, whole && !isRoot)
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
	case w.Workspace != "" && subpath.Within(abs, w.Workspace):
		return w.workspace(abs)
	case w.ownGitDir(abs):
		return atip.ClassWorkspaceVCS
	case w.tmp(abs):
		if access&atip.AccessDelete != 0 && isDir(filepath.Join(abs, ".git")) {
			return atip.ClassOutside // a clone is work, wherever it lies
		}
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
	if t.inHome = w.Home != "" && subpath.Within(abs, w.Home); t.inHome {
		t.home = rel(abs, w.Home)
	} else if w.OtherHome != "" && subpath.Within(abs, w.OtherHome) {
		t.inHome, t.home = true, rel(abs, w.OtherHome)
	} else if home := otherHome(abs); home != "" {
		t.inHome, t.home = true, rel(abs, home)
	}
	return t
}

// otherHome is the home directory of somebody else that abs lies in, by custom.
func otherHome(abs string) string {
	if subpath.Within(abs, "/root") {
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
func (t target) hits(p string, deep bool) bool {
	return subpath.Within(t.abs, p) || (deep && subpath.Within(p, t.abs))
}

// hitsHome is hits for a path relative to the home directory.
func (t target) hitsHome(p string, deep bool) bool {
	return t.inHome && (subpath.Within(t.home, p) || (deep && subpath.Within(p, t.home)))
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
	return w.inTree(t, kinds(Own, Hook))
}

// Keeps reports a directory in or below which secrets or our own files lie, or are usual, so
// that it must not be opened as a whole: a home directory, what is above one, ~/.config, /etc,
// and directories of devices, among which are the user's other terminals.
func (w World) Keeps(dir string) bool {
	t := w.target(dir, atip.AccessRead, true)
	for _, own := range [...]string{w.Config, w.Data, w.State, w.Runtime, w.Home, w.OtherHome} {
		if own != "" && subpath.Within(own, dir) {
			return true
		}
	}
	switch parent := filepath.Dir(dir); {
	case dir == "/", dir == "/root", dir == "/home", dir == "/Users", dir == "/dev", device(dir), parent == "/home", parent == "/Users":
		return true
	}
	return w.secret(t)
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
	case abs == w.Home, w.OtherHome != "" && abs == w.OtherHome, w.Home != "" && subpath.Within(w.Home, abs), w.Workspace != "" && subpath.Within(w.Workspace, abs):
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
		if subpath.Within(abs, dir) {
			return true
		}
	}
	return false
}

// tmp includes the streams of /dev: writing there leaves nothing behind.
func (w World) tmp(abs string) bool {
	for _, dir := range w.TmpDirs {
		if subpath.Within(abs, dir) {
			return true
		}
	}
	if name, ok := strings.CutPrefix(abs, "/dev/"); ok {
		name, _, _ = strings.Cut(name, "/")
		return harmlessDevice(name) || name == "shm"
	}
	return subpath.Within(abs, "/tmp") || subpath.Within(abs, "/var/tmp") || subpath.Within(abs, "/private/tmp") || subpath.Within(abs, "/private/var/tmp")
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
