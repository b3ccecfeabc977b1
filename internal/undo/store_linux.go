package undo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Store is the open, locked store of one workspace.
type Store struct {
	place Place
	dir   string
	lock  *os.File
	look  *Look // for the next checkpoint
}

// Named is the name of a workspace's store: of its user, identity and path.
func named(uid int, root string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return "", err
	}
	return digestName(uid, uint64(st.Dev), st.Ino, root), nil
}

func digestName(uid int, dev, ino uint64, root string) string {
	var id [24]byte
	binary.LittleEndian.PutUint64(id[:], uint64(uid))
	binary.LittleEndian.PutUint64(id[8:], dev)
	binary.LittleEndian.PutUint64(id[16:], ino)
	sum := sha256.Sum256(append(id[:], root...))
	return hex.EncodeToString(sum[:8])
}

// lockWait is how long a run waits for another that makes a checkpoint.
const lockWait = 10 * time.Second

// Open locks the store of a workspace and makes it if create says so. A store that others
// could have written is refused.
func Open(p Place, create bool) (*Store, error) {
	if p.Base == "" || p.Root == "" {
		return nil, &Error{Op: "open", Err: errNotOurs}
	}
	if create {
		if err := makeBase(p.Base); err != nil {
			return nil, &Error{Op: "make", Path: p.Base, Err: err}
		}
	}
	if err := private(p.Base, p.UID); err != nil {
		return nil, &Error{Op: "open", Path: p.Base, Err: err}
	}
	name, err := named(p.UID, p.Root)
	if err != nil {
		return nil, &Error{Op: "look at", Path: p.Root, Err: err}
	}
	s := &Store{place: p, dir: filepath.Join(p.Base, name)}
	if _, err := os.Lstat(s.dir); errors.Is(err, os.ErrNotExist) {
		if moved := s.moved(); moved != "" {
			// The same directory under another path, or another directory at the same path.
			if err := os.Rename(moved, s.dir); err != nil {
				return nil, &Error{Op: "move", Path: moved, Err: err}
			}
			create = true
		}
	}
	if create {
		if err := s.make(); err != nil {
			return nil, &Error{Op: "make", Path: s.dir, Err: err}
		}
	}
	if err := private(s.dir, p.UID); err != nil {
		code := ""
		if errors.Is(err, os.ErrNotExist) {
			code = codeNothing
		}
		return nil, &Error{Op: "open", Path: s.dir, Err: err, code: code}
	}
	fd, err := unix.Open(filepath.Join(s.dir, "lock"), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, &Error{Op: "lock", Path: s.dir, Err: err}
	}
	s.lock = os.NewFile(uintptr(fd), "lock")
	for end := time.Now().Add(lockWait); ; time.Sleep(2 * time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return s, nil
		}
		if err != unix.EINTR && err != unix.EWOULDBLOCK || time.Now().After(end) {
			s.lock.Close()
			return nil, &Error{Op: "lock", Path: s.dir, Err: errBusy, code: codeBusy}
		}
	}
}

// Close unlocks the store.
func (s *Store) Close() {
	if s != nil && s.lock != nil {
		s.lock.Close()
	}
}

// makeBase makes the directory of the stores; those above it have the usual mode.
func makeBase(base string) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(base)), 0o755); err != nil {
		return err
	}
	return os.MkdirAll(base, 0o700)
}

// private refuses a directory that is a link, another user's or open to others.
func private(dir string, uid int) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != uid || st.Mode&0o077 != 0 {
		return errNotOurs
	}
	return nil
}

func (s *Store) make() error {
	for _, d := range [...]string{"", "manifest", "pack", "big"} {
		if err := os.Mkdir(filepath.Join(s.dir, d), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(s.place.Root, &st); err != nil {
		return err
	}
	want := Workspace{V: 1, Root: s.place.Root, Dev: uint64(st.Dev), Ino: st.Ino, UID: s.place.UID}
	if have, err := readPlace(s.dir); err == nil && have.Root == want.Root && have.Dev == want.Dev && have.Ino == want.Ino {
		return nil
	}
	want.Made = time.Now().UTC()
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	return s.put("place.json", append(text, '\n'), false)
}

// moved finds the store of a workspace that has another path or, after it was restored
// from elsewhere, another inode. Identity counts before the path.
func (s *Store) moved() string {
	var st unix.Stat_t
	if unix.Stat(s.place.Root, &st) != nil {
		return ""
	}
	byPath := ""
	for _, p := range Places(s.place.Base) {
		if p.UID != s.place.UID || private(filepath.Join(s.place.Base, p.Name), s.place.UID) != nil {
			continue
		}
		if p.Dev == uint64(st.Dev) && p.Ino == st.Ino {
			var there unix.Stat_t
			if unix.Stat(p.Root, &there) == nil && there.Ino == st.Ino && there.Dev == st.Dev {
				continue // both paths lead there, and that one is in use
			}
			return filepath.Join(s.place.Base, p.Name)
		}
		if p.Root == s.place.Root {
			byPath = filepath.Join(s.place.Base, p.Name)
		}
	}
	return byPath
}

// Places lists the workspaces that have a store.
func Places(base string) []Workspace {
	list, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var out []Workspace
	for _, d := range list {
		if p, err := readPlace(filepath.Join(base, d.Name())); err == nil {
			p.Name = d.Name()
			out = append(out, p)
		}
	}
	return out
}

func readPlace(dir string) (p Workspace, err error) {
	raw, err := readSmall(filepath.Join(dir, "place.json"), 64<<10)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(raw, &p)
}

func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, look, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, errors.Join(err, errDamaged)
	}
	out := make([]byte, info.Size())
	n, err := io.ReadFull(f, out)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = nil
	}
	return out[:n], err
}

