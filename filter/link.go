package filter

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// form is the syntax around a value. It decides where the value ends.
type form uint8

const (
	formPlain   form = iota // unquoted: to white space or a delimiter
	formQuoted              // to the same quote at the same depth
	formQuery               // to & # or white space
	formXML                 // to <
	formHeader              // to the end of the line or a quote
	formCookie              // to ; the end of the line or a quote
	formURL                 // the authority of a URL
	formData                // a pair of a Kubernetes Secret
	formUser                // user:value, to white space or a quote
	formStdin               // an argument that a command reads from its standard input
	formEncoded             // to the escaped quote it began with
	formPercent             // as formQuery; escaped delimiters end it too
	formRow                 // a line below the header of a table
	formPgpass              // the fifth field of a line of .pgpass
	formItem                // behind the last element of a list
	formPairs               // the pairs of an object or a list
	formBefore              // a field in front of the one that holds the name
	formBytes               // numbers of a byte each
	formTags                // the cells of a table in HTML, tag by tag
	formRun                 // where names and values jam: what could be a value, whatever its name
	formZone                // the words behind a name
	formCodes               // the recovery codes of a list, one after the other
)

// doubt is how much a value must look like a secret because of the way in which it is
// tied to its name.
type doubt uint8

const (
	certain  doubt = iota
	likely         // a column or a setting: words and prose may stand there
	unsure         // any text may follow: the value must read like no word
	literal        // unsure, and it must be quoted
	onlyLine       // unsure, and alone on its line
	lone           // as onlyLine, below a line that is nothing but the name
	said           // as lone, in a sentence
	random         // other words stand between: it must look like nothing but a secret
	piped          // behind "user:" in a command that prints it: as people make passwords, with a mark or both cases
)

// candidate is a value that a name, an operator or "://" announced.
type candidate struct {
	at    int
	form  form
	class class
	doubt doubt
	noTag bool
	noID  bool // a UUID or a number in hexadecimal is the id of a secret
	word  bool // of a command line: code does not stand there
	bare  bool // nothing but the vendor's word says what it is
	early bool // the value may also stand behind this
	list  bool // more of them follow
	// bareItems says that they need no quotes
	bareItems bool
	front     front
	assigned  bool // to the name of a header: without a scheme it is a variable
	// escaped says that the element around it is written with &lt;
	escaped bool
	rule    string
	shape   int32  // 1 + the names row whose shape it must have
	row     column // formRow: which cell
	cell    int    // formRow: how long it is, once it is found
	behind  int    // formRow: how far from there the next row is
	then    int    // where the next value of the same header may start, once judged
	number  int    // how many of the same header came before
}

// front is what may stand in front of a value. It is judged with the value: a link that looked past where
// one may begin would hang on the cuts.
type front uint8

const (
	nothing front = iota
	bullet        // the mark of a list
	echo          // what interpreters and debuggers print there
)

// skip passes it by, and reports whether it is there.
func (f front) skip(s *scan) bool {
	from := s.p
	switch f {
	case bullet:
		s.bullet()
	case echo:
		s.echoes()
	}
	return s.p > from
}

// same reports whether two candidates ask the same question. All that the judgement asks counts: of two that
// differ, which one comes first depends on the cuts.
func (c *candidate) same(o *candidate) bool {
	if c.at != o.at || c.form != o.form {
		return false
	}
	a := *c
	if a.then = o.then; a.form != formUser && a.form != formStdin {
		a.number = o.number // how many of them came before is no question
	}
	return a == *o
}

// maxDistance is how far a value may stand from its name when only an operator is
// between.
const maxDistance = 40

// maxSibling is how far a value may stand from its name in a field of its own.
const maxSibling = 240

// A link ties a name to a value: it reads from the end of the name and says where the
// value starts. This is the table of forms; each has rows in testdata/filter.
var links = [...]struct {
	read  func(*scan, *nameInfo) (candidate, bool)
	after follows
}{
	{linkOperator, anOperator | anOption | aBracket},           // name = value, in any language, also escaped
	{linkWrapped, anOperator},                                  // name = New("value"), name = Type{"value"}
	{linkFallback, aFallback},                                  // name … || "value"
	{linkTuple, anOpening},                                     // auth=("user", "value")
	{linkElement, aQuote},                                      // "name", "value"
	{linkSibling, aQuote | aBracket | aBreak | aMark | aColon}, // {"name": "NAME", "value": "value"}
	{linkBlank, aBlank | aMark},                                // name value, name  value, NAME "value"
	{linkKind, aBlank},                                         // name REG_SZ value, name 7 value, IDENTIFIED BY 'value'
	{linkChange, anOperator},                                   // name = "old" -> "value"
	{linkPhrase, aBlank},                                       // name for user x: value, name is value
	{linkNextLine, anOpening | anOption},                       // name:⏎  value, name = <<EOF⏎value
	{linkBelow, aBreak | anArrow},                              // name⏎value, ==> name <==⏎value
	{linkTags, aBracket},                                       // a column below <th>name</th>
	{linkCall, aQuote | aMark | aSquare},                       // find("name").fill("value")
	{linkParent, anOpening | aBrace},                           // names:⏎  - key: value
	{linkSession, aSession},                                    // PASS value
	{linkVendor, aVendor},                                      // vendor secret key value
	{linkColumns, aQuote | aMark | aParen},                     // INSERT INTO t (name, …) VALUES ('value', …)
	{linkHeader, aGap | aQuote | aBreak | aMark},               // a column below name
	{linkEnd, aBlank | aMark},                                  // name … :⏎value
	{linkAnswer, aPrompt},                                      // $ command … name …⏎value
	{linkFile, aPrompt},                                        // $ cat name⏎user value⏎user value
	{linkCodes, aCode},                                         // name:⏎  code⏎  code
}

// follows is what stands behind a name; it says which links can apply.
type follows uint32

const (
	anOperator follows = 1 << iota
	anOption           // the name is an option
	aBlank
	aQuote
	aBracket  // < or >
	aBreak    // the end of a line
	aMark     // , ; | ? ! [
	aGap      // blanks before a sign, a bar or more blanks
	aParen    // a closing bracket
	aColon    // which is an operator, and may stand before a type
	anOpening // an operator and no letter or digit, brackets, quotes, the end of the line, or a pair's name
	aVendor   // a blank, behind the name of a vendor
	aSession  // a blank, behind PASS
	anArrow   // a blank, and no letter or digit
	aFallback // the operator of one
	// of the line in front of it
	aPrompt // that of a shell
	aBrace  // a blank, and an opening one
	aSquare // ]
	aCode   // behind the title of recovery codes, and nothing else
)

// lead is what most links begin with: the end of the writing of a name, blanks, an operator,
// blanks. It is read once.
type lead struct {
	closed bool // by a quote
	tight  int  // after that
	at     int  // the operator
	op     operatorKind
	after  int // the first byte behind the blanks behind it
	short  bool
}

