package sandbox

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Names are the protected names and the places of secrets, which the caller knows. A name that
// ends in a slash is a directory whose whole content counts.
type Names struct {
	Tree    []string // in directories of the workspace
	CI      []string // in the same, if the policy protects them
	Git     []string // in a git directory: what git runs or is redirected by
	Secrets []string // absolute, in the system's settings
}

// protect lists the names in the writable workspace that must not change, whether they
// are there or not: what is planted today runs tomorrow, outside any sandbox.
func (d *deriver) protect() error {
	d.p.Lifted = d.in.ProtectAllow
	d.p.Settings, d.p.GitNames = d.in.Names.Secrets, d.in.Names.Git
	ws := d.p.Workspace
	if ws == "" || !d.p.workspaceWritable() {
		return nil
	}
	if len(d.in.Names.Tree) == 0 || len(d.in.Names.Git) == 0 {
		return &StepError{Step: "protect the workspace", Path: ws, Code: errcode.Internal, Err: errors.New("no protected names were handed in")}
	}
	for dir := ws; ; {
		for _, name := range d.in.Names.Tree {
			d.protectName(dir + "/" + name)
		}
		if d.in.Policy.ProtectCI {
			for _, name := range d.in.Names.CI {
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
		if filepath.IsAbs(name) && subpath.Within(name, ws) {
			d.protectName(name)
		}
	}
	for _, g := range d.p.GitDirs {
		d.gitDirectory(g)
	}
	return nil
}

func (d *deriver) gitDirectory(dir string) {
	for _, name := range d.in.Names.Git {
		d.protectName(dir + "/" + name)
	}
}

// protectName leaves out what the call may change. Of a directory with such a path in it the
// rest stays protected.
func (d *deriver) protectName(path string) {
	clean := strings.TrimSuffix(path, "/")
	if !slices.ContainsFunc(d.p.Lifted, func(allowed string) bool { return subpath.Within(clean, allowed) }) {
		d.p.Protect = append(d.p.Protect, path)
	}
}

// lifts reports whether a protected directory holds a path that the run may change.
func (p *Profile) lifts(dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return slices.ContainsFunc(p.Lifted, func(path string) bool { return subpath.Within(path, dir) })
}

// between is the next directory on the way from dir down to cwd, "" at its end.
func between(ws, dir, cwd string) string {
	if !subpath.Within(cwd, ws) || cwd == dir || !subpath.Within(cwd, dir) {
		return ""
	}
	name, _, _ := strings.Cut(cwd[len(dir)+1:], "/")
	return dir + "/" + name
}
