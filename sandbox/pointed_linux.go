package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// pointed are the protected names that git's own pointers lead to: submodules, fetched or not,
// other work trees, git directories below modules at any depth, included files, directories of
// hooks, and repositories that lie in the workspace by themselves.
func (g *protection) pointed() []string {
	var out []string
	add := func(r gitrepo.Repository) {
		for _, dir := range []string{r.Dir, r.Common} {
			out = g.appendNames(out, dir)
		}
		p := r.Pointers("")
		g.lost = g.lost || p.Truncated
		for _, dir := range p.GitDirs {
			out = g.appendNames(out, dir)
		}
		for _, tree := range p.Trees {
			out = g.appendNames(append(out, tree+"/.git"), tree+"/.git")
		}
		for _, dir := range p.Admin {
			out = append(out, dir+"/commondir", dir+"/gitdir", dir+"/config.worktree")
		}
		for _, dir := range p.Hooks {
			out = append(out, dir+"/")
		}
		out = append(out, p.Includes...)
	}
	for i, root := range g.Roots {
		if i > 0 {
			if r, err := gitrepo.Dir(root); err == nil {
				add(r)
			}
			continue
		}
		for _, path := range append([]string{root + "/.git"}, g.nested()...) {
			out = append(out, path)
			r, err := gitrepo.At(filepath.Dir(path))
			if err != nil {
				// Whatever git takes it for now, it may be a repository later.
				r = gitrepo.Repository{Dir: path, Common: path}
			}
			add(r)
		}
	}
	known := map[string]bool{}
	for _, name := range g.Names {
		known[name] = true
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return known[name] })
}

func (g *protection) appendNames(out []string, dir string) []string {
	for _, name := range g.Git {
		out = append(out, dir+"/"+name)
	}
	return out
}

// nested lists every .git below the workspace, beside its own, level by level: what lies deep
// is met by fewer.
func (g *protection) nested() []string {
	var out []string
	walked, deadline := 0, time.Now().Add(walkFor)
	stop := func() bool {
		g.cut = g.cut || walked > maxWalked || walked > minWalked && time.Now().After(deadline)
		return g.cut
	}
	top, err := g.roots[0].OpenFile(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer top.Close()
	for level := []string{"."}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			fd, err := openDirBelow(int(top.Fd()), dir)
			if err != nil {
				gone := err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP || err == unix.EACCES
				g.cut = g.cut || !gone // ENAMETOOLONG, of a path that nothing opens in one call
				continue
			}
			f := os.NewFile(uintptr(fd), filepath.Join(g.Roots[0], dir))
			entries, _ := f.ReadDir(maxWalked - walked + 1)
			f.Close()
			for _, e := range entries {
				switch walked++; {
				case fold(e.Name()) == ".git":
					if dir != "." {
						out = append(out, g.Roots[0]+"/"+dir+"/"+e.Name())
					}
				case e.Type() == fs.ModeDir:
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
			if stop() {
				g.found = out
				return out
			}
		}
		level = next
	}
	g.found = out
	return out
}

// late looks at the names that the pointers lead to now and did not before the run. Of those
// that may have been there all the time only what changed since the run began counts.
func (g *protection) late(before map[string]entry) []entry {
	names := g.pointed()
	if len(names) == 0 {
		return nil
	}
	old := g.Names
	g.Names = names
	now := g.look(before)
	g.Names = append(old, names...)
	return slices.DeleteFunc(now, func(e entry) bool {
		if e.Kind == absentKind {
			return true
		}
		if _, known := before[g.path(e)]; known {
			return true
		}
		var st unix.Statx_t
		return unix.Statx(unix.AT_FDCWD, g.path(e), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st) != nil ||
			time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)).Before(g.Began)
	})
}

// pointer reports a new file by which git finds a git directory, and that leads to one of this
// repository: what it would run there is looked at by itself.
func (g *protection) pointer(e entry) bool {
	path := g.path(e)
	switch filepath.Base(e.Rel) {
	case ".git":
		target, err := gitrepo.Pointer(path)
		return err == nil && slices.ContainsFunc(g.Roots, func(root string) bool { return subpath.Within(target, root) })
	case "commondir":
		raw, err := g.read(e)
		return err == nil && strings.TrimRight(string(raw), "\n") == "../.." && strings.Contains(e.Rel, "worktrees/")
	case "gitdir":
		return strings.Contains(e.Rel, "worktrees/")
	}
	return false
}

// pins are the names below the root that a private root can bind beforehand, those of the
// repository's own submodules first, as many as maxPins mounts allow.
func (g *protection) pins(p *Profile, regenerable func(string) bool) []string {
	all := newPins(p)
	for name := range all.root {
		all.mounts(name) // made for them anyway
	}
	var aside []string
	for _, path := range g.found {
		if tree := filepath.Dir(path); regenerable != nil && regenerable(tree) {
			aside = append(aside, tree)
		}
	}
	git := p.Workspace + "/.git"
	names := slices.Clone(g.Names[len(p.Protect):])
	slices.SortStableFunc(names, func(a, b string) int {
		switch one, two := subpath.Within(a, git), subpath.Within(b, git); {
		case one == two:
			return 0
		case one:
			return -1
		}
		return 1
	})
	var out []string
	left := maxPins
	for _, name := range names {
		path := strings.TrimSuffix(name, "/")
		root, rel, ok := g.locate(path)
		if !ok || root != 0 || slices.ContainsFunc(aside, func(tree string) bool { return subpath.Within(path, tree) }) {
			continue
		}
		if fi, err := g.roots[0].Lstat(rel); err != nil || !all.can(path, fi) {
			continue
		}
		if left <= 0 {
			g.unpinned++
			continue
		}
		left -= len(all.mounts(path))
		out = append(out, name)
	}
	return out
}

// openDirBelow opens a directory below an open one in one call, however deep it lies, and follows no link.
func openDirBelow(root int, dir string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		if fd, err := unix.Openat2(root, dir, &how); err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}
