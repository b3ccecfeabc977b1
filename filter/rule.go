package filter

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// rule is a row of the compiled table: what must follow one of its prefixes.
type rule struct {
	id       string
	parts    []part
	left     leftSide
	exact    bool // a longer run is no token
	distinct uint8
	digits   uint8
	check    checkID
	back     part // before the prefix
	regex    *lazyRegexp
}

type part struct {
	lit      string
	set      setID
	min, max uint16
	opt      bool
	any      []part
}

// lazyRegexp is compiled when the prefix of its rule is first seen: that costs more than all
// other rules together.
type lazyRegexp struct {
	src  string
	once sync.Once
	re   *regexp.Regexp
}

func (l *lazyRegexp) match(text []byte) int {
	l.once.Do(func() { l.re = regexp.MustCompile("^(?:" + l.src + ")") })
	if m := l.re.FindIndex(text); m != nil {
		return m[1]
	}
	return 0
}

// leftSide is what may stand before a prefix.
type leftSide uint8

const (
	leftWord  leftSide = iota // no letter or digit
	leftAny                   // anything
	leftStart                 // nor a mark that joins words: the prefix is a word that others end with
)

// maxLookback is how much may stand before a tell-tale, and is held back for it.
const maxLookback = 64

// start returns where the token of r begins whose prefix stands at i: with a lookback that is
// further left, else at i.
func (r *rule) start(v []byte, i int) int {
	if r.back.set == setNone {
		return i
	}
	from := i
	for set := &sets[r.back.set]; from > 0 && i-from < int(r.back.max) && set.has(v[from-1]); {
		from--
	}
	return from
}

// fits reports whether a token of r may start at i.
func (r *rule) fits(v []byte, i int) bool {
	if r.back.set != setNone {
		from := r.start(v, i)
		return i-from >= int(r.back.min) && (r.left == leftAny || leftOK(v, from))
	}
	switch r.left {
	case leftAny:
		return true
	case leftStart:
		return leftOK(v, i) && (i == 0 || strings.IndexByte("_-.", v[i-1]) < 0)
	}
	return leftOK(v, i)
}

type checkID uint8

const (
	checkNone checkID = iota
	checkJWT
	checkPEMBase64
	checkJWTBase64
)

func checkByName(name string) (checkID, bool) {
	switch name {
	case "", "crc32-github": // the checksum only raises confidence
		return checkNone, true
	case "jwt":
		return checkJWT, true
	case "pem-base64":
		return checkPEMBase64, true
	case "jwt-base64":
		return checkJWTBase64, true
	}
	return checkNone, false
}

type prefixEntry struct {
	text string
	rule uint16
}

