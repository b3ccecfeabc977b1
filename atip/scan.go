package atip

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Limits of a document. Beyond them nothing is read, so that a hostile document
// costs no more than its size.
const (
	defaultMaxBytes = 4 << 20
	maxDepth        = 64
	maxString       = 64 << 10
	maxCommandDepth = 16
	maxCommands     = 20000
	maxOptions      = 512
)

// entry is one value on the tape: values in the order of the text, a member's key
// before its value. 16 bytes each, so the tape of a 58 KB document is one
// allocation that stays in the second-level cache.
type entry struct {
	off, end uint32 // the bytes of the value, quotes included
	next     uint32 // index of the entry after this value and all it holds
	kind     Kind
	flags    uint8
}

const (
	flagEscaped uint8 = 1 << iota // a string that differs from its bytes
	flagControl                   // a string that holds a control character once decoded
	flagMixed                     // a key with other than lower-case ASCII letters
)

// place says what the keys of an object are.
type place uint8

const (
	placeFields place = iota // names of fields: no two may be equal under case folding
	placeData                // data, such as command names
	placeOpaque              // below a vendor's x- field: duplicates only
)

type scanner struct {
	b        []byte
	s        string // the same bytes; substrings of it outlive the caller's buffer
	tape     []entry
	names    int          // entries of the tape that are a member's name
	keys     []scannedKey // keys of the objects being read, innermost last
	document bool         // an ATIP document: its fields, data keys and limits
	data     []string
	known    []string
	commands int
	nested   int // depth of "commands" objects
	build    bool
}

// scannedKey is a key of an object being read. It holds no pointer, so that keeping
// keys costs no work of the garbage collector.
type scannedKey struct {
	off, end uint32
	flags    uint8
}

func (s *scanner) keyText(k scannedKey) string {
	text := s.s[k.off+1 : k.end-1]
	if k.flags&flagEscaped != 0 {
		return unescape(text)
	}
	return text
}

func (s *scanner) fail(code string, at int, msg string) error {
	line, col := position(s.s, at)
	return &DocError{Code: code, Line: line, Col: col, Msg: msg}
}

func (s *scanner) bad(at int, msg string) error { return s.fail(errcode.MetadataSyntax, at, msg) }

// position counts lines and bytes of the line, both from 1.
func position(src string, at int) (line, col int) {
	line, start := 1, 0
	for i := 0; i < at && i < len(src); i++ {
		if src[i] == '\n' {
			line++
			start = i + 1
		}
	}
	return line, at - start + 1
}

func scan(raw []byte, o ParseOptions, document, build bool) (*scanner, error) {
	limit := o.MaxBytes
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	if len(raw) > limit {
		return nil, &DocError{Code: errcode.MetadataLimit, Msg: strconv.Itoa(len(raw)) + " bytes are more than the limit of " + strconv.Itoa(limit)}
	}
	if o.Comments {
		stripped, err := StripComments(raw)
		if err != nil {
			return nil, err
		}
		raw = stripped
	}
	s := &scanner{b: raw, s: string(raw), document: document, data: o.DataKeys, known: o.Known, build: build}
	s.keys = make([]scannedKey, 0, 64)
	if build {
		// Most values are strings, objects and arrays.
		most := bytes.Count(raw, []byte{'"'})/2 + bytes.Count(raw, []byte{'{'}) + bytes.Count(raw, []byte{'['})
		s.tape = make([]entry, 0, most+most/8+8)
	}
	if len(raw) >= 3 && raw[0] == 0xEF && raw[1] == 0xBB && raw[2] == 0xBF {
		return nil, s.bad(0, "text starts with a byte order mark")
	}
	i := s.space(0)
	if i == len(raw) {
		return nil, s.bad(i, "text is empty")
	}
	i, err := s.value(i, placeFields, "", 0)
	if err != nil {
		return nil, err
	}
	if i = s.space(i); i != len(raw) {
		return nil, s.bad(i, "data after the end of the value")
	}
	return s, nil
}

