package atip

import (
	"encoding/binary"
	"unsafe"
)

// An index is the tape of a document without what stands inside its top-level
// commands. Reading by it costs the root and the commands on the path, whatever the
// size of the document: git's own is a quarter of a megabyte.
//
//	"atix1\n" | length of the text, 4 bytes | entries of 16 bytes, little endian
//
// It must come from where the text comes from: it says where to look, so an index of
// somebody else's making could hide a part of the text.

const (
	indexMagic = "atix1\n"
	entryBytes = 16
)

// flagLazy marks an object whose entries are left out, all but its aliases.
const flagLazy uint8 = 1 << 7

// Index checks a document as Parse does and returns an index to it.
func Index(raw []byte) ([]byte, error) {
	d, err := Parse(raw, ParseOptions{})
	if err != nil {
		return nil, err
	}
	b := indexBuilder{d: d, commands: d.root().get("commands")}
	b.copy(0, false)
	out := append([]byte(indexMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(out[len(indexMagic):], uint32(len(raw)))
	for _, e := range b.out {
		out = binary.LittleEndian.AppendUint32(out, e.off)
		out = binary.LittleEndian.AppendUint32(out, e.end)
		out = binary.LittleEndian.AppendUint32(out, e.next)
		out = append(out, byte(e.kind), e.flags, 0, 0)
	}
	return out, nil
}

type indexBuilder struct {
	d        *Document
	commands val
	out      []entry
}

// copy appends the value at i, without the inside of commands.
func (b *indexBuilder) copy(i uint32, command bool) (next uint32) {
	e := b.d.tape[i]
	self := len(b.out)
	b.out = append(b.out, e)
	switch {
	case command && e.kind == KindObject:
		b.out[self].flags |= flagLazy
		for j := i + 1; j < e.next; j = b.d.tape[j+1].next {
			switch entryText(b.d.src, &b.d.tape[j]) {
			case "aliases", "x-atip-aliases":
				b.copy(j, false)
				b.copy(j+1, false)
			}
		}
	case e.kind == KindObject:
		inside := b.commands.ok() && i == b.commands.i
		for j := i + 1; j < e.next; {
			b.copy(j, false)
			j = b.copy(j+1, inside)
		}
	case e.kind == KindArray:
		for j := i + 1; j < e.next; {
			j = b.copy(j, false)
		}
	}
	b.out[self].next = uint32(len(b.out))
	return e.next
}

// ParseIndexed reads a document by its index. raw is used in place and must not
// change. Commands are checked when they are first looked at; one that is not strict
// JSON after all makes its calls unknown.
func ParseIndexed(raw, index []byte) (*Document, error) {
	bad := &DocError{Code: "E1103", Msg: "the index does not belong to the document"}
	if len(index) < len(indexMagic)+4+entryBytes || string(index[:len(indexMagic)]) != indexMagic ||
		binary.LittleEndian.Uint32(index[len(indexMagic):]) != uint32(len(raw)) {
		return nil, bad
	}
	body := index[len(indexMagic)+4:]
	if len(body)%entryBytes != 0 {
		return nil, bad
	}
	tape := entriesOf(body)
	for i := range tape {
		e := &tape[i]
		if e.off >= e.end || int(e.end) > len(raw) || int(e.next) <= i || int(e.next) > len(tape) ||
			e.kind > KindObject || e.kind == KindString && e.end-e.off < 2 {
			return nil, bad
		}
	}
	if !wellFormed(tape) {
		return nil, bad
	}
	return newDocument(unsafe.String(unsafe.SliceData(raw), len(raw)), tape)
}

// entriesOf reads entries. On a little-endian machine they stand in memory as they do
// in the index, which halves the cost of a large root.
func entriesOf(body []byte) []entry {
	tape := make([]entry, len(body)/entryBytes)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tape))), len(body)), body)
		return tape
	}
	for i := range tape {
		p := body[i*entryBytes:]
		tape[i] = entry{
			off: binary.LittleEndian.Uint32(p), end: binary.LittleEndian.Uint32(p[4:]),
			next: binary.LittleEndian.Uint32(p[8:]), kind: Kind(p[12]), flags: p[13],
		}
	}
	return tape
}

// The layout of an entry is that of the index.
var _ [entryBytes]byte = [unsafe.Sizeof(entry{})]byte{}

// wellFormed checks that members come in pairs and that no value reaches beyond the
// one that holds it.
func wellFormed(tape []entry) bool {
	for i := range tape {
		e := &tape[i]
		switch e.kind {
		case KindObject:
			j := uint32(i) + 1
			for j < e.next {
				if tape[j].kind != KindString || tape[j].next != j+1 || j+1 >= e.next {
					return false
				}
				j = tape[j+1].next
			}
			if j != e.next {
				return false
			}
		case KindArray:
			j := uint32(i) + 1
			for j < e.next {
				j = tape[j].next
			}
			if j != e.next {
				return false
			}
		default:
			if e.next != uint32(i)+1 {
				return false
			}
		}
	}
	return int(tape[0].next) == len(tape)
}

// load reads an object that the index left out. The value stands in a document of its
// own over the same text.
func (v val) load() val {
	if !v.is(KindObject) || v.d.tape[v.i].flags&flagLazy == 0 {
		return v
	}
	e := v.d.tape[v.i]
	src := v.d.src
	s := &scanner{
		b: unsafe.Slice(unsafe.StringData(src), len(src))[:e.end:e.end], s: src, document: true, build: true,
		tape: make([]entry, 0, int(e.end-e.off)/10+8), nested: 1,
	}
	if end, err := s.value(int(e.off), placeFields, "", 2); err != nil || end != int(e.end) {
		return val{}
	}
	return val{&Document{src: src, tape: s.tape}, 0}
}
