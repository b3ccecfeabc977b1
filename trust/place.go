package trust

import "path/filepath"

// dirFact remembers, for one Open, who may replace entries of a directory.
type dirFact struct {
	path string
	bad  bool
}

func (b *builder) systemPaths() []string {
	if b.o.SystemPaths != nil {
		return b.o.SystemPaths
	}
	return DefaultSystemPaths()
}

// swappable reports whether somebody other than root can put another file at the
// canonical path p, or p lies where the agent and its children write.
func (b *builder) swappable(p string) bool {
	if below(p, b.o.TmpDirs) || belowOne(p, b.o.Workspace) || belowOne(p, b.o.Home) {
		return true
	}
	for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
		if b.badDir(dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func (b *builder) badDir(dir string) bool {
	for _, d := range b.dirs {
		if d.path == dir {
			return d.bad
		}
	}
	bad := replaceable(dir)
	b.dirs = append(b.dirs, dirFact{dir, bad})
	return bad
}

// ownPath reports a file that no confined run can have put there: only root and this user can change it
// and the directories and links that lead to it, and no run writes in any of them. Whoever else can,
// can replace the user's policy too.
func (b *builder) ownPath(h *held) bool {
	if b.o.Kept == nil {
		return false
	}
	changed := func(p string) bool {
		if !b.o.Kept(p) {
			return true
		}
		for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
			if !ownOnly(dir) {
				return true
			}
			if dir == filepath.Dir(dir) {
				return false
			}
		}
	}
	return ownOnly(h.path) && !changed(h.path) && !b.linksChanged(h.found, changed)
}

// linksSwappable walks found as the kernel does and reports whether any
// directory on the way can be changed by others.
func (b *builder) linksSwappable(found string) bool { return b.linksChanged(found, b.swappable) }

// linksChanged is linksSwappable for another meaning of a path that can be changed.
func (b *builder) linksChanged(found string, changed func(string) bool) bool {
	const maxLinks = 40 // the kernel's MAXSYMLINKS
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(found))
		if err != nil {
			return true
		}
		p := filepath.Join(dir, filepath.Base(found))
		if changed(p) || b.linksInDirs(filepath.Dir(found), changed) {
			return true
		}
		target, ok := readLink(p)
		if !ok {
			return false
		}
		found = absolute(target, dir)
	}
	return true
}

// linksInDirs checks the directories that hold the links leading to dir.
func (b *builder) linksInDirs(dir string, changed func(string) bool) bool {
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, isLink := readLink(d); isLink && b.linksChanged(d, changed) {
			return true
		}
	}
	return false
}

// place is the resolved directory plus the name as found: it stays the same when
// a link moves to the next version of the program.
func (b *builder) place(h *held) string {
	dir := filepath.Dir(h.found)
	if dir == filepath.Dir(h.path) {
		return joinDir(dir, filepath.Base(h.found)) // already without links
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return joinDir(dir, filepath.Base(h.found))
}

func below(p string, dirs []string) bool {
	for _, d := range dirs {
		if belowOne(p, d) {
			return true
		}
	}
	return false
}

// belowOne reports whether p is dir or below it. The root directory contains
// nothing here: HOME=/ in a container must not make everything swappable.
func belowOne(p, dir string) bool {
	if len(dir) < 2 || len(p) < len(dir) || p[:len(dir)] != dir {
		return false
	}
	return len(p) == len(dir) || p[len(dir)] == filepath.Separator
}