func (s *scanner) space(i int) int {
	b := s.b
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func (s *scanner) push(e entry) int {
	if s.build {
		s.tape = append(s.tape, e)
	}
	return len(s.tape) - 1
}

// value reads one value. key is the name it stands under, that of the array for
// elements of one.
func (s *scanner) value(i int, p place, key string, depth int) (int, error) {
	if i >= len(s.b) {
		return i, s.bad(i, "text ends where a value is expected")
	}
	switch c := s.b[i]; c {
	case '{':
		return s.object(i, p, key, depth+1)
	case '[':
		return s.array(i, p, key, depth+1)
	case '"':
		end, flags, err := s.str(i)
		if err != nil {
			return i, err
		}
		if flags&flagControl != 0 && p != placeOpaque && isIdentifier(key) {
			return i, s.bad(i, "control character in "+key)
		}
		s.push(entry{off: uint32(i), end: uint32(end), next: uint32(len(s.tape) + 1), kind: KindString, flags: flags})
		return end, nil
	case 't':
		return s.literal(i, "true", KindTrue)
	case 'f':
		return s.literal(i, "false", KindFalse)
	case 'n':
		return s.literal(i, "null", KindNull)
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return s.number(i)
		}
		return i, s.bad(i, "unexpected "+strconv.QuoteRune(rune(c)))
	}
}

func (s *scanner) literal(i int, word string, k Kind) (int, error) {
	if len(s.b)-i < len(word) || s.s[i:i+len(word)] != word {
		return i, s.bad(i, "invalid literal")
	}
	end := i + len(word)
	s.push(entry{off: uint32(i), end: uint32(end), next: uint32(len(s.tape) + 1), kind: k})
	return end, nil
}

func (s *scanner) number(start int) (int, error) {
	b, i := s.b, start
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return start, s.bad(start, "invalid number")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return start, s.bad(start, "invalid number")
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return start, s.bad(start, "invalid number")
		}
	}
	if i-start > 64 {
		return start, s.fail(errcode.MetadataLimit, start, "number of more than 64 characters")
	}
	s.push(entry{off: uint32(start), end: uint32(i), next: uint32(len(s.tape) + 1), kind: KindNumber})
	return i, nil
}

func (s *scanner) array(start int, p place, key string, depth int) (int, error) {
	if depth > maxDepth {
		return start, s.fail(errcode.MetadataLimit, start, "nesting deeper than 64 levels")
	}
	if p == placeData {
		p = placeFields
	}
	self := s.push(entry{off: uint32(start), kind: KindArray})
	i := s.space(start + 1)
	n := 0
	if i < len(s.b) && s.b[i] == ']' {
		i++
	} else {
		for {
			var err error
			if i, err = s.value(i, p, key, depth); err != nil {
				return i, err
			}
			n++
			i = s.space(i)
			if i >= len(s.b) {
				return i, s.bad(i, "text ends inside an array")
			}
			if s.b[i] == ']' {
				i++
				break
			}
			if s.b[i] != ',' {
				return i, s.bad(i, "expected , or ] in array")
			}
			i = s.space(i + 1)
		}
	}
	if n > maxOptions && s.document && (key == "options" || key == "globalOptions") && p == placeFields {
		return start, s.fail(errcode.MetadataLimit, start, "more than 512 options in one list")
	}
	s.close(self, i)
	return i, nil
}

func (s *scanner) close(self, end int) {
	if s.build {
		s.tape[self].end, s.tape[self].next = uint32(end), uint32(len(s.tape))
	}
}

func (s *scanner) object(start int, p place, key string, depth int) (int, error) {
	if depth > maxDepth {
		return start, s.fail(errcode.MetadataLimit, start, "nesting deeper than 64 levels")
	}
	self := s.push(entry{off: uint32(start), kind: KindObject})
	base := len(s.keys)
	i := s.space(start + 1)
	if i < len(s.b) && s.b[i] == '}' {
		s.close(self, i+1)
		return i + 1, nil
	}
	commands := s.document && p == placeData && key == "commands"
	if commands {
		if s.nested++; s.nested > maxCommandDepth {
			return start, s.fail(errcode.MetadataLimit, start, "commands nested deeper than 16 levels")
		}
	}
	var seen uint64
	repeated := false // some key may equal another
	for {
		if i >= len(s.b) || s.b[i] != '"' {
			return i, s.bad(i, "expected a quoted key")
		}
		end, flags, err := s.str(i)
		if err != nil {
			return i, err
		}
		if flags&flagControl != 0 {
			return i, s.bad(i, "control character in a key")
		}
		s.push(entry{off: uint32(i), end: uint32(end), next: uint32(len(s.tape) + 1), kind: KindString, flags: flags})
		s.names++
		if flags&flagEscaped != 0 {
			flags |= flagMixed
		}
		k := scannedKey{uint32(i), uint32(end), flags}
		name := s.keyText(k)
		s.keys = append(s.keys, k)
		bit := keyBit(name)
		repeated = repeated || seen&bit != 0 || flags&flagMixed != 0
		seen |= bit
		if p == placeFields {
			if err := s.checkKnown(k, name); err != nil {
				return i, err
			}
		}
		if i = s.space(end); i >= len(s.b) || s.b[i] != ':' {
			return i, s.bad(i, "expected : after a key")
		}
		if i, err = s.value(s.space(i+1), s.below(p, name), name, depth); err != nil {
			return i, err
		}
		if i = s.space(i); i >= len(s.b) {
			return i, s.bad(i, "text ends inside an object")
		}
		if s.b[i] == '}' {
			i++
			break
		}
		if s.b[i] != ',' {
			return i, s.bad(i, "expected , or } in object")
		}
		i = s.space(i + 1)
	}
	if commands {
		s.nested--
		if s.commands += len(s.keys) - base; s.commands > maxCommands {
			return start, s.fail(errcode.MetadataLimit, start, "more than 20000 commands")
		}
	}
	if repeated {
		if err := s.checkKeys(s.keys[base:], p); err != nil {
			return i, err
		}
	}
	s.keys = s.keys[:base]
	s.close(self, i)
	return i, nil
}

