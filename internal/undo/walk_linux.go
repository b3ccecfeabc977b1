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
// noted as a range of its entries, and nothing is copied. Directories that were found wait until a
// thread is free; the newest goes first, so that few are open at once.
type walker struct {
	place   *Place
	last    *manifest // with contents; may be nil
	racy    int64     // ctime from which a change may be hidden behind the same time
	unlock  bool      // make readable what is ours and is not, and put its mode back
	locked  []lockedDir
	roots   []stretch
	entries atomic.Int64
	asks    sync.Mutex // held while the caller is asked

	mu      sync.Mutex
	wake    sync.Cond
	waiting []*folder
	threads int
	busy    int   // threads that look at a directory
	idle    int   // threads that have none
	err     error // what ends the walk
}

// folder is a directory and what was found of it.
type folder struct {
	entry
	in     *folder // nil for a root
	old    int     // which entry of last it was found by
	at     int     // how far last was followed
	depth  int
	root   uint64 // device of its root
	fd     int
	users  atomic.Int32 // of fd: itself and those in it that wait
	found  []stretch
	fresh  []entry // what last has not, or has otherwise
	failed Why     // why it was not read to its end
}

// stretch is some of what was found: entries of last, of fresh, or all of another directory.
type stretch struct {
	from, to int
	fresh    bool
	sub      *folder
}

// listing is the memory of a thread: the names of the directory that it looks at.
type listing struct {
	*walker
	dents []byte
	text  []byte // names, each with a NUL behind it
	names []span
	stat  unix.Statx_t
}

// span is where a name lies in the text of a listing.
type span struct{ from, to int }

// maxThreads bounds the threads of a walk. More than one would only wait for the disk together, if
// that is what they wait for.
const maxThreads = 4

// lockedDir is a directory that had to be opened up, with the mode it had.
type lockedDir struct {
	path string
	mode uint32
}

func (p *Place) roots() []string { return append([]string{p.Root}, p.GitDirs...) }

// walk looks at every name of a place. It reads no content.
func walk(p *Place, last *manifest, unlock bool) (*manifest, *walker, error) {
	began := time.Now()
	w := &walker{place: p, last: last, racy: began.Add(-tick).UnixNano(), unlock: unlock}
	w.wake.L = &w.mu
	m := &manifest{header: header{Time: began.UTC(), Roots: p.roots(), Whole: true}}
	l := &listing{walker: w}
	for i, root := range m.Roots {
		fd, err := openRoot(root)
		if err != nil {
			return nil, w, &Error{Op: "open", Path: root, Err: err}
		}
		if err = l.root(fd, strconv.Itoa(i)); err == nil {
			l.work()
			err = w.err
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

// work looks at directories until none waits and none is looked at.
func (l *listing) work() {
	w := l.walker
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.waiting) == 0 && w.busy > 0 {
			w.idle++
			w.wake.Wait()
			w.idle--
		}
		n := len(w.waiting) - 1
		if n < 0 {
			w.threads--
			w.wake.Broadcast()
			return
		}
		f := w.waiting[n]
		w.waiting = w.waiting[:n]
		w.busy++
		stop := w.err != nil
		w.mu.Unlock()
		err := l.folder(f, stop)
		w.mu.Lock()
		w.busy--
		if err != nil && w.err == nil {
			w.err = err
		}
	}
}

// later has a directory looked at by this thread or another.
func (w *walker) later(f *folder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, f)
	switch {
	case f.in == nil:
		w.threads++ // the caller itself
	case w.idle > 0:
		w.wake.Signal()
	case !w.unlock && w.threads < min(runtime.GOMAXPROCS(0), maxThreads):
		w.threads++
		go (&listing{walker: w}).work()
	}
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

func (l *listing) root(fd int, name string) error {
	f := &folder{fd: fd}
	f.users.Store(1)
	l.text = append(l.text[:0], 0)
	err := l.look(fd, span{}, unix.AT_EMPTY_PATH)
	if err != nil {
		f.leave()
		return err
	}
	f.entry, f.old = l.enter(f, []byte(name))
	f.root = f.dev
	l.roots = append(l.roots, stretch{sub: f})
	l.entries.Add(1)
	l.later(f)
	return nil
}

// look asks for the state of a name in an open directory.
func (l *listing) look(fd int, name span, flags uintptr) error {
	const want = unix.STATX_BASIC_STATS &^ unix.STATX_ATIME
	_, err := l.call(unix.SYS_STATX, fd, unsafe.Pointer(&l.text[name.from]), flags, want, unsafe.Pointer(&l.stat))
	return err
}

// dirents reads some of the names in an open directory.
func (l *listing) dirents(fd int) (int, error) {
	return l.call(unix.SYS_GETDENTS64, fd, unsafe.Pointer(&l.dents[0]), uintptr(len(l.dents)), 0, nil)
}

// call is a system call on a directory. Where the last look has left the names in the memory of the kernel,
// the scheduler is not told: it would take the processor from this thread and give it back thousands of times,
// for half as much again as the calls cost. The first look waits for the disk.
func (l *listing) call(number uintptr, fd int, a unsafe.Pointer, b, c uintptr, d unsafe.Pointer) (n int, err error) {
	for {
		var r uintptr
		var e unix.Errno
		if l.last == nil {
			r, _, e = unix.Syscall6(number, uintptr(fd), uintptr(a), b, c, uintptr(d), 0)
		} else {
			r, _, e = unix.RawSyscall6(number, uintptr(fd), uintptr(a), b, c, uintptr(d), 0)
		}
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR:
			continue
		}
		return 0, e
	}
}

