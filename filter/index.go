package filter

import "encoding/binary"

// entryKind says what stands behind a needle of the index.
type entryKind uint8

const (
	ePrefix entryKind = iota // a rule's public prefix
	eKnown                   // a known value
	eArmour                  // the begin line of a private key
	eName                    // a word that names a secret; the match may lie inside it
	eURL                     // "://"
)

// entry is one needle. Candidates (prefix, known, armour) start where the needle
// starts; names and URLs only announce a candidate further right.
type entry struct {
	text string
	ref  int32 // index of the rule or needle, or the name's keyword
	kind entryKind
	off  uint8 // where in a keyword the needle stands
}

// index finds the positions at which a needle may start. It hashes the three
// bytes at each position, case folded by setting bit 5, into a table of chains.
// One pass serves rules, names and known values; its speed does not depend on
// their number as long as the table stays sparse.
type index struct {
	shift   uint
	table   []uint16 // hash to 1 + first entry of its chain
	entries []entry  // chains lie side by side
	hashes  []uint16 // of the entries
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
	if len(in) > 1500 {
		x.shift = 32 - 16
	}
	x.table = make([]uint16, 1<<(32-x.shift))
	x.entries = make([]entry, 0, len(in))
	x.hashes = make([]uint16, 0, len(in))
	// A counting sort: first the length of each chain, then its place.
	keys := make([]uint16, len(in))
	for i := range in {
		t := in[i].text
		keys[i] = uint16(x.hash(foldTri(t[0], t[1], t[2])))
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
	x.hashes = x.hashes[:len(in)]
	fill := starts
	for i := range in {
		head := x.table[keys[i]] &^ placed
		slot := fill[head-1]
		fill[head-1]++
		x.entries[slot-1] = in[i]
		x.hashes[slot-1] = keys[i]
	}
	for i := range x.table {
		x.table[i] &^= placed
	}
	return x
}

// placed marks a chain that has its place while the index is built; it also
// bounds the number of entries.
const placed = 1 << 15

// maxEntries is how many needles an index can hold.
const maxEntries = placed - 2

// scan returns the first position in [from, to) at which a chain starts, or to.
// Two bytes after to-1 exist.
func (x *index) scan(v []byte, from, to int) int {
	t, shift := x.table, x.shift&31
	i := from
	for i+8 <= len(v) && i < to {
		w := binary.LittleEndian.Uint64(v[i:]) | foldMask
		a := t[uint32(w&0xffffff)*hashMul>>shift]
		b := t[uint32(w>>8&0xffffff)*hashMul>>shift]
		c := t[uint32(w>>16&0xffffff)*hashMul>>shift]
		d := t[uint32(w>>24&0xffffff)*hashMul>>shift]
		e := t[uint32(w>>32&0xffffff)*hashMul>>shift]
		f := t[uint32(w>>40&0xffffff)*hashMul>>shift]
		if a|b|c|d|e|f != 0 {
			switch {
			case a != 0:
			case b != 0:
				i++
			case c != 0:
				i += 2
			case d != 0:
				i += 3
			case e != 0:
				i += 4
			default:
				i += 5
			}
			return min(i, to)
		}
		i += 6
	}
	for ; i < to; i++ {
		if t[x.hash(foldTri(v[i], v[i+1], v[i+2]))] != 0 {
			return i
		}
	}
	return to
}

// chain returns the entries that may start with the three bytes at i.
func (x *index) chain(v []byte, i int) []entry {
	h := x.hash(foldTri(v[i], v[i+1], v[i+2]))
	head := int(x.table[h])
	if head == 0 {
		return nil
	}
	end := head
	for end <= len(x.hashes) && uint32(x.hashes[end-1]) == h {
		end++
	}
	return x.entries[head-1 : end-1]
}