// below is the place of the value of a member.
func (s *scanner) below(p place, name string) place {
	switch p {
	case placeOpaque:
		return placeOpaque
	case placeData:
		return placeFields
	}
	if s.document {
		return documentPlace(name)
	}
	if slices.Contains(s.data, name) {
		return placeData
	}
	return placeFields
}

// str reads the string at i and returns the index after its closing quote.
func (s *scanner) str(start int) (end int, flags uint8, err error) {
	b, i := s.b, start+1
	for {
		// Eight plain ASCII bytes at a time: a byte below 0x20, a quote, a
		// backslash, 0x7f or a byte from 0x80 ends the stride. Upper case must be
		// seen too, for keys.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			const lo, hi = 0x0101010101010101, 0x8080808080808080
			q := w ^ (lo * '"')
			k := w ^ (lo * '\\')
			m := (w - lo*0x20) | w | (q - lo) | (k - lo) | (w + lo)
			if m &= hi; m != 0 {
				n := bits.TrailingZeros64(m) >> 3
				if hasUpper(w & (1<<(n*8) - 1)) {
					flags |= flagMixed
				}
				i += n
				break
			}
			if hasUpper(w) {
				flags |= flagMixed
			}
			i += 8
		}
		if i >= len(b) {
			return i, flags, s.bad(start, "string is not closed")
		}
		switch c := b[i]; {
		case c == '"':
			i++
			if i-start > maxString {
				return i, flags, s.fail(errcode.MetadataLimit, start, "string of more than 64 KiB")
			}
			return i, flags, nil
		case c == '\\':
			flags |= flagEscaped
			n, control, msg := escape(b[i:])
			if msg != "" {
				return i, flags, s.bad(i, msg)
			}
			if control {
				flags |= flagControl
			}
			i += n
		case c < 0x20:
			return i, flags, s.bad(i, "control character in a string")
		case c < 0x80:
			if c == 0x7f {
				flags |= flagControl
			}
			if c >= 'A' && c <= 'Z' {
				flags |= flagMixed
			}
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return i, flags, s.bad(i, "invalid UTF-8")
			}
			if r < 0xa0 {
				flags |= flagControl
			}
			flags |= flagMixed
			i += n
		}
	}
}

// hasUpper may report a letter that is not upper case; it never misses one. All
// bytes of w are below 0x80.
func hasUpper(w uint64) bool {
	const lo, hi = 0x0101010101010101, 0x8080808080808080
	return (w+lo*(0x80-'A'))&^(w+lo*(0x80-'Z'-1))&hi != 0
}

