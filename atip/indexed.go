package atip

import (
	"encoding/binary"
	"io"
	"sync"
	"unsafe"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// index is an index that is being read. What it says is checked when it is looked at:
// a damaged one makes calls unknown, it cannot make the program fail.
type index struct {
	text     io.ReaderAt
	size     uint32 // of the text
	comments bool
	data     *blocks

	nodes, words, flags, tapes, strings uint32 // how many; tapes and strings in bytes

	wordsAt, flagsAt, worstAt, tapesAt, stringsAt uint32
}

// ParseIndexed reads a document by its index. raw is used in place and must not
// change.
func ParseIndexed(raw, index []byte) (*Document, error) {
	return openIndexed(inMemory(raw), int64(len(raw)), &blocks{all: index, size: int64(len(index))})
}

// OpenIndexed reads a document by its index, and no more of either than a call needs.
// Both must stay readable while the document is used.
func OpenIndexed(text io.ReaderAt, textSize int64, index io.ReaderAt, indexSize int64) (*Document, error) {
	b := &blocks{at: index, size: indexSize}
	if indexSize <= wholeIndex && indexSize > 0 {
		b.all = make([]byte, indexSize)
		if n, err := index.ReadAt(b.all, 0); int64(n) != indexSize {
			return nil, &DocError{Code: errcode.MetadataStructure, Msg: "the index cannot be read: " + textOf(err)}
		}
	}
	return openIndexed(text, textSize, b)
}

// wholeIndex is the size up to which an index is read at once.
const wholeIndex = 16 << 10

func openIndexed(text io.ReaderAt, textSize int64, data *blocks) (*Document, error) {
	x := &index{text: text, data: data}
	bad := &DocError{Code: errcode.MetadataStructure, Msg: "the index does not belong to the document"}
	h := x.data.bytes(0, uint32(headerBytes))
	if h == nil || string(h[:len(indexMagic)]) != indexMagic {
		return nil, bad
	}
	at := uint64(headerBytes)
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(h[len(indexMagic)+4*i:]) }
	x.size, x.nodes, x.words, x.flags, x.tapes, x.strings = number(0), number(1), number(2), number(3), number(4), number(5)
	x.comments = number(6) != 0
	for _, s := range [...]struct {
		at   *uint32
		size uint64
	}{
		{nil, uint64(x.nodes) * nodeBytes}, {&x.wordsAt, uint64(x.words) * wordBytes}, {&x.flagsAt, uint64(x.flags) * flagBytes},
		{&x.worstAt, uint64(worstBytes)}, {&x.tapesAt, uint64(x.tapes)}, {&x.stringsAt, uint64(x.strings)},
	} {
		if s.at != nil {
			*s.at = uint32(at)
		}
		at += s.size
	}
	if at != uint64(x.data.size) || x.nodes == 0 || at > 1<<30 || int64(x.size) != textSize {
		return nil, bad
	}
	r, ok := x.record(0)
	if !ok {
		return nil, bad
	}
	d := x.load(r)
	if d == nil {
		return nil, bad
	}
	doc, err := newDocument(d.src, d.tape)
	if err != nil {
		return nil, err
	}
	doc.index = x
	return doc, nil
}

// Whole returns the document read in full; a document without an index is that
// already. Whoever lists or checks all of it needs no index.
func (d *Document) Whole() (*Document, error) {
	if d.index == nil {
		return d, nil
	}
	raw := make([]byte, d.index.size)
	if n, err := d.index.text.ReadAt(raw, 0); n != len(raw) {
		return nil, &DocError{Code: errcode.MetadataStructure, Msg: "the document cannot be read: " + textOf(err)}
	}
	return Parse(raw, ParseOptions{Comments: d.index.comments, MaxBytes: len(raw)})
}

// whole is Whole for those who cannot fail: what can be read of an indexed document is
// its root, without commands.
func (d *Document) whole() *Document {
	if w, err := d.Whole(); err == nil {
		return w
	}
	return d
}

func textOf(err error) string {
	if err == nil {
		return "it has become shorter"
	}
	return err.Error()
}

// inMemory is a text that is here already.
type inMemory []byte