// leadOf reads the lead of a name.
func (s *scan) leadOf(n *nameInfo) follows {
	s.lead = lead{}
	if n.class == classCodes {
		return aCode
	}
	var f follows
	if s.p < len(s.v) {
		switch c := s.v[s.p]; c {
		case ' ', '\t':
			f |= aBlank
			if c == '\t' || s.p+1 == len(s.v) || !isAlnum(s.v[s.p+1]) {
				f |= aGap
			}
			if s.p+1 == len(s.v) || s.v[s.p+1] == '{' {
				f |= aBrace
			}
			if n.shape != 0 {
				f |= aVendor
			}
			if n.end-n.start == len("PASS") && s.v[n.start] == 'P' {
				f |= aSession
			}
			if s.p+1 == len(s.v) || !isAlnum(s.v[s.p+1]) {
				f |= anArrow
			}
		case '<', '>':
			f |= aBracket
		case '\n', '\r':
			f |= aBreak
		case '"', '\'', '`', '\\', '&', '%':
			if f |= aQuote; (c == '&' || c == '\\') && n.inTag(s.v) {
				f |= aBracket
			}
		case '(':
			f |= aMark
		case ')':
			f |= aParen
		case '*': // bold, in Markdown
			f |= aQuote
		case ']':
			f |= aSquare
		case ',', ';', '|', '?', '!', '[', '{', 0xe2, 0xc2:
			f |= aMark
		case ':':
			f |= aColon
		case '.': // Generating key...
			f |= aBreak
		}
	} else {
		f = ^follows(0)
	}
	if n.option(s.v) {
		f |= anOption
	}
	if s.line >= 0 && s.line < n.start {
		if isPrompt(s.v[s.line:n.start]) {
			f |= aPrompt
		}
	}
	l := &s.lead
	if s.p < len(s.v) && s.v[s.p] == ' ' && s.p+1 < len(s.v) && isAlpha(s.v[s.p+1]) && s.v[s.p+1] != 'o' { // most names stand in prose
		l.tight, l.at, l.after = s.p, s.p+1, s.p+1
		return f
	}
	l.closed = s.closeName()
	s.closeMember(n)
	l.tight = s.p
	if !s.short && s.p < len(s.v) && isBlank(s.v[s.p]) {
		s.blanks()
		s.remark()
	}
	s.more()
	l.at = s.p
	if !s.short {
		l.op = s.operator()
	}
	if !s.short && l.op != opNone {
		s.blanks()
	}
	l.after, l.short = s.p, s.short
	if l.short || l.op != opNone {
		f |= anOperator
		if l.short || s.p == len(s.v) || !isAlnum(s.v[s.p]) || n.rule == "credential" || n.rule == "auth" || n.paired(s.v) {
			f |= anOpening
		}
		if l.short || l.op == opFallback {
			f |= aFallback
		}
		if f&aBlank != 0 && l.at < len(s.v) && (s.v[l.at] == '=' || s.v[l.at] == ':') && l.op != opFallback {
			f = f&^aBlank | aColon // what reads a value behind blanks would find the operator, or the beginning of one
		}
	}
	return f
}

// remark skips what is said of a name in brackets before its sign: Secret key (manual entry): value.
func (s *scan) remark() {
	from := s.p
	for s.more() && s.p-from < maxDistance && (s.v[s.p] == '(') == (s.p == from) && (s.p == from || isAlnum(s.v[s.p]) || strings.IndexByte(" ,-'", s.v[s.p]) >= 0) {
		s.p++
	}
	if s.short || s.p == from || !s.lit("):") || s.short {
		s.p = from
		return
	}
	s.p--
}

// led goes on behind the operator, if it is one of those that assign.
func (s *scan) led() bool {
	l := &s.lead
	if s.p, s.short = l.after, l.short; l.short {
		s.p = len(s.v) // no value begins at an operator
	}
	return !l.short && (l.op == opAssign || l.op == opColon)
}

// announce looks at a name or a "://" at i and schedules the values behind it.
func (e *engine) announce(i int, ent *entry, eof, paid bool) {
	v := e.view.vis
	ks := i - int(ent.off)
	if ks < 0 {
		return
	}
	if ent.kind != eName && ent.kind != eVendor && ent.kind != eValue {
		n := min(len(ent.text), len(v)-ks)
		if string(v[ks:ks+n]) != ent.text[:n] {
			return // only the hash is the same
		}
		if n < len(ent.text) {
			if !eof {
				e.wait(i, ent, false, nowhere)
			}
			return
		}
		if ent.kind == ePlaceholder {
			k := bytes.IndexByte(v[i:min(len(v), i+maxPlaceholder)], ']') + 1
			if k == 0 && len(v)-i < maxPlaceholder && !eof {
				e.wait(i, ent, true, nowhere)
			} else if k > 0 && endsPlaceholder(v[:i+k]) {
				e.zoneAgain(i, i+k, "")
			}
			return
		}
		if !paid && !e.mayAnnounce(i, ent.kind) {
			return
		}
	}
	switch ent.kind {
	case eURL:
		if p := i + len("://"); isHost(v, p) {
			e.work++
			e.jam.add(e.base+int64(p), perValue, jamLimit)
			return
		}
		e.schedule(candidate{at: i + len("://"), form: formURL, class: classStrong, rule: "url-password", noTag: true})
		return
	case eData:
		if startsData(v, i) {
			e.schedule(candidate{at: i + len(ent.text), form: formData, class: classStrong, rule: "kubernetes-secret"})
		}
		return
	case eKeyType:
		s := scan{v: v, p: i + len(ent.text), eof: eof}
		s.blanks()
		if s.quote() && s.word(8) && s.quote() && !s.short {
			e.schedule(candidate{at: s.p, form: formPairs, class: classStrong, doubt: random, rule: "jwk", row: column{kind: jwkKey, sep: ','}, number: 1})
		} else if s.short {
			e.wait(i, ent, true, nowhere)
		}
		return
	case eFlag:
		c, o := e.readFlag(i, ent.text, eof)
		if o == found {
			e.schedule(c)
		} else if o == more {
			e.wait(i, ent, true, nowhere)
		}
		return
	case eArgument:
		c, o := e.readArgument(int(ent.ref), ks, eof)
		if o == found {
			e.schedule(c)
		} else if o == more {
			e.wait(i, ent, true, nowhere)
		}
		return
	}
	if n := min(len(ent.text), len(v)-ks); !hasFold(v[ks:], ent.text[:n]) {
		return
	} else if n < len(ent.text) || ent.kind == eName && ks+n == len(v) {
		if !eof {
			e.wait(i, ent, false, nowhere)
			return
		}
		if n < len(ent.text) {
			return
		}
	} else if ent.kind == eName && isLower(v[ks+n]) && (ent.text != "key" || strings.IndexByte("bdm", v[ks+n]) < 0) {
		return // inside a longer word
	}
	if ent.kind == eValue {
		c, o := e.readField(ks, ent.text, eof)
		if o == found && (paid || e.mayAnnounce(i, ent.kind)) {
			e.schedule(c)
		} else if o == more {
			e.wait(i, ent, paid, nowhere)
		}
		return
	}
	if !paid && e.dense[0].spent(e.base+int64(i), maxNames) {
		return
	}
	e.work++
	info := e.readName(ks, ent, eof)
	switch info.outcome {
	case more:
		e.wait(i, ent, paid, nowhere)
		return
	case no:
		return
	}
	if !paid && !e.mayAnnounce(i, ent.kind) {
		return
	}
	if !textBefore(v, info.start, e.nameEdge) || v[info.end-1] == 'S' && string(v[info.start:info.end]) == "PASS" && info.end < len(v) && v[info.end] == ':' {
		return // in binary output; the result of a test
	}
	hold := nowhere
	n, s := &e.name, &e.scan // not on the stack: links are called by their table
	*n = info
	s.line, s.headers = e.lines.at(v, n.start)
	waits := !e.zoned && e.openZone(n, eof)
	e.zoned = !waits
	if n.class == classGroups { // found in the zone
		if waits {
			e.wait(i, ent, true, nowhere)
		}
		return
	}
	s.v, s.p, s.eof, s.short = v, info.end, eof, false
	follow := s.leadOf(n)
	if follow == 0 {
		return
	}
	at := e.base + int64(n.start)
	if e.crowd.at(at, crowdLimit) {
		switch e.announceNext(follow) {
		case found:
			e.jam.add(at, perNext, jamLimit)
			return
		case more: // until the end of the value is there: no link was asked yet, so nothing goes that could begin one
			for s.p = max(n.end, e.cursor); s.p < len(v) && s.undecided(&candidate{}) == nowhere; {
				s.p++
			}
			e.wait(i, ent, true, s.undecided(&candidate{}))
			return
		}
	}
	for k := range links {
		if links[k].after&follow == 0 {
			continue
		}
		e.work++
		s.p, s.short = n.end, false
		c, ok := links[k].read(s, n)
		if s.short {
			waits = true
			if at := s.undecided(&c); at >= 0 && (hold < 0 || at < hold) {
				hold = at
			}
		}
		if ok && c.at > n.end && c.form != formRow && HasPlaceholder(string(v[n.end:c.at])) {
			continue // that was its value
		}
		if ok && (!s.short || c.early) {
			if c.rule == "" {
				c.rule = info.rule
			}
			if c.class == classNone {
				c.class = info.class
			}
			c.noTag, c.shape = info.noTag || c.rule == "password", info.shape
			c.escaped = c.form == formXML && escapedTag(bytes.TrimRight(v[:c.at], " \t\r\n"))
			if links[k].after&(aBlank|aVendor) == links[k].after && c.doubt == certain && c.shape > 0 {
				c.class = classShape
			}
			e.schedule(headerForm(c))
		}
	}
	if waits {
		e.wait(i, ent, true, hold)
		return
	}
	e.jam.add(at, perName, jamLimit)
}

