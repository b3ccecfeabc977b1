package tmpshare

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func newIdentity(dir bool, ino uint64, size, mtime, ctime int64) identity {
	if dir {
		return identity{Ino: ino}
	}
	return identity{Ino: ino, Size: size, MTime: mtime, CTime: ctime}
}

// look is the state of a name, the zero identity if it is not there.
func look(root *os.Root, name string) (identity, fs.FileInfo) {
	fi, err := root.Lstat(name)
	if err != nil {
		return identity{}, nil
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, fi
	}
	return newIdentity(fi.IsDir(), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()), fi
}

// folder is a directory. Names are looked at below its descriptor, or below that of the nearest one
// above it that was opened, which costs one system call each.
type folder struct {
	fd   int
	way  string // to it from the directory that is open, with a slash at its end; "" is that one
	name string // below the shared directory
	buf  []byte // of bases, one for a whole tree
}

func openFolder(root *os.Root) (folder, error) {
	f, err := root.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return folder{}, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return folder{fd: fd, name: ".", buf: make([]byte, 16<<10)}, err
}

// open opens a directory in d; no link on the way is followed.
func (d folder) open(base string) (folder, error) {
	fd := d.fd
	for part := range strings.SplitSeq(d.way+base, "/") {
		next, err := openDir(fd, part)
		if fd != d.fd {
			_ = unix.Close(fd)
		}
		if err != nil {
			return folder{}, err
		}
		fd = next
	}
	return folder{fd: fd, name: d.path(base), buf: d.buf}, nil
}

