package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// somePath judges a path condition of a restrictive rule.
func (f *facts) somePath(p *pathCond) truth {
	t := isNo
	for i := range f.step.Call.Resources {
		r := &f.step.Call.Resources[i]
		if r.Kind != "path" {
			continue
		}
		if p.access != 0 && r.Access&p.access == 0 || p.recursive && !r.Recursive {
			continue
		}
		t = max(t, f.pathIs(p, i, r))
	}
	// Without confinement, an unknown program may touch any path.
	if t == isNo && f.unresolved() && !f.req.Enforce.Files {
		t = isMaybe
	}
	return t
}

// pathIs judges class, pattern and place of one path, leaving access aside.
func (f *facts) pathIs(p *pathCond, i int, r *atip.Resource) truth {
	t := isYes
	if p.class != 0 && !p.class.has(f.classes[i]) {
		if f.classes[i] != atip.ClassUnknown {
			return isNo
		}
		t = isMaybe
	}
	if len(p.glob) > 0 {
		hit := false
		for _, g := range p.glob {
			hit = hit || r.Abs != "" && pathGlob(g, r.Abs)
		}
		switch {
		case hit:
		case r.Abs == "", r.Recursive && globBelow(p.glob, r.Abs):
			t = isMaybe
		default:
			return isNo
		}
	}
	in := subpath.Within(r.Abs, f.req.Workspace)
	if p.in != "" && !in || p.notIn != "" && in {
		return isNo
	}
	return t
}

// LetsWrite reports whether an allow rule of a policy lets some call write at an absolute path outside
// of the workspace, or change a directory above it. Built-in rules let none.
func (s *Set) LetsWrite(path string) bool {
	return slices.ContainsFunc(s.allow, func(r *rule) bool {
		p := r.when.path
		if r.layer == LayerBuiltin || p == nil || p.in != "" || p.access != 0 && p.access&aModify == 0 || p.class != 0 && !p.class.has(atip.ClassOutside) {
			return false
		}
		for at := path; ; at = filepath.Dir(at) {
			if len(p.glob) == 0 || slices.ContainsFunc(p.glob, func(g string) bool { return pathGlob(g, at) }) {
				return true
			}
			if at == filepath.Dir(at) {
				return false
			}
		}
	})
}

// globBelow reports whether a pattern could match something beneath dir: an act on
// the whole directory touches it.
func globBelow(globs []string, dir string) bool {
	for _, g := range globs {
		fixed, _, _ := strings.Cut(g, "*")
		fixed, _, _ = strings.Cut(fixed, "?")
		if subpath.Within(fixed, dir) || subpath.Within(dir, strings.TrimSuffix(fixed, "/")) {
			return true
		}
	}
	return false
}

func (f *facts) someHost(list []hostPattern) truth {
	for _, u := range f.hosts {
		for i := range list {
			if list[i].match(u) {
				return isYes
			}
		}
	}
	// A tool that names no host talks to its own service, if it is one that says so.
	if len(f.hosts) == 0 && f.base[atip.Network] != atip.No && f.service() {
		for i := range list {
			if list[i].isKind && list[i].kind == HostService {
				return isYes
			}
		}
	}
	return isNo
}

func (f *facts) service() bool { return f.step.Call.Provenance.Rank >= atip.Org }

// scope judges paths and hosts of a loosening condition: each path that is
// written, deleted or executed, and each host, must be covered.
func (f *facts) scope(w *when, v *values) bool {
	return f.everyPath(w.path, v) && (v[atip.Network] == atip.No || f.everyHost(w.host))
}

func (f *facts) everyPath(p *pathCond, v *values) bool {
	dflt := pathCond{class: scratchClasses}
	care := atip.AccessWrite | atip.AccessDelete | atip.AccessExec
	if p == nil {
		p = &dflt
	} else {
		care |= p.access
	}
	touch := care
	// Where an effect is excluded, the words of the call touch nothing that way.
	if v[atip.Write] == atip.No {
		care &^= atip.AccessWrite
	}
	if v[atip.Delete] == atip.No {
		care &^= atip.AccessDelete
	}
	named := false
	for i := range f.step.Call.Resources {
		r := &f.step.Call.Resources[i]
		if r.Kind != "path" {
			continue
		}
		ok := f.pathIs(p, i, r) == isYes && (!p.recursive || r.Recursive)
		if !ok && r.Access&care != 0 {
			return false
		}
		named = named || ok && r.Access&touch != 0
	}
	return named || !p.named
}

func (f *facts) everyHost(list []hostPattern) bool {
	if len(f.hosts) == 0 {
		if f.service() {
			return generic(list)
		}
		// Whom a tool of low rank talks to is anyone's guess.
		return slices.ContainsFunc(list, func(h hostPattern) bool { return h.isKind && h.kind == HostPublic && h.port == 0 })
	}
	for _, u := range f.hosts {
		ok := list == nil && u.Kind == HostService
		for i := range list {
			ok = ok || list[i].match(u)
		}
		// network.allow extends what a rule covers when it names no particular host.
		if !ok && generic(list) && u.Kind != HostMetadata {
			for i := range f.set.listed {
				ok = ok || f.set.listed[i].listed(u)
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// generic reports whether a host list names kinds that include the tool's own
// service, or nothing at all.
func generic(list []hostPattern) bool {
	if list == nil {
		return true
	}
	for i := range list {
		if list[i].isKind && list[i].kind == HostService {
			return true
		}
	}
	return false
}