// announceNext announces the value right behind the name under judgement, if it will pass as it
// stands, or may: where secrets crowd, no other is looked for if it does.
func (e *engine) announceNext(follow follows) outcome {
	n, s := &e.name, &e.scan
	read, ends := linkOperator, " \n;,&"
	if follow&anOperator == 0 {
		if read, ends = linkBlank, " \n"; follow&aBlank == 0 {
			return no
		}
	}
	e.work++
	s.p, s.short = n.end, false
	c, ok := read(s, n)
	if s.short {
		return more
	} else if !ok || c.form != formPlain {
		return no
	}
	p, quote := c.at, byte(0)
	if q := s.v[p]; q == '"' || q == '\'' {
		p, quote = p+1, q
	}
	from := p
	for p < len(s.v) && p-from <= history && isAlnum(s.v[p]) {
		p++
	}
	whole := p < len(s.v)
	if whole && s.v[p] != quote && (quote != 0 || strings.IndexByte(ends, s.v[p]) < 0) || !whole && s.eof {
		return no
	}
	if c.rule == "" {
		c.rule = n.rule
	}
	if c.class == classNone {
		c.class = n.class
	}
	if whole && !e.set.passes(s.v[from:p], gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: quote != 0, opened: quote != 0, crowded: true}) {
		return no
	}
	c.noTag, c.shape = n.noTag, n.shape
	e.schedule(headerForm(c))
	if !whole {
		return more
	}
	return found
}

// textBefore reports whether the line left of i is text: in binary output, context says
// nothing.
func textBefore(v []byte, i, edge int) bool {
	least := max(edge, i-maxName)
	for k := i - 1; k >= least; k-- {
		if k-7 >= least {
			skip := bits.LeadingZeros64(controls(binary.LittleEndian.Uint64(v[k-7:]))) / 8
			if k -= skip; skip == 8 {
				k++
				continue
			}
		}
		switch c := v[k]; {
		case c == '\n' || c == 0:
			return true
		case isControl(c):
			return false
		case c == ']' && endsPlaceholder(v[:k+1]):
			return true // as behind what it stands for
		}
	}
	return true
}

// controls has the high bit of each of eight bytes that is a control or a closing bracket.
func controls(w uint64) uint64 {
	const lows = ^uint64(high)
	bracket, del := w^']'*ones, w^0x7f*ones // in which a byte that is zero must not be
	return ^((w | (w&lows + 0x60*ones)) & (bracket | (bracket&lows + lows)) & (del | (del&lows + lows))) & high
}

// nowhere says that a name holds nothing back.
const nowhere = -1

// undecided returns where the value may begin that a link which waits for more bytes would announce:
// at the first byte that it could not read.
func (s *scan) undecided(c *candidate) int {
	at := s.p
	if c.at > 0 {
		at = c.at
	}
	if at >= len(s.v) || beginsNoValue.has(s.v[at]) && (s.v[at] != ':' || s.v[at-1] != ':') {
		return nowhere
	}
	return at
}

var beginsNoValue = byteSet{1<<' ' | 1<<'\t' | 1<<'\n' | 1<<'\r' | 1<<':' | 1<<'='}

// wait remembers a name whose value has not come yet. It holds nothing back but what may be that value.
func (e *engine) wait(i int, ent *entry, paid bool, hold int) {
	for _, n := range e.names {
		if n.at == i && n.ent == *ent {
			return
		}
	}
	if len(e.names) < maxScheduled {
		e.names = append(e.names, pending{i, *ent, paid, e.nameEdge, e.zoned, hold})
	}
}

// headerForm gives values of headers the form of their kind.
func headerForm(c candidate) candidate {
	if c.form != formPlain && c.form != formQuoted {
		return c
	}
	if c.rule == mnemonicRule {
		c.form = formHeader
		return c
	}
	switch c.class {
	case classHeader:
		c.form = formHeader
	case classCookie, classSetCookie:
		c.form = formCookie
	case classStrong:
		if c.rule == "header-key" && c.form == formPlain && c.doubt == certain {
			c.form = formCookie
		}
	}
	return c
}

// scan reads forward from a name. short says that the bytes so far do not decide.
type scan struct {
	v     []byte
	p     int
	eof   bool
	short bool
	lead  lead
	// of the name under judgement
	line    int // where its line begins, if that is not far
	headers int // how many names of the line came before
}

// more reports whether there is a byte at p.
func (s *scan) more() bool {
	if s.p < len(s.v) {
		return true
	}
	s.short = s.short || !s.eof
	return false
}

// lit skips a literal.
func (s *scan) lit(text string) bool {
	n := min(len(text), len(s.v)-s.p)
	if string(s.v[s.p:s.p+n]) != text[:n] {
		return false
	}
	if n < len(text) {
		s.short = s.short || !s.eof
		return false
	}
	s.p += n
	return true
}

// word skips letters, digits and dashes, at most so many, and reports whether there were any.
func (s *scan) word(most int) bool {
	from := s.p
	for s.more() && s.p-from < most && (isAlnum(s.v[s.p]) || s.v[s.p] == '-' || s.v[s.p] == '_') {
		s.p++
	}
	return s.p > from
}

