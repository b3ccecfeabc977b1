package place

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
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
		if slices.ContainsFunc(table().git, func(n string) bool { return follows(name, n, false) }) {
			return true
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

// Bounds of the search for files of secrets in a workspace: every run pays for it.
const (
	maxSecretDirs    = 48
	maxSecretEntries = 2048
	maxSecretDepth   = 4
)

// FindSecrets lists the regular files of a workspace whose names are those of secrets, what lies
// near its top first. Directories that tools fill are left out.
func FindSecrets(workspace, cwd string, secret func(path string) bool) []string {
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

// MaxLinkSearch is how many names of a workspace are looked at for another name of a
// credential file.
const MaxLinkSearch = 8192

// SecretLinks looks for names in the workspace under which a credential file can be read: a
// hard link from before the run, as no run can make one. Hardly any credential file has a
// second name, so hardly any run searches. It looks at MaxLinkSearch names; cut says that there
// are more.
func SecretLinks(workspace, home string) (links []string, cut bool) {
	if workspace == "" || home == "" {
		return nil, false
	}
	wanted := map[[2]uint64]string{}
	for _, name := range CredentialFiles() {
		path := filepath.Join(home, name)
		if id, linked := linkedFile(path); linked && !subpath.Within(path, workspace) {
			wanted[id] = path
		}
	}
	if len(wanted) == 0 {
		return nil, false
	}
	seen := 0
	for level := []string{workspace}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			f, err := regular.OpenDir(dir)
			if err != nil {
				continue
			}
			entries, _ := f.ReadDir(MaxLinkSearch - seen + 1)
			f.Close()
			for _, e := range entries {
				if seen++; seen > MaxLinkSearch {
					return links, true
				}
				path := filepath.Join(dir, e.Name())
				if e.IsDir() {
					next = append(next, path)
					continue
				}
				if !e.Type().IsRegular() {
					continue
				}
				if id, linked := linkedFile(path); linked && wanted[id] != "" {
					links = append(links, path)
				}
			}
		}
		level = next
	}
	return links, false
}

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
	return slices.ContainsFunc(w.Programs, func(p string) bool { return t.hits(p, t.deepEdit) }) || w.inTree(t, kinds(Own, Hook))
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
	return slices.ContainsFunc(w.GitDirs, func(dir string) bool { return subpath.Within(abs, dir) })
}

// tmp includes the streams of /dev: writing there leaves nothing behind.
func (w World) tmp(abs string) bool {
	if slices.ContainsFunc(w.TmpDirs, func(dir string) bool { return subpath.Within(abs, dir) }) {
		return true
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