// escape checks the escape sequence at the start of b.
func escape(b []byte) (n int, control bool, msg string) {
	if len(b) < 2 {
		return 0, false, "string is not closed"
	}
	switch b[1] {
	case '"', '\\', '/':
		return 2, false, ""
	case 'b', 'f', 'n', 'r', 't':
		return 2, true, ""
	case 'u':
		r, ok := hex4(b[2:])
		switch {
		case !ok:
			return 0, false, "invalid \\u escape"
		case r == 0:
			return 0, false, "U+0000 in a string"
		case r >= 0xdc00 && r < 0xe000:
			return 0, false, "lone surrogate in a string"
		case r >= 0xd800 && r < 0xdc00:
			if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
				return 0, false, "lone surrogate in a string"
			}
			if low, ok := hex4(b[8:]); !ok || low < 0xdc00 || low > 0xdfff {
				return 0, false, "lone surrogate in a string"
			}
			return 12, false, ""
		}
		return 6, r < 0x20 || r >= 0x7f && r < 0xa0, ""
	}
	return 0, false, "invalid escape in a string"
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// Bounds of one call; beyond them nothing is resolved.
const (
	maxReadings  = 16
	maxWords     = 4096
	maxWordBytes = 1 << 20
	maxWork      = 1 << 23 // steps of comparing words with what a document names
)

// use is one option as it stands in the words.
type use struct {
	opt         *option // nil while unknown
	flag        string  // as typed
	value       string
	values      []string // of an option that takes several words
	hasValue    bool
	afterEquals bool // -o=VALUE: whether "=" is part of it depends on the tool
	maybe       bool
	negated     bool
	fromEnv     bool
	pending     bool // stood before the command word, declared nowhere above it
	arity       int  // words a pending use has taken
	spell       spellings
}

type word struct {
	text string
	name string
	at   int // index in argv
}

// reading is one way to split the words. A word whose role is not known forks it.
type reading struct {
	*resolver
	n     *node
	at    int // next word
	uses  []use
	words []word // positionals
	pairs []word // name=value words

	afterDash  int  // how many positionals stood before "--"; -1 if there was none
	moved      bool // a positional was taken at a node with subcommands
	optionsEnd bool

	unknown    []string // flags the document does not know
	suspicious bool     // one of them names something like delete or exec
	bounded    bool
	unresolved bool
	omitted    bool   // unresolved, but the document says what omitted commands may do
	unmatched  string // the word that names no command

	spell spellings // of all uses, once asked for
}

// fork returns a copy that shares nothing that either will write.
func (r *reading) fork() *reading {
	r.spend(len(r.uses) + len(r.words))
	c := *r
	c.uses = append([]use(nil), r.uses...)
	c.words = append([]word(nil), r.words...)
	c.pairs = append([]word(nil), r.pairs...)
	c.unknown = append([]string(nil), r.unknown...)
	return &c
}

// read takes the words one by one until they end or stop making sense.
func (r *reading) read() {
	for r.at < len(r.argv) && !r.unresolved {
		w := r.argv[r.at]
		r.at++
		c := &r.n.conv
		switch {
		case c.responsePrefix != "" && strings.HasPrefix(w, c.responsePrefix) && len(w) > len(c.responsePrefix):
			// The words stand in a file nobody has read.
			r.unresolved = true
		case r.optionsEnd || c.noOptions:
			r.positional(w)
		case w == "--" && c.dashdash:
			r.optionsEnd = true
			r.afterDash = len(r.words)
		case len(w) > 2 && w[0] == '-' && w[1] == '-':
			r.long(w)
		case len(w) > 1 && w[0] == '-' && w != "--":
			r.short(w)
		case c.bareCluster && r.at == r.start+1 && w != "" && w != "-":
			r.bareCluster(w)
		default:
			r.positional(w)
		}
	}
	for ; r.at < len(r.argv); r.at++ {
		r.words = append(r.words, word{text: r.argv[r.at], at: r.at})
	}
}

func (r *reading) positional(w string) {
	n := r.n
	if n.broken {
		r.unmatchedWord(w)
		return
	}
	if !r.moved && n.anyKids() {
		if !r.optionsEnd {
			child, abbreviated := n.lookup(w)
			if child != nil {
				r.n = child
				r.bounded = r.bounded || abbreviated
				return
			}
		}
		siblings := n.hasKids()
		blank := n.bare()
		switch {
		case siblings && r.partial:
			r.omitted = true
			r.unmatchedWord(w)
			return
		case siblings && !(n.operands() && r.rank > Inferred):
			// A word that names no command may be one that the document lacks.
			r.unmatchedWord(w)
			return
		case blank != nil && blank.takesArguments(siblings):
			r.n = blank
		case len(n.arguments) > 0:
		default:
			r.unmatchedWord(w)
			return
		}
		r.moved = true
		r.positional(w)
		return
	}
	if r.partial && len(r.words) == 0 && r.filterDepth > 0 && n.depth == r.filterDepth && len(n.arguments) == 0 && !r.moved {
		r.omitted = true
		r.unmatchedWord(w)
		return
	}
	if n.conv.keyValue && strings.IndexByte(w, '=') > 0 {
		r.pairs = append(r.pairs, word{text: w, at: r.at - 1})
		return
	}
	if strings.IndexByte(w, '=') > 0 {
		r.pairs = append(r.pairs, word{text: w, at: r.at - 1})
	}
	r.words = append(r.words, word{text: w, at: r.at - 1})
	if !n.conv.interspersed {
		r.optionsEnd = true
	}
}

