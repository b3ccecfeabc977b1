package sandbox

import (
	"os"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// EnvFiles says when files of secrets in the workspace are hidden from a run.
type EnvFiles uint8

// The values of EnvFiles.
const (
	EnvFilesNetwork EnvFiles = iota // in runs that reach other machines
	EnvFilesMask                    // always
	EnvFilesAllow                   // never
)

// masks lists the secrets of the workspace that the run must not read: they would leave
// through the network. Without one, only the redacted output leaves.
func (d *deriver) masks() {
	for _, path := range d.in.SecretLinks {
		if !d.entitled(path) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, path), false
		}
	}
	for _, path := range d.in.Secrets {
		canonical, _, err := d.in.Files.Resolve(path)
		if err == nil && d.readable(canonical) && !d.entitled(path) && !d.secretGranted(canonical) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, canonical), false
		}
	}
	for _, path := range d.in.Hidden {
		if d.readable(path) && !d.entitled(path) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, path), false
		}
	}
}

// maxSiblings bounds the grants that stand in for one of a directory with a secret in it.
const maxSiblings = 64

// leaveOut takes the files that must not be read out of the rule set, since the kernel knows
// no exception from a rule: in place of a directory above one, each entry of it is granted but
// that. It needs a directory that nothing writes in; where there are too many entries, the
// private root covers the file.
func (d *deriver) leaveOut() {
	hidden := slices.DeleteFunc(slices.Clone(d.in.Hidden), d.entitled)
	if len(hidden) == 0 {
		return
	}
	var split grantSet
	count := 0
	var part func(dir string, g Grant) bool
	part = func(dir string, g Grant) bool {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false
		}
		split.add(Grant{Path: dir, Dir: true, Rights: List, Why: g.Why})
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case slices.Contains(hidden, path), e.Type()&os.ModeSymlink != 0:
			case e.IsDir() && slices.ContainsFunc(hidden, func(h string) bool { return subpath.Within(h, path) }):
				if !part(path, g) {
					return false
				}
			default:
				if count++; count > maxSiblings {
					return false
				}
				split.add(Grant{Path: path, Dir: e.IsDir(), Rights: g.Rights, Why: g.Why})
			}
		}
		return true
	}
	for _, g := range d.set.list {
		above := g.Dir && g.Rights&(Read|Exec) != 0 && slices.ContainsFunc(hidden, func(h string) bool { return subpath.Within(h, g.Path) })
		switch {
		case !above:
			split.add(g)
		case g.Rights&(Write|Remove) != 0 || !part(g.Path, g):
			return
		}
	}
	d.set = split
}

// readable reports whether something of the path lies in a granted directory.
func (d *deriver) readable(path string) bool {
	for _, list := range [...][]Grant{d.p.Read, d.p.Write, d.p.Exec} {
		for _, g := range list {
			if g.Rights != List && (g.Path == path || g.Dir && subpath.Within(path, g.Path)) {
				return true
			}
		}
	}
	return false
}

// secretGranted reports whether the call was granted reading secrets and names this one, or
// what lies in it.
func (d *deriver) secretGranted(path string) bool {
	if !d.in.Granted.Has(atip.SecretRead) {
		return false
	}
	for _, r := range d.in.Resources {
		if r.Kind == "path" && r.Access&(atip.AccessRead|atip.AccessSecret) != 0 && subpath.Within(r.Abs, path) {
			return true
		}
	}
	return false
}

// entitled reports whether the tool or the policy names the file.
func (d *deriver) entitled(path string) bool {
	for _, f := range d.in.CredentialFiles {
		if expand(f, d.in.Home, d.p.Workspace) == path {
			return true
		}
	}
	return false
}
