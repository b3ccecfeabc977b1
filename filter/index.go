package filter

import (
	"encoding/binary"
	mathbits "math/bits"
)

// entryKind says what stands behind a needle of the index.
type entryKind uint8

const (
	ePrefix entryKind = iota // a rule's public prefix
	eKnown                   // a known value
	eArmour                  // the begin line of a private key
	eName                    // a word that names a secret; the match may lie inside it
	eURL                     // "://"
	eFlag                    // " -p" and " -u" of the few tools that take secrets there
)

// entry is one needle. Candidates (prefix, known, armour) start where the needle
// starts; names and URLs only announce a candidate further right.
type entry struct {
	text string
	ref  int32 // index of the rule, the known value's needle, or the policy's name
	kind entryKind
	off  uint8 // the three bytes that are looked for stand here
}

// index finds the positions at which a needle may start. It hashes the three
// bytes at each position, case folded by setting bit 5, into a table of chains.
// One pass serves rules, names and known values; its speed does not depend on
// their number as long as the table stays sparse.
type index struct {
	shift   uint
	hit     []byte   // by hash: whether there is a chain
	table   []uint16 // by hash: 1 + first entry of its chain
	entries []entry  // chains lie side by side
	screens []screen // of the entries
	hashes  []uint32 // of the entries
	first   [256]bool
}

const (
	foldMask = 0x2020202020202020
	hashMul  = 0x9E3779B1
)

func (x *index) hash(tri uint32) uint32 { return tri * hashMul >> x.shift }

func foldTri(a, b, c byte) uint32 {
	return uint32(a) | uint32(b)<<8 | uint32(c)<<16 | 0x202020
}

// newIndex builds an index of entries; each text has three bytes or more.
func newIndex(in []entry) *index {
	x := &index{shift: 32 - 13}
	if len(in) > 2000 {
		x.shift = 32 - 17
	}
	x.hit = make([]byte, 1<<(32-x.shift))
	x.table = make([]uint16, 1<<(32-x.shift))
	x.entries = make([]entry, 0, len(in))
	x.hashes = make([]uint32, len(in))
	x.screens = make([]screen, len(in))
	// A counting sort: first the length of each chain, then its place.
	keys := make([]uint32, len(in))
	for i := range in {
		t := in[i].text[in[i].off:]
		keys[i] = x.hash(foldTri(t[0], t[1], t[2]))
		x.table[keys[i]]++
		if in[i].kind <= eArmour {
			x.first[t[0]] = true
		}
	}
	at := uint16(1)
	starts := make([]uint16, len(in))
	for i := range in { // chains in the order of their first member
		if n := x.table[keys[i]]; n&placed == 0 {
			x.table[keys[i]] = at | placed
			starts[at-1] = at
			at += n
		}
	}
	x.entries = x.entries[:len(in)]
	fill := starts
	for i := range in {
		head := x.table[keys[i]] &^ placed
		slot := fill[head-1]
		fill[head-1]++
		x.entries[slot-1] = in[i]
		x.hashes[slot-1] = keys[i]
		x.screens[slot-1] = in[i].screen()
		x.hit[keys[i]] = 1
	}
	for _, k := range keys {
		x.table[k] &^= placed
	}
	return x
}

// placed marks a chain that has its place while the index is built; it also
// bounds the number of entries.
const placed = 1 << 15

// maxEntries is how many needles an index can hold.
const maxEntries = placed - 2

// screen rejects most false hits with one comparison of the eight bytes there.
type screen struct {
	mask, fold, want uint64
	tail             int // a keyword: its length, after which no letter follows
}

// pass compares w, the eight bytes at i.
func (s *screen) pass(v []byte, i int, w uint64) bool {
	if (w|s.fold)&s.mask != s.want {
		return false
	}
	return s.tail == 0 || i+s.tail >= len(v) || !isLower(v[i+s.tail])
}

func (ent *entry) screen() screen {
	text := ent.text[ent.off:]
	var s screen
	if ent.kind == eName {
		s.fold = foldMask
		if ent.text != "key" { // key_base, keydata
			s.tail = len(text)
		}
	}
	for i := range min(len(text), 8) {
		if ent.kind == eKnown && i > 2 && (isSpace(text[i]) || isSpace(text[i-1])) {
			break // white space is elastic
		}
		s.want |= uint64(text[i]) << (8 * i)
		s.mask |= 0xff << (8 * i)
	}
	s.want |= s.fold & s.mask
	return s
}

// scan returns the first position in [from, to) at which an entry may start, or
// to. Two bytes after to-1 exist.
func (x *index) scan(v []byte, from, to int) int {
	t, shift := x.hit, x.shift&31
	i := from
	for i+8 <= len(v) && i < to {
		w := binary.LittleEndian.Uint64(v[i:]) | foldMask
		a := t[uint32(w&0xffffff)*hashMul>>shift]
		b := t[uint32(w>>8&0xffffff)*hashMul>>shift]
		c := t[uint32(w>>16&0xffffff)*hashMul>>shift]
		d := t[uint32(w>>24&0xffffff)*hashMul>>shift]
		e := t[uint32(w>>32&0xffffff)*hashMul>>shift]
		f := t[uint32(w>>40&0xffffff)*hashMul>>shift]
		if a|b|c|d|e|f == 0 {
			i += 6
			continue
		}
		bits := uint(a) | uint(b)<<1 | uint(c)<<2 | uint(d)<<3 | uint(e)<<4 | uint(f)<<5
		for ; bits != 0; bits &= bits - 1 {
			k := i + mathbits.TrailingZeros(bits)
			if k >= to {
				return to
			}
			if x.screened(v, k) {
				return k
			}
		}
		i += 6
	}
	for ; i < to; i++ {
		if t[x.hash(foldTri(v[i], v[i+1], v[i+2]))] != 0 && x.screened(v, i) {
			return i
		}
	}
	return to
}

// screened reports whether an entry of the chain at i passes its screen.
func (x *index) screened(v []byte, i int) bool {
	if i+8 > len(v) {
		return true
	}
	w := binary.LittleEndian.Uint64(v[i:])
	h := x.hash(uint32(w|foldMask) & 0xffffff)
	for k := int(x.table[h]) - 1; k < len(x.hashes) && x.hashes[k] == h; k++ {
		if x.screens[k].pass(v, i, w) {
			return true
		}
	}
	return false
}

// chain returns the range of the entries that may start with the three bytes at i.
func (x *index) chain(v []byte, i int) (from, to int) {
	h := x.hash(foldTri(v[i], v[i+1], v[i+2]))
	from = int(x.table[h])
	if from == 0 {
		return 0, 0
	}
	from--
	to = from
	for to < len(x.hashes) && x.hashes[to] == h {
		to++
	}
	return from, to
}