// blanks skips spaces and tabs, encoded ones too, and reports how many bytes.
func (s *scan) blanks() int {
	from := s.p
	for s.p < len(s.v) && s.p-from < maxDistance && (s.v[s.p] == ' ' || s.v[s.p] == '\t') {
		s.p++
	}
	s.more()
	return s.p - from
}

// space skips blanks and line breaks, escaped ones too, and reports the line breaks.
func (s *scan) space() int {
	from, lines := s.p, 0
	for s.more() && s.p-from < maxSpace {
		switch s.v[s.p] {
		case '\n':
			lines++
		case ' ', '\t', '\r':
		case '\\':
			// Slashes before n, r, t: a document inside a string.
			q := s.p
			for q < len(s.v) && s.v[q] == '\\' {
				q++
			}
			if q == len(s.v) {
				s.short = s.short || !s.eof
				return lines
			}
			if s.v[q] != 'n' && s.v[q] != 'r' && s.v[q] != 't' {
				return lines
			}
			s.p = q
		default:
			return lines
		}
		s.p++
	}
	return lines
}

// maxSpace bounds the white space between a name and its value.
const maxSpace = 96

// quote skips a quote, also an encoded one, with the backslashes before it.
func (s *scan) quote() bool {
	if !s.more() {
		return false
	}
	switch s.v[s.p] {
	case '"', '\'', '`', '\\':
		if q, _, _ := readQuote(s.v, s.p); q > s.p {
			s.p = q
			return true
		}
		if slashesToEnd(s.v, s.p) {
			s.short = s.short || !s.eof
			return false
		}
	case '&', '%':
	default:
		return false
	}
	for _, q := range &encodedQuotes {
		if s.lit(q) || s.short {
			return !s.short
		}
	}
	return false
}

// encodedQuotes are quotes as HTML, URLs and JSON escape them.
var encodedQuotes = [...]string{"&quot;", "&#34;", "&#x22;", "&apos;", "&#39;", "&#x27;", "%22", "%27", `\u0022`, `\u0027`, `\x22`, `\x27`}

// operatorKind is what an operator means for the value behind it.
type operatorKind uint8

const (
	opNone     operatorKind = iota
	opAssign                // the value may be anything
	opColon                 // as opAssign; a type may follow
	opCompare               // only a literal counts
	opFallback              // only a literal counts
	opNever                 // no value follows
)

// operators are the signs between a name and its value, the longest first where one
// begins another. encoded ones come from URLs, HTML and JSON.
var operators = [...]struct {
	text string
	kind operatorKind
}{
	{"==>", opAssign}, {"→", opAssign}, {"⇒", opAssign}, {"は", opColon}, {"は：", opColon}, {"是", opColon}, {"是：", opColon}, {"是:", opColon}, {"为", opColon}, {"为：", opColon}, {"为:", opColon}, {"為", opColon}, {"為：", opColon}, {"為:", opColon}, {"は:", opColon}, {"は、", opColon}, {"는", opColon}, {"은", opColon}, // copulas
	{"➜", opAssign}, {"›", opAssign}, {"：", opColon}, {"-&gt;", opAssign}, {"&&=", opAssign}, {"===", opCompare}, {"==", opCompare}, {"=~", opNever}, {"=>", opAssign}, {"=:", opAssign}, {"=", opAssign},
	{"::=", opAssign}, {":::=", opAssign}, {"::", opNever}, {":=", opAssign}, {":-", opFallback}, {":", opColon},
	{"?=", opAssign}, {"+=", opAssign}, {".=", opAssign}, {"~=", opAssign}, {"^=", opAssign}, {"|=", opAssign},
	{"||=", opAssign}, {"||", opFallback}, {"??=", opAssign}, {"??", opFallback}, {"//=", opAssign}, {"//", opFallback}, {"or ", opFallback},
	{"<<-", opAssign}, {"<-", opAssign}, {"->", opAssign}, {"-\\u003e", opAssign}, {"!==", opCompare}, {"!=", opCompare},
	{"%3D", opAssign}, {"%3d", opAssign}, {"%3A", opColon}, {"%3a", opColon}, {"&#61;", opAssign}, {"&#x3D;", opAssign},
	{`\u003d`, opAssign}, {`\u003D`, opAssign}, {`\x3d`, opAssign}, {`\u003a`, opColon}, {`\=`, opAssign}, {`\:`, opAssign},
}

// operatorStarts are their first bytes.
var operatorStarts = byteSet{1<<'=' | 1<<':' | 1<<'?' | 1<<'+' | 1<<'.' | 1<<'/' | 1<<'<' | 1<<'-' | 1<<'!' | 1<<'%' | 1<<'&',
	1<<('~'-64) | 1<<('^'-64) | 1<<('|'-64) | 1<<('o'-64) | 1<<('\\'-64), 0, 1<<(0xe2-192) | 1<<(0xe3-192) | 1<<(0xe4-192) | 1<<(0xe6-192) | 1<<(0xe7-192) | 1<<(0xeb-192) | 1<<(0xec-192) | 1<<(0xef-192)}

// operator reads the operator at p.
func (s *scan) operator() operatorKind {
	if !s.more() {
		return opNone
	}
	switch s.v[s.p] { // nearly all that stands behind names
	case ' ', ',', ';', ')', '\n', '"':
		return opNone
	}
	if !operatorStarts.has(s.v[s.p]) {
		return opNone
	}
	if s.p+1 < len(s.v) { // nearly all operators
		switch next := s.v[s.p+1]; {
		case s.v[s.p] == '=' && strings.IndexByte("=~>:", next) < 0:
			s.p++
			return opAssign
		case s.v[s.p] == ':' && strings.IndexByte(":=-", next) < 0:
			s.p++
			return opColon
		}
	}
	best, from := -1, s.p
	for k := range operators {
		if operators[k].text[0] != s.v[from] {
			continue
		}
		s.p = from
		if s.lit(operators[k].text) && (best < 0 || len(operators[k].text) > len(operators[best].text)) {
			best = k
		}
	}
	if best < 0 || s.short {
		s.p = from
		return opNone
	}
	s.p = from + len(operators[best].text)
	return operators[best].kind
}

// closeName skips what ends the writing of a name: its closing quote, brackets.
func (s *scan) closeName() (closed bool) {
	closed = s.quote()
	if s.short {
		return closed
	}
	if s.p < len(s.v) && (s.v[s.p] == ']' || s.v[s.p] == ')' && closed || s.v[s.p] == '"' && closed && s.v[s.p-1] == '"') {
		s.p++ // ""name"", as CSV and PowerShell double quotes
	} else if s.at() == '%' && !closed && !s.lit("%5D") && !s.short { // user%5Bname%5D=, in a form
		s.lit("%5d")
	}
	return closed
}