func (m inMemory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// blocks reads parts of an index, each block of a large one once.
type blocks struct {
	all  []byte
	at   io.ReaderAt
	size int64

	mu   sync.Mutex
	have map[uint32][]byte
}

const blockBytes = 2 << 10

// bytes returns n bytes at off, nil if there are fewer. They are not to be changed.
func (b *blocks) bytes(off, n uint32) []byte {
	if int64(off)+int64(n) > b.size {
		return nil
	}
	if b.all != nil {
		return b.all[off : off+n : off+n]
	}
	if n == 0 {
		return []byte{}
	}
	first, last := off/blockBytes, (off+n+blockBytes-1)/blockBytes
	if last > first+1 {
		// What spans blocks is rare, or long and wanted once.
		out := make([]byte, n)
		if got, _ := b.at.ReadAt(out, int64(off)); got != len(out) {
			return nil
		}
		return out
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	block := b.have[first]
	if block == nil {
		block = make([]byte, min(blockBytes, b.size-int64(first)*blockBytes))
		if got, _ := b.at.ReadAt(block, int64(first)*blockBytes); got != len(block) {
			return nil
		}
		if b.have == nil {
			b.have = make(map[uint32][]byte)
		}
		b.have[first] = block
	}
	from := off - first*blockBytes
	return block[from : from+n : from+n]
}

func (x *index) record(i uint32) (*nodeRecord, bool) {
	if i >= x.nodes {
		return nil, false
	}
	p := x.data.bytes(uint32(headerBytes)+i*nodeBytes, nodeBytes)
	if p == nil {
		return nil, false
	}
	f := func(i int) uint32 { return binary.LittleEndian.Uint32(p[4*i:]) }
	r := &nodeRecord{f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13)}
	return r, r.off < r.end && r.end <= x.size && r.commands <= r.commandsEnd &&
		(r.commandsEnd == 0 || r.off < r.commands && r.commandsEnd < r.end) &&
		r.firstChild > i && within(r.firstChild, r.children, x.nodes) &&
		within(r.firstWord, r.words, x.words) && within(r.firstFlag, r.flags, x.flags) &&
		within(r.firstEntry, r.entryLength, x.tapes/entryBytes)
}

// str is a string of the index.
func (x *index) str(off, n uint32) (string, bool) {
	if !within(off, n, x.strings) {
		return "", false
	}
	if n == 0 {
		return "", true
	}
	b := x.data.bytes(x.stringsAt+off, n)
	return unsafe.String(unsafe.SliceData(b), len(b)), b != nil
}

// load reads a command's own text as a document of its own; nil if it cannot be read
// or is not what was indexed.
func (x *index) load(r *nodeRecord) *Document {
	text, ok := x.ownText(r)
	if !ok {
		return nil
	}
	if r.entryLength > 0 {
		tape, ok := x.tape(r, len(text))
		if !ok {
			return nil
		}
		return &Document{src: text, tape: tape}
	}
	tape, err := scanOwn(text)
	if err != nil {
		return nil
	}
	return &Document{src: text, tape: tape}
}

func (x *index) ownText(r *nodeRecord) (string, bool) {
	if m, ok := x.text.(inMemory); ok && !x.comments {
		if uint64(r.end) > uint64(len(m)) {
			return "", false
		}
		return ownText(unsafe.String(unsafe.SliceData(m), len(m)), r), true
	}
	raw := make([]byte, 0, int(r.end-r.off)-int(r.commandsEnd-r.commands)+2)
	add := func(from, to uint32) bool {
		at := len(raw)
		raw = raw[:at+int(to-from)]
		n, _ := x.text.ReadAt(raw[at:], int64(from))
		return n == int(to-from)
	}
	if r.commandsEnd-r.commands <= 2 {
		if !add(r.off, r.end) {
			return "", false
		}
	} else {
		if !add(r.off, r.commands) {
			return "", false
		}
		raw = append(raw, '{', '}')
		if !add(r.commandsEnd, r.end) {
			return "", false
		}
	}
	if x.comments {
		// The pieces were cut at values, so no comment and no string is cut.
		stripped, err := StripComments(raw)
		if err != nil {
			return "", false
		}
		raw = stripped
	}
	return unsafe.String(unsafe.SliceData(raw), len(raw)), true
}

// tape reads a stored tape. On a little-endian machine entries stand in memory as they
// do in the index, which halves the cost of a long one.
func (x *index) tape(r *nodeRecord, textLen int) ([]entry, bool) {
	body := x.data.bytes(x.tapesAt+r.firstEntry*entryBytes, r.entryLength*entryBytes)
	if body == nil {
		return nil, false
	}
	tape := make([]entry, r.entryLength)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tape))), len(body)), body)
	} else {
		for i := range tape {
			p := body[i*entryBytes:]
			tape[i] = entry{
				off: binary.LittleEndian.Uint32(p), end: binary.LittleEndian.Uint32(p[4:]),
				next: binary.LittleEndian.Uint32(p[8:]), kind: Kind(p[12]), flags: p[13],
			}
		}
	}
	for i := range tape {
		e := &tape[i]
		if e.off >= e.end || int(e.end) > textLen || int(e.next) <= i || int(e.next) > len(tape) ||
			e.kind > KindObject || e.kind == KindString && e.end-e.off < 2 {
			return nil, false
		}
	}
	return tape, wellFormed(tape)
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

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
