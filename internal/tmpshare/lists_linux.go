package tmpshare

import "time"

// lists is what directories listed when they were walked last. Most of those in /tmp are left alone from one run to
// the next, and to open, read and close one costs as much as a look at what lies in it. That look is not saved: a
// file changes without its directory. It is no record, so one that cannot be read is an empty one.
type lists struct {
	path    string
	dirs    map[string]*listing // by path below the directory
	before  int64               // directories that changed later are not kept
	changed bool
}

type listing struct {
	names identity
	bases []string
	seen  bool
}

// settledFor is how long a directory has not changed when its names are kept, in nanoseconds. Some file systems
// note the second only: what came within it would have left no trace.
var settledFor = int64(3 * time.Second)

func readLists(path string) *lists {
	dirs, err := readBook(path, parseLists)
	if err != nil {
		dirs = map[string]*listing{}
	}
	return &lists{path: path, dirs: dirs, before: time.Now().UnixNano() - settledFor}
}

// list is a directory in dir and what it lists, which is read only if the directory has changed. It has no name
// if it cannot be opened.
func (b *books) list(dir folder, base string, now identity) (folder, []string, error) {
	name := dir.path(base)
	if b.lists != nil {
		if l := b.lists.dirs[name]; l != nil && l.names == now {
			l.seen = true
			return dir.below(base), l.bases, nil
		}
	}
	sub, err := dir.open(base)
	if err != nil {
		return folder{}, nil, err
	}
	bases, err := sub.bases()
	if b.lists != nil && err == nil && len(bases) <= maxTree && max(now.MTime, now.CTime) < b.lists.before {
		b.lists.dirs[name] = &listing{names: now, bases: bases, seen: true}
		b.lists.changed = true
	}
	return sub, bases, err
}

// save keeps what this walk has met.
func (l *lists) save() {
	if l == nil {
		return
	}
	count := 0
	for _, d := range l.dirs {
		if d.seen {
			count++
		}
	}
	if !l.changed && count == len(l.dirs) {
		return
	}
	raw := start(count)
	for name, d := range l.dirs {
		if !d.seen {
			continue
		}
		raw = appendNumbers(appendIdentity(appendText(raw, name), d.names), int64(len(d.bases)))
		for _, base := range d.bases {
			raw = appendText(raw, base)
		}
	}
	_ = writeBook(l.path, raw)
}

func parseLists(raw []byte) (map[string]*listing, bool) {
	var r reader
	all := make([]listing, r.open(raw))
	dirs := make(map[string]*listing, len(all))
	for i := range all {
		name := r.name()
		all[i].names = r.identity()
		n := r.number()
		if n < 0 || n > maxTree {
			return nil, false
		}
		all[i].bases = make([]string, n)
		for k := range all[i].bases {
			all[i].bases[k] = r.name()
		}
		dirs[name] = &all[i]
	}
	return dirs, r.whole() && len(dirs) == len(all)
}