// closeMember skips what else ends the writing of a name: the brace of $x->{name}, and bold type.
func (s *scan) closeMember(n *nameInfo) {
	if s.short || s.p >= len(s.v) {
		return
	}
	switch s.v[s.p] {
	case '}':
		left := bytes.TrimRight(s.v[max(0, n.start-4):n.start], `"'`)
		if bytes.HasSuffix(left, []byte("->{")) || bytes.HasSuffix(left, []byte("}{")) || len(left) > 1 && left[len(left)-1] == '{' && isAlnum(left[len(left)-2]) {
			s.p++
		}
	case '*':
		if !s.lit("**") && !s.short && s.p+1 < len(s.v) && s.v[s.p+1] == ' ' { // exported, in Nim
			s.p++
		}
	case '.': // name......: value
		if from := s.p; s.lit("...") {
			for s.more() && s.v[s.p] == '.' && s.p-from < 2*maxDistance {
				s.p++
			}
		}
	case '[': // of so many bytes
		from := s.p
		for s.p++; s.more() && isDigit(s.v[s.p]); {
			s.p++
		}
		if !s.lit("] = {") && (s.short || !s.lit("]={")) {
			s.p = from
			return
		}
		for s.p--; s.v[s.p] != ']'; {
			s.p--
		}
		s.p++
	case ')':
		from := s.p
		if !s.lit(")]") && !s.short && s.lit(") =") { // [Symbol(name)], ($user, $name) = (…), DATA(name) = …
			s.p = from + 1
		}
	}
}

// linkOperator reads name = value.
func linkOperator(s *scan, n *nameInfo) (c candidate, ok bool) {
	l := &s.lead
	tight := l.tight
	s.p = l.at
	option := n.option(s.v)
	if l.short && l.after == l.at {
		if s.short = true; !option && l.at < len(s.v) && s.v[l.at] == '(' {
			s.p = len(s.v)
		} else if !option {
			s.p = min(l.at+len("::"), len(s.v)) // name=token::VALUE; no value begins at another operator
		}
		return c, false
	}
	if l.closed && n.start > 1 && s.v[n.start-2] == '(' && s.v[l.tight-1] == ')' && l.op == opAssign && bytes.IndexByte(s.v[n.start:n.end], '.') >= 0 {
		return c, false // MD5 ("secret.key") = digest
	}
	switch {
	case s.p < len(s.v) && n.inTag(s.v) && s.tagEnd():
		c.form = formXML
		s.lit("<![CDATA[")
		if !s.short && s.p < len(s.v) && (s.v[s.p] == '\n' || s.v[s.p] == '\r') { // indented, on a line of its own
			if s.space() != 1 {
				return c, false
			}
			c.doubt = likely
		}
	case option && n.end == tight && s.p < len(s.v) && s.v[s.p] == ',': // [--name, value]
		if !s.lit(", ") || !s.more() {
			return c, false
		}
		c.doubt = likely
	case option && n.end == tight && (s.p > tight || s.p < len(s.v) && s.v[s.p] == 0):
		if s.p < len(s.v) && s.v[s.p] == 0 {
			s.p++
		}
		if s.more() && (s.v[s.p] == '-' || s.v[s.p] == '=' || s.v[s.p] == ':') {
			return c, false
		}
		s.wrapped()
		name := s.v[n.start:n.end]
		c.noID = string(name) == "--secret" || bytes.HasSuffix(name, []byte("-keys")) // of virsh, of gpg: ids
	default:
		at, op := l.at, l.op
		if l.short {
			s.p, s.short = len(s.v), true
			return c, false
		}
		s.p = l.after
		switch op {
		case opNone, opFallback:
			return c, false
		case opNever:
			// LDIF marks base64 by a second colon, commands of workflows end their parameters with it.
			if s.v[at] != ':' || s.v[at+1] != ':' || s.p == at+2 && !(n.start > 1 && (s.v[n.start-1] == '=' || s.v[n.start-1] == ':')) {
				return c, false
			}
		case opCompare:
			c.doubt = literal
		case opColon:
			if s.p < len(s.v) && s.v[s.p] == '?' && n.start > 1 && s.v[n.start-1] == '{' {
				return c, false // ${NAME:?why it must be set}
			}
		}
		if n.class == classHeader && op != opColon && !(op == opAssign && s.p < len(s.v) && s.v[s.p] == '[') {
			c.assigned = true // a variable of that name
		}
		if op == opColon && s.p == at+1 && n.rule == "password" && s.p < len(s.v) && s.v[s.p] > ' ' && string(s.v[n.start:n.end]) == "pass" {
			c.class = classStrong // -pass pass:…
		}
		switch {
		case s.v[at] == '%':
			c.form = formPercent
		case n.inQuery(s.v) && s.p == at+1 && s.v[at] == '=':
			c.form = formQuery
		}
	}
	if n.class == classQuery && c.form != formQuery {
		return c, false
	}
	if s.p < len(s.v) && isBlank(s.v[s.p]) {
		s.blanks()
	}
	if !s.more() || s.short || s.p-n.end > maxDistance && (l.at == 0 || s.v[l.at-1] != ')' || s.p-l.at > maxDistance) || s.v[s.p] == '\n' || s.v[s.p] == '\r' {
		return c, false
	}
	if (s.v[s.p] == '[' || s.v[s.p] == '{') && (n.class == classHeader || s.v[s.p] == '{' && (hasFold(s.v[n.start:n.end], "pwd") || n.start > 0 && s.v[n.start-1] == ';')) {
		// A list of one, as in dumps of headers; {…} in ODBC strings.
		if s.p++; !s.more() {
			return c, false
		}
	}
	c.at = s.p
	c.list = l.op == opAssign && s.quoted() && bytes.HasSuffix(bytes.TrimRight(s.v[max(0, n.start-4):n.start], " $"), []byte(",")) // user, name = "x", "value"
	c.bare = n.bare && l.op == opColon && !s.quoted()                                                                              // a commit, in prose
	return c, true
}

// scheme skips a scheme of HTTP.
func (s *scan) scheme() bool {
	return s.lit("Bearer ") || !s.short && s.lit("Basic ") || !s.short && s.lit("Token ")
}

// quoted reports whether a quote stands at p.
func (s *scan) quoted() bool {
	return s.p < len(s.v) && strings.IndexByte("\"'`\\", s.v[s.p]) >= 0
}

// tagEnd skips the > of a tag, also an escaped one.
func (s *scan) tagEnd() bool {
	switch s.v[s.p] {
	case '>', '&', '\\':
		return s.lit(">") || s.lit("&gt;") || s.lit(`\u003e`) || s.lit(`\u003E`)
	}
	return false
}

