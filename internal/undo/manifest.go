package undo

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"
)

// kind is the type of an entry.
type kind uint8

const (
	file kind = iota
	dir
	link
	fifo
	other // sockets and devices: named only
)

// entry is one name of a workspace.
type entry struct {
	path   string // begins with the number of its root: "0/src/a.go", "0" is the root itself
	target string // of a link
	kind   kind
	why    Why
	racy   bool // changed so shortly before the walk that its stat may not tell a later change
	known  bool // content is in the store: in a pack if pack is not 0, else under its digest
	sparse bool
	mode   uint32 // permission bits, with setuid, setgid and sticky
	nlink  uint32
	uid    uint32
	gid    uint32
	size   int64
	mtime  int64 // nanoseconds since 1970
	ctime  int64
	dev    uint64
	ino    uint64
	pack   uint64
	off    int64
	sum    [sha256.Size]byte
}

// sameStat reports whether two looks at a name saw the same inode unchanged.
func (e *entry) sameStat(o *entry) bool {
	return e.kind == o.kind && e.ino == o.ino && e.dev == o.dev && e.size == o.size && e.mtime == o.mtime && e.ctime == o.ctime && e.mode == o.mode
}

// manifest is one state of a workspace.
type manifest struct {
	header
	entries []entry // in the order of compare
}

// header is what is known of a state without its entries.
type header struct {
	V      int               `json:"v"`
	Seq    uint64            `json:"seq"`
	Base   uint64            `json:"base,omitempty"` // the manifest that this one is a change of, 0 for none
	Time   time.Time         `json:"t"`
	Walk   time.Duration     `json:"walk"`
	Roots  []string          `json:"roots"`
	Whole  bool              `json:"whole"`
	Stat   bool              `json:"stat,omitempty"` // contents that had changed were not copied
	Packs  []uint64          `json:"packs,omitempty"`
	Git    map[string]string `json:"git,omitempty"` // digest of refs, HEAD and index, by git directory
	Losses int               `json:"losses,omitempty"`
	// Entries is how many entries there are.
	Entries int `json:"entries,omitempty"`
}

const (
	magic         = "atip-undo/1\n"
	formatVersion = 1
	maxManifest   = 256 << 20
)

// compare orders paths so that what lies in a directory follows it at once.
func compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			x, y := a[i], b[i]
			switch {
			case x == '/':
				return -1
			case y == '/':
				return 1
			case x < y:
				return -1
			}
			return 1
		}
	}
	return len(a) - len(b)
}

const (
	bitPut = 1 << iota
	bitRacy
	bitKnown
	bitSparse
)

