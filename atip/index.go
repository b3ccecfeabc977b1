package atip

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// An index says where the commands of a document stand, and what only the whole
// document can answer: which flags the commands below a group declare, and the worst
// that any command does. Reading by it costs the commands on the path of a call,
// whatever the size of the document and whatever the words.
//
//	header   magic, then one 32-bit number for each of: length of the text, nodes,
//	         words, flags, bytes of tapes, bytes of strings, whether there are comments
//	nodes    one record for each command, the root first, the children of a command
//	         one after the other in the order of the document
//	words    for each group its names and aliases, sorted
//	flags    for each group what its descendants declare, sorted
//	worst    the join of all commands, as an inferred document and as another claims it
//	tapes    of nodes whose own text is long
//	strings  names, flags, pointers
//
// All numbers are little endian. An index must come from where the text comes from: it
// says where to look, so one of somebody else's making could hide a part of the text.
// Its magic changes with every change of what Parse and Resolve make of a document.

const (
	indexMagic  = "atix2\n\x00\x00"
	headerBytes = len(indexMagic) + 7*4
	nodeBytes   = 14 * 4
	wordBytes   = 4 * 4
	flagBytes   = 6 * 4
	factBytes   = 5 * 4
	worstBytes  = 2 * (4 + NumEffects*factBytes)
	entryBytes  = 16
)

// longText is the length from which copying the tape of a command's own text is
// cheaper than reading the text again.
const longText = 8 << 10

// maxIndex bounds an index of a text of n bytes. A group repeats the flags of all that
// is below it, so a document could be written to make its index grow without end.
func maxIndex(n int) int { return 3*n + 64<<10 }

// nodeRecord is where one command stands.
type nodeRecord struct {
	off, end                uint32 // its object
	commands, commandsEnd   uint32 // the value of its commands, 0 if none
	firstChild, children    uint32
	firstWord, words        uint32
	firstFlag, flags        uint32
	name, nameLen           uint32
	firstEntry, entryLength uint32 // of its tape, in entries
}

