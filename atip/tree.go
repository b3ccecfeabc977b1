package atip

import (
	"strings"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind uint8

// The JSON types.
const (
	KindNull Kind = iota
	KindFalse
	KindTrue
	KindNumber
	KindString
	KindArray
	KindObject
)

// Node is one value of a strictly read JSON text, with its position. Members of an
// object keep their order.
type Node struct {
	Kind      Kind
	Key       string // member name, when the parent is an object
	KeyLine   int
	KeyCol    int
	Text      string // a string decoded, a number as written
	Items     []*Node
	Line, Col int // of the value; columns count bytes from 1
}

// Get returns the member with this name, nil if there is none.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != KindObject {
		return nil
	}
	for _, m := range n.Items {
		if m.Key == key {
			return m
		}
	}
	return nil
}

// Bool returns the value of true or false; ok is false for any other kind.
func (n *Node) Bool() (v, ok bool) {
	if n == nil {
		return false, false
	}
	return n.Kind == KindTrue, n.Kind == KindTrue || n.Kind == KindFalse
}

// ParseTree reads strict JSON: valid UTF-8, no byte order mark, no duplicate or
// case-variant keys, no lone surrogates, no U+0000, nothing after the value, at
// most 64 levels. Errors are *DocError with code E1101 or E1102.
func ParseTree(raw []byte, o ParseOptions) (*Node, error) {
	s, err := scan(raw, o, false, true)
	if err != nil {
		return nil, err
	}
	values := len(s.tape) - s.names
	b := treeBuilder{s: s.s, tape: s.tape, nodes: make([]Node, values), items: make([]*Node, values), line: 1}
	n, _ := b.build(0)
	return n, nil
}

// ScanStrict checks what ParseTree checks and builds nothing.
func ScanStrict(raw []byte, o ParseOptions) error {
	_, err := scan(raw, o, false, false)
	return err
}

type treeBuilder struct {
	s     string
	tape  []entry
	nodes []Node  // not taken yet, as many as there are values
	items []*Node // likewise
	line  int
	start int // of the line
	at    int // how far lines have been counted; offsets only grow
}

func (b *treeBuilder) pos(off uint32) (line, col int) {
	for ; b.at < int(off); b.at++ {
		if b.s[b.at] == '\n' {
			b.line++
			b.start = b.at + 1
		}
	}
	return b.line, int(off) - b.start + 1
}

func (b *treeBuilder) build(i uint32) (*Node, uint32) {
	e := &b.tape[i]
	n := &b.nodes[0]
	b.nodes = b.nodes[1:]
	n.Kind = e.kind
	n.Line, n.Col = b.pos(e.off)
	switch e.kind {
	case KindString:
		n.Text = entryText(b.s, e)
	case KindNumber:
		n.Text = b.s[e.off:e.end]
	case KindArray:
		b.room(n, i, e.next, 0)
		for j := i + 1; j < e.next; {
			var item *Node
			item, j = b.build(j)
			n.Items = append(n.Items, item)
		}
	case KindObject:
		b.room(n, i, e.next, 1)
		for j := i + 1; j < e.next; {
			key := &b.tape[j]
			line, col := b.pos(key.off)
			item, next := b.build(j + 1)
			item.Key, item.KeyLine, item.KeyCol = entryText(b.s, key), line, col
			n.Items = append(n.Items, item)
			j = next
		}
	}
	return n, e.next
}

// room takes the place of the items of entry i, which stand before end, each behind as
// many entries as its name takes.
func (b *treeBuilder) room(n *Node, i, end, name uint32) {
	count := 0
	for j := i + 1; j < end; j = b.tape[j+name].next {
		count++
	}
	if count > 0 {
		n.Items, b.items = b.items[:0:count], b.items[count:]
	}
}

func entryText(s string, e *entry) string {
	text := s[e.off+1 : e.end-1]
	if e.flags&flagEscaped != 0 {
		return unescape(text)
	}
	return text
}

// unescape decodes a string body that the scanner has accepted.
func unescape(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			i++
			continue
		}
		switch s[i+1] {
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			r, _ := hex4([]byte(s[i+2 : i+6]))
			if r >= 0xd800 && r < 0xdc00 {
				low, _ := hex4([]byte(s[i+8 : i+12]))
				r = (r-0xd800)<<10 | (low - 0xdc00) + 0x10000
				i += 6
			}
			var buf [utf8.UTFMax]byte
			out.Write(buf[:utf8.EncodeRune(buf[:], r)])
			i += 4
		default:
			out.WriteByte(s[i+1])
		}
		i += 2
	}
	return out.String()
}