// put writes a file of the store whole or not at all.
func (s *Store) put(name string, data []byte, sync bool) error {
	final := filepath.Join(s.dir, name)
	f, err := os.OpenFile(final+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = unix.Fdatasync(int(f.Fd()))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(final+".tmp", final)
	}
	if err == nil && sync {
		err = syncDir(filepath.Dir(final))
	}
	if err != nil {
		os.Remove(final + ".tmp")
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func seqName(seq uint64) string { return strconv.FormatUint(seq, 10) }

// seqs lists the manifests there are, in order.
func (s *Store) seqs() []uint64 {
	if s.dir == "" {
		return nil
	}
	list, err := os.ReadDir(filepath.Join(s.dir, "manifest"))
	if err != nil {
		return nil
	}
	var out []uint64
	for _, d := range list {
		if n, err := strconv.ParseUint(d.Name(), 10, 64); err == nil && seqName(n) == d.Name() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// load reads one state.
func (s *Store) load(seq uint64) (*manifest, error) {
	h, body, err := s.read(seq)
	if err != nil {
		return nil, err
	}
	return s.entries(h, body)
}

// read reads what is known of a state, and its entries as they are kept.
func (s *Store) read(seq uint64) (h header, body []byte, err error) {
	raw, err := readSmall(filepath.Join(s.dir, "manifest", seqName(seq)), maxManifest)
	if err == nil {
		h, body, err = parseHeader(raw)
	}
	if err == nil && (h.Seq != seq || h.Base >= seq) {
		err = errDamaged
	}
	if err != nil {
		err = &Error{Op: "read checkpoint", Path: seqName(seq), Err: err}
	}
	return h, body, err
}

// entries makes the state of what was read.
func (s *Store) entries(h header, body []byte) (m *manifest, err error) {
	var base *manifest
	if h.Base != 0 {
		if base, err = s.load(h.Base); err == nil && base.Base != 0 {
			err = errDamaged
		}
	}
	if err == nil {
		m, err = decode(h, body, base)
	}
	if err != nil {
		return nil, &Error{Op: "read checkpoint", Path: seqName(h.Seq), Err: err}
	}
	return m, nil
}

// last is the newest whole state with contents, and the number of the newest manifest of all. A
// damaged one is passed over: it is no answer, and every content it names is read again.
func (s *Store) last() (m *manifest, newest uint64) {
	all := s.seqs()
	if len(all) > 0 {
		newest = all[len(all)-1]
	}
	for i := len(all) - 1; i >= 0; i-- {
		h, body, err := s.read(all[i])
		if err != nil || h.Stat {
			continue
		}
		if m, err := s.entries(h, body); err == nil {
			return m, newest
		}
	}
	return nil, newest
}

// save writes a state. What has changed since the last whole one is enough while it is little.
func (s *Store) save(m *manifest, last *manifest, sync bool) error {
	var base *manifest
	if last != nil {
		base = last
		if last.Base != 0 {
			b, err := s.load(last.Base)
			if err != nil {
				b = nil
			}
			base = b
		}
	}
	if base != nil && slices.Compare(base.Roots, m.Roots) != 0 {
		base = nil
	}
	m.packs()
	data := m.encode(base)
	if base != nil && len(data) > 4<<10 && len(data) > 24*len(m.entries) {
		data = m.encode(nil)
	}
	return s.put("manifest/"+seqName(m.Seq), data, sync)
}

// packs notes which packs a state needs.
func (m *manifest) packs() {
	m.Packs, m.Losses = nil, 0
	seen := map[uint64]bool{}
	for i := range m.entries {
		e := &m.entries[i]
		if e.known && e.pack != 0 && !seen[e.pack] {
			seen[e.pack] = true
			m.Packs = append(m.Packs, e.pack)
		}
		if e.why.loses() {
			m.Losses++
		}
	}
	slices.Sort(m.Packs)
}

// Runs lists what is remembered, oldest first.
func (s *Store) Runs() []Run {
	raw, err := readSmall(filepath.Join(s.dir, "runs"), 64<<20)
	if err != nil {
		return nil
	}
	var out []Run
	at := map[string]int{}
	for line := range bytes.Lines(raw) {
		var r Run
		if json.Unmarshal(line, &r) != nil || r.Run == "" {
			continue
		}
		i, ok := at[r.Run]
		if !ok {
			if r.Before == 0 {
				continue
			}
			at[r.Run] = len(out)
			out = append(out, r)
			continue
		}
		out[i].After, out[i].Counts = r.After, r.Counts
	}
	return out
}

// Peek is Runs without a lock and without a change of any file: nil where nothing is kept, or
// where others could have written it.
func Peek(p Place) []Run {
	if p.Base == "" || p.Root == "" || private(p.Base, p.UID) != nil {
		return nil
	}
	name, err := named(p.UID, p.Root)
	if err != nil {
		return nil
	}
	s := &Store{place: p, dir: filepath.Join(p.Base, name)}
	if private(s.dir, p.UID) != nil {
		return nil
	}
	return s.Runs()
}

// note appends one line about a run.
func (s *Store) note(r Run) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "runs"), os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		var end [1]byte
		if _, err := f.ReadAt(end[:], info.Size()-1); err == nil && end[0] != '\n' {
			line = append([]byte{'\n'}, line...) // a writer was killed in its line
		}
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// abs is the path that an entry stands for.
func (m *header) abs(p string) string {
	root, rest, below := strings.Cut(p, "/")
	i, err := strconv.Atoi(root)
	if err != nil || i < 0 || i >= len(m.Roots) {
		return p
	}
	if !below {
		return m.Roots[i]
	}
	return m.Roots[i] + "/" + rest
}