func (r *reading) unmatchedWord(w string) {
	r.unmatched = w
	r.unresolved = true
	r.words = append(r.words, word{text: w, at: r.at - 1})
}

// finish settles what only the final command decides: pending options, names of
// positionals, options set by the environment.
func (r *reading) finish() {
	if r.unresolved {
		return
	}
	if r.n.kids.ok() && !r.moved {
		if blank := r.n.bare(); blank != nil {
			r.n = blank
		}
	}
	for n := r.n; n != nil; n = n.parent {
		if n.broken {
			r.unresolved = true
			return
		}
	}
	for i := range r.uses {
		u := &r.uses[i]
		if !u.pending {
			continue
		}
		u.pending = false
		o := r.n.inScope(u.flag)
		switch {
		case o == nil:
			u.opt = nil
			r.noteUnknown(u.flag)
		case o.arity == u.arity || o.optional && u.arity == 0 || u.hasValue && o.arity == 1:
			u.opt = o
		default:
			u.opt = o
			u.maybe = true
			r.bounded = true
		}
	}
	r.nameWords()
	r.checkEnums()
	r.optionsFromEnv()
}

// nameWords gives positionals the names of the declared arguments. What follows a
// variadic argument is taken from the end: cp SOURCE... DEST.
func (r *reading) nameWords() {
	args := r.n.arguments
	if !r.n.argsKnown {
		return
	}
	variadic := -1
	for i := range args {
		if args[i].variadic {
			variadic = i
			break
		}
	}
	give := func(w, a int) {
		r.words[w].name = args[a].name
		if list := args[a].enum; list.is(KindArray) && !listHasScalar(list, r.words[w].text) {
			r.bounded = true
		}
	}
	if variadic < 0 {
		for i := range r.words {
			if i >= len(args) {
				r.bounded = true
				return
			}
			give(i, i)
		}
		return
	}
	after := len(args) - variadic - 1
	rest := len(r.words) - variadic
	if args[variadic].required {
		rest--
	}
	tail := min(after, max(rest, 0))
	for i := range r.words {
		switch fromEnd := len(r.words) - i; {
		case i < variadic:
			give(i, i)
		case fromEnd <= tail:
			give(i, variadic+1+tail-fromEnd)
		default:
			give(i, variadic)
		}
	}
}

func (r *reading) checkEnums() {
	for i := range r.uses {
		u := &r.uses[i]
		if u.opt != nil && u.hasValue && u.opt.enum.is(KindArray) && !u.opt.boolean() && !listHasScalar(u.opt.enum, u.value) {
			r.bounded = true
		}
	}
}

func listHasScalar(list val, s string) bool {
	found := false
	list.items(func(_ int, item val) { found = found || item.scalar() == s })
	return found
}

// optionsFromEnv adds options set by a variable of the child: present as far as a
// when asks, never for a narrow.
func (r *reading) optionsFromEnv() {
	if r.env == nil {
		return
	}
	for n := r.n; n != nil; n = n.parent {
		for i := range n.options {
			o := &n.options[i]
			if o.envVar == "" {
				continue
			}
			value, ok := r.env(o.envVar)
			if !ok {
				continue
			}
			present := false
			for j := range r.uses {
				present = present || r.uses[j].opt == o
			}
			if !present {
				r.uses = append(r.uses, use{opt: o, flag: o.flags[0], value: value, hasValue: !o.boolean(), maybe: true, fromEnv: true})
			}
		}
	}
}

func (r *reading) getenv(name string) (string, bool) {
	if r.env == nil {
		return "", false
	}
	return r.env(name)
}

// envPrefix reports whether any variable begins with prefix; known is false if the
// names were not given.
func (r *resolver) envPrefix(prefix string) (set, known bool) {
	if r.env == nil {
		return false, true
	}
	if r.envNames == nil {
		return false, false
	}
	if slices.ContainsFunc(r.envNames, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
		return true, true
	}
	return false, true
}
