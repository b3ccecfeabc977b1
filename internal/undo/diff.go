package undo

import "strings"

// change is a name that two states have differently; old or new is nil where it is missing.
type change struct {
	path     string
	old, new *entry
}

// changes compares two states. Times of directories and stats that differ over the same
// content are no change.
func changes(a, b *manifest) []change {
	var out []change
	i, j := 0, 0
	for i < len(a.entries) || j < len(b.entries) {
		c := 0
		switch {
		case i == len(a.entries):
			c = 1
		case j == len(b.entries):
			c = -1
		default:
			c = compare(a.entries[i].path, b.entries[j].path)
		}
		switch {
		case c < 0:
			out = append(out, change{a.entries[i].path, &a.entries[i], nil})
			i++
		case c > 0:
			out = append(out, change{b.entries[j].path, nil, &b.entries[j]})
			j++
		default:
			if x, y := &a.entries[i], &b.entries[j]; !alike(x, y) {
				out = append(out, change{x.path, x, y})
			}
			i++
			j++
		}
	}
	return out
}

// alike reports whether two entries stand for the same thing, its time aside.
func alike(x, y *entry) bool {
	if x.kind != y.kind || x.mode != y.mode && x.kind != link || x.uid != y.uid || x.gid != y.gid {
		return false
	}
	switch x.kind {
	case link:
		return x.target == y.target
	case file:
		return sameContent(x, y)
	}
	return true
}

func sameContent(x, y *entry) bool {
	if x.known && y.known {
		return x.size == y.size && x.sum == y.sum
	}
	// One of them was only looked at: the inode tells.
	return x.ino == y.ino && x.dev == y.dev && x.size == y.size && x.mtime == y.mtime
}

// count counts the changes between two states, those of git's own files by what they mean.
func count(list []change, a, b *manifest) (n Counts) {
	for _, c := range list {
		if internal(c.path) {
			if rest := c.path[strings.LastIndex(c.path, "/.git/")+1:]; settings(rest) {
				n.Git++
			}
			continue
		}
		switch {
		case c.old == nil:
			n.Added++
		case c.new == nil:
			n.Removed++
		default:
			n.Changed++
		}
	}
	for d := range a.Git {
		if !sameGit(a, b, d) {
			n.Git++
		}
	}
	for d := range b.Git {
		if a.Git[d] == "" {
			n.Git++
		}
	}
	return n
}

// settings reports whether a path below ".git" is a hook or a setting.
func settings(rel string) bool {
	return rel == ".git/config" || strings.HasPrefix(rel, ".git/hooks/") || strings.HasPrefix(rel, ".git/info/") && !strings.HasPrefix(rel, ".git/info/refs")
}

// sameGit compares what two states say of a git directory.
func sameGit(a, b *manifest, d string) bool {
	_, x, ok := strings.Cut(a.Git[d], " ")
	_, y, _ := strings.Cut(b.Git[d], " ")
	return ok && x == y
}

// internal reports whether a path is one of git's own files.
func internal(p string) bool {
	return !strings.HasPrefix(p, "0") || strings.Contains(p+"/", "/.git/")
}
