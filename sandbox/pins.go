package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxPins bounds the mounts for names below the root of the workspace. Each costs about 20 µs.
const maxPins = 64

// pins says which protected names a private root binds, and by which mounts.
type pins struct {
	profile *Profile
	root    map[string]bool // the names that are known without a search
	made    map[string]bool
}

func newPins(p *Profile) pins {
	out := pins{profile: p, root: map[string]bool{}, made: map[string]bool{}}
	for _, name := range p.Protect {
		out.root[strings.TrimSuffix(name, "/")] = true
	}
	return out
}

// can reports whether a name can be a mount point: one that is there, in the workspace, and no
// link. A git directory itself stays writable, and so does what holds a path that the call may change.
func (p pins) can(path string, fi fs.FileInfo) bool {
	return subpath.Within(path, p.profile.Workspace) && fi.Mode()&fs.ModeSymlink == 0 && !(filepath.Base(path) == ".git" && fi.IsDir()) && !p.loose(path) && !p.profile.lifts(path)
}

// loose reports a name that the commands of the call change by themselves: git its settings and
// the places of submodules, a removal what lies below it. Hooks and the like of the repository and
// its submodules no command changes.
func (p pins) loose(path string) bool {
	if filepath.Base(path) != "config" && (p.root[path] || subpath.Within(path, p.profile.Workspace+"/.git/modules")) {
		return false
	}
	return slices.ContainsFunc(p.profile.Loose, func(dir string) bool { return subpath.Within(path, dir) })
}

// mounts are the mount points that pin a name and are not made yet, the outermost first: each
// directory above it is one, because only a mount point cannot be renamed away.
func (p pins) mounts(path string) []string {
	var out []string
	for at := path; at != p.profile.Workspace && subpath.Within(at, p.profile.Workspace); at = filepath.Dir(at) {
		if !p.made[at] {
			p.made[at] = true
			out = append(out, at)
		}
	}
	slices.Reverse(out)
	return out
}

// pinned reports whether path is, or lies below, a name that a private root of p binds.
func (p *Profile) pinned(path string, stat func(string) (fs.FileInfo, error)) bool {
	pins := newPins(p)
	return slices.ContainsFunc(append(slices.Clip(p.Protect), p.Pins...), func(name string) bool {
		clean := strings.TrimSuffix(name, "/")
		if !subpath.Within(path, clean) {
			return false
		}
		fi, err := stat(clean)
		return err == nil && pins.can(clean, fi)
	})
}