// compileRule checks a row and turns it into its compiled form.
func compileRule(r *Rule) (rule, error) {
	fail := func(reason string) (rule, error) {
		return rule{}, &Error{Code: errcode.RedactionRule, Rule: r.ID, Reason: reason}
	}
	if !ruleName(r.ID) {
		return fail("id is not 1 to 48 letters, digits, _ . or -")
	}
	out := rule{id: r.ID, exact: len(r.Names) > 0, distinct: uint8(min(r.Need.Distinct, 64)), digits: uint8(min(r.Need.Digits, 64))}
	if (len(r.Prefix) == 0) == (len(r.Names) == 0) {
		return fail("either prefix or names is needed")
	}
	for _, n := range r.Names {
		if len(n) < 4 || len(n) > 40 || strings.ToLower(n) != n {
			return fail("name " + n + " is not 4 to 40 bytes in lower case")
		}
	}
	for _, p := range r.Prefix {
		if len(p) < 3 || len(p) > 64 {
			return fail("prefix " + p + " is not 3 to 64 bytes")
		}
	}
	switch r.Left {
	case "", "word":
	case "any":
		out.left = leftAny
	case "start":
		out.left = leftStart
	default:
		return fail("left is neither word, start nor any")
	}
	switch r.End {
	case "", "run":
		if len(r.Names) > 0 {
			return fail("a value behind a name ends exactly")
		}
	case "exact":
		out.exact = true
	default:
		return fail("end is neither run nor exact")
	}
	var ok bool
	if out.check, ok = checkByName(r.Check); !ok {
		return fail("unknown check " + r.Check)
	}
	if len(r.Lookback) > 0 {
		b := r.Lookback[0]
		id, ok := setByName(b.Set)
		if len(r.Lookback) > 1 || !ok || b.Min < 1 || max(b.Min, b.Max) > maxLookback {
			return fail("lookback is not one set of 1 to 64 bytes")
		}
		out.back = part{set: id, min: uint16(b.Min), max: uint16(max(b.Min, b.Max))}
	}
	if r.Regex != "" {
		re, err := syntax.Parse(r.Regex, syntax.Perl)
		switch {
		case err != nil:
			return fail("regex: " + err.Error())
		case len(r.Body) > 0 || len(r.Names) > 0:
			return fail("regex stands in place of body, with a prefix")
		case re.Op == syntax.OpStar || re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpStar:
			return fail("regex begins with a repetition")
		}
		out.regex = &lazyRegexp{src: r.Regex}
		return out, nil
	}
	if len(r.Body) == 0 {
		return fail("no body")
	}
	total, least := 0, 0
	last := setNone
	fixed := true
	for i, s := range r.Body {
		p := part{lit: s.Lit, opt: s.Opt}
		switch {
		case s.Lit != "" && s.Set != "" || len(s.Any) > 0 && s.Lit+s.Set != "":
			return fail("a shape is one of set, lit and any")
		case len(s.Any) > 0:
			for _, a := range s.Any {
				alt := part{lit: a.Lit}
				if a.Lit == "" {
					if alt.set, ok = setByName(a.Set); !ok || a.Min < 1 || a.Max > 512 {
						return fail("any holds literals and sets of 1 to 512 bytes")
					}
					alt.min, alt.max = uint16(a.Min), uint16(max(a.Min, a.Max))
				}
				p.any = append(p.any, alt)
				least = max(least, len(a.Lit), a.Min)
				total += max(len(a.Lit), a.Max)
			}
			last, fixed = setNone, true
		case s.Lit != "":
			// Greedy matching without backtracking needs this.
			if last != setNone && !fixed && sets[last].has(s.Lit[0]) {
				return fail("literal " + s.Lit + " is ambiguous after its set")
			}
			total += len(s.Lit)
			if !s.Opt {
				least += len(s.Lit)
			}
			last, fixed = setNone, true
		default:
			if p.set, ok = setByName(s.Set); !ok {
				return fail("unknown set " + s.Set)
			}
			p.min, p.max = uint16(s.Min), uint16(max(s.Min, s.Max))
			if s.Min < 1 || s.Max > 4096 || s.Opt {
				return fail("a set is 1 to 4096 bytes and not optional")
			}
			if last != setNone && !fixed {
				return fail("two sets side by side")
			}
			last, fixed = p.set, s.Max <= s.Min
			total += int(p.max)
			least += s.Min
		}
		out.parts = append(out.parts, p)
		if i == len(r.Body)-1 && p.set == setNone && !out.exact {
			return fail("a body that ends with a literal ends exactly")
		}
	}
	for i := range len(r.Alphabet) {
		if c := r.Alphabet[i]; isAlnum(c) || last == setNone || !sets[last].has(c) {
			return fail("the body ends before a " + string(rune(c)) + " of the documented alphabet")
		}
	}
	if limit := 512; !out.exact && least > limit || total > 4096 {
		return fail("longer than may be held back")
	}
	return out, nil
}

