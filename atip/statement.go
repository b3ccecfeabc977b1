package atip

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// statement is what one effects object states. An effect may be stated as unknown:
// by a value of the wrong type, or by a "no" beside a key nobody knows.
type statement struct {
	value     [NumEffects]Value
	stated    Set
	lists     bool // creates, modifies or deletes name something
	deletes   bool
	paths     val
	stdin     string
	tty       Value
	prompts   Value
	ttyStated bool
	prStated  bool
	timeout   string
}

// remark receives what is wrong with an effects object: the value, its pointer
// below the object, a code and a text.
type remark func(v val, at, code, msg string)

func (s *statement) set(e Effect, v Value) {
	s.value[e] = v
	s.stated = s.stated.With(e)
}

// readStatement decodes an effects object. With the extension set, the five effects
// that ATIP itself cannot state are known too.
func readStatement(v val, extended bool, note remark) statement {
	var s statement
	if note == nil {
		note = func(val, string, string, string) {}
	}
	poisoned := false
	v.members(func(key string, m val) bool {
		e, ok := effectField(key, extended)
		if ok {
			b, isBool := m.boolean()
			if !isBool {
				note(m, "/"+key, "effect-type", key+" is not true or false")
				s.set(e, Unknown)
				return true
			}
			s.set(e, Of(b))
			return true
		}
		switch key {
		case "filesystem":
			s.readFilesystem(m, note)
		case "creates", "modifies", "deletes":
			list, ok := m.strings()
			if !ok {
				note(m, "/"+key, "effect-type", key+" is not an array of strings")
			}
			if len(list) > 0 || !ok {
				s.lists = true
				s.deletes = s.deletes || key == "deletes"
			}
		case "interactive":
			s.readInteractive(m, note)
		case "cost":
			s.readCost(m, note)
		case "duration":
			s.timeout = m.get("timeout").str()
			if !m.is(KindObject) {
				note(m, "/duration", "effect-type", "duration is not an object")
			}
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("", key), "effect-key", "unknown effect "+quoteShort(key))
				poisoned = poisoned || !m.is(KindFalse)
			}
		}
		return true
	})
	if poisoned {
		s.poison(0, NumEffects)
	}
	if s.deletes && s.stated.Has(Destructive) && s.value[Destructive] == No && s.stated.Has(Reversible) && s.value[Reversible] == No {
		note(v, "/destructive", "contradiction", "deletes something irreversibly, yet is not destructive")
		s.set(Destructive, Unknown)
	}
	return s
}

// poison makes harmless values unknown.
func (s *statement) poison(from, to int) {
	for e := from; e < to; e++ {
		if s.stated.Has(Effect(e)) && risk(Effect(e), s.value[e]) == 0 {
			s.value[e] = Unknown
		}
	}
}

// effectField finds the effects that stand directly in an effects object.
func effectField(key string, extended bool) (Effect, bool) {
	switch key {
	case "network":
		return Network, true
	case "subprocess":
		return Subprocess, true
	case "destructive":
		return Destructive, true
	case "idempotent":
		return Idempotent, true
	case "reversible":
		return Reversible, true
	}
	if extended {
		switch key {
		case "secretRead":
			return SecretRead, true
		case "privileged":
			return Privileged, true
		case "persistence":
			return Persistence, true
		case "remoteMutation":
			return RemoteMutation, true
		case "execOpaque":
			return ExecOpaque, true
		}
	}
	return 0, false
}

func (s *statement) readFilesystem(v val, note remark) {
	if !v.is(KindObject) {
		note(v, "/filesystem", "effect-type", "filesystem is not an object")
		s.set(Read, Unknown)
		s.set(Write, Unknown)
		s.set(Delete, Unknown)
		return
	}
	poisoned := false
	v.members(func(key string, m val) bool {
		var e Effect
		switch key {
		case "read":
			e = Read
		case "write":
			e = Write
		case "delete":
			e = Delete
		case "paths":
			if _, ok := m.strings(); !ok {
				note(m, "/filesystem/paths", "effect-type", "paths is not an array of strings")
			} else {
				s.paths = m
			}
			return true
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("/filesystem", key), "effect-key", "unknown effect "+quoteShort("filesystem."+key))
				poisoned = poisoned || !m.is(KindFalse)
			}
			return true
		}
		b, ok := m.boolean()
		if !ok {
			note(m, "/filesystem/"+key, "effect-type", "filesystem."+key+" is not true or false")
			s.set(e, Unknown)
			return true
		}
		s.set(e, Of(b))
		return true
	})
	if poisoned {
		s.poison(int(Read), int(Delete)+1)
	}
}

func (s *statement) readCost(v val, note remark) {
	if !v.is(KindObject) {
		note(v, "/cost", "effect-type", "cost is not an object")
		s.set(Billable, Unknown)
		return
	}
	poisoned := false
	v.members(func(key string, m val) bool {
		switch key {
		case "billable":
			b, ok := m.boolean()
			if !ok {
				note(m, "/cost/billable", "effect-type", "cost.billable is not true or false")
				s.set(Billable, Unknown)
				return true
			}
			s.set(Billable, Of(b))
		case "estimate":
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("/cost", key), "effect-key", "unknown effect "+quoteShort("cost."+key))
				poisoned = poisoned || !m.is(KindFalse)
			}
		}
		return true
	})
	if poisoned {
		s.poison(int(Billable), int(Billable)+1)
	}
}