// escapedTag reports whether the tag at the end of b is escaped.
func escapedTag(b []byte) bool {
	return bytes.HasSuffix(b, []byte("&gt;")) || bytes.HasSuffix(b, []byte(`\u003e`)) || bytes.HasSuffix(b, []byte(`\u003E`))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// wrapped skips the end of a line that a backslash continues.
func (s *scan) wrapped() {
	from := s.p
	if s.lit("\\\n") || s.lit("\\\r\n") {
		s.blanks()
		return
	}
	if !s.short {
		s.p = from
	}
}

// literal takes the value at p if it is quoted.
func (s *scan) literal(c candidate) (candidate, bool) {
	if !s.more() {
		return c, false
	}
	if p := s.p; s.v[p] == '@' || isAlpha(s.v[p]) { // r"…", N'…'
		if p+1 == len(s.v) {
			s.short = !s.eof
			return c, false
		}
		if s.v[p+1] == '"' || s.v[p+1] == '\'' {
			s.p++
		}
	}
	c.at, c.doubt = s.p, literal
	ok := s.quote()
	s.p = c.at
	return c, ok
}

// linkWrapped reads name = New("value") and name = &Type{"value"}.
func linkWrapped(s *scan, n *nameInfo) (c candidate, ok bool) {
	if !s.led() {
		return c, false
	}
	from := s.p
	if s.lit("string(") { // a dump of PHP
		if !s.word(4) || !s.lit(") ") {
			return c, false
		}
		return s.literal(c)
	}
	if s.short {
		return c, false
	}
	if c, ok = s.fallbackOf(); ok || s.short {
		return c, ok
	}
	for s.more() && s.p-from < 64 {
		switch ch := s.v[s.p]; {
		case ch == '(' || ch == '{' || ch == '[':
			s.p++
			if s.more() && s.v[s.p] == ']' { // []byte(
				s.p++
				continue
			}
			open := s.v[from : s.p-1]
			if ch == '[' && (s.lit(placeholderHead[1:]) || s.short) {
				return c, false
			}
			if s.more() && isDigit(s.v[s.p]) && n.rule != "token" {
				c.at, c.form, c.doubt = s.p, formBytes, likely
				return c, true
			}
			c.list = len(open) == 0 || endsInAny(open, "getenv env get fetch default coalesce") // getenv("X", "value")
			s.groups()
			s.space()
			if s.short {
				return c, false
			}
			if c, ok = s.literal(c); !ok && !s.short && len(open) == 0 && ch == '[' && last(s.v[n.start:n.end])|0x20 == 's' {
				c.doubt, c.bareItems = likely, true // tokens: [value, value]
				return c, s.more() && s.v[s.p] > ' '
			}
			if !ok && !s.short && (string(open) == "Some" || string(open) == "Optional" || string(open) == "Just") {
				c.doubt, ok = likely, true
			}
			return c, ok
		case ch == '@' && s.p == from:
			s.p++
			return s.literal(c)
		case (ch == '|' || ch == '?') && s.p > from && s.v[s.p-1] == ' ': // name = x || "value", name = x ?? "value"
			if !s.lit("|| ") && (s.short || !s.lit("?? ")) {
				return c, false
			}
			return s.literal(c)
		case ch == ' ' && s.p > from && s.p+1 < len(s.v) && s.v[s.p+1] == 'o' && s.lit(" or "):
			return s.literal(c)
		case (ch == '"' || ch == '\'') && s.p > from && wraps(s.v[from:s.p]):
			return s.literal(c)
		case isAlnum(ch) || strings.IndexByte("_.:<>&* $", ch) >= 0:
			s.p++
		default:
			return c, false
		}
	}
	return c, false
}

// fallbackOf reads what stands in for a variable that is not set: ${X:-value}, ${X:value},
// {{ x | default("value") }}.
func (s *scan) fallbackOf() (c candidate, ok bool) {
	from := s.p
	if s.at() == '"' || s.at() == '\'' {
		s.p++
	}
	if open := s.p; s.at() == '$' || s.at() == '{' {
		if !s.lit("${") && (s.short || !s.lit("{{")) {
			s.p = from
			return c, false
		}
		for s.more() && s.p-open < maxName {
			switch ch := s.v[s.p]; {
			case ch == ':' && s.v[open] == '$':
				if s.p++; !s.lit("-") {
					s.lit("=")
				}
				c.at, c.doubt = s.p, likely
				return c, s.more()
			case ch == '(' && s.v[open] == '{' && bytes.HasSuffix(s.v[open:s.p], []byte("default")):
				s.p++
				return s.literal(c)
			case !isIdent(ch) && ch != ' ' && ch != '|':
				s.p = from
				return c, false
			}
			s.p++
		}
	}
	if !s.short {
		s.p = from
	}
	return c, false
}

func last(b []byte) byte { return b[len(b)-1] }

// wraps reports what stands before a literal without a bracket: an address in a debugger, the
// opening of a binary in Erlang, a constructor in Haskell or OCaml.
func wraps(b []byte) bool {
	word, blank := bytes.CutSuffix(b, []byte(" "))
	last := b[len(b)-1]
	return string(b) == "<<" || string(b) == "string " || string(b) == "chr " || blank && b[0] == '.' && letters(word[1:]) || last == '>' && b[0] == '<' || blank && (bytes.HasPrefix(b, []byte("0x")) || isUpper(b[0]) && letters(word))
}

// groups skips (string) (len=20) behind its first bracket.
func (s *scan) groups() {
	for range 3 {
		from := s.p
		for s.more() && s.p-from < 24 && (isAlnum(s.v[s.p]) || s.v[s.p] == '=') {
			s.p++
		}
		if s.short || !s.lit(") ") {
			s.p = from
			return
		}
		s.lit("(")
	}
}

// linkFallback reads what stands in for a missing value: X || "value", X ?? "value",
// ${X:-value}. The name may be the last of a path, such as process.env.X.
func linkFallback(s *scan, n *nameInfo) (c candidate, ok bool) {
	if s.p = s.lead.at; s.lead.short {
		s.p, s.short = len(s.v), true
		return c, false
	}
	at := s.p
	if s.operator() != opFallback {
		return c, false
	}
	if s.v[at] == ':' {
		if at == 0 || n.start < 2 || s.v[n.start-1] != '{' || !s.more() {
			return c, false
		}
		c.at = s.p
		return c, true
	}
	s.blanks()
	return s.literal(c)
}

// linkVendor reads a vendor's value behind the words that say what it is.
func linkVendor(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.shape == 0 {
		return c, false
	}
	said := !n.bare
	for range 4 {
		from := s.p
		for s.more() && s.p-from < 3 && strings.IndexByte(" \t:=-_", s.v[s.p]) >= 0 {
			s.p++
		}
		word := s.p
		for s.more() && isIdent(s.v[s.p]) && s.p-word < maxVendorWord {
			s.p++
		}
		if s.short && s.p > word { // a word before the value, or the beginning of the value
			c.at, c.class, c.bare, c.early = word, classShape, !said, true
			return c, true
		}
		if s.short || s.p == word {
			break
		}
		if s.p-word == maxVendorWord || !endsInAny(s.v[word:s.p], "api key keys token secret access private auth personal admin app application service is") {
			s.p = word
			break
		}
		said = true
	}
	if s.short {
		return c, false
	}
	s.blanks()
	op := s.operator()
	if op != opNone || s.short {
		s.blanks()
	}
	c.bare = !said && (op == opNone || op == opColon && !s.quoted())
	if s.short || !s.more() || s.v[s.p] == '\n' || s.p-n.end > 2*maxDistance {
		return c, false
	}
	c.at = s.p
	return c, true
}

// maxVendorWord is longer than the words between a vendor's and the value, such as access_token.
const maxVendorWord = 24

// linkBlank reads name value: settings, tables with two columns, SQL, Dockerfiles.
func linkBlank(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class == classHeader && definesBefore(s.v, n.start) { // proxy_set_header Authorization "value"
		if s.blanks(); s.short {
			return c, false
		}
		return s.literal(c)
	}
	if n.class == classHeader && s.p < len(s.v) { // authorization Bearer value
		if s.blanks(); !s.scheme() || !s.more() {
			return c, false
		}
		c.at = s.p
		return c, true
	}
	if n.rule == "token" && n.end-n.start == len("Bearer") && s.lit(" ") && s.more() && isAlnum(s.v[s.p]) { // the scheme without its header
		c.at, c.doubt = s.p, likely
		return c, true
	}
	if n.option(s.v) || n.class == classQuery || n.class == classCookie || n.class == classShape {
		return c, false
	}
	if bytes.IndexByte(s.v[n.start:n.end], '/') >= 0 || string(s.v[n.start:n.end]) == "PASS" {
		// Else a module and its version, a test and its file.
		if !(s.v[n.start] == '/' && n.firstOnLine(s.v)) && !definesBefore(s.v, n.start) || s.blanks() == 0 || !s.more() || s.short {
			return c, false
		}
		c.at, c.doubt = s.p, onlyLine
		return c, true
	}
	bar := false
	gap := s.blanks()
	if !s.more() || s.short {
		return c, false
	}
	if n.class == classPin && gap == 1 && isDigit(s.v[s.p]) && (isUpper(s.v[n.start]) || n.end-n.start > len("pin")) { // PIN 4711
		c.at = s.p
		return c, true
	}
	tab := gap > 0 && bytes.IndexByte(s.v[n.end:s.p], '\t') >= 0
	for _, b := range &bars {
		if (gap > 0 || s.p < len(s.v) && s.v[s.p] == '|' && barBefore(s.v, n.start)) && s.lit(b) {
			bar = true
		}
		if s.short {
			return c, false
		}
	}
	if bar {
		s.lit("|") // || name || value ||, in wikis
	}
	if (n.rule == "auth" || n.rule == "credential") && gap > 0 && !bar && s.more() && isAlpha(s.v[s.p]) { // stats auth user:value
		if c.at, c.form, c.number, c.class, c.rule, c.doubt = s.p, formUser, ':', classStrong, "password", likely; n.rule == "credential" {
			c.doubt = piped
		}
		return c, true
	}
	switch first := n.firstOnLine(s.v); {
	case gap == 0 && !bar:
		return c, false
	case bar:
		s.blanks()
		if !first && !barBefore(s.v, n.start) {
			return c, false
		}
		c.doubt = likely
	case first && (tab || gap > 1):
		c.doubt = likely
		if n.class != classStrong && n.class != classExtra {
			c.doubt = unsure
		}
	case n.rule == "password" && inNetrc(s.v, n.start):
		c.doubt = likely
	case n.rule == "cookie" && !first:
		c.doubt = lone
	case first && n.class == classWeak && s.quoted():
		c.doubt = likely // of a language of its own, such as those in Ruby
	case first && n.class != classStrong && n.class != classExtra && (isVariable(s.v[n.start:n.end]) || n.rule == "password" && isUpper(s.v[n.start])):
		c.doubt = onlyLine // what env prints in fish, a setting of its own
	case n.class != classStrong && n.class != classExtra && (n.rule != "password" || !first && !definesBefore(s.v, n.start) || n.end-n.start <= len("pass")): // requirepass
		return c, false
	case n.start > 0 && s.v[n.start-1] == ':' && s.more() && s.v[s.p] == '"': // {:name "value"}
		return s.literal(c)
	case n.start > 0 && s.v[n.start-1] != ' ' && s.v[n.start-1] != '\t' && s.v[n.start-1] != '\n' && s.v[n.start-1] != '(' && !(s.v[n.start-1] == '+' && isLower(s.v[n.start])):
		return c, false
	default:
		c.doubt = unsure
		if first || definesBefore(s.v, n.start) || n.start > 0 && s.v[n.start-1] == '+' { // +rcon_password value, of a server for games
			c.doubt = likely
		}
	}
	if !s.more() || s.v[s.p] == '\n' || s.v[s.p] == '\r' {
		return c, false
	}
	switch s.v[s.p] {
	case '=', ':', '|', '<', '(', ',', ';', '[':
		return c, false
	case '-': // rootpw --plaintext value, SecureString -AsPlainText "value"
		from := s.p
		for s.p++; s.more() && s.p-from < 16 && (isAlpha(s.v[s.p]) || s.v[s.p] == '-'); {
			s.p++
		}
		if !endsInAny(s.v[from:s.p], "text crypted") || !s.lit(" ") || !s.more() { // others have values of their own
			s.p = from
		}
		if s.short {
			return c, false
		}
	}
	c.at, c.list = s.p, s.quoted() // name "user", "value"
	return c, true
}

// linkKind reads name KIND value: the type in a listing of the Windows registry, the kind of
// a hash in a router's settings, the plugin of a grant in SQL.
func linkKind(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classKey && n.class != classRaw && n.rule != "auth" || s.blanks() == 0 || !s.more() {
		return c, false
	}
	from := s.p
	if n.class == classKey || n.class == classRaw { // authentication-key 1 md5 value
		if !isDigit(s.v[s.p]) {
			return c, false
		}
		s.p++
		hidden := s.v[s.p-1] == '7' // Cisco type 7, which only obscures the password
		if s.blanks() == 0 || !s.lit("md5 ") && (s.short || !s.lit("sha ")) && (s.short || !hidden) || !s.more() {
			return c, false
		}
		c.at, c.class, c.rule, c.doubt = s.p, classStrong, "password", likely
		return c, true
	}
	switch {
	case n.rule == "identified":
		if hasFold(s.v[s.p:], "with ") {
			for s.p += len("with "); s.more() && (isIdent(s.v[s.p]) || s.v[s.p] == '\''); s.p++ {
			}
			s.blanks()
		}
		if s.p+3 > len(s.v) {
			s.short = !s.eof
			return c, false
		}
		if !hasFold(s.v[s.p:], "by ") && !hasFold(s.v[s.p:], "as ") {
			return c, false
		}
		s.p += len("by ")
		c.rule = "password"
	case n.rule == "auth":
		if !s.lit("PLAIN ") && !s.lit("LOGIN ") && !s.lit("sha ") && !s.lit("md5 ") && !s.lit("SHA ") && !s.lit("MD5 ") {
			return c, false
		}
	case isDigit(s.v[s.p]):
		if s.p++; !s.lit(" ") {
			return c, false
		}
		c.doubt = likely
	default:
		if !s.lit("REG_SZ") && !s.lit("REG_EXPAND_SZ") && !s.lit("ENC") {
			return c, false
		}
		c.doubt = likely
	}
	if s.p-from > maxDistance {
		return c, false
	}
	s.blanks()
	if !s.more() || s.v[s.p] == '\n' {
		return c, false
	}
	c.at = s.p
	return c, true
}

// bars separate the columns of tables.
var bars = [...]string{"|", "│", "║", "┃", "¦"}

// titleFrom returns where a title begins whose last word is the name at i: Secret access key.
func titleFrom(v []byte, i int) int {
	for words := 0; words < 3 && i > 1 && v[i-1] == ' ' && isAlpha(v[i-2]); words++ {
		for i--; i > 0 && isAlpha(v[i-1]); {
			i--
		}
	}
	return i
}

func barBefore(v []byte, i int) bool {
	i = titleFrom(v, i)
	t := bytes.TrimRight(v[max(0, i-maxName):i], " \t")
	for _, b := range &bars {
		if bytes.HasSuffix(t, []byte(b)) {
			return true
		}
	}
	return false
}

// defines are the words before a name that is set to the value behind a space.
var defines = [...]string{"env", "arg", "set", "setenv", "-gx", "-x", "-ux", "#define", "export", "setx", "define", "with", "config", "identified", "encrypted", "enable",
	"put", "snmp-server", "set_header", "add_header", "header", "requestheader set"}

func definesBefore(v []byte, i int) bool {
	t := bytes.TrimRight(v[max(0, i-maxName):i], " \t")
	for _, d := range &defines {
		if hasFoldSuffix(t, d) && (len(t) == len(d) || !isAlnum(t[len(t)-len(d)-1])) {
			return true
		}
	}
	return false
}

// at returns the byte at p, or 0.
func (s *scan) at() byte {
	if s.p < len(s.v) {
		return s.v[s.p]
	}
	return 0
}

// linkNextLine reads a value on the line below: YAML scalars, "Password:⏎  value".
func linkNextLine(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.option(s.v) && s.lead.op == opNone { // - --name⏎- value
		if s.p = s.lead.at; !s.more() || s.v[s.p] != '\n' {
			return c, false
		}
		lines := s.space()
		dash := s.lit("- ")
		if s.short || !s.more() {
			return c, false
		}
		if c.at, c.doubt = s.p, likely; !dash {
			c.doubt = lone // kubectl describe
		}
		return c, lines == 1 && (dash || s.v[s.p-1] == ' ')
	}
	if !s.led() {
		return c, false
	}
	opened, wrapped := false, false
	if s.more() && (s.v[s.p] == '"' || s.v[s.p] == '\'' || s.v[s.p] == '<') {
		opened = s.longString()
		if wrapped = !opened && !s.short && s.lit(`"\`); !opened && !wrapped {
			return c, false
		}
	} else if s.more() && (s.v[s.p] == '|' || s.v[s.p] == '>') { // block scalars
		s.p++
		for s.more() && (s.v[s.p] == '-' || s.v[s.p] == '+' || isDigit(s.v[s.p])) {
			s.p++
		}
	} else if s.more() && (s.v[s.p] == '\\' || s.v[s.p] == '(') {
		s.p++
	}
	if !s.more() || s.v[s.p] != '\n' && s.v[s.p] != '\r' {
		return c, false
	}
	lines := s.space()
	if !s.more() || s.short || lines < 1 || lines > 2 || s.p-n.end > maxSpace {
		return c, false
	}
	if wrapped {
		c.at, c.doubt = s.p, likely
		return c, true
	}
	if s.v[s.p-1] == '\n' && lines == 1 && s.v[s.p] == '-' && !opened { // a list in YAML need not be indented
		if !s.lit("- ") || !s.more() || s.line < 0 {
			return c, false
		}
		c.at, c.doubt, c.list, c.bareItems = s.p, likely, true, true
		return c, true
	}
	if s.v[s.p-1] == '\n' && s.v[s.p] != '"' && s.v[s.p] != '\'' && !opened { // not indented
		if s.line < 0 || n.class != classStrong && n.class != classWeak && n.class != classKey && n.rule != mnemonicRule || !headsLine(bytes.TrimSpace(s.v[s.line:n.start])) {
			return c, false
		}
		c.at, c.doubt = s.p, lone
		return c, true
	}
	if s.v[s.p-1] == ' ' && s.lit("- ") && s.more() {
		c.at, c.doubt, c.list = s.p, likely, true
		return c, true
	}
	if s.short || !s.more() {
		return c, false
	}
	if s.v[s.p] == 's' && s.lit("string(") { // ["name"]=>⏎  string(16) "value"
		for s.more() && isDigit(s.v[s.p]) {
			s.p++
		}
		if !s.lit(") ") {
			return c, false
		}
		return s.literal(c)
	}
	if s.short {
		return c, false
	}
	c.at, c.doubt = s.p, onlyLine
	return c, true
}

// longString reads what begins a text on the lines below: three quotes, << and a word.
func (s *scan) longString() bool {
	if s.lit(`"""`) || s.lit("'''") {
		return true
	}
	if s.short || !s.lit("<<") {
		return false
	}
	for from := s.p; s.more() && s.p-from < 24 && (isAlnum(s.v[s.p]) || strings.IndexByte("-~_'\"", s.v[s.p]) >= 0); {
		s.p++
	}
	return !s.short
}

// maxSlashes is the deepest nesting of quotes that is followed.
const maxSlashes = 15

// readQuote reads a quote with the backslashes before it.
func readQuote(v []byte, p int) (int, byte, uint8) {
	q := p
	for q < len(v) && q-p < maxSlashes && v[q] == '\\' {
		q++
	}
	if q < len(v) && (v[q] == '"' || v[q] == '\'' || v[q] == '`' && q == p) {
		return q + 1, v[q], uint8(q - p)
	}
	return p, 0, 0
}

// slashesToEnd reports whether only backslashes are left: a quote may follow.
func slashesToEnd(v []byte, p int) bool {
	from := p
	for p < len(v) && v[p] == '\\' && p-from < maxSlashes {
		p++
	}
	return p == len(v)
}

// option reports whether the name is a long option.
func (n *nameInfo) option(v []byte) bool { return v[n.start] == '-' }

// inTag reports whether the name is that of an element: <name, <space:name.
func (n *nameInfo) inTag(v []byte) bool {
	i := n.start
	if v[i] == '/' {
		return false // it closes one
	}
	if i > 1 && v[i-1] == ':' {
		for i--; i > 0 && n.start-i < maxName && isAlnum(v[i-1]); {
			i--
		}
	}
	return i > 0 && (v[i-1] == '<' || bytes.HasSuffix(v[:i], []byte("&lt;")) || bytes.HasSuffix(v[:i], []byte(`\u003c`)) || bytes.HasSuffix(v[:i], []byte(`\u003C`)))
}

// inQuery reports whether the name is a parameter of a URL or a form.
func (n *nameInfo) inQuery(v []byte) bool {
	return n.start > 0 && (v[n.start-1] == '?' || v[n.start-1] == '&')
}

// paired reports user/password, which a user and a password follow.
func (n *nameInfo) paired(v []byte) bool {
	user, _, ok := bytes.Cut(v[n.start:n.end], []byte("/"))
	return ok && n.rule == "password" && endsInAny(user, "user username name login account id")
}

// attribute reports whether the name is the value of an attribute.
func (n *nameInfo) attribute(v []byte) bool {
	return n.start > 1 && v[n.start-2] == '='
}

func (n *nameInfo) firstOnLine(v []byte) bool { return firstOnLine(v, n.start) }

func firstOnLine(v []byte, i int) bool {
	if i > 1 && v[i-1] == ':' { // aws:accessKey, of a stack's settings
		for i--; i > 0 && isAlnum(v[i-1]); {
			i--
		}
	}
	for k := 0; i > 0 && k < maxName && (v[i-1] == ' ' || v[i-1] == '\t'); k++ {
		i--
	}
	return i == 0 || v[i-1] == '\n' || v[i-1] == '\r'
}

// isVariable reports the name of an environment variable: API_TOKEN.
func isVariable(name []byte) bool {
	_, upper, lower := tally(name)
	return lower == 0 && upper > 0 && bytes.IndexByte(name, '_') > 0
}

func startsLogin(b []byte) bool {
	return hasFold(b, "login ") || hasFold(b, "machine ") || hasFold(b, "user ") || hasFold(b, "username ")
}

// inNetrc reports whether "login NAME" or "machine NAME" stands left of i.
func inNetrc(v []byte, i int) bool {
	words := 0
	for from := i; i > 0 && from-i < 96 && words < 6; i-- {
		if v[i-1] == ' ' || v[i-1] == '\n' || v[i-1] == '\t' {
			words++
			if startsLogin(v[i:]) {
				return true
			}
		}
	}
	return startsLogin(v[i:])
}
