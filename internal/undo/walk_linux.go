package undo

import (
	"bytes"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// stay keeps a look-up below its directory: no link, no other mount, no /proc link.
	stay = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV
	// look opens for reading without waiting for a FIFO's other end.
	look = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

	maxDepth = 200
	// tick is how far apart two changes must lie for their times to differ for certain: the
	// kernel's coarse clock advances every 1 to 10 ms.
	tick = 20 * time.Millisecond
)

// walker makes the manifest of what is there now. Most of it is what the last one has: that is
// noted as a range of its entries, and nothing is copied.
type walker struct {
	place  *Place
	last   *manifest // with contents; may be nil
	at     int       // how far last was followed
	found  []stretch
	fresh  []entry  // what last has not, or has otherwise
	failed []string // directories that were not read to their end
	racy   int64    // ctime from which a change may be hidden behind the same time
	unlock bool     // make readable what is ours and is not, and put its mode back
	locked []lockedDir
	list   *listing
	dev    uint64
	shared *shared
}

// stretch is some of what a walker found: entries of last, of fresh, or all that another walker found.
type stretch struct {
	from, to int
	fresh    bool
	part     *part
}

// shared is what the walkers of a place have in common.
type shared struct {
	entries atomic.Int64
	free    chan *listing // one for each further walker that may begin
	mu      sync.Mutex    // what asks the caller
}

// part is a directory that a walker of its own looks at meanwhile.
type part struct {
	w    *walker
	done chan struct{}
	err  error // what ends the whole walk
}

// listing is the memory of one walker: the names of the directories that it is in.
type listing struct {
	dents []byte
	text  []byte // names, each with a NUL behind it
	names []span
	stat  unix.Statx_t
}

// span is where a name lies in the text of a listing.
type span struct{ from, to int }

// maxWalkers bounds the walkers of a place. More than one would only wait for the disk together, if
// that is what they wait for.
const maxWalkers = 4

// lockedDir is a directory that had to be opened up, with the mode it had.
type lockedDir struct {
	path string
	mode uint32
}

func (p *Place) roots() []string { return append([]string{p.Root}, p.GitDirs...) }

// walk looks at every name of a place. It reads no content.
func walk(p *Place, last *manifest, unlock bool) (*manifest, *walker, error) {
	began := time.Now()
	walkers := min(runtime.GOMAXPROCS(0), maxWalkers)
	w := &walker{place: p, last: last, racy: began.Add(-tick).UnixNano(), unlock: unlock, shared: &shared{free: make(chan *listing, walkers)}}
	for range walkers {
		w.shared.free <- new(listing)
	}
	m := &manifest{header: header{Time: began.UTC(), Roots: p.roots(), Whole: true}}
	for i, root := range p.roots() {
		fd, err := openRoot(root)
		if err != nil {
			return nil, w, &Error{Op: "open", Path: root, Err: err}
		}
		w.list = <-w.shared.free
		err = w.root(fd, strconv.Itoa(i))
		unix.Close(fd)
		if partErr := w.wait(); err == nil {
			err = partErr
		}
		if err == errTooMany {
			m.Whole = false
			break
		}
		if err != nil {
			return nil, w, &Error{Op: "walk", Path: root, Err: err}
		}
	}
	w.collect(m)
	m.Walk = time.Since(began)
	return m, w, nil
}