func (s *statement) readInteractive(v val, note remark) {
	if !v.is(KindObject) {
		note(v, "/interactive", "effect-type", "interactive is not an object")
		return
	}
	v.members(func(key string, m val) bool {
		switch key {
		case "stdin":
			if stdinOrder(m.str()) == 0 {
				note(m, "/interactive/stdin", "effect-type", "interactive.stdin is not none, optional, required or password")
				return true
			}
			s.stdin = m.str()
		case "prompts", "tty":
			b, ok := m.boolean()
			if !ok {
				note(m, "/interactive/"+key, "effect-type", "interactive."+key+" is not true or false")
				return true
			}
			if key == "tty" {
				s.tty, s.ttyStated = Of(b), true
			} else {
				s.prompts, s.prStated = Of(b), true
			}
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("/interactive", key), "effect-key", "unknown field "+quoteShort("interactive."+key))
			}
		}
		return true
	})
}

// stdinOrder ranks what a command needs of its standard input; 0 is no such word.
func stdinOrder(s string) int {
	switch s {
	case "none":
		return 1
	case "optional":
		return 2
	case "required":
		return 3
	case "password":
		return 4
	}
	return 0
}

// val is one value of a document: an index into its tape. The zero val is absent;
// every method answers for it as for a value of another type.
type val struct {
	d *Document
	i uint32
}

func (v val) ok() bool { return v.d != nil }

func (v val) kind() Kind {
	if v.d == nil {
		return KindNull
	}
	return v.d.tape[v.i].kind
}

func (v val) is(k Kind) bool { return v.d != nil && v.d.tape[v.i].kind == k }

// get returns the member of an object.
func (v val) get(key string) val {
	if !v.is(KindObject) {
		return val{}
	}
	tape := v.d.tape
	end := tape[v.i].next
	for j := v.i + 1; j < end; j = tape[j+1].next {
		k := &tape[j]
		if k.flags&flagEscaped == 0 {
			if int(k.end-k.off)-2 == len(key) && v.d.src[k.off+1:k.end-1] == key {
				return val{v.d, j + 1}
			}
		} else if entryText(v.d.src, k) == key {
			return val{v.d, j + 1}
		}
	}
	return val{}
}

// members calls f for each member of an object until f returns false.
func (v val) members(f func(key string, m val) bool) {
	if !v.is(KindObject) {
		return
	}
	tape := v.d.tape
	end := tape[v.i].next
	for j := v.i + 1; j < end; j = tape[j+1].next {
		if !f(entryText(v.d.src, &tape[j]), val{v.d, j + 1}) {
			return
		}
	}
}

// items calls f for each element of an array.
func (v val) items(f func(n int, item val)) {
	if !v.is(KindArray) {
		return
	}
	tape := v.d.tape
	end := tape[v.i].next
	n := 0
	for j := v.i + 1; j < end; j = tape[j].next {
		f(n, val{v.d, j})
		n++
	}
}

// size is the number of entries of a value, itself included.
func (v val) size() int {
	if v.d == nil {
		return 0
	}
	return int(v.d.tape[v.i].next - v.i)
}

func (v val) len() int {
	n := 0
	switch v.kind() {
	case KindArray:
		v.items(func(int, val) { n++ })
	case KindObject:
		v.members(func(string, val) bool { n++; return true })
	}
	return n
}

// str returns a string, "" for anything else.
func (v val) str() string {
	if !v.is(KindString) {
		return ""
	}
	return entryText(v.d.src, &v.d.tape[v.i])
}

// boolean returns the value of true or false.
func (v val) boolean() (b, ok bool) {
	switch v.kind() {
	case KindTrue:
		return true, true
	case KindFalse:
		return false, v.d != nil
	}
	return false, false
}

func (v val) isTrue() bool { return v.is(KindTrue) }

// integer returns a whole number that fits 32 bits.
func (v val) integer() (int, bool) {
	if !v.is(KindNumber) {
		return 0, false
	}
	e := &v.d.tape[v.i]
	n, err := strconv.ParseInt(v.d.src[e.off:e.end], 10, 32)
	return int(n), err == nil
}

// strings returns the strings of an array; ok is false if it is no array or holds
// anything else.
func (v val) strings() (list []string, ok bool) {
	if !v.is(KindArray) {
		return nil, false
	}
	ok = true
	if n := v.len(); n > 0 {
		list = make([]string, 0, n)
	}
	v.items(func(_ int, item val) {
		if !item.is(KindString) {
			ok = false
			return
		}
		list = append(list, item.str())
	})
	return list, ok
}

// scalar is a value as an argv would spell it.
func (v val) scalar() string {
	switch v.kind() {
	case KindString:
		return v.str()
	case KindTrue, KindFalse, KindNumber:
		e := &v.d.tape[v.i]
		return v.d.src[e.off:e.end]
	}
	return ""
}

func (v val) pos() (line, col int) {
	if v.d == nil {
		return 0, 0
	}
	return v.d.position(int(v.d.tape[v.i].off))
}

// pointerTo appends one token to a JSON pointer (RFC 6901).
func pointerTo(base, token string) string {
	if strings.ContainsAny(token, "~/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
	}
	return base + "/" + token
}

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
