package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// withinDelegated takes from a profile what a delegation of paths does not lend: code that
// names no path, whose writing no rule can judge, is held to them by the sandbox. What the
// run has for itself stays: devices, its private directory, and where it tells its host the
// directory.
func (p *confining) withinDelegated() {
	for i := range p.chain {
		if p.chain[i].Paths != nil {
			p.writeWithin(p.chain[i].Paths)
		}
	}
}

// writeWithin takes every right to write that lies outside of the paths.
func (p *confining) writeWithin(paths []string) {
	lent := p.lent(paths)
	var write []sandbox.Grant
	for _, g := range p.Profile.Write {
		if subpath.Within(g.Path, "/dev") || subpath.Within(g.Path, p.Profile.Private) || g.Path == p.hostCwd || slices.ContainsFunc(lent, func(l sandbox.Grant) bool { return g.Path == l.Path || l.Dir && subpath.Within(g.Path, l.Path) }) {
			write = append(write, g)
			continue
		}
		for _, l := range lent {
			if g.Dir && subpath.Within(l.Path, g.Path) {
				write = append(write, sandbox.Grant{Path: l.Path, Dir: l.Dir, Rights: g.Rights, Why: g.Why})
			}
		}
		g.Rights &^= sandbox.Write | sandbox.Remove
		switch {
		case g.Rights&sandbox.Exec != 0:
			p.Profile.Exec = append(p.Profile.Exec, g)
		case g.Rights != 0:
			p.Profile.Read = append(p.Profile.Read, g)
		}
	}
	p.Profile.Write = write
	for _, list := range [...][]sandbox.Grant{p.Profile.Read, p.Profile.Write, p.Profile.Exec} {
		slices.SortFunc(list, func(a, b sandbox.Grant) int { return strings.Compare(a.Path, b.Path) })
	}
}

// lent are the delegated paths that are there. One that is not cannot be granted: the
// directory that it would be made in was not lent.
func (p *confining) lent(paths []string) []sandbox.Grant {
	files := p.files
	if p.Prepared != nil {
		files = p.Prepared.Files()
	}
	var out []sandbox.Grant
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue // such a delegation is denied as a whole
		}
		canonical, dir, err := files.Resolve(path)
		if err != nil {
			p.Profile.Absent = append(p.Profile.Absent, sandbox.Absent{Path: path, Why: "policy: it does not exist, and the directory to make it in is not granted; create it first"})
			continue
		}
		out = append(out, sandbox.Grant{Path: canonical, Dir: dir})
	}
	return out
}
