package undo

import (
	"errors"
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

// walker makes the manifest of what is there now.
type walker struct {
	place  *Place
	last   *manifest // with contents; may be nil
	at     int       // how far last was followed
	out    []entry
	racy   int64 // ctime from which a change may be hidden behind the same time
	unlock bool  // make readable what is ours and is not, and put its mode back
	locked []lockedDir
	dents  []byte
	dev    uint64
	err    error
	shared *shared
	parts  []part
}

// shared is what the walkers of a place have in common.
type shared struct {
	entries atomic.Int64
	free    chan []byte // a buffer for names for each further walker that may begin
	mu      sync.Mutex  // what asks the caller
}

// part is a directory that a walker of its own looks at meanwhile.
type part struct {
	at   int // index of its entry
	w    *walker
	done chan error
}

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
	more := min(runtime.GOMAXPROCS(0), maxWalkers) - 1
	w := &walker{place: p, last: last, racy: began.Add(-tick).UnixNano(), unlock: unlock, dents: make([]byte, 64<<10), shared: &shared{free: make(chan []byte, more)}}
	for range more {
		w.shared.free <- make([]byte, 64<<10)
	}
	if last != nil {
		w.out = make([]entry, 0, len(last.entries)+64)
	}
	m := &manifest{header: header{Time: began.UTC(), Roots: p.roots(), Whole: true}}
	for i, root := range p.roots() {
		fd, err := openRoot(root)
		if err != nil {
			return nil, w, &Error{Op: "open", Path: root, Err: err}
		}
		err = w.root(fd, strconv.Itoa(i))
		unix.Close(fd)
		if partErr := w.join(); err == nil {
			err = partErr
		}
		if err == nil {
			err = w.err
		}
		if errors.Is(err, errTooMany) {
			m.Whole = false
			break
		}
		if err != nil {
			return nil, w, &Error{Op: "walk", Path: root, Err: err}
		}
	}
	m.entries, m.Walk = w.out, time.Since(began)
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
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	w.dev = uint64(st.Dev)
	e := w.enter(name, &st)
	w.out = append(w.out, e)
	w.shared.entries.Add(1)
	return w.dir(fd, name, "", 0)
}

// enter makes the entry of a name, with the content that is known of it.
func (w *walker) enter(p string, st *unix.Stat_t) entry {
	e := entry{path: p, mode: uint32(st.Mode) & 0o7777, nlink: uint32(st.Nlink), uid: st.Uid, gid: st.Gid, size: st.Size, dev: uint64(st.Dev), ino: st.Ino,
		mtime: unix.TimespecToNsec(st.Mtim), ctime: unix.TimespecToNsec(st.Ctim)}
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
	if old := w.known(p); old != nil && old.sameStat(&e) {
		if old.kind == link {
			e.target = old.target
		}
		if old.known && !old.racy {
			e.known, e.pack, e.off, e.sum = true, old.pack, old.off, old.sum
			e.racy = false
		}
	}
	return e
}

// known is what the last manifest has under a path; paths come in order.
func (w *walker) known(p string) *entry {
	if w.last == nil {
		return nil
	}
	list := w.last.entries
	if w.at < 0 { // the first one of a part
		w.at, _ = slices.BinarySearchFunc(list, p, func(e entry, p string) int { return compare(e.path, p) })
	}
	for w.at < len(list) {
		c := compare(list[w.at].path, p)
		if c == 0 {
			return &list[w.at]
		}
		if c > 0 {
			return nil
		}
		w.at++
	}
	return nil
}

// dir appends everything below an open directory; rel is its path below its root.
func (w *walker) dir(fd int, p, rel string, depth int) error {
	names, err := w.names(fd)
	if err != nil {
		return err
	}
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if err == unix.ENOENT {
				continue // gone since the names were read
			}
			return err
		}
		if w.shared.entries.Add(1) > int64(w.place.Limits.Entries) {
			return errTooMany
		}
		sub := name
		if rel != "" {
			sub = rel + "/" + name
		}
		e := w.enter(p+"/"+name, &st)
		if w.place.skip != nil && slices.Contains(w.place.skip, e.path) {
			w.shared.entries.Add(-1)
			continue
		}
		switch {
		case w.excluded(sub, name):
			e.why = Excluded
		case e.kind == link && e.target == "":
			if e.target, err = readlink(fd, name); err != nil {
				e.why = Unreadable
			}
		case e.kind == dir && uint64(st.Dev) != w.dev:
			e.why = OtherFilesystem
		case e.kind == dir && depth >= maxDepth:
			e.why = Unreadable
		case e.kind == dir && w.place.Recreatable != nil && strings.HasPrefix(e.path, "0/") && w.recreatable(sub):
			e.why = Recreatable
		}
		if e.kind != dir || e.why != Covered {
			w.out = append(w.out, e)
			continue
		}
		if w.objects(&e) {
			continue
		}
		at := len(w.out)
		w.out = append(w.out, e)
		if err := w.below(fd, name, e.path, sub, depth, &st); err != nil {
			if err == errTooMany || err == unix.EMFILE || err == unix.ENFILE {
				return err
			}
			if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
				for len(w.parts) > 0 && w.parts[len(w.parts)-1].at >= at {
					<-w.parts[len(w.parts)-1].done
					w.parts = w.parts[:len(w.parts)-1]
				}
				w.out = w.out[:at] // replaced meanwhile
				continue
			}
			w.out[at].why = Unreadable
		}
	}
	return nil
}