// Index checks a document as Parse does and returns an index to it.
func Index(raw []byte, o ParseOptions) ([]byte, error) {
	d, err := Parse(raw, o)
	if err != nil {
		return nil, err
	}
	b := indexBuilder{d: d, strings: map[string]uint32{}, limit: maxIndex(len(raw))}
	b.nodes(d.rootNode())
	if err := b.tapes(); err != nil {
		return nil, err
	}
	b.worst(Inferred)
	b.worst(Vendor)
	comments := uint32(0)
	if o.Comments {
		comments = 1
	}
	out := []byte(indexMagic)
	for _, n := range [...]uint32{uint32(len(raw)), uint32(len(b.node)), uint32(len(b.word) / wordBytes), uint32(len(b.flag) / flagBytes), uint32(len(b.tape)), uint32(len(b.text)), comments} {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	for _, n := range b.node {
		for _, field := range [...]uint32{n.off, n.end, n.commands, n.commandsEnd, n.firstChild, n.children, n.firstWord, n.words, n.firstFlag, n.flags, n.name, n.nameLen, n.firstEntry, n.entryLength} {
			out = binary.LittleEndian.AppendUint32(out, field)
		}
	}
	for _, section := range [...][]byte{b.word, b.flag, b.worsts, b.tape, b.text} {
		out = append(out, section...)
	}
	if len(out) > b.limit || b.over {
		return nil, &DocError{Code: errcode.MetadataLimit, Msg: "the index would be too large"}
	}
	return out, nil
}

type indexBuilder struct {
	d       *Document
	node    []nodeRecord
	word    []byte
	flag    []byte
	worsts  []byte
	tape    []byte
	text    []byte
	strings map[string]uint32
	limit   int
	over    bool
}

func (b *indexBuilder) put(section *[]byte, numbers ...uint32) {
	b.over = b.over || len(*section) > b.limit
	if b.over {
		return
	}
	for _, n := range numbers {
		*section = binary.LittleEndian.AppendUint32(*section, n)
	}
}

// str adds a string once and returns where it stands.
func (b *indexBuilder) str(s string) (off, n uint32) {
	off, ok := b.strings[s]
	if !ok {
		off = uint32(len(b.text))
		b.strings[s] = off
		b.text = append(b.text, s...)
	}
	return off, uint32(len(s))
}

// nodes numbers the commands level by level, so that siblings follow each other, and
// then adds from the last to the first what their groups know of them.
func (b *indexBuilder) nodes(root *node) {
	type item struct {
		n      *node
		parent int
	}
	list := []item{{root, -1}}
	for i := 0; i < len(list); i++ {
		n := list[i].n
		e := n.d.tape[n.v.i]
		r := nodeRecord{off: e.off, end: e.end, firstChild: uint32(len(list))}
		r.name, r.nameLen = b.str(n.name)
		if n.kids.is(KindObject) {
			e := n.d.tape[n.kids.i]
			r.commands, r.commandsEnd = e.off, e.end
		}
		n.kids.members(func(key string, m val) bool {
			list = append(list, item{n.child(key, m), i})
			return true
		})
		r.children = uint32(len(list)) - r.firstChild
		b.words(n, &r)
		b.node = append(b.node, r)
	}
	below := make([]flagSummary, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		r := &b.node[i]
		b.flags(below[i], r)
		if p := list[i].parent; p >= 0 {
			own := make(flagSummary)
			for j := range list[i].n.options {
				own.agree(&list[i].n.options[j])
			}
			own.join(below[i])
			if below[p] == nil {
				below[p] = make(flagSummary)
			}
			below[p].joinEarlier(own)
		}
		below[i] = nil
	}
}

// words adds the names that lead to children. A name wins over an alias, and the first
// child with an alias over the others.
func (b *indexBuilder) words(n *node, r *nodeRecord) {
	type entry struct {
		text  string
		child uint32
		alias uint32
	}
	var list []entry
	taken := map[string]bool{}
	child := r.firstChild
	n.kids.members(func(key string, _ val) bool {
		list = append(list, entry{key, child, 0})
		taken[key] = true
		child++
		return true
	})
	child = r.firstChild
	n.kids.members(func(_ string, m val) bool {
		for _, field := range [...]string{"aliases", "x-atip-aliases"} {
			m.get(field).items(func(_ int, item val) {
				if s := item.str(); s != "" && !taken[s] {
					taken[s] = true
					list = append(list, entry{s, child, 1})
				}
			})
		}
		child++
		return true
	})
	slices.SortFunc(list, func(x, y entry) int { return strings.Compare(x.text, y.text) })
	r.firstWord, r.words = uint32(len(b.word)/wordBytes), uint32(len(list))
	for _, e := range list {
		off, size := b.str(e.text)
		b.put(&b.word, off, size, e.child, e.alias)
	}
}

func (b *indexBuilder) flags(below flagSummary, r *nodeRecord) {
	names := slices.Sorted(maps.Keys(below))
	r.firstFlag, r.flags = uint32(len(b.flag)/flagBytes), uint32(len(names))
	for _, f := range names {
		o := below[f]
		off, size := b.str(f)
		name, nameLen := b.str(o.name)
		optional := uint32(0)
		if o.optional {
			optional = 1
		}
		b.put(&b.flag, off, size, name, nameLen, uint32(int32(o.arity)), optional)
	}
}

// tapes adds the tapes of long commands, over the text that is read for them.
func (b *indexBuilder) tapes() error {
	for i := range b.node {
		r := &b.node[i]
		text := ownText(b.d.src, r)
		if len(text) < longText || b.over {
			continue
		}
		tape, err := scanOwn(text)
		if err != nil {
			return err
		}
		r.firstEntry, r.entryLength = uint32(len(b.tape)/entryBytes), uint32(len(tape))
		for _, e := range tape {
			b.put(&b.tape, e.off, e.end, e.next, uint32(e.kind)|uint32(e.flags)<<8)
		}
	}
	return nil
}

// worst adds the join of all commands as a document of this rank states it. Where no
// command can be joined, it says so.
func (b *indexBuilder) worst(rank Rank) {
	r := &resolver{d: b.d, rank: rank}
	joined, ok := r.join(b.d.rootNode())
	known := uint32(0)
	if ok && r.spent <= maxWork {
		known = 1
	}
	b.put(&b.worsts, known)
	for _, f := range joined {
		p, pn := b.str(f.Pointer)
		c, cn := b.str(f.Clause)
		b.put(&b.worsts, uint32(f.Value), p, pn, c, cn)
	}
}

// flagSummary is what several commands declare: for each flag an option that is
// pending until the command is known. Its arity is unknown where they disagree.
type flagSummary map[string]*option

func (s flagSummary) agree(o *option) {
	for _, f := range o.flags {
		have := s[f]
		if have == nil {
			s[f] = &option{name: o.name, flags: []string{f}, arity: o.arity, optional: o.optional, pending: true}
			continue
		}
		have.disagree(o)
	}
}

func (s flagSummary) join(more flagSummary) {
	for f, o := range more {
		if have := s[f]; have != nil {
			have.disagree(o)
		} else {
			s[f] = o
		}
	}
}

// joinEarlier adds what stands earlier in the document, and so gives the names.
func (s flagSummary) joinEarlier(more flagSummary) {
	for f, o := range more {
		if have := s[f]; have != nil {
			o.disagree(have)
		}
		s[f] = o
	}
}

func (o *option) disagree(other *option) {
	if o.arity != other.arity || o.optional != other.optional {
		o.arity = arityUnknown
	}
}

// ownText is the text of a command without those below it.
func ownText(src string, r *nodeRecord) string {
	if r.commandsEnd-r.commands <= 2 {
		return src[r.off:r.end]
	}
	return src[r.off:r.commands] + "{}" + src[r.commandsEnd:r.end]
}

// scanOwn reads what ownText returns.
func scanOwn(text string) ([]entry, error) {
	s := &scanner{b: bytesOf(text), s: text, document: true, build: true, tape: make([]entry, 0, len(text)/10+8), nested: 1}
	end, err := s.value(0, placeFields, "", 2)
	if err == nil && end != len(text) {
		err = s.bad(end, "data after the end of the value")
	}
	return s.tape, err
}
