package place

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

func (w World) secret(t target) bool {
	return w.holds(t, Secret)
}

func (w World) startup(t target) bool {
	if w.holds(t, Startup) || w.inTree(t, kinds(Startup, Agent, CI)) {
		return true
	}
	for _, dir := range w.GitDirs {
		if subpath.Within(t.abs, dir) && codeInGitDir(rel(t.abs, dir)) {
			return true
		}
	}
	for rest := t.abs; rest != ""; {
		var c string
		if c, rest = cutComponent(rest); c != "" && c[0] == '.' && subpath.SameName(c, ".git") && (codeInGitDir(rest) || rest == "" && w.pointer(t)) {
			return true
		}
	}
	return false
}

// rows are the rows of the table by where they are looked for. Each path of each command is
// compared with them.
type rows struct {
	home   [Startup + 1][]string // by kind, without the slash at the end
	system [Startup + 1][]starred
	base   []starred // secrets by their last component
	tree   []*Name
	starts [256]bool // the first bytes of those
	git    []string
}

// starred is a name with its star taken apart.
type starred struct {
	before, after string
	star          bool
	unless        func(string) bool
}

var table = sync.OnceValue(func() *rows {
	r := &rows{}
	for i := range names {
		n := &names[i]
		path := strings.TrimSuffix(n.Path, "/")
		before, after, star := strings.Cut(path, "*")
		switch {
		case n.Where == Home:
			r.home[n.Kind] = append(r.home[n.Kind], path)
		case n.Where == System:
			r.system[n.Kind] = append(r.system[n.Kind], starred{before, after, star, nil})
		case n.Where == GitDir:
			r.git = append(r.git, n.Path)
		case n.Kind == Secret:
			r.base = append(r.base, starred{before, after, star, n.Unless})
		default:
			r.tree = append(r.tree, n)
			r.starts[n.Path[0]], r.starts[n.Path[0]^0x20] = true, true // in small letters and capitals
		}
	}
	return r
})

// holds reports whether t is, lies in or, as far as its access goes, holds a name of a home
// directory or of the system.
func (w World) holds(t target, kind Kind) bool {
	deep := t.deep && kind == Secret || t.deepEdit
	if t.inHome {
		for _, path := range table().home[kind] {
			if t.home != "" && t.home[0] != path[0] {
				continue
			}
			if t.hitsHome(path, deep) {
				return true
			}
		}
	}
	for i := range table().system[kind] {
		p := &table().system[kind][i]
		if len(t.abs) > 1 && t.abs[1] != p.before[1] {
			continue
		}
		if p.star && between(t.abs, p.before, p.after) || !p.star && t.hits(p.before, deep) {
			return true
		}
	}
	if kind != Secret {
		return false
	}
	base := strings.ToLower(filepath.Base(t.abs))
	for i := range table().base {
		if table().base[i].is(base) && !certificates(t.abs) {
			return true
		}
	}
	return false
}

// between reports a path that begins and ends so. A name that is cut short is a beginning only.
func between(path, before, after string) bool {
	return len(path) >= len(before)+len(after) && strings.HasPrefix(path, before) && strings.HasSuffix(path, after)
}

// is reports whether the last component of a path, in small letters, is this name.
func (p *starred) is(base string) bool {
	if !p.star {
		return base == p.before
	}
	return between(base, p.before, p.after) && (p.unless == nil || !p.unless(base[len(p.before):len(base)-len(p.after)]))
}

// inTree reports whether t is, lies in or, if deep, holds a name that counts in any directory,
// or in any of the workspace. Names that differ in case are the same, as they are on the disk
// of a colleague or of a container's host.
func (w World) inTree(t target, wanted kindSet) bool {
	rows, inner := table(), len(t.abs)+1
	if w.Workspace != "" && subpath.Within(t.abs, w.Workspace) {
		inner = len(t.abs) - len(rel(t.abs, w.Workspace))
	}
	for at := 0; at < len(t.abs); at++ {
		if !rows.starts[t.abs[at]] || at > 0 && !os.IsPathSeparator(t.abs[at-1]) {
			continue
		}
		for _, n := range rows.tree {
			if !wanted.has(n.Kind) || n.Path[0]|0x20 != t.abs[at]|0x20 || n.Where != Anywhere && (n.Where != Workspace || at < inner) || n.Kind == CI && !w.CI {
				continue
			}
			if follows(t.abs[at:], n.Path, t.deepEdit) {
				return true
			}
		}
	}
	return false
}

// follows reports whether path begins with name, component by component. If deep, a path that
// ends on the way to name does as well.
func follows(path, name string, deep bool) bool {
	for name != "" {
		if path == "" {
			return deep
		}
		var a, b string
		a, path = cutComponent(path)
		if b, name = cutComponent(name); !subpath.SameName(a, b) {
			return false
		}
	}
	return true
}

// codeInGitDir knows what git runs or obeys in a git directory, and in those that it keeps
// there for submodules and work trees.
func codeInGitDir(name string) bool {
	first, _ := cutComponent(name)
	kept := subpath.SameName(first, "modules") || subpath.SameName(first, "worktrees")
	for name != "" {
		for _, n := range table().git {
			if follows(name, n, false) {
				return true
			}
		}
		if !kept {
			return false
		}
		_, name = cutComponent(name)
	}
	return false
}

// pointer reports a file by which git finds a git directory elsewhere, whether it is there or
// about to be.
func (w World) pointer(t target) bool {
	return !t.deep && w.Workspace != "" && subpath.Within(t.abs, w.Workspace) && !isDir(t.abs)
}

// certificates are the public certificates every TLS client reads.
func certificates(abs string) bool {
	for _, dir := range [...]string{"/etc/ssl/certs", "/etc/pki", "/etc/ca-certificates", "/usr", "/System", "/nix/store"} {
		if subpath.Within(abs, dir) {
			return !subpath.Within(abs, "/usr/local/etc")
		}
	}
	return strings.HasSuffix(abs, "/certifi/cacert.pem")
}