// below opens and walks a directory in another.
func (w *walker) below(fd int, name, p, rel string, depth int, st *unix.Stat_t) error {
	open := func() (int, error) {
		return again(func() (int, error) {
			return unix.Openat2(fd, name, &unix.OpenHow{Flags: look | unix.O_DIRECTORY, Resolve: stay})
		})
	}
	in, err := open()
	readable := err == nil && (st.Mode&0o500 == 0o500 || w.place.UID == 0)
	if w.unlock && !readable && (err == nil || err == unix.EACCES) && int(st.Uid) == w.place.UID && unix.Fchmodat(fd, name, uint32(st.Mode)&0o7777|0o700, 0) == nil {
		if err == nil {
			unix.Close(in)
		}
		w.locked = append(w.locked, lockedDir{p, uint32(st.Mode) & 0o7777})
		in, err = open()
	}
	if err != nil {
		return err
	}
	if !w.unlock {
		select {
		case dents := <-w.shared.free:
			w.apart(in, p, rel, depth+1, dents)
			return nil
		default:
		}
	}
	defer unix.Close(in)
	return w.dir(in, p, rel, depth+1)
}

// apart has another walker look at an open directory, the entry of which was the last one.
func (w *walker) apart(in int, p, rel string, depth int, dents []byte) {
	sub := &walker{place: w.place, last: w.last, at: -1, racy: w.racy, dents: dents, dev: w.dev, shared: w.shared}
	done := make(chan error, 1)
	w.parts = append(w.parts, part{len(w.out) - 1, sub, done})
	go func() {
		err := sub.dir(in, p, rel, depth)
		unix.Close(in)
		w.shared.free <- dents
		if partErr := sub.join(); err == nil || partErr == errTooMany {
			err = partErr
		}
		done <- err
	}()
}

// join puts what the parts found behind the entries of their directories.
func (w *walker) join() (err error) {
	if len(w.parts) == 0 {
		return nil
	}
	size := len(w.out)
	failed := make([]error, len(w.parts))
	for i, p := range w.parts {
		failed[i] = <-p.done
		size += len(p.w.out)
	}
	out := make([]entry, 0, size)
	from := 0
	for i, p := range w.parts {
		out = append(out, w.out[from:p.at+1]...)
		from = p.at + 1
		switch failed[i] {
		case errTooMany, unix.EMFILE, unix.ENFILE:
			err = failed[i]
			out = append(out, p.w.out...)
		case nil:
			out = append(out, p.w.out...)
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
			out = out[:len(out)-1] // replaced meanwhile
		default:
			out[len(out)-1].why = Unreadable
		}
	}
	w.out, w.parts = append(out, w.out[from:]...), nil
	return err
}

func (w *walker) recreatable(rel string) bool {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	return w.place.Recreatable(w.place.Root + "/" + rel)
}

// objects takes over what the last manifest has of a directory of git's objects that is
// as it was: files there are named by their content and never change. An undo looks at each,
// as what it repairs may have changed them after all.
func (w *walker) objects(e *entry) bool {
	parent, name := path.Split(e.path)
	if !strings.HasSuffix(parent, "/objects/") || len(name) != 2 && name != "pack" || w.last == nil || w.unlock || e.ctime >= w.racy {
		return false
	}
	old := w.known(e.path)
	if old == nil || !old.sameStat(e) || old.ctime >= w.last.Time.Add(-tick).UnixNano() {
		return false
	}
	list, i := w.last.entries, w.at
	for i++; i < len(list) && strings.HasPrefix(list[i].path, e.path+"/"); i++ {
		if o := &list[i]; o.kind != file || o.why != Covered || !o.known {
			return false
		}
	}
	w.out = append(w.out, *e)
	w.out = append(w.out, list[w.at+1:i]...)
	w.shared.entries.Add(int64(i - w.at - 1))
	w.at = i
	return true
}

// names lists a directory in order.
func (w *walker) names(fd int) ([]string, error) {
	var names []string
	for {
		n, err := unix.Getdents(fd, w.dents)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			slices.Sort(names)
			return names, err
		}
		for rest := w.dents[:n]; len(rest) > 0; {
			d := (*unix.Dirent)(unsafe.Pointer(&rest[0]))
			raw := rest[unsafe.Offsetof(d.Name):d.Reclen]
			rest = rest[d.Reclen:]
			name := unix.ByteSliceToString(raw)
			if name != "." && name != ".." {
				names = append(names, name)
			}
		}
		if len(names) > w.place.Limits.Entries {
			return nil, errTooMany
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