// enter makes the entry of the name that was looked at in a directory, with the content that is known of it,
// and returns which entry of last it was found by.
func (l *listing) enter(in *folder, name []byte) (e entry, old int) {
	st := &l.stat
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
	e.racy = e.ctime >= l.racy && e.kind == file
	e.path, old = in.known(l.last, name)
	if old < 0 {
		return e, old
	}
	if was := &l.last.entries[old]; was.sameStat(&e) {
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
func (f *folder) known(last *manifest, name []byte) (p string, old int) {
	if last != nil && f.at < len(last.entries) {
		p = last.entries[f.at].path
		if n := len(f.path); n > 0 && len(p) == n+1+len(name) && p[n] == '/' && p[n+1:] == string(name) && p[:n] == f.path {
			f.at++
			return p, f.at - 1
		}
	}
	p = string(name)
	if f.path != "" {
		p = f.path + "/" + p
	}
	if last == nil {
		return p, -1
	}
	n, found := slices.BinarySearchFunc(last.entries[f.at:], p, func(e entry, p string) int { return compare(e.path, p) })
	if f.at += n; !found {
		return p, -1
	}
	f.at++
	return last.entries[f.at-1].path, f.at - 1
}

// add notes an entry; old is the one of last that it was found by.
func (f *folder) add(last *manifest, e *entry, old int) {
	if old >= 0 && *e == last.entries[old] && !e.racy && (e.kind != file || e.known || e.why != Covered) {
		f.keep(old, old+1)
		return
	}
	n := len(f.fresh)
	f.fresh = append(f.fresh, *e)
	f.extend(stretch{from: n, to: n + 1, fresh: true})
}

// keep notes that entries of last are as they were.
func (f *folder) keep(from, to int) { f.extend(stretch{from: from, to: to}) }

func (f *folder) extend(s stretch) {
	if n := len(f.found); n > 0 && f.found[n-1].sub == nil && f.found[n-1].fresh == s.fresh && f.found[n-1].to == s.from {
		f.found[n-1].to = s.to
		return
	}
	f.found = append(f.found, s)
}

// inside is how a directory is opened below another.
var inside = unix.OpenHow{Flags: look | unix.O_DIRECTORY, Resolve: stay}

// leave closes a directory with its last user.
func (f *folder) leave() {
	if f.users.Add(-1) == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(f.fd), 0, 0)
	}
}

// folder notes a directory and what lies in it; with stop, it only gives up what the directory holds.
func (l *listing) folder(f *folder, stop bool) (err error) {
	f.add(l.last, &f.entry, f.old)
	if f.in != nil {
		if err = errTooMany; !stop {
			f.fd, err = l.open(f)
		}
		f.in.leave()
	}
	if err == nil {
		if !stop {
			err = l.each(f)
		}
		f.leave()
	}
	switch err {
	case errTooMany, unix.EMFILE, unix.ENFILE:
		return err
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // replaced meanwhile
		f.found = nil
	case nil:
	case unix.EXDEV: // the same file system, mounted a second time
		f.failed = OtherFilesystem
	default:
		f.failed = Unreadable
	}
	return nil
}