// encode writes a state as a change of base, or whole if base is nil.
func (m *manifest) encode(base *manifest) []byte {
	m.V, m.Base, m.Entries = formatVersion, 0, len(m.entries)
	var old []entry
	if base != nil {
		m.Base, old = base.Seq, base.entries
	}
	head, _ := json.Marshal(m.header)
	out := make([]byte, 0, len(magic)+len(head)+64+16*len(m.entries))
	out = append(out, magic...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
	out = append(out, head...)
	prev := ""
	name := func(flags byte, p string) {
		n := 0
		for n < len(p) && n < len(prev) && p[n] == prev[n] {
			n++
		}
		out = append(out, flags)
		out = binary.AppendUvarint(out, uint64(n))
		out = binary.AppendUvarint(out, uint64(len(p)-n))
		out = append(out, p[n:]...)
		prev = p
	}
	i := 0
	for k := range m.entries {
		e := &m.entries[k]
		for i < len(old) && compare(old[i].path, e.path) < 0 {
			name(0, old[i].path)
			i++
		}
		if i < len(old) && old[i].path == e.path {
			i++
			if *e == old[i-1] {
				continue
			}
		}
		flags := byte(bitPut)
		if e.racy {
			flags |= bitRacy
		}
		if e.known {
			flags |= bitKnown
		}
		if e.sparse {
			flags |= bitSparse
		}
		name(flags, e.path)
		out = append(out, byte(e.kind), byte(e.why))
		for _, v := range [...]uint64{uint64(e.mode), uint64(e.nlink), uint64(e.uid), uint64(e.gid), uint64(e.size), e.dev, e.ino} {
			out = binary.AppendUvarint(out, v)
		}
		out = binary.BigEndian.AppendUint64(out, uint64(e.mtime))
		out = binary.BigEndian.AppendUint64(out, uint64(e.ctime))
		if e.known {
			out = binary.AppendUvarint(out, e.pack)
			out = binary.AppendUvarint(out, uint64(e.off))
			out = append(out, e.sum[:]...)
		}
		if e.kind == link {
			out = binary.AppendUvarint(out, uint64(len(e.target)))
			out = append(out, e.target...)
		}
	}
	for ; i < len(old); i++ {
		name(0, old[i].path)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// parseHeader reads the part before the entries and checks the mark of completeness.
func parseHeader(data []byte) (h header, body []byte, err error) {
	if len(data) < len(magic)+4+sha256.Size || string(data[:len(magic)]) != magic {
		return h, nil, errDamaged
	}
	end := len(data) - sha256.Size
	if sha256.Sum256(data[:end]) != [sha256.Size]byte(data[end:]) {
		return h, nil, errDamaged
	}
	at := len(magic)
	n := int(binary.BigEndian.Uint32(data[at:]))
	if at += 4; n < 0 || n > end-at || json.Unmarshal(data[at:at+n], &h) != nil || h.V != formatVersion {
		return h, nil, errDamaged
	}
	return h, data[at+n : end], nil
}

// reader takes values off a body; bad stays set once one is missing.
type reader struct {
	body []byte
	at   int
	bad  bool
}

func (r *reader) number() uint64 {
	if r.at < len(r.body) && r.body[r.at] < 0x80 {
		r.at++
		return uint64(r.body[r.at-1])
	}
	return r.long()
}

func (r *reader) long() uint64 {
	v, n := binary.Uvarint(r.body[r.at:])
	if n <= 0 {
		r.bad, r.at = true, len(r.body)
		return 0
	}
	r.at += n
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.body)-r.at) {
		r.bad, r.at = true, len(r.body)
		return nil
	}
	r.at += int(n)
	return r.body[r.at-int(n) : r.at]
}

func (r *reader) fixed() int64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// decode reads the entries of a state that is a change of base, nil for a whole one.
func decode(h header, body []byte, base *manifest) (*manifest, error) {
	m := &manifest{header: h}
	var old []entry
	if base != nil {
		old = base.entries
	}
	m.entries = make([]entry, 0, min(h.Entries, len(old)+len(body)))
	r := &reader{body: body}
	var paths strings.Builder // of many entries, one memory
	prev := ""
	i := 0
	for r.at < len(r.body) {
		flags := r.take(1)[0]
		shared, n := r.number(), r.number()
		suffix := r.take(n)
		if r.bad || shared > uint64(len(prev)) {
			return nil, errDamaged
		}
		length := int(shared) + len(suffix)
		if paths.Cap()-paths.Len() < length {
			paths = strings.Builder{}
			paths.Grow(max(len(body)/8, 4<<10, length))
		}
		from := paths.Len()
		paths.WriteString(prev[:shared])
		paths.Write(suffix)
		p := paths.String()[from:]
		// What both share says nothing about their order. The path before the first is the empty one.
		if compare(prev[shared:], p[shared:]) >= 0 {
			return nil, errDamaged
		}
		prev = p
		for i < len(old) && compare(old[i].path, p) < 0 {
			m.entries = append(m.entries, old[i])
			i++
		}
		if i < len(old) && old[i].path == p {
			i++
		}
		if flags&bitPut == 0 {
			continue
		}
		m.entries = append(m.entries, entry{path: p, racy: flags&bitRacy != 0, known: flags&bitKnown != 0, sparse: flags&bitSparse != 0})
		e := &m.entries[len(m.entries)-1]
		if kw := r.take(2); kw != nil {
			e.kind, e.why = kind(kw[0]), Why(kw[1])
		}
		e.mode, e.nlink, e.uid, e.gid = uint32(r.number()), uint32(r.number()), uint32(r.number()), uint32(r.number())
		e.size, e.dev, e.ino = int64(r.number()), r.number(), r.number()
		e.mtime, e.ctime = r.fixed(), r.fixed()
		if e.known {
			e.pack, e.off = r.number(), int64(r.number())
			copy(e.sum[:], r.take(sha256.Size))
		}
		if e.kind == link {
			e.target = string(r.take(r.number()))
		}
		if r.bad || e.kind > other || e.why > Excluded || e.size < 0 || e.off < 0 {
			return nil, errDamaged
		}
	}
	m.entries = append(m.entries, old[i:]...)
	return m, nil
}

// find returns the entry of a path, nil for none.
func (m *manifest) find(p string) *entry {
	lo, hi := 0, len(m.entries)
	for lo < hi {
		mid := (lo + hi) / 2
		if compare(m.entries[mid].path, p) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(m.entries) && m.entries[lo].path == p {
		return &m.entries[lo]
	}
	return nil
}