// openRoot opens the directory that everything else is looked up below.
func openRoot(root string) (int, error) {
	return again(func() (int, error) {
		return unix.Openat2(unix.AT_FDCWD, root, &unix.OpenHow{Flags: look | unix.O_DIRECTORY, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	})
}

// again repeats a call that a signal interrupted or whose path was being renamed.
func again(call func() (int, error)) (int, error) {
	for try := 0; ; try++ {
		fd, err := call()
		if err == unix.EINTR || err == unix.EAGAIN && try < 64 {
			continue
		}
		return fd, err
	}
}

func (w *walker) root(fd int, name string) error {
	w.list.text = append(w.list.text[:0], 0)
	if err := w.look(fd, span{}, unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	e, old := w.enter("", []byte(name))
	w.dev = e.dev
	w.add(&e, old)
	w.shared.entries.Add(1)
	return w.dir(fd, e.path, 0)
}

// look asks for the state of a name in an open directory. Where the last look has left the names in
// the memory of the kernel, the scheduler is not told: it would take the processor from this thread and
// give it back thousands of times, for half as much again as the calls cost. The first look waits for the disk.
func (w *walker) look(fd int, name span, flags int) error {
	const want = unix.STATX_BASIC_STATS &^ unix.STATX_ATIME
	for {
		text, stat := unsafe.Pointer(&w.list.text[name.from]), unsafe.Pointer(&w.list.stat)
		var err unix.Errno
		if w.last == nil {
			_, _, err = unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(text), uintptr(flags), want, uintptr(stat), 0)
		} else {
			_, _, err = unix.RawSyscall6(unix.SYS_STATX, uintptr(fd), uintptr(text), uintptr(flags), want, uintptr(stat), 0)
		}
		switch err {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return err
	}
}

// enter makes the entry of the name that was looked at, with the content that is known of it, and
// returns which entry of last it was found by.
func (w *walker) enter(dirPath string, name []byte) (e entry, old int) {
	st := &w.list.stat
	nanoseconds := func(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
	e = entry{mode: uint32(st.Mode) & 0o7777, nlink: st.Nlink, uid: st.Uid, gid: st.Gid, size: int64(st.Size), dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino,
		mtime: nanoseconds(st.Mtime), ctime: nanoseconds(st.Ctime)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.kind = file
		e.sparse = st.Blocks*512 < st.Size
	case unix.S_IFDIR:
		e.kind, e.size, e.nlink = dir, 0, 0
	case unix.S_IFLNK:
		e.kind = link
	case unix.S_IFIFO:
		e.kind = fifo
	case unix.S_IFSOCK:
		e.kind, e.why = other, Socket
	default:
		e.kind, e.why = other, Device
	}
	e.racy = e.ctime >= w.racy && e.kind == file
	e.path, old = w.known(dirPath, name)
	if old < 0 {
		return e, old
	}
	if was := &w.last.entries[old]; was.sameStat(&e) {
		if was.kind == link {
			e.target = was.target
		}
		if was.known && !was.racy {
			e.known, e.pack, e.off, e.sum = true, was.pack, was.off, was.sum
			e.racy = false
		}
	}
	return e, old
}

// known is the path of a name, and which entry of the last manifest has it, -1 for none. Names come in order.
func (w *walker) known(dirPath string, name []byte) (p string, old int) {
	if w.last != nil && w.at < len(w.last.entries) {
		p = w.last.entries[w.at].path
		if n := len(dirPath); n > 0 && len(p) == n+1+len(name) && p[n] == '/' && p[n+1:] == string(name) && p[:n] == dirPath {
			w.at++
			return p, w.at - 1
		}
	}
	p = string(name)
	if dirPath != "" {
		p = dirPath + "/" + p
	}
	if w.last == nil {
		return p, -1
	}
	n, found := slices.BinarySearchFunc(w.last.entries[w.at:], p, func(e entry, p string) int { return compare(e.path, p) })
	if w.at += n; !found {
		return p, -1
	}
	w.at++
	return w.last.entries[w.at-1].path, w.at - 1
}

// add notes an entry; old is the one of last that it was found by.
func (w *walker) add(e *entry, old int) {
	if old >= 0 && *e == w.last.entries[old] && !e.racy && (e.kind != file || e.known || e.why != Covered) {
		w.keep(old, old+1)
		return
	}
	n := len(w.fresh)
	w.fresh = append(w.fresh, *e)
	w.extend(stretch{from: n, to: n + 1, fresh: true})
}

// keep notes that entries of last are as they were.
func (w *walker) keep(from, to int) { w.extend(stretch{from: from, to: to}) }

func (w *walker) extend(s stretch) {
	if n := len(w.found); n > 0 && w.found[n-1].part == nil && w.found[n-1].fresh == s.fresh && w.found[n-1].to == s.from {
		w.found[n-1].to = s.to
		return
	}
	w.found = append(w.found, s)
}

// dir notes everything below an open directory; p is its path.
func (w *walker) dir(fd int, p string, depth int) error {
	first, from := len(w.list.names), len(w.list.text)
	defer func() { w.list.names, w.list.text = w.list.names[:first], w.list.text[:from] }()
	if err := w.names(fd); err != nil {
		return err
	}
	if n := len(w.list.names) - first; w.shared.entries.Add(int64(n)) > int64(w.place.Limits.Entries) {
		return errTooMany
	}
	for i := first; i < len(w.list.names); i++ {
		at := w.list.names[i]
		if err := w.look(fd, at, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if err == unix.ENOENT {
				w.shared.entries.Add(-1) // gone since the names were read
				continue
			}
			return err
		}
		e, old := w.enter(p, w.list.text[at.from:at.to])
		if w.place.skip != nil && slices.Contains(w.place.skip, e.path) {
			w.shared.entries.Add(-1)
			continue
		}
		_, rel, _ := strings.Cut(e.path, "/")
		name := e.path[len(p)+1:]
		switch {
		case w.excluded(rel, name):
			e.why = Excluded
		case e.kind == link && e.target == "":
			var err error
			if e.target, err = readlink(fd, name); err != nil {
				e.why = Unreadable
			}
		case e.kind == dir && e.dev != w.dev:
			e.why = OtherFilesystem
		case e.kind == dir && depth >= maxDepth:
			e.why = Unreadable
		case e.kind == dir && w.place.Recreatable != nil && strings.HasPrefix(e.path, "0/") && w.recreatable(rel):
			e.why = Recreatable
		}
		if e.kind != dir || e.why != Covered {
			w.add(&e, old)
			continue
		}
		if w.objects(&e, old) {
			continue
		}
		if err := w.below(fd, name, &e, old, depth); err != nil {
			return err
		}
	}
	return nil
}

// below notes a directory and everything in it.
func (w *walker) below(fd int, name string, e *entry, old, depth int) error {
	in, err := w.open(fd, name, e)
	if err == nil && !w.unlock {
		select {
		case list := <-w.shared.free:
			w.apart(in, e, old, depth+1, list)
			return nil
		default:
		}
	}
	found, fresh, before := len(w.found), len(w.fresh), stretch{}
	if found > 0 {
		before = w.found[found-1]
	}
	w.add(e, old)
	if err == nil {
		err = w.dir(in, e.path, depth+1)
		unix.Close(in)
	}
	switch err {
	case nil:
	case errTooMany, unix.EMFILE, unix.ENFILE:
		return err
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // replaced meanwhile
		for _, s := range w.found[found:] {
			s.part.wait()
		}
		if w.found, w.fresh = w.found[:found], w.fresh[:fresh]; found > 0 {
			w.found[found-1] = before
		}
	default:
		w.failed = append(w.failed, e.path)
	}
	return nil
}

// open opens a directory in another.
func (w *walker) open(fd int, name string, e *entry) (int, error) {
	open := func() (int, error) {
		return again(func() (int, error) {
			return unix.Openat2(fd, name, &unix.OpenHow{Flags: look | unix.O_DIRECTORY, Resolve: stay})
		})
	}
	in, err := open()
	readable := err == nil && (e.mode&0o500 == 0o500 || w.place.UID == 0)
	if w.unlock && !readable && (err == nil || err == unix.EACCES) && int(e.uid) == w.place.UID && unix.Fchmodat(fd, name, e.mode|0o700, 0) == nil {
		if err == nil {
			unix.Close(in)
		}
		w.locked = append(w.locked, lockedDir{e.path, e.mode})
		in, err = open()
	}
	return in, err
}

// apart has another walker look at an open directory and note it.
func (w *walker) apart(in int, e *entry, old, depth int, list *listing) {
	sub := &walker{place: w.place, last: w.last, at: w.at, racy: w.racy, list: list, dev: w.dev, shared: w.shared}
	sub.add(e, old)
	p := &part{w: sub, done: make(chan struct{})}
	w.found = append(w.found, stretch{part: p})
	at := e.path
	go func() {
		defer close(p.done)
		err := sub.dir(in, at, depth)
		unix.Close(in)
		p.err = sub.wait()
		switch err {
		case nil:
		case errTooMany, unix.EMFILE, unix.ENFILE:
			p.err = err
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
			sub.found = nil // replaced meanwhile
		default:
			sub.failed = append(sub.failed, at)
		}
	}()
}

// wait lets others use what this walker needed, and waits for its parts.
func (w *walker) wait() (err error) {
	w.shared.free <- w.list
	for _, s := range w.found {
		if partErr := s.part.wait(); err == nil {
			err = partErr
		}
	}
	return err
}

func (p *part) wait() error {
	if p == nil {
		return nil
	}
	<-p.done
	return p.err
}

// collect fills in the entries of a state: those of last itself, if all are as they were.
func (w *walker) collect(m *manifest) {
	all, count, whole := []([]entry){}, 0, w.last != nil
	var failed []string
	var visit func(w *walker)
	visit = func(w *walker) {
		failed = append(failed, w.failed...)
		for _, s := range w.found {
			switch {
			case s.part != nil:
				visit(s.part.w)
				continue
			case s.fresh:
				all, whole = append(all, w.fresh[s.from:s.to]), false
			default:
				all, whole = append(all, w.last.entries[s.from:s.to]), whole && s.from == count
			}
			count += s.to - s.from
		}
	}
	visit(w)
	if whole && count == len(w.last.entries) && len(failed) == 0 {
		m.entries = w.last.entries
		return
	}
	m.entries = make([]entry, 0, count)
	for _, list := range all {
		m.entries = append(m.entries, list...)
	}
	for _, p := range failed {
		m.find(p).why = Unreadable
	}
}

func (w *walker) recreatable(rel string) bool {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	return w.place.Recreatable(w.place.Root + "/" + rel)
}

// objects takes over what the last manifest has of a directory of git's objects that is
// as it was: files there are named by their content and never change. An undo looks at each,
// as what it repairs may have changed them after all.
func (w *walker) objects(e *entry, old int) bool {
	parent, name := path.Split(e.path)
	if !strings.HasSuffix(parent, "/objects/") || len(name) != 2 && name != "pack" || old < 0 || w.unlock || e.ctime >= w.racy {
		return false
	}
	was := &w.last.entries[old]
	if !was.sameStat(e) || was.ctime >= w.last.Time.Add(-tick).UnixNano() {
		return false
	}
	list, i := w.last.entries, old
	for i++; i < len(list) && len(list[i].path) > len(e.path) && list[i].path[len(e.path)] == '/' && strings.HasPrefix(list[i].path, e.path); i++ {
		if o := &list[i]; o.kind != file || o.why != Covered || !o.known {
			return false
		}
	}
	w.add(e, old)
	w.keep(old+1, i)
	w.shared.entries.Add(int64(i - old - 1))
	w.at = i
	return true
}

// names lists a directory in order, behind the names of those that it lies in.
func (w *walker) names(fd int) error {
	l := w.list
	if l.dents == nil {
		l.dents = make([]byte, 32<<10)
	}
	first := len(l.names)
	for {
		n, err := unix.Getdents(fd, l.dents)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			slices.SortFunc(l.names[first:], func(a, b span) int { return bytes.Compare(l.text[a.from:a.to], l.text[b.from:b.to]) })
			return err
		}
		for rest := l.dents[:n]; len(rest) > 0; {
			d := (*unix.Dirent)(unsafe.Pointer(&rest[0]))
			name := rest[unsafe.Offsetof(d.Name):d.Reclen]
			name = name[:bytes.IndexByte(name, 0)]
			rest = rest[d.Reclen:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			from := len(l.text)
			l.text = append(append(l.text, name...), 0)
			l.names = append(l.names, span{from, from + len(name)})
		}
		if len(l.names)-first > w.place.Limits.Entries {
			return errTooMany
		}
	}
}

// excluded reports what the policy keeps out of the store.
func (w *walker) excluded(rel, name string) bool {
	for _, x := range w.place.Exclude {
		if ok, _ := path.Match(x, rel); ok {
			return true
		}
		if ok, _ := path.Match(x, name); ok && !strings.Contains(x, "/") {
			return true
		}
	}
	return false
}

func readlink(fd int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
