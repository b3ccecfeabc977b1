package tmpshare

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// books are the records of one workspace, and of all.
type books struct {
	share     Share
	lock      *os.File
	names     map[string]*record      // of this workspace, by path below the directory
	published map[string]*publication // of all
	// What has changed since it was read.
	namesChanged, publishedChanged bool

	lists *lists // nil is none
}

// record is an entry, and whether this pass has met the name.
type record struct {
	entry
	seen bool
}

type publication struct {
	published
	seen bool
}

// open reads the records, and what the directories listed when this side was walked last.
func (s Share) open(side string) (*books, error) {
	lock, err := s.openLock()
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(s.Books, 0o700); err == nil {
			lock, err = s.openLock()
		}
	}
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			break
		}
		if try == 500 {
			lock.Close()
			return nil, err
		}
		time.Sleep(2 * time.Millisecond)
	}
	b := &books{share: s, lock: lock}
	if b.names, err = readBook(b.path(s.ID), readNames); err == nil {
		b.published, err = readBook(b.path(everyone), readPublished)
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	b.lists = readLists(b.path(s.ID + "-" + side))
	return b, nil
}

// coming notes which copies are about to be made. It is on the disk before the first of them: a
// wrapper that is killed between, or a disk that is full, must not leave copies that the next pass
// takes for something that a run has made, and brings back what the machine has removed.
func (b *books) coming(list []candidate) (before []entry, err error) {
	for _, c := range list {
		e := b.known(c.name)
		before = append(before, e)
		if e == (entry{}) {
			e.Host = c.id
		}
		e.Coming = true
		b.set(c.name, e)
	}
	return before, b.save()
}

// remade notes the directories that a copy needed and a run had removed.
func (b *books) remade(inside *os.Root, dir string) {
	for ; dir != "."; dir = filepath.Dir(dir) {
		if e := b.known(dir); e != (entry{}) {
			e.Inside, _ = look(inside, dir)
			b.set(dir, e)
		}
	}
}

// arrived ends what a pass that was cut short has noted, of which nothing is known but what lies inside.
func (b *books) arrived(inside *os.Root) {
	for name, r := range b.names {
		if !r.Coming {
			continue
		}
		r.Coming, b.namesChanged = false, true
		id, there := look(inside, name)
		switch {
		case there != nil:
			r.Inside = id
		case r.Inside == (identity{}):
			delete(b.names, name)
		}
	}
}

func (s Share) openLock() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.Books, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// everyone names the record of what the runs of all workspaces have published.
const everyone = "published"

func (b *books) path(name string) string { return filepath.Join(b.share.Books, name+".book") }

// set keeps what is known of a name that this pass has met.
func (b *books) set(name string, e entry) {
	r := b.names[name]
	if r == nil {
		r = new(record)
		b.names[name] = r
	}
	r.seen = true
	if r.entry != e {
		r.entry, b.namesChanged = e, true
	}
}

// known is what was recorded of a name; the zero entry, if nothing was.
func (b *books) known(name string) entry {
	if r := b.names[name]; r != nil {
		return r.entry
	}
	return entry{}
}

func (b *books) forget(name string) {
	delete(b.names, name)
	b.namesChanged = true
}

func (b *books) publish(name string, host identity) {
	b.published[name] = &publication{published{b.share.ID, host}, true}
	b.publishedChanged = true
}

func (b *books) retract(name string) {
	if _, ok := b.published[name]; ok {
		delete(b.published, name)
		b.publishedChanged = true
	}
}

// see notes that a name is there.
func (b *books) see(name string) {
	if r := b.names[name]; r != nil {
		r.seen = true
	}
	if p := b.published[name]; p != nil {
		p.seen = true
	}
}

// seeBelow notes that what lies in a directory was not looked at, so that none of it counts as gone.
func (b *books) seeBelow(dir string) {
	for name, r := range b.names {
		r.seen = r.seen || dir == "." || strings.HasPrefix(name, dir+"/")
	}
}

// another reports what a run of another workspace has left.
func (b *books) another(name string, host identity) bool {
	p := b.published[name]
	return p != nil && p.ID != b.share.ID && p.Host == host
}

// left reports what a run of this workspace has left, also when its directory was removed since.
func (b *books) left(name string, host identity) bool {
	p := b.published[name]
	return p != nil && p.ID == b.share.ID && p.Host == host
}

// settled reports a state of a name with which In has nothing to do: it was copied, or a run of
// another workspace has left it.
func (b *books) settled(name string, host identity) bool {
	r := b.names[name]
	return r != nil && r.Host == host || b.another(name, host)
}