func openDir(at int, base string) (int, error) {
	for {
		fd, err := unix.Openat(at, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// below is a directory in d that need not be opened, as its names are known.
func (d folder) below(base string) folder {
	return folder{fd: d.fd, way: d.way + base + "/", name: d.path(base), buf: d.buf}
}

func (d folder) close() {
	if d.way == "" {
		_ = unix.Close(d.fd)
	}
}

func (d folder) path(base string) string {
	if d.name == "." {
		return base
	}
	return d.name + "/" + base
}

// bases lists what lies in the directory, one more than the bound if that is not all.
func (d folder) bases() (names []string, err error) {
	for len(names) <= maxNames {
		n, err := unix.Getdents(d.fd, d.buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return names, err
		}
		_, _, names = unix.ParseDirent(d.buf[:n], -1, names)
	}
	return names[:maxNames+1], nil
}

// state is how a name is, not what a link leads to.
type state struct{ unix.Stat_t }

// look fills in the zero state if the name is not there.
func (d folder) look(base string, st *state) {
	if unix.Fstatat(d.fd, d.way+base, &st.Stat_t, unix.AT_SYMLINK_NOFOLLOW) != nil {
		*st = state{}
	}
}

// apiece is how many names are looked at before another thread helps.
const apiece = 128

// lookAll looks at many names, by two threads: with a thousand of them it is what a start of a run
// waits for.
func (d folder) lookAll(bases []string) []state {
	all := make([]state, len(bases))
	look := func(from, to int) {
		for i := from; i < to; i++ {
			d.look(bases[i], &all[i])
		}
	}
	half := len(bases)
	var other sync.WaitGroup
	if half > apiece {
		half /= 2
		other.Go(func() { look(half, len(bases)) })
	}
	look(0, half)
	other.Wait()
	return all
}

// there is false for the state of a name that is gone.
func (st *state) there() bool   { return st.Mode != 0 }
func (st *state) dir() bool     { return st.Mode&unix.S_IFMT == unix.S_IFDIR }
func (st *state) regular() bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }
func (st *state) id() identity {
	return newIdentity(st.dir(), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

// names tells one state of what a directory lists from another: the kernel notes each entry that comes or goes
// in both times, and nobody can set the second.
func (st *state) names() identity {
	return identity{Ino: st.Ino, MTime: st.Mtim.Nano(), CTime: st.Ctim.Nano()}
}

// candidate is a regular file or a directory of the machine's directory.
type candidate struct {
	name  string
	id    identity
	dir   bool
	mtime int64
	names identity // of a directory
}

// stays reports a name that is not copied in either direction.
func (s Share) stays(name string) bool {
	base := filepath.Base(name)
	if strings.HasPrefix(base, ".") {
		return true
	}
	path := filepath.Join(s.Host, name)
	return s.Secret != nil && s.Secret(path) || s.Skip != nil && s.Skip(path)
}

// candidates lists what of the machine's directory can be copied in and is not settled, newest
// first: all of it, or what lies at or below the name only.
func (s Share) candidates(root *os.Root, b *books, only string) []candidate {
	host, err := openFolder(root)
	if err != nil {
		return nil
	}
	defer host.close()
	looks := 0
	var st state
	var tops []candidate // directories, which are looked into when all names beside them were seen
	var walk func(dir folder, bases []string, most *int) []candidate
	below := func(dir folder, c candidate, most *int) []candidate {
		sub, bases, _ := b.list(dir, filepath.Base(c.name), c.names)
		if sub.name == "" {
			return nil
		}
		defer sub.close()
		return walk(sub, bases, most)
	}
	walk = func(dir folder, bases []string, most *int) []candidate {
		var found []candidate
		for _, base := range bases {
			if looks++; looks > maxLooks {
				break
			}
			dir.look(base, &st)
			if !st.there() {
				continue
			}
			name := dir.path(base)
			b.see(name)
			if int(st.Uid) != s.UID {
				continue
			}
			c := candidate{name, st.id(), st.dir(), st.Mtim.Nano(), st.names()}
			file := st.regular() && st.Nlink == 1 && st.Size <= maxIn
			settled := file && b.settled(name, c.id)
			if (file || c.dir) && !settled && s.stays(name) {
				continue
			}
			if most != nil {
				if *most--; *most < 0 {
					return nil
				}
			}
			switch {
			case settled:
			case file:
				found = append(found, c)
			case c.dir && most == nil:
				tops = append(tops, c)
			case c.dir && strings.Count(name, "/") < maxDepth:
				found = append(append(found, c), below(dir, c, most)...)
			}
		}
		return found
	}
	bases := []string{only}
	if only == "" {
		bases, _ = host.bases()
	}
	out := walk(host, bases, nil)
	newest := func(x, y candidate) int { return cmp.Compare(y.mtime, x.mtime) }
	slices.SortFunc(tops, newest)
	for _, c := range tops {
		if b.known(c.name).Large == c.mtime {
			continue
		}
		tree := maxTree
		found := below(host, c, &tree)
		switch {
		case tree < 0:
			e := b.known(c.name) // a small one was copied
			e.Host, e.Large = c.id, c.mtime
			b.set(c.name, e)
		case looks <= maxLooks:
			out = append(append(out, c), found...)
		}
	}
	slices.SortStableFunc(out, newest)
	return out
}

// Copies reports whether the path of the machine's directory is, or will be at the next In, what
// a run finds inside.
func (s Share) Copies(path string) bool {
	name, err := filepath.Rel(s.Host, path)
	if err != nil || strings.HasPrefix(name, "..") {
		return false
	}
	if _, err := os.Lstat(filepath.Join(s.Inside, name)); err == nil || name == "." {
		return true
	}
	host, err := os.OpenRoot(s.Host)
	if err != nil {
		return false
	}
	defer host.Close()
	b := &books{share: s, names: map[string]*record{}}
	if b.published, err = readBook(b.path(everyone), readPublished); err != nil {
		return false
	}
	top, _, _ := strings.Cut(name, "/")
	for _, c := range s.candidates(host, b, top) {
		if c.name == name {
			return !b.another(c.name, c.id)
		}
	}
	return false
}

// openInside opens the directory of the runs, which a run may have replaced: by a link, say. What
// is no directory goes if it is to be made, and nothing leads out of the directory above.
func (s Share) openInside(make bool) (*os.Root, error) {
	above, base := filepath.Split(s.Inside)
	if make {
		if err := os.MkdirAll(above, 0o700); err != nil {
			return nil, err
		}
	}
	parent, err := os.OpenRoot(above)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	fi, err := parent.Lstat(base)
	switch {
	case err == nil && fi.IsDir():
	case !make:
		return nil, errors.Join(err, fs.ErrNotExist)
	default:
		if err == nil {
			_ = parent.Remove(base)
		}
		if err := parent.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return parent.OpenRoot(base)
}

// In copies what is new in the machine's directory, and takes away what is gone there.
func (s Share) In() error {
	host, err := os.OpenRoot(s.Host)
	if err != nil {
		return nil // a machine without it
	}
	defer host.Close()
	inside, err := s.openInside(true)
	if err != nil {
		return err
	}
	defer inside.Close()
	b, err := s.open("in")
	if err != nil {
		return err
	}
	b.arrived(inside)
	list := slices.DeleteFunc(s.candidates(host, b, ""), func(c candidate) bool {
		return b.settled(c.name, c.id) && b.known(c.name).Large == 0
	})
	before, err := b.coming(list)
	if err != nil {
		return errors.Join(err, b.lock.Close())
	}
	left := int64(maxAllIn)
	for i, c := range list {
		id, err := identity{}, error(nil)
		switch {
		case c.dir:
			if left >= 0 {
				err = inside.MkdirAll(c.name, 0o700)
			}
			// A file in it, newer than the directory, may have been copied before.
			fi := os.FileInfo(nil)
			if id, fi = look(inside, c.name); err == nil && (fi == nil || !fi.IsDir()) {
				err = fs.ErrInvalid
			}
		case left < 0:
			err = fs.ErrInvalid
		default:
			if left -= c.id.Size; left < 0 {
				err = fs.ErrInvalid
			} else if id, err = copyFile(host, inside, c.name, maxIn, true); err == nil {
				b.remade(inside, filepath.Dir(c.name))
			}
		}
		switch {
		case err == nil:
			b.set(c.name, entry{Host: c.id, Inside: id, Ours: b.left(c.name, c.id)})
		case errors.Is(err, errSecret):
			before[i].Host = c.id
			fallthrough
		default:
			b.set(c.name, before[i])
		}
		if err != nil && before[i] == (entry{}) {
			b.forget(c.name)
		}
	}
	for _, name := range b.unseen() {
		if now, _ := look(host, name); now != (identity{}) {
			continue
		}
		e := b.known(name)
		if id, fi := look(inside, name); fi == nil || e.Inside == (identity{}) || id == e.Inside && inside.Remove(name) == nil {
			b.forget(name)
		}
	}
	for name, p := range b.published {
		if p.seen {
			continue
		}
		if now, _ := look(host, name); now == (identity{}) {
			b.retract(name)
		}
	}
	return b.close()
}

// Out copies what the runs have left, now that nothing of this one runs any more. A name of
// the machine that is not free keeps its file, unless granted reports that the command was
// permitted to write that very path. Mounted reports a path of Host that the run had
// under its own name; what is left inside is the point of that mount. It returns what stays inside although it was
// changed there.
func (s Share) Out(granted, mounted func(path string) bool) ([]Left, error) {
	inside, err := s.openInside(false)
	if err != nil {
		return nil, nil
	}
	defer inside.Close()
	host, err := os.OpenRoot(s.Host)
	if err != nil {
		return nil, nil
	}
	defer host.Close()
	b, err := s.open("out")
	if err != nil {
		return nil, err
	}
	b.arrived(inside)
	o := outward{share: s, books: b, host: host, inside: inside, granted: granted, mounted: mounted, bytes: maxAllOut}
	if o.there, err = openFolder(host); err != nil {
		return nil, b.close()
	}
	defer o.there.close()
	if top, err := openFolder(inside); err == nil {
		bases, err := top.bases()
		o.walk(top, bases, err, 0)
		top.close()
		o.removed()
	}
	return o.left, b.close()
}

type outward struct {
	share        Share
	books        *books
	host, inside *os.Root
	there        folder // host, to look at what lies in directories that were looked at
	granted      func(string) bool
	mounted      func(string) bool
	bytes        int64
	names        int
	partly       bool // not all names were met
	left         []Left
}

func (o *outward) apart(name, why string) { o.left = append(o.left, Left{name, why}) }

// walk looks at what a directory lists, as far as err let it be read.
func (o *outward) walk(dir folder, bases []string, err error, depth int) {
	if err != nil {
		o.books.seeBelow(dir.name)
	}
	if o.names += len(bases); o.names > maxNames {
		o.partly = true
		bases = bases[:max(0, len(bases)-(o.names-maxNames))]
	}
	states := dir.lookAll(bases)
	for i, base := range bases {
		st := &states[i]
		if !st.there() {
			continue
		}
		name, id := dir.path(base), st.id()
		o.books.see(name)
		e := o.books.known(name)
		if st.regular() && st.Size > 0 && id == e.Inside {
			continue
		}
		if o.share.stays(name) {
			o.books.seeBelow(name)
			continue
		}
		path := filepath.Join(o.share.Host, name)
		switch {
		case st.dir() && depth < maxDepth:
			var there state
			if o.there.look(name, &there); !there.there() {
				// Removed there while the run went on? Then only a file that the run has left brings it back.
				if e.Host == (identity{}) || e.Inside != id {
					if o.host.Mkdir(name, fs.FileMode(st.Mode)&permissions|0o700) != nil {
						continue
					}
					made, _ := look(o.host, name)
					o.books.set(name, entry{Host: made, Inside: id, Ours: true})
					o.books.publish(name, made)
				}
			} else if !there.dir() || int(there.Uid) != o.share.UID {
				continue
			}
			sub, below, err := o.books.list(dir, base, st.names())
			if sub.name == "" {
				o.books.seeBelow(name)
				continue
			}
			o.walk(sub, below, err, depth+1)
			sub.close()
		case o.mounted != nil && o.mounted(path):
			if st.Size == 0 {
				_ = o.inside.Remove(name)
			}
		case st.regular():
			o.file(name, path, id)
		}
	}
}

func (o *outward) file(name, path string, id identity) {
	e := o.books.known(name)
	if id == e.Inside {
		return
	}
	now, there := look(o.host, name)
	free := there == nil
	if free && e.Host != (identity{}) && !e.Ours && id.Size == e.Inside.Size && id.MTime == e.Inside.MTime {
		// The machine has removed what came from it, and the run has written nothing there: another mode or
		// another name for a while makes it no work of the run.
		e.Inside = id
		o.books.set(name, e)
		return
	}
	ours := now == e.Host && e.Host != (identity{}) && (e.Ours || o.granted != nil && o.granted(path))
	switch {
	case !free && !ours:
		if !e.Apart || e.Host != now { // said once
			o.apart(name, "the machine's "+path+" is another file")
		}
		e.Inside, e.Host, e.Apart = id, now, true
		o.books.set(name, e)
		return
	case id.Size > maxOut || id.Size > o.bytes:
		o.apart(name, "it is too large; it is kept in "+filepath.Join(o.share.Inside, name))
		e.Inside = id
		o.books.set(name, e)
		return
	}
	o.bytes -= id.Size
	host, err := copyFile(o.inside, o.host, name, maxOut, !free)
	if err != nil {
		return
	}
	o.books.set(name, entry{Host: host, Inside: id, Ours: e.Ours || free})
	if e.Ours || free {
		o.books.publish(name, host)
	}
}

// removed takes away from the machine's directory what a run has removed of its own, or was
// permitted to remove.
func (o *outward) removed() {
	if o.partly {
		return
	}
	for _, name := range o.books.unseen() {
		e := o.books.known(name)
		if e.Inside == (identity{}) {
			continue
		}
		now, _ := look(o.host, name)
		if now == e.Host && (e.Ours || o.granted != nil && o.granted(filepath.Join(o.share.Host, name))) && o.host.Remove(name) == nil {
			o.books.forget(name)
			o.books.retract(name)
			continue
		}
		// The next run must not find again what this one has removed.
		e.Inside = identity{}
		o.books.set(name, e)
	}
}

var errSecret = errors.New("it holds a private key")

// copyFile copies a regular file to the same name on the other side, under another name
// first, and returns how it is there. Without replace, a name that is taken meanwhile stays.
func copyFile(from, to *os.Root, name string, most int64, replace bool) (identity, error) {
	src, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return identity{}, err
	}
	defer src.Close()
	fi, err := src.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > most {
		return identity{}, errors.Join(err, fs.ErrInvalid)
	}
	head := make([]byte, min(secretBytes, fi.Size()))
	if n, _ := src.ReadAt(head, 0); bytes.Contains(head[:n], []byte("PRIVATE KEY-----")) {
		return identity{}, errSecret
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o700); err != nil {
			return identity{}, err
		}
	}
	tmp := filepath.Join(filepath.Dir(name), ".atip-exec-"+filepath.Base(name))
	if len(filepath.Base(tmp)) > 255 {
		return identity{}, fs.ErrInvalid
	}
	_ = to.Remove(tmp)
	dst, err := to.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return identity{}, err
	}
	_, err = io.Copy(dst, io.LimitReader(src, most))
	if err == nil {
		err = dst.Chmod(fi.Mode() & permissions)
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		_ = to.Chtimes(tmp, fi.ModTime(), fi.ModTime())
		if replace {
			err = to.Rename(tmp, name)
		} else if err = to.Link(tmp, name); err == nil {
			err = to.Remove(tmp)
		}
	}
	if err != nil {
		_ = to.Remove(tmp)
		return identity{}, err
	}
	id, _ := look(to, name)
	return id, nil
}

// Readable lists regular files of the user in the machine's directory, at most so many, newest
// first: what a run without a private root may read of it.
func (s Share) Readable(most int) []string {
	host, err := os.OpenRoot(s.Host)
	if err != nil {
		return nil
	}
	defer host.Close()
	var out []string
	for _, c := range s.candidates(host, &books{names: map[string]*record{}}, "") {
		if len(out) < most && !c.dir && !strings.ContainsRune(c.name, '/') {
			out = append(out, filepath.Join(s.Host, c.name))
		}
	}
	return out
}
