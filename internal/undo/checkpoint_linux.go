package undo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bigSize   = 64 << 10 // from here on a content is a file of its own
	indexSize = sha256.Size + 24
	spare     = 64 << 20 // bytes that a checkpoint leaves on the disk
)

// Survey says what a checkpoint would cover now, and reads no content. A checkpoint that is made at once
// afterwards need not look at the workspace again.
func (s *Store) Survey() (Coverage, *Look, error) {
	last, newest := s.last()
	m, w, err := walk(&s.place, last, false)
	if err != nil {
		return Coverage{}, nil, err
	}
	look := &Look{last: last, newest: newest, found: m, walker: w, ended: time.Now()}
	fresh := s.choose(m, last)
	c := Coverage{Known: true, Whole: m.Whole, Losses: m.losses(), Took: m.Walk}
	for _, i := range fresh {
		c.New += m.entries[i].size
	}
	return c, look, nil
}

// Look is what a survey has found.
type Look struct {
	last   *manifest // by which it was found
	newest uint64    // of the store then
	found  *manifest
	walker *walker
	ended  time.Time
}

// lookLasts is how long after a survey its look stands for one at the start of the run. What others change
// in between counts as the run's, as it does while a workspace is looked at.
const lookLasts = 100 * time.Millisecond

// Drop gives back what the look holds, which may be much.
func (l *Look) Drop() {
	if l != nil {
		*l = Look{}
	}
}

// Take hands over the look of a survey for the next checkpoint, nil for none.
func (s *Store) Take(l *Look) { s.look = l }

// looked returns the look that was taken, nil if it cannot stand for one now.
func (s *Store) looked() *Look {
	l := s.look
	s.look = nil
	if l == nil || time.Since(l.ended) > lookLasts {
		return nil
	}
	if all := s.seqs(); len(all) > 0 && all[len(all)-1] != l.newest || len(all) == 0 && l.newest != 0 {
		return nil // another run was here
	}
	return l
}

// Survey says what a checkpoint of a workspace would cover now. It makes no store.
func Survey(p Place) (Coverage, *Look, error) {
	s, err := Open(p, false)
	if errors.Is(err, os.ErrNotExist) {
		s, err = &Store{place: p}, nil
	}
	if err != nil {
		return Coverage{}, nil, err
	}
	defer s.Close()
	return s.Survey()
}

// Bounds of a lazy checkpoint.
const (
	slowWalk = 50 * time.Millisecond
	young    = time.Minute
)

// recent is the newest state with contents, if it is young and took long to make.
func (s *Store) recent() *Checkpoint {
	all := s.seqs()
	for i := len(all) - 1; i >= 0; i-- {
		info, err := os.Lstat(filepath.Join(s.dir, "manifest", seqName(all[i])))
		if err != nil || time.Since(info.ModTime()).Abs() > young {
			return nil
		}
		h, _, err := s.read(all[i])
		if err != nil {
			return nil
		}
		if !h.Stat {
			if h.Walk <= slowWalk {
				return nil
			}
			return &Checkpoint{Seq: h.Seq, Whole: false, Took: h.Walk, Made: h.Time, Shared: true}
		}
	}
	return nil
}

// losses lists what the state does not hold.
func (m *manifest) losses() []Loss {
	var out []Loss
	for i := range m.entries {
		if e := &m.entries[i]; e.why.loses() {
			out = append(out, Loss{Path: m.abs(e.path), Why: e.why, Size: e.size})
		}
	}
	return out
}