// unseen lists the known names that this pass has not met, what lies in a directory before the
// directory.
func (b *books) unseen() []string {
	var out []string
	for name, r := range b.names {
		if !r.seen {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(x, y string) int { return strings.Compare(y, x) })
	return out
}

// close keeps what has changed.
func (b *books) close() error {
	defer b.lock.Close()
	b.lists.save()
	return b.save()
}

func (b *books) save() (err error) {
	if b.namesChanged {
		raw := start(len(b.names))
		for name, r := range b.names {
			raw = appendText(raw, name)
			raw = appendIdentity(appendIdentity(raw, r.Host), r.Inside)
			raw = appendNumbers(raw, flag(r.Ours, 1)|flag(r.Apart, 2)|flag(r.Coming, 4), r.Large)
		}
		if err = writeBook(b.path(b.share.ID), raw); err == nil {
			b.namesChanged = false
		}
	}
	if b.publishedChanged {
		raw := start(len(b.published))
		for name, p := range b.published {
			raw = appendIdentity(appendText(appendText(raw, name), p.ID), p.Host)
		}
		err = errors.Join(err, writeBook(b.path(everyone), raw))
	}
	return err
}

// damaged is a record that says nothing for certain. It does not count as empty: what the machine has
// removed would come back, and what a run has left would count as another's. Nothing is copied
// until the user has put it away.
type damaged struct{ path, why string }

func (d damaged) Error() string {
	return "the record " + d.path + " is damaged (" + d.why + "), so that no file was copied or removed; move it away to begin a new one"
}

// readBook reads a record; one that does not exist is empty.
func readBook[T any](path string, parse func([]byte) (map[string]T, bool)) (map[string]T, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return map[string]T{}, nil
	case errors.Is(err, syscall.ELOOP):
		return nil, damaged{path, "it is a link"}
	case err != nil:
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, damaged{path, "it is no regular file"}
	case fi.Size() > maxBook:
		return nil, damaged{path, "it is too large"}
	}
	raw := make([]byte, fi.Size())
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, err
	}
	names, ok := parse(raw)
	if !ok {
		return nil, damaged{path, "its content is cut off, changed or of another version"}
	}
	return names, nil
}

// writing is called before a book is written, by tests.
var writing func() error

func writeBook(path string, raw []byte) error {
	if writing != nil {
		if err := writing(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// A book is a list of numbers and of names that carry their length: every run reads it twice, and
// with a thousand names JSON would take longer than the start of the run.
const bookVersion = 1

func start(count int) []byte {
	return appendNumbers(make([]byte, 0, 128*(count+1)), bookVersion, int64(count))
}

func appendNumbers(raw []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		raw = binary.AppendVarint(raw, n)
	}
	return raw
}

func appendText(raw []byte, s string) []byte { return append(appendNumbers(raw, int64(len(s))), s...) }

func appendIdentity(raw []byte, id identity) []byte {
	return appendNumbers(raw, int64(id.Ino), id.Size, id.MTime, id.CTime)
}

func flag(on bool, bit int64) int64 {
	if on {
		return bit
	}
	return 0
}

// reader reads a book; after anything that is not one, it is broken and answers zeros.
type reader struct {
	raw    []byte
	text   string // the same, of which names are parts
	broken bool
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.raw)
	if size <= 0 {
		r.broken, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[size:]
	return n
}

func (r *reader) name() string {
	n := r.number()
	if n < 0 || n > int64(len(r.raw)) {
		r.broken, r.raw = true, nil
		return ""
	}
	at := len(r.text) - len(r.raw)
	r.raw = r.raw[n:]
	return r.text[at : at+int(n)]
}

func (r *reader) identity() identity {
	return identity{Ino: uint64(r.number()), Size: r.number(), MTime: r.number(), CTime: r.number()}
}

// open reads the head and returns how many entries follow.
func (r *reader) open(raw []byte) int {
	r.raw, r.text = raw, string(raw)
	version, count := r.number(), r.number()
	if version != bookVersion || count < 0 || count > int64(len(raw))/6 { // the shortest entry has six numbers
		r.broken = true
		return 0
	}
	return int(count)
}

// whole reports whether the book was read to its end, and nothing follows.
func (r *reader) whole() bool { return !r.broken && len(r.raw) == 0 }

func readNames(raw []byte) (map[string]*record, bool) {
	var r reader
	all := make([]record, r.open(raw))
	names := make(map[string]*record, len(all))
	for i := range all {
		name := r.name()
		e := entry{Host: r.identity(), Inside: r.identity()}
		flags := r.number()
		e.Ours, e.Apart, e.Coming, e.Large = flags&1 != 0, flags&2 != 0, flags&4 != 0, r.number()
		all[i].entry = e
		names[name] = &all[i]
	}
	return names, r.whole() && len(names) == len(all)
}

func readPublished(raw []byte) (map[string]*publication, bool) {
	var r reader
	all := make([]publication, r.open(raw))
	names := make(map[string]*publication, len(all))
	for i := range all {
		name := r.name()
		all[i].published = published{ID: r.name(), Host: r.identity()}
		names[name] = &all[i]
	}
	return names, r.whole() && len(names) == len(all)
}
