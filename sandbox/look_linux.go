package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// looker lists protected names as they are.
type looker struct {
	g      *protection
	before map[string]entry // nil before the run
	out    []entry
	ways   map[string]way // the directories that lead to names
}

// way is what stands on the way to a protected name.
type way uint8

const (
	plainWay way = iota
	noWay        // nothing is there
	ownLink      // a link from before the run
	planted      // one that the run has made
)

// link looks for the first link on the way to a name. One that the run has made is what it
// planted, and not the file of the user's that it leads to.
func (l *looker) link(root int, rel string) bool {
	for i := 0; i < len(rel); i++ {
		if rel[i] != '/' {
			continue
		}
		at := l.g.Roots[root] + "/" + rel[:i]
		w, known := l.ways[at]
		if !known {
			w = l.way(root, rel[:i], at)
			if l.ways == nil {
				l.ways = map[string]way{}
			}
			l.ways[at] = w
		}
		switch w {
		case planted:
			return true
		case noWay:
			return false
		}
	}
	return false
}

func (l *looker) way(root int, rel, at string) way {
	fi, err := l.g.roots[root].Lstat(rel)
	switch {
	case err != nil:
		return noWay
	case fi.Mode()&fs.ModeSymlink == 0:
		return plainWay
	}
	e := l.at(root, rel)
	if !l.g.named(at) && !l.g.named(at+"/") {
		l.out = append(l.out, e)
	}
	if old, was := l.before[at]; l.before != nil && (!was || old.Kind != fs.ModeSymlink || old.Link != e.Link) {
		return planted
	}
	return ownLink
}

// name looks at one protected name, and below it if it is a directory whose content counts.
func (l *looker) name(root int, rel string, tree bool) {
	if l.link(root, rel) || l.g.lifted(root, rel) {
		return
	}
	e := l.at(root, rel)
	if e.Kind != fs.ModeDir || !tree {
		l.out = append(l.out, e)
		return
	}
	first := len(l.out)
	if old, known := l.before[l.g.path(e)]; known && old.Cut {
		// Which of the rest are new nobody can tell.
		l.g.cut = true
		l.out = append(l.out, e)
		for _, old := range l.g.Entries {
			if old.Root == root && subpath.Within(old.Rel, rel) && old.Rel != rel {
				l.out = append(l.out, l.at(root, old.Rel))
			}
		}
		return
	}
	if left := maxEntries; !l.tree(e, &left, 0) {
		l.out = l.out[:min(len(l.out), first+maxEntries)]
		l.out[first].Cut, l.out[first].whole = true, l.before != nil
		if l.before != nil {
			l.out = l.out[:first+1]
		}
	}
}

// at is the state of one name.
func (l *looker) at(root int, rel string) entry {
	e := entry{Root: root, Rel: rel, Kind: absentKind}
	r := l.g.roots[root]
	fi, err := r.Lstat(rel)
	if errors.Is(err, fs.ErrPermission) && l.before != nil {
		l.g.open700(root, filepath.Dir(rel))
		if fi, err = r.Lstat(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.g.cut = true
		}
	}
	if err != nil {
		return e
	}
	e.Kind, e.Mode, e.ID = fi.Mode().Type(), fi.Mode().Perm(), identity(fi)
	switch {
	case e.Kind == fs.ModeSymlink:
		e.Link, _ = r.Readlink(rel)
	case e.Kind == 0 && l.before == nil:
		e.Copy = l.g.keep(r, e, fi.Size())
	}
	return e
}

// tree adds a directory and what lies below it. It returns false if that is more than left;
// of a directory that is new since the run began, the directory itself is told then.
func (l *looker) tree(e entry, left *int, depth int) bool {
	first := len(l.out)
	l.out = append(l.out, e)
	if old, known := l.before[l.g.path(e)]; l.before != nil && (!known || old.Kind != fs.ModeDir) && depth == 0 {
		some := maxNew
		if !l.below(e, &some, 1) {
			l.out = l.out[:first+1]
			l.out[first].whole = true
		}
		return true
	}
	return l.below(e, left, depth)
}

// below adds what lies in a directory. depth is 0 for one that was there before.
func (l *looker) below(e entry, left *int, depth int) bool {
	if depth > maxDepth {
		return false
	}
	f, err := regular.OpenDirIn(l.g.roots[e.Root], e.Rel)
	if errors.Is(err, fs.ErrPermission) && l.before != nil {
		// The run may have taken our right to. Who knows a name in it can open that still.
		l.g.open700(e.Root, e.Rel)
		f, err = regular.OpenDirIn(l.g.roots[e.Root], e.Rel)
	}
	if err != nil {
		return false
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, n := range names {
			if inertName(e.Rel, n) {
				continue
			}
			if *left--; *left < 0 {
				return false
			}
			if l.g.lifted(e.Root, e.Rel+"/"+n) {
				continue
			}
			child := l.at(e.Root, e.Rel+"/"+n)
			if child.Kind != fs.ModeDir {
				l.out = append(l.out, child)
				continue
			}
			next := 0
			if depth > 0 {
				next = depth + 1
			}
			if !l.tree(child, left, next) {
				return false
			}
		}
		if err != nil || len(names) == 0 {
			return err == nil || errors.Is(err, io.EOF)
		}
	}
}

// open700 gives us our own directories back, from the root down to rel.
func (g *protection) open700(root int, rel string) {
	r := g.roots[root]
	if fi, err := os.Lstat(g.Roots[root]); err == nil && fi.IsDir() && fi.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(g.Roots[root], fi.Mode().Perm()|0o700)
	}
	at := ""
	for part := range strings.SplitSeq(rel, "/") {
		if part == "." || part == "" {
			continue
		}
		at = filepath.Join(at, part)
		fi, err := r.Lstat(at)
		if err != nil || !fi.IsDir() {
			return
		}
		if fi.Mode().Perm()&0o700 != 0o700 {
			_ = r.Chmod(at, fi.Mode().Perm()|0o700)
		}
	}
}