func ruleName(s string) bool {
	if s == "" || len(s) > 48 {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool { return isAlnum(c) || c == '_' || c == '.' || c == '-' }

// safeName makes a rule name of a variable or option name.
func safeName(s string) string {
	if ruleName(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 48; i++ {
		if isNameByte(s[i]) {
			b.WriteByte(s[i])
		} else {
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "value"
	}
	return b.String()
}

// vendorName is a word that names a vendor, and the rule for the value behind such a name.
type vendorName struct {
	word  string
	off   uint8
	rule  uint16
	alone bool // without key or token beside it, too: the index holds it
}

// wordMarks has a bit for the first four letters and the length of each vendor's word. Nearly all
// words of a log have none, which saves the search among hundreds of rows.
type wordMarks [128]uint64

func markOf(first uint32, n int) (word, bit uint32) {
	h := (first | 0x20202020 + uint32(n)) * hashMul >> 19
	return h >> 6, h & 63
}

var vendorMarks = sync.OnceValue(func() *wordMarks {
	m := new(wordMarks)
	for i := range vendorNames {
		if w := vendorNames[i].word; len(w) >= 4 {
			word, bit := markOf(binary.LittleEndian.Uint32([]byte(w[:4])), len(w))
			m[word] |= 1 << bit
		}
	}
	return m
})

// vendorAt returns 1 + the first row of vendorNames for one of the words of a name, or for two
// of them side by side, as in message_bird and newRelic, or 0.
func (m *wordMarks) vendorAt(name []byte) int32 {
	from, end := -1, 0 // the word before
	for i := 0; i < len(name); {
		if !isAlnum(name[i]) {
			i++
			continue
		}
		j := i + 1
		for j < len(name) && isAlnum(name[j]) && !(isUpper(name[j]) && isLower(name[j-1])) {
			j++
		}
		if row := m.vendor(name[i:j]); row > 0 {
			return row
		}
		if from >= 0 && i-end <= 1 && j-from < maxVendor && (end-from < 4 || m.has(name[from:], end-from+j-i)) {
			var both [maxVendor]byte
			n := copy(both[:], name[from:end])
			n += copy(both[n:], name[i:j])
			if row := m.vendor(both[:n]); row > 0 {
				return row
			}
		}
		from, end = i, j
		i = j
	}
	return 0
}

// maxVendor is longer than any vendor's word.
const maxVendor = 41

// vendor returns 1 + the first row of vendorNames for a word, or 0.
func (m *wordMarks) vendor(word []byte) int32 {
	if len(word) < 4 || !m.has(word, len(word)) {
		return 0
	}
	lo, hi := 0, len(vendorNames)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if compareFold(word, vendorNames[m].word) > 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(vendorNames) && compareFold(word, vendorNames[lo].word) == 0 {
		return int32(lo + 1)
	}
	return 0
}

// has reports whether a vendor's word of n letters may begin as word does.
func (m *wordMarks) has(word []byte, n int) bool {
	k, bit := markOf(binary.LittleEndian.Uint32(word), n)
	return m[k]>>bit&1 != 0
}

// whole reports whether all of a value has the shape of r.
func (r *rule) whole(val []byte) bool {
	if len(val) < 12 || bytes.ContainsAny(val, "-_.") && readable(val) {
		return false
	}
	m := matchRule(val, 0, 0, r, true)
	return m.outcome == found && m.end == len(val)
}

// entryKind says what stands behind a needle of the index.
type entryKind uint8

const (
	ePrefix      entryKind = iota // a rule's public prefix
	eKnown                        // a known value
	eArmour                       // the begin line of a private key
	eName                         // a word that names a secret; the match may lie inside it
	eVendor                       // a word that names a vendor, whose secrets have a known shape
	eURL                          // "://"
	eData                         // "data:" of a Kubernetes object
	eFlag                         // " -p" and " -u" of the few tools that take secrets there
	eArgument                     // a command or call of arguments
	eValue                        // the field of a value, perhaps in front of its name
	ePlaceholder                  // of ours
	eKeyType                      // the type of a JWK, whose other fields are the key
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
	hit     []byte // by hash: the classes of the fourth bytes of the chain
	class   [256]byte
	table   []uint16 // by hash: 1 + first entry of its chain
	entries []entry  // chains lie side by side
	screens []screen // of the entries
	first   [256]bool
}

const (
	foldMask = 0x2020202020202020
	// hashMul keeps what is frequent in build logs apart from the entries. Its lowest byte is zero: a fourth byte does not count.
	hashMul = 0xE7D47F00
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
		x.screens[slot-1] = in[i].screen()
		x.hit[keys[i]] |= x.screens[slot-1].fourths()
	}
	for _, k := range keys {
		x.table[k] &^= placed
		x.screens[fill[x.table[k]-1]-2].last = true
	}
	for k := len(in) - 2; k >= 0; k-- {
		switch s, next := &x.screens[k], &x.screens[k+1]; {
		case s.last:
		case s.mask != next.mask || s.want != next.want || s.fold != next.fold || next.skip == ^uint8(0):
			s.skip = 1
		default:
			s.ninths |= next.ninths
			if next.skip > 0 {
				s.skip = next.skip + 1
			}
		}
	}
	return x
}

// placed marks a chain that has its place while the index is built; it also
// bounds the number of entries.
const placed = 1 << 15

// maxEntries is how many needles an index can hold.
const maxEntries = placed - 2

// screen rejects most false hits: by one comparison of the eight bytes there, and by what has to
// stand around them.
type screen struct {
	mask, fold, want uint64
	ninths           uint64 // of what counts as a whole, here and behind with the same eight bytes: a bit for each, modulo 64
	tail             uint8  // a keyword: its length, after which no letter follows
	back, head       byte   // how far in front of the eight bytes the text begins, and with which
	whole            bool   // the rest of the text counts
	apart            bool   // no small letter goes before a small one
	last             bool   // of its chain
	skip             uint8  // to the next of its chain with other eight bytes; 0 is none
}

// fourths returns the classes of the byte behind the first three.
func (s *screen) fourths() byte {
	if s.mask&(0xff<<24) == 0 {
		return 0xff
	}
	return fourth(byte(s.want >> 24))
}

func (ent *entry) screen() screen {
	text := ent.text[ent.off:]
	s := screen{whole: ent.kind == ePrefix}
	if ent.kind == eName || ent.kind == eVendor || ent.kind == eValue {
		s.fold = foldMask
		if ent.kind == eName && ent.text != "key" { // key_base, keydata
			s.tail = uint8(len(text))
		}
		if ent.kind == eName && ent.ref < 0 {
			class := keywords[-1-ent.ref].class
			s.apart = class == classPin || class == classGroups || ent.text == "code"
		}
	}
	s.ninths = ^uint64(0)
	if s.whole && len(text) > 8 {
		s.ninths = 1 << (text[8] & 63)
	}
	if ent.off > 0 {
		s.back, s.head = ent.off, fold(ent.text[0])
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
// looked at in every word that ends with ion. The factor keeps what is frequent in build logs apart, too.
func fourth(c byte) byte { return 1 << (uint32(c|0x20) * 0xEC9F >> 10 & 7) }

func (x *index) classes() (out [256]byte) {
	for c := range out {
		out[c] = fourth(byte(c))
	}
	return out
}

// scan returns the first position in [from, to) at which an entry may start, and the first such
// entry; or to. Two bytes after to-1 exist. The two loops differ in the size of the table,
// which has to be constant for the compiler to drop the bounds checks.
func (x *index) scan(v []byte, from, to int) (at, k int) {
	i := from
	if x.shift == smallShift {
		t, cls := (*[1 << (32 - smallShift)]byte)(x.hit), &x.class
		for rest := v[i:]; len(rest) >= 8 && i < to; rest = rest[5:] {
			w := (*[8]byte)(rest)
			u := binary.LittleEndian.Uint64(w[:]) | foldMask
			a := t[uint32(u)*hashMul>>smallShift] & cls[w[3]]
			b := t[uint32(u>>8)*hashMul>>smallShift] & cls[w[4]]
			c := t[uint32(u>>16)*hashMul>>smallShift] & cls[w[5]]
			d := t[uint32(u>>24)*hashMul>>smallShift] & cls[w[6]]
			e := t[uint32(u>>32)*hashMul>>smallShift] & cls[w[7]]
			if a|b|c|d|e != 0 {
				if at, k = x.firstHit(v, i, to, uint(a), uint(b), uint(c), uint(d), uint(e)); at >= 0 {
					return at, k
				}
			}
			i += 5
		}
	} else {
		t, cls := (*[1 << (32 - largeShift)]byte)(x.hit), &x.class
		for rest := v[i:]; len(rest) >= 8 && i < to; rest = rest[5:] {
			w := (*[8]byte)(rest)
			u := binary.LittleEndian.Uint64(w[:]) | foldMask
			a := t[uint32(u)*hashMul>>largeShift] & cls[w[3]]
			b := t[uint32(u>>8)*hashMul>>largeShift] & cls[w[4]]
			c := t[uint32(u>>16)*hashMul>>largeShift] & cls[w[5]]
			d := t[uint32(u>>24)*hashMul>>largeShift] & cls[w[6]]
			e := t[uint32(u>>32)*hashMul>>largeShift] & cls[w[7]]
			if a|b|c|d|e != 0 {
				if at, k = x.firstHit(v, i, to, uint(a), uint(b), uint(c), uint(d), uint(e)); at >= 0 {
					return at, k
				}
			}
			i += 5
		}
	}
	for i = min(i, to); i < to; i++ { // one position after the other
		if k := x.entryAt(v, i); k >= 0 {
			return i, k
		}
	}
	return to, -1
}

// firstHit looks at the positions of a group whose class matched; -1 is none.
func (x *index) firstHit(v []byte, i, to int, a, b, c, d, e uint) (at, k int) {
	// Adding 0xff carries into bit 8 unless the class is empty.
	set := (a+0xff)>>8 | (b+0xff)>>8<<1 | (c+0xff)>>8<<2 | (d+0xff)>>8<<3 | (e+0xff)>>8<<4
	for ; set != 0; set &= set - 1 {
		at := i + bits.TrailingZeros(set)
		if at >= to {
			return to, -1
		}
		if k := x.entryAt(v, at); k >= 0 {
			return at, k
		}
	}
	return -1, -1
}

// entryAt returns the first entry that may start at i, -1 is none. Three bytes are there.
func (x *index) entryAt(v []byte, i int) int {
	k := int(x.table[x.hash(foldTri(v[i], v[i+1], v[i+2]))]) - 1
	if k < 0 {
		return -1
	}
	if s := &x.screens[k]; s.skip == 0 && i+8 <= len(v) && (binary.LittleEndian.Uint64(v[i:])|s.fold)&s.mask != s.want {
		return -1 // as nearly always
	}
	return x.passing(v, i, k)
}

// after returns the next entry of the chain of k that may start at i, -1 is none.
func (x *index) after(v []byte, i, k int) int {
	if x.screens[k].last {
		return -1
	}
	return x.passing(v, i, k+1)
}

// passing returns the first entry from k on in its chain that passes its screen at i.
func (x *index) passing(v []byte, i, k int) int {
	w, known := uint64(0), i+8 <= len(v)
	if known {
		w = binary.LittleEndian.Uint64(v[i:])
	}
	for {
		s := &x.screens[k]
		switch {
		case known && ((w|s.fold)&s.mask != s.want || i+8 < len(v) && s.ninths>>(v[i+8]&63)&1 == 0):
			if s.skip == 0 {
				return -1
			}
			k += int(s.skip)
			continue
		case x.fits(v, i, k):
			return k
		}
		if s.last {
			return -1
		}
		k++
	}
}

// fits reports whether entry k may start at i by what stands around the eight bytes there.
func (x *index) fits(v []byte, i, k int) bool {
	s := &x.screens[k]
	at := i - int(s.back)
	switch {
	case s.whole: // many begin alike, as URLs do
		text := x.entries[k].text
		n := min(len(text), len(v)-i)
		return string(v[i:i+n]) == text[:n]
	case at < 0 || s.back > 0 && fold(v[at]) != s.head:
		return false
	}
	if s.apart && at > 0 && isLower(v[at]) && isLower(v[at-1]) {
		return false
	}
	return s.tail == 0 || i+int(s.tail) >= len(v) || !isLower(v[i+int(s.tail)])
}

func compareFold(w []byte, s string) int {
	for i := range min(len(w), len(s)) {
		if c := fold(w[i]); c != s[i] {
			return int(c) - int(s[i])
		}
	}
	return len(w) - len(s)
}
