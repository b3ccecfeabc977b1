package filter

import (
	"encoding/binary"
	"math/bits"
)

// entryKind says what stands behind a needle of the index.
type entryKind uint8

const (
	ePrefix   entryKind = iota // a rule's public prefix
	eKnown                     // a known value
	eArmour                    // the begin line of a private key
	eName                      // a word that names a secret; the match may lie inside it
	eVendor                    // a word that names a vendor, whose secrets have a known shape
	eURL                       // "://"
	eData                      // "data:" of a Kubernetes object
	eFlag                      // " -p" and " -u" of the few tools that take secrets there
	eArgument                  // a command or call of arguments
	eValue                     // the field of a value, perhaps in front of its name
	eKeyType                   // the type of a JWK, whose other fields are the key
)

// entry is one needle. Candidates (prefix, known, armour) start where the needle
// starts; names and URLs only announce a candidate further right.
type entry struct {
	text string
	ref  int32 // index of the rule, the known value's needle, or the policy's name
	kind entryKind
	off  uint8 // the three bytes that are looked for stand here
}

// mayStart reports whether the prefix of a rule stands at i as far as the bytes go. Many begin
// alike, as URLs do.
func (ent *entry) mayStart(v []byte, i int) bool {
	if ent.kind != ePrefix {
		return true
	}
	n := min(len(ent.text), len(v)-i)
	return string(v[i:i+n]) == ent.text[:n]
}

// index finds the positions at which a needle may start. It hashes the three
// bytes at each position, case folded by setting bit 5, into a table of chains.
// One pass serves rules, names and known values; its speed does not depend on
// their number as long as the table stays sparse.
type index struct {
	shift   uint
	hit     []byte // by hash: the classes of the fourth bytes of the chain
	class   [256]byte
	table   []uint16 // by hash: 1 + first entry of its chain
	entries []entry  // chains lie side by side
	screens []screen // of the entries
	hashes  []uint32 // of the entries
	first   [256]bool
}

const (
	foldMask = 0x2020202020202020
	// hashMul is odd and keeps what is frequent in build logs apart from the entries.
	hashMul = 0xE0C4279D
	// A small table stays in the first-level cache; a thousand known values need
	// the large one.
	smallShift = 32 - 14
	largeShift = 32 - 17
)

func (x *index) hash(tri uint32) uint32 { return tri * hashMul >> x.shift }

func foldTri(a, b, c byte) uint32 {
	return uint32(a) | uint32(b)<<8 | uint32(c)<<16 | 0x202020
}

// newIndex builds an index of entries; each text has three bytes or more.
func newIndex(in []entry) *index {
	x := &index{shift: smallShift}
	if len(in) > 2000 {
		x.shift = largeShift
	}
	x.class = x.classes()
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
		x.hit[keys[i]] |= x.screens[slot-1].fourths()
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

// fourths returns the classes of the byte behind the first three.
func (s *screen) fourths() byte {
	if s.mask&(0xff<<24) == 0 {
		return 0xff
	}
	return fourth(byte(s.want >> 24))
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
	if ent.kind == eName || ent.kind == eVendor || ent.kind == eValue {
		s.fold = foldMask
		if ent.kind == eName && ent.text != "key" { // key_base, keydata
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

// fourth is the class of a fourth byte: a hit counts only if an entry of the
// chain goes on with a byte of that class, case folded. It is why "ion_" is not
// looked at in every word that ends with ion.
func fourth(c byte) byte { return 1 << ((c | 0x20) & 7) }

func (x *index) classes() (out [256]byte) {
	for c := range out {
		out[c] = fourth(byte(c))
	}
	return out
}

// scan returns the first position in [from, to) at which an entry may start, or
// to. Two bytes after to-1 exist. The two loops differ in the size of the table,
// which has to be constant for the compiler to drop the bounds checks.
func (x *index) scan(v []byte, from, to int) int {
	i := from
	if x.shift == smallShift {
		t, cls := (*[1 << (32 - smallShift)]byte)(x.hit), &x.class
		for i+8 <= len(v) && i < to {
			w := binary.LittleEndian.Uint64(v[i:])
			u := w | foldMask
			a := t[uint32(u&0xffffff)*hashMul>>smallShift] & cls[byte(w>>24)]
			b := t[uint32(u>>8&0xffffff)*hashMul>>smallShift] & cls[byte(w>>32)]
			c := t[uint32(u>>16&0xffffff)*hashMul>>smallShift] & cls[byte(w>>40)]
			d := t[uint32(u>>24&0xffffff)*hashMul>>smallShift] & cls[byte(w>>48)]
			e := t[uint32(u>>32&0xffffff)*hashMul>>smallShift] & cls[byte(w>>56)]
			if a|b|c|d|e != 0 {
				if k := x.firstHit(v, i, to, uint(a), uint(b), uint(c), uint(d), uint(e)); k >= 0 {
					return k
				}
			}
			i += 5
		}
	} else {
		t, cls := (*[1 << (32 - largeShift)]byte)(x.hit), &x.class
		for i+8 <= len(v) && i < to {
			w := binary.LittleEndian.Uint64(v[i:])
			u := w | foldMask
			a := t[uint32(u&0xffffff)*hashMul>>largeShift] & cls[byte(w>>24)]
			b := t[uint32(u>>8&0xffffff)*hashMul>>largeShift] & cls[byte(w>>32)]
			c := t[uint32(u>>16&0xffffff)*hashMul>>largeShift] & cls[byte(w>>40)]
			d := t[uint32(u>>24&0xffffff)*hashMul>>largeShift] & cls[byte(w>>48)]
			e := t[uint32(u>>32&0xffffff)*hashMul>>largeShift] & cls[byte(w>>56)]
			if a|b|c|d|e != 0 {
				if k := x.firstHit(v, i, to, uint(a), uint(b), uint(c), uint(d), uint(e)); k >= 0 {
					return k
				}
			}
			i += 5
		}
	}
	return x.firstScreened(v, min(i, to), to)
}

// firstHit screens the positions of a group whose class matched; -1 is none.
func (x *index) firstHit(v []byte, i, to int, a, b, c, d, e uint) int {
	// Adding 0xff carries into bit 8 unless the class is empty.
	set := (a+0xff)>>8 | (b+0xff)>>8<<1 | (c+0xff)>>8<<2 | (d+0xff)>>8<<3 | (e+0xff)>>8<<4
	for ; set != 0; set &= set - 1 {
		if k := i + bits.TrailingZeros(set); k >= to {
			return to
		} else if x.screened(v, k) {
			return k
		}
	}
	return -1
}

// firstScreened is scan, one position after the other.
func (x *index) firstScreened(v []byte, from, to int) int {
	for i := from; i < to; i++ {
		if x.screened(v, i) {
			return i
		}
	}
	return to
}

// screened reports whether an entry of the chain at i passes its screen.
func (x *index) screened(v []byte, i int) bool {
	h := x.hash(foldTri(v[i], v[i+1], v[i+2]))
	if x.hit[h] == 0 {
		return false
	}
	if i+8 > len(v) {
		return true
	}
	w := binary.LittleEndian.Uint64(v[i:])
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