// choose marks what is beyond the limits and returns the entries whose content has to be
// copied. Of too many bytes the largest files are left out, so that the fewest are.
func (s *Store) choose(m, last *manifest) []int {
	if m.shares(last) {
		return nil // all that was to be kept is
	}
	var fresh []int
	var total, all int64
	l := s.place.Limits
	for i := range m.entries {
		e := &m.entries[i]
		if e.kind != file || e.why != Covered {
			continue
		}
		if e.known {
			all += e.size
			continue
		}
		if e.size > l.File && !inObjects(e.path) {
			e.why = TooLarge
			continue
		}
		fresh = append(fresh, i)
		total += e.size
	}
	room := min(l.New, l.Bytes-all)
	var st unix.Statfs_t
	if unix.Statfs(s.place.Base, &st) == nil {
		room = min(room, int64(st.Bavail)*st.Bsize-spare)
	}
	if total > room {
		bySize := slices.Clone(fresh)
		slices.SortStableFunc(bySize, func(a, b int) int {
			switch x, y := m.entries[a].size, m.entries[b].size; {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		for _, i := range bySize {
			if total <= room {
				break
			}
			if e := &m.entries[i]; e.size > 0 {
				e.why = OverLimit
				total -= e.size
			}
		}
		fresh = slices.DeleteFunc(fresh, func(i int) bool { return m.entries[i].why != Covered })
	}
	return fresh
}

func inObjects(p string) bool { return strings.Contains(p, "/objects/") }

// Checkpoint saves what the workspace is now; if that is what it was at the last one, that
// one stands for it.
func (s *Store) Checkpoint() (*Checkpoint, error) {
	m, _, err := s.checkpoint(false)
	if err != nil {
		return nil, err
	}
	return &Checkpoint{Seq: m.Seq, Losses: m.losses(), Whole: m.Whole, Took: m.Walk, Made: m.Time}, nil
}

func (s *Store) checkpoint(unlock bool) (*manifest, *walker, error) {
	look := s.looked()
	if look == nil || unlock {
		look = &Look{}
		look.last, look.newest = s.last()
		var err error
		if look.found, look.walker, err = walk(&s.place, look.last, unlock); err != nil {
			return nil, look.walker, err
		}
	}
	last, m, w := look.last, look.found, look.walker
	m.Seq = look.newest + 1
	fresh := s.choose(m, last)
	if len(fresh) == 0 && last != nil && m.equals(last) {
		m.Seq, m.Base, m.Git = last.Seq, last.Base, last.Git
		now := time.Now()
		os.Chtimes(filepath.Join(s.dir, "manifest", seqName(m.Seq)), now, now) // it counts from now on
		return m, w, nil
	}
	c := &copier{store: s, m: m, unlock: unlock, hash: sha256.New()}
	if err := c.run(fresh); err != nil {
		c.abandon()
		return nil, w, &Error{Op: "copy", Path: s.dir, Err: err}
	}
	if last != nil && m.equals(last) {
		c.abandon()
		m.Seq, m.Base, m.Git = last.Seq, last.Base, last.Git
		return m, w, nil
	}
	if err := c.commit(); err != nil {
		c.abandon()
		return nil, w, &Error{Op: "copy", Path: s.dir, Err: err}
	}
	m.Git = gitStates(m, last)
	if err := s.save(m, last, !s.place.unsynced); err != nil {
		return nil, w, &Error{Op: "save", Path: s.dir, Err: err}
	}
	c.index()
	return m, w, nil
}

// equals reports whether two states say the same in every respect.
func (m *manifest) equals(o *manifest) bool {
	return m.Whole == o.Whole && slices.Equal(m.Roots, o.Roots) && (m.shares(o) || slices.Equal(m.entries, o.entries))
}

// shares reports whether a walk has found nothing but what another state has.
func (m *manifest) shares(o *manifest) bool {
	return o != nil && len(m.entries) == len(o.entries) && len(m.entries) > 0 && &m.entries[0] == &o.entries[0]
}

// copier brings contents into the store.
type copier struct {
	store  *Store
	m      *manifest
	unlock bool
	hash   hash.Hash
	buf    []byte

	have   map[[sha256.Size]byte]place // small contents of the index
	seen   map[[sha256.Size]byte]place // of this checkpoint
	added  []place
	pack   *os.File
	out    *bufio.Writer
	off    int64
	bigs   []string // digests of new big contents, still under a name of their own
	cloned bool     // reflinks do not work here
	roots  map[string]int
}

// place is where a small content lies.
type place struct {
	sum       [sha256.Size]byte
	pack      uint64
	off, size int64
}

func (c *copier) run(fresh []int) error {
	if len(fresh) == 0 {
		return nil
	}
	c.have, c.seen, c.roots = c.store.readIndex(), map[[sha256.Size]byte]place{}, map[string]int{}
	defer func() {
		for _, fd := range c.roots {
			unix.Close(fd)
		}
	}()
	c.buf = make([]byte, 256<<10)
	for i, root := range c.m.Roots {
		fd, err := openRoot(root)
		if err != nil {
			return err
		}
		c.roots[strconv.Itoa(i)] = fd
	}
	for _, i := range fresh {
		if err := c.one(&c.m.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// one copies the content of an entry. A file that changes meanwhile is read once more.
func (c *copier) one(e *entry) error {
	for try := 0; ; try++ {
		again, err := c.attempt(e)
		if err != nil || !again {
			return err
		}
		if try == 1 {
			e.why, e.known = Torn, false
			return nil
		}
	}
}

// errSource marks an error of the workspace, which costs one file, not the checkpoint.
type errSource struct{ error }

func (e errSource) Unwrap() error { return e.error }

func (c *copier) attempt(e *entry) (again bool, err error) {
	f, before, err := c.open(e)
	if err != nil {
		e.why = Unreadable
		if err == unix.ENOENT {
			e.why = Torn
		}
		return false, nil
	}
	defer f.Close()
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		e.why = Torn
		return false, nil
	}
	restat(e, &before)
	c.hash.Reset()
	var found error
	if e.size < bigSize {
		found = c.small(f, e)
	} else {
		found = c.big(f, e)
	}
	var src errSource
	if found != nil && !errors.As(found, &src) {
		return false, found
	}
	var after unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &after); err != nil || found != nil && !errors.Is(found, io.ErrUnexpectedEOF) {
		e.why, e.known = Unreadable, false
		return false, nil
	}
	if found != nil || after.Size != before.Size || after.Mtim != before.Mtim || !c.unlock && after.Ctim != before.Ctim {
		return true, nil
	}
	return false, nil
}

func restat(e *entry, st *unix.Stat_t) {
	e.size, e.ino, e.dev, e.nlink = st.Size, st.Ino, uint64(st.Dev), uint32(st.Nlink)
	e.mtime, e.ctime = unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim)
	e.sparse = st.Blocks*512 < st.Size
	e.racy = e.racy || time.Now().Add(-tick).UnixNano() <= e.ctime
}

// open opens the file of an entry below its root, whatever its directories have become.
func (c *copier) open(e *entry) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	root, rel, _ := strings.Cut(e.path, "/")
	how := &unix.OpenHow{Flags: look, Resolve: stay}
	fd, err := again(func() (int, error) { return unix.Openat2(c.roots[root], rel, how) })
	if err == unix.EACCES && c.unlock && int(e.uid) == c.store.place.UID {
		fd, err = c.openLocked(root, rel, e.mode)
	}
	if err != nil {
		return nil, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, st, err
	}
	return os.NewFile(uintptr(fd), rel), st, nil
}

// openLocked opens a file that its owner may not read and gives it its mode back.
func (c *copier) openLocked(root, rel string, mode uint32) (int, error) {
	at, err := again(func() (int, error) {
		return unix.Openat2(c.roots[root], filepath.Dir(rel), &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: stay})
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	name := filepath.Base(rel)
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, unix.EACCES
	}
	if err := unix.Fchmodat(at, name, mode|0o400, 0); err != nil {
		return -1, err
	}
	defer unix.Fchmodat(at, name, mode, 0)
	return again(func() (int, error) { return unix.Openat2(at, name, &unix.OpenHow{Flags: look, Resolve: stay}) })
}

// small appends a content to the pack, unless it lies in one already.
func (c *copier) small(f *os.File, e *entry) error {
	data := c.buf[:e.size]
	if _, err := io.ReadFull(f, data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return errSource{err}
	}
	sum := sha256.Sum256(data)
	p, ok := c.have[sum]
	if !ok {
		p, ok = c.seen[sum]
	}
	if !ok {
		if c.pack == nil {
			var err error
			if c.pack, err = os.OpenFile(c.packName()+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600); err != nil {
				return err
			}
			c.out = bufio.NewWriterSize(c.pack, 1<<20)
		}
		if _, err := c.out.Write(data); err != nil {
			return err
		}
		p = place{sum: sum, pack: c.m.Seq, off: c.off, size: e.size}
		c.off += e.size
		c.seen[sum], c.added = p, append(c.added, p)
	}
	e.known, e.pack, e.off, e.sum = true, p.pack, p.off, sum
	return nil
}

func (c *copier) packName() string { return filepath.Join(c.store.dir, "pack", seqName(c.m.Seq)) }

// big makes a content a file of its own, by a reflink where the file system has them: the
// clone is hashed, so it holds what was hashed.
func (c *copier) big(f *os.File, e *entry) error {
	dir := filepath.Join(c.store.dir, "big")
	tmp := filepath.Join(dir, seqName(c.m.Seq)+".tmp")
	out, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if !c.cloned && unix.IoctlFileClone(int(out.Fd()), int(f.Fd())) == nil {
		if _, err := io.CopyBuffer(c.hash, struct{ io.Reader }{out}, c.buf); err != nil {
			return err
		}
	} else {
		c.cloned = true
		n := int64(0)
		for n < e.size {
			k, err := f.Read(c.buf[:min(int64(len(c.buf)), e.size-n)])
			if k > 0 {
				c.hash.Write(c.buf[:k])
				n += int64(k)
				if e.sparse && zero(c.buf[:k]) {
					if _, err := out.Seek(int64(k), io.SeekCurrent); err != nil {
						return err
					}
				} else if _, err := out.Write(c.buf[:k]); err != nil {
					return err
				}
			}
			if err == io.EOF {
				return errSource{io.ErrUnexpectedEOF}
			}
			if err != nil {
				return errSource{err}
			}
		}
		if err := out.Truncate(n); err != nil {
			return err
		}
	}
	c.hash.Sum(e.sum[:0])
	e.known, e.pack, e.off = true, 0, 0
	name := hex.EncodeToString(e.sum[:])
	if c.store.hasBig(name) || slices.Contains(c.bigs, name) {
		return os.Remove(tmp)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name+".new")); err != nil {
		return err
	}
	c.bigs = append(c.bigs, name)
	return nil
}

func zero(b []byte) bool {
	return len(b) > 0 && b[0] == 0 && bytes.Equal(b[:len(b)-1], b[1:])
}

func (s *Store) hasBig(name string) bool {
	for _, suffix := range [...]string{"", compressed} {
		if _, err := os.Lstat(filepath.Join(s.dir, "big", name+suffix)); err == nil {
			return true
		}
	}
	return false
}

// compressed ends the name of a content that was compressed since.
const compressed = ".zst"

// commit makes sure that the contents outlast the machine, and gives them their names.
func (c *copier) commit() error {
	if c.pack != nil {
		if err := c.out.Flush(); err != nil {
			return err
		}
	}
	switch {
	case c.store.place.unsynced:
	case len(c.bigs) > 2:
		d, err := os.Open(c.store.dir)
		if err != nil {
			return err
		}
		err = unix.Syncfs(int(d.Fd()))
		d.Close()
		if err != nil {
			return err
		}
	default:
		for _, name := range c.bigs {
			if err := syncFile(filepath.Join(c.store.dir, "big", name+".new")); err != nil {
				return err
			}
		}
		if c.pack != nil {
			if err := unix.Fdatasync(int(c.pack.Fd())); err != nil {
				return err
			}
		}
	}
	for _, name := range c.bigs {
		at := filepath.Join(c.store.dir, "big", name)
		if err := os.Rename(at+".new", at); err != nil {
			return err
		}
	}
	if len(c.bigs) > 0 {
		if err := syncDir(filepath.Join(c.store.dir, "big")); err != nil {
			return err
		}
	}
	if c.pack == nil {
		return nil
	}
	if err := c.pack.Close(); err != nil {
		return err
	}
	c.pack = nil
	if err := os.Rename(c.packName()+".tmp", c.packName()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(c.packName()))
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fdatasync(int(f.Fd()))
}

// abandon removes what an unfinished checkpoint has written.
func (c *copier) abandon() {
	if c.pack != nil {
		c.pack.Close()
	}
	os.Remove(c.packName() + ".tmp")
	for _, name := range c.bigs {
		os.Remove(filepath.Join(c.store.dir, "big", name+".new"))
	}
	os.Remove(filepath.Join(c.store.dir, "big", seqName(c.m.Seq)+".tmp"))
}

// index remembers where the small contents of a finished checkpoint lie. It is a hint: what
// it lacks is copied once more.
func (c *copier) index() {
	if len(c.added) == 0 {
		return
	}
	out := make([]byte, 0, len(c.added)*indexSize)
	for _, p := range c.added {
		out = append(out, p.sum[:]...)
		for _, v := range [...]uint64{p.pack, uint64(p.off), uint64(p.size)} {
			out = binary.BigEndian.AppendUint64(out, v)
		}
	}
	f, err := os.OpenFile(filepath.Join(c.store.dir, "index"), os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		f.WriteAt(out, info.Size()/indexSize*indexSize)
	}
}

// readIndex reads where small contents lie, as far as their packs are still there.
func (s *Store) readIndex() map[[sha256.Size]byte]place {
	raw, err := readSmall(filepath.Join(s.dir, "index"), 256<<20)
	if err != nil {
		return nil
	}
	sizes := map[uint64]int64{}
	out := make(map[[sha256.Size]byte]place, len(raw)/indexSize)
	for ; len(raw) >= indexSize; raw = raw[indexSize:] {
		p := place{sum: [sha256.Size]byte(raw[:sha256.Size]), pack: binary.BigEndian.Uint64(raw[sha256.Size:]),
			off: int64(binary.BigEndian.Uint64(raw[sha256.Size+8:])), size: int64(binary.BigEndian.Uint64(raw[sha256.Size+16:]))}
		length, ok := sizes[p.pack]
		if !ok {
			length = -1
			if info, err := os.Lstat(filepath.Join(s.dir, "pack", seqName(p.pack))); err == nil {
				length = info.Size()
			}
			sizes[p.pack] = length
		}
		if p.off >= 0 && p.size >= 0 && p.off+p.size <= length {
			out[p.sum] = p
		}
	}
	return out
}

// Before saves the state before a run. A lazy one is content with a checkpoint of the last
// minute if looking at the workspace takes long.
func (s *Store) Before(r Run, lazy bool) (*Checkpoint, error) {
	if lazy {
		if c := s.recent(); c != nil {
			r.Before, r.Time, r.Shared = c.Seq, time.Now().UTC(), true
			return c, s.note(r)
		}
	}
	c, err := s.Checkpoint()
	if err != nil {
		return nil, err
	}
	r.Before, r.Time, r.Lost = c.Seq, time.Now().UTC(), len(c.Losses)
	if err := s.note(r); err != nil {
		return nil, &Error{Op: "save", Path: s.dir, Err: err}
	}
	return c, nil
}

// After notes the state after a run, without contents: by it the changes of others are told
// apart, and what the run changed is known.
func (s *Store) After(run string, before uint64) (Counts, error) {
	last, newest := s.last()
	base, err := last, error(nil)
	if last == nil || last.Seq != before {
		if base, err = s.load(before); err != nil {
			return Counts{}, err
		}
	}
	m, _, err := walk(&s.place, last, false)
	if err != nil {
		return Counts{}, err
	}
	s.choose(m, last)
	if m.shares(last) {
		m.Git = last.Git
	} else {
		m.Git = gitStates(m, last)
	}
	n := count(changes(base, m), base, m)
	seq := uint64(0)
	if last != nil && m.equals(last) {
		seq = last.Seq
	} else {
		m.Seq, m.Stat, seq = newest+1, true, newest+1
		if err := s.save(m, last, false); err != nil {
			return n, &Error{Op: "save", Path: s.dir, Err: err}
		}
	}
	return n, s.note(Run{Run: run, Time: time.Now().UTC(), After: seq, Counts: &n})
}