// each notes everything in an open directory.
func (l *listing) each(f *folder) error {
	if err := l.list(f.fd); err != nil {
		return err
	}
	if l.entries.Add(int64(len(l.names))) > int64(l.place.Limits.Entries) {
		return errTooMany
	}
	for _, at := range l.names {
		if err := l.look(f.fd, at, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if err == unix.ENOENT {
				l.entries.Add(-1) // gone since the names were read
				continue
			}
			return err
		}
		e, old := l.enter(f, l.text[at.from:at.to])
		if l.place.skip != nil && slices.Contains(l.place.skip, e.path) {
			l.entries.Add(-1)
			continue
		}
		_, rel, _ := strings.Cut(e.path, "/")
		name := e.path[len(f.path)+1:]
		switch {
		case l.excluded(rel, name):
			e.why = Excluded
		case e.kind == link && e.target == "":
			var err error
			if e.target, err = readlink(f.fd, name); err != nil {
				e.why = Unreadable
			}
		case e.kind == dir && l.place.Recreatable != nil && strings.HasPrefix(e.path, "0/") && l.recreatable(rel):
			e.why = Recreatable // a node_modules on a volume of its own, too
		case e.kind == dir && e.dev != f.root:
			e.why = OtherFilesystem
		case e.kind == dir && f.depth >= maxDepth:
			e.why = Unreadable
		}
		switch {
		case e.kind != dir || e.why != Covered:
			f.add(l.last, &e, old)
		case l.objects(f, &e, old):
		default:
			sub := &folder{entry: e, in: f, old: old, at: f.at, depth: f.depth + 1, root: f.root}
			f.users.Add(1)
			f.found = append(f.found, stretch{sub: sub})
			l.later(sub)
		}
	}
	return nil
}

// open opens a directory in the one that it was found in.
func (l *listing) open(f *folder) (int, error) {
	name := f.path[len(f.in.path)+1:]
	l.text = append(append(l.text[:0], name...), 0)
	open := func() (int, error) {
		return again(func() (int, error) {
			return l.call(unix.SYS_OPENAT2, f.in.fd, unsafe.Pointer(&l.text[0]), uintptr(unsafe.Pointer(&inside)), unix.SizeofOpenHow, nil)
		})
	}
	fd, err := open()
	readable := err == nil && (f.mode&0o500 == 0o500 || l.place.UID == 0)
	if l.unlock && !readable && (err == nil || err == unix.EACCES) && int(f.uid) == l.place.UID && unix.Fchmodat(f.in.fd, name, f.mode|0o700, 0) == nil {
		if err == nil {
			unix.Close(fd)
		}
		l.locked = append(l.locked, lockedDir{f.path, f.mode})
		fd, err = open()
	}
	if err == nil {
		f.users.Store(1)
	}
	return fd, err
}

// collect fills in the entries of a state: those of last itself, if all are as they were.
func (w *walker) collect(m *manifest) {
	all, count, whole := [][]entry{}, 0, w.last != nil
	var failed []*folder
	var visit func(found []stretch, fresh []entry)
	visit = func(found []stretch, fresh []entry) {
		for _, s := range found {
			switch {
			case s.sub != nil:
				if s.sub.failed != Covered {
					failed = append(failed, s.sub)
				}
				visit(s.sub.found, s.sub.fresh)
				continue
			case s.fresh:
				all, whole = append(all, fresh[s.from:s.to]), false
			default:
				all, whole = append(all, w.last.entries[s.from:s.to]), whole && s.from == count
			}
			count += s.to - s.from
		}
	}
	visit(w.roots, nil)
	if whole && count == len(w.last.entries) && len(failed) == 0 {
		m.entries = w.last.entries
		return
	}
	m.entries = make([]entry, 0, count)
	for _, list := range all {
		m.entries = append(m.entries, list...)
	}
	for _, f := range failed {
		m.find(f.path).why = f.failed
	}
}

func (w *walker) recreatable(rel string) bool {
	w.asks.Lock()
	defer w.asks.Unlock()
	return w.place.Recreatable(w.place.Root + "/" + rel)
}

// objects takes over what the last manifest has of a directory of git's objects that is
// as it was: files there are named by their content and never change. An undo looks at each,
// as what it repairs may have changed them after all.
func (w *walker) objects(f *folder, e *entry, old int) bool {
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
	f.add(w.last, e, old)
	f.keep(old+1, i)
	w.entries.Add(int64(i - old - 1))
	f.at = i
	return true
}

// list reads the names in a directory, in order.
func (l *listing) list(fd int) error {
	if l.dents == nil {
		l.dents = make([]byte, 32<<10)
	}
	l.names, l.text = l.names[:0], l.text[:0]
	for {
		n, err := l.dirents(fd)
		if err != nil || n <= 0 {
			slices.SortFunc(l.names, func(a, b span) int { return bytes.Compare(l.text[a.from:a.to], l.text[b.from:b.to]) })
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
		if len(l.names) > l.place.Limits.Entries {
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
