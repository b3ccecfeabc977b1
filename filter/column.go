package filter

import (
	"bytes"
	"strings"
)

// column is where the values of a table's column stand.
type column struct {
	kind columnKind
	at   uint16 // number of the cell, or the byte at which it begins
	sep  byte   // byCharacter; byPosition: the number of the cell
	wide uint16 // byTabs: where it begins if a tab reaches to the next eighth place
}

type columnKind uint8

const (
	noColumn    columnKind = iota
	byBar                  // a | b, with or without a frame
	byCharacter            // a,b
	byPosition             // aligned by spaces
	byTabs                 // by one tab or more
	byTuple                // (a, 'b'), of an INSERT in SQL
	byAccount              // a user and a secret, with blanks or a colon between
	byWords                // words between any blanks, below a comment
	byKey                  // pairs, of which one is called key, value or the like
	anyKey                 // pairs, whatever their keys
	jwkKey                 // pairs, of which those of a private key count
)

// maxHeader bounds the line that may be the header of a table.
const maxHeader = 200

// maxHeaderNames is how many names of a header are followed, maxColumns how many columns at once.
const (
	maxHeaderNames = 8
	maxColumns     = 24
)

// lineMemo remembers where the line of the last name begins.
type lineMemo struct {
	start int // -1: too far left
	upto  int // no line break from start to here
	names int
	last  int
}

// at returns the beginning of the line of i and how many names were before on it.
func (m *lineMemo) at(v []byte, i int) (start, names int) {
	from := m.upto
	if from > i || from <= 0 || m.start < -1 {
		from, m.start, m.names, m.last = max(0, i-maxHeader-1), -1, 0, -1
		if from == 0 {
			m.start = 0
		}
	}
	if k := bytes.LastIndexByte(v[from:i], '\n'); k >= 0 {
		m.start, m.names, m.last = from+k+1, 0, -1
	}
	m.upto = i
	if i != m.last {
		m.names++
		m.last = i
	}
	return m.start, m.names - 1
}

func (m *lineMemo) forget(cut int) {
	m.start, m.upto, m.last = max(m.start-cut, -1), m.upto-cut, m.last-cut
}

// linkHeader finds a name in the header of a table; the values stand in the lines below.
func linkHeader(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class == classHeader || n.class == classQuery || n.class == classCookie || n.class == classSetCookie || n.class == classShape || n.option(s.v) {
		return c, false
	}
	v, from := s.v, s.line
	if from < 0 || n.start-from > maxHeader || s.headers >= maxHeaderNames {
		return c, false
	}
	left := v[from:n.start]
	if s.p < len(v) && (v[s.p] == '"' || v[s.p] == '`' || v[s.p] == '*') {
		s.p++
	}
	if !s.more() {
		return c, false
	}
	tight := s.p
	for s.blanks() == maxDistance { // a title in the middle of a wide column
	}
	gap := s.p - tight
	if s.short || s.p == len(v) {
		return c, false
	}
	next := v[s.p]
	ends := next == '\n' || next == '\r'
	left = bytes.TrimRight(left, "\"`*@")
	bars := countBars(left)
	if len(left) > 0 && left[0] == '#' && gap > 0 && !ends && len(bytes.Fields(left)) < maxHeaderNames && isBlank(left[len(left)-1]) && titles(left[1:], true) {
		c.row = column{kind: byWords, at: uint16(len(bytes.Fields(left[1:])))}
		return s.below(c, from, n)
	}
	switch {
	case startsBar(v[s.p:]) || ends && bars > 0:
		if t := bytes.TrimRight(left[:titleFrom(left, len(left))], " \t"); len(t) > 0 && !endsBar(t) {
			return c, false
		}
		c.row = column{kind: byBar, at: uint16(bars)}
	case len(left) > 0 && left[len(left)-1] == ' ' && s.ruled(from):
		return s.belowRuler(c, from, n)
	case tight == s.p && (next == ',' || next == ';') || gap > 0 && v[tight] == '\t' || ends && len(left) > 0:
		sep := next
		if gap > 0 {
			sep = '\t'
		}
		if k := bytes.LastIndexAny(left, ",;") + 1; k > 0 && k < len(left) && isAlpha(left[k]) && left[len(left)-1] == ' ' && letters(bytes.ReplaceAll(left[k:], []byte(" "), nil)) {
			left = left[:k] // Secret access key
		}
		if ends {
			if len(left) == 0 {
				return c, false // a name and a tab, no header
			}
			sep = left[len(left)-1]
		}
		if sep == ' ' && len(left) > 1 && left[len(left)-2] == ' ' && len(bytes.TrimSpace(left)) > 0 {
			_, cells := cellsOf(left, maxColumns)
			c.row = column{kind: byPosition, at: uint16(n.start - from), sep: byte(cells)}
			break
		}
		if sep != ',' && sep != ';' && sep != '\t' || len(left) > 0 && left[len(left)-1] != sep {
			return c, false
		}
		if !namesOnly(left, sep) {
			return c, false
		}
		c.row = column{kind: byCharacter, at: uint16(bytes.Count(left, []byte{sep})), sep: sep}
		if sep == '\t' && (bytes.Contains(left, []byte("\t\t")) || gap > 1 && v[tight+1] == '\t') { // no header is empty
			c.row = column{byTabs, tabs(left), sep, uint16(wide(left))}
		}
	case gap >= 2 && titleStart(left) >= 0:
		_, cells := cellsOf(left[:titleStart(left)], maxColumns)
		c.row = column{kind: byPosition, at: uint16(titleStart(left)), sep: byte(cells)}
	default:
		return c, false
	}
	return s.below(c, from, n)
}

// titleStart returns where the title begins whose last word stands behind left: titles are two
// blanks apart and have at most three words. It is -1 if that is no title.
func titleStart(left []byte) int {
	for words := 0; words < 3; words++ {
		if len(left) == 0 || len(left) > 1 && left[len(left)-1] == ' ' && left[len(left)-2] == ' ' {
			return len(left)
		}
		word := bytes.TrimSuffix(left, []byte(" "))
		k := bytes.LastIndexByte(word, ' ') + 1
		if k == len(word) || len(word) == len(left) || !letters(word[k:]) {
			return -1
		}
		left = left[:k]
	}
	return -1
}

// ruled reports whether the line below begins like a ruler.
func (s *scan) ruled(from int) bool {
	k := bytes.IndexByte(s.v[s.p:min(len(s.v), from+2*maxHeader)], '\n') + 1
	if k == 0 || s.p+k == len(s.v) {
		s.p, s.short = len(s.v), !s.eof && len(s.v) < from+2*maxHeader
		return false
	}
	ch := s.v[s.p+k]
	return ch == '-' || ch == '='
}

// belowRuler reads a header whose columns are a blank apart: a line of dashes below shows where
// they begin.
func (s *scan) belowRuler(c candidate, from int, n *nameInfo) (candidate, bool) {
	for s.more() && s.p-from < 2*maxHeader && s.v[s.p] != '\n' {
		s.p++
	}
	at := n.start - from
	if !s.lit("\n") || !s.more() || s.v[s.p] != '-' && s.v[s.p] != '=' {
		return c, false
	}
	ruler := s.p
	for s.more() && s.p-ruler < 2*maxHeader && (s.v[s.p] == s.v[ruler] || s.v[s.p] == ' ' || s.v[s.p] == '\r') {
		s.p++
	}
	line := s.v[ruler:s.p]
	if s.short || len(line) <= at || line[at] == ' ' || bytes.IndexByte(line, ' ') < 0 || !s.lit("\n") || !s.more() {
		return c, false
	}
	for at > 0 && line[at-1] != ' ' { // the first word of the title
		at--
	}
	c.row = column{kind: byPosition, at: uint16(at), sep: byte(len(bytes.Fields(line[:at])))}
	c.at, c.form, c.doubt = s.p, formRow, likely
	return c, true
}

// below reads the rest of a header, whose line begins at from, and finds the first row.
func (s *scan) below(c candidate, from int, n *nameInfo) (candidate, bool) {
	v, at := s.v, s.p
	for s.more() && s.p-from < 2*maxHeader && v[s.p] != '\n' {
		s.p++
	}
	if s.short || s.p == len(v) || v[s.p] != '\n' {
		return c, false
	}
	switch c.row.kind {
	case byCharacter, byTabs:
		if !namesOnly(v[at:s.p], c.row.sep) {
			return c, false
		}
	case byPosition, byWords:
		if !titles(bytes.TrimLeft(v[from:s.p], "#"), c.row.kind == byWords) {
			return c, false
		}
	}
	if s.p++; !s.more() {
		return c, false
	}
	c.at, c.form, c.doubt = s.p, formRow, likely
	return c, true
}

// tabs counts the runs of tabs.
func tabs(b []byte) uint16 {
	n := uint16(0)
	for i, c := range b {
		if c == '\t' && (i == 0 || b[i-1] != '\t') {
			n++
		}
	}
	return n
}

// wide is how many places b takes.
func wide(b []byte) (n int) {
	for _, c := range b {
		n = nextPlace(n, c)
	}
	return n
}

// nextPlace is the one behind c, which stands at the place at.
func nextPlace(at int, c byte) int {
	if c == '\t' {
		return (at + 8) &^ 7
	}
	return at + 1
}

// namesOnly reports whether a part of a header holds names between its separators; a number is
// none.
func namesOnly(b []byte, sep byte) bool {
	for i, c := range b {
		if isDigit(c) && (i == 0 || b[i-1] == sep) {
			return false
		}
		if !isAlnum(c) && c != sep && c != '_' && c != '-' && strings.IndexByte("\" \r.#", c) < 0 {
			return false
		}
	}
	return true
}

// titles reports whether a line holds what stands above columns: a few words each, without
// numbers, and either all begin with a capital or each is one word. A row of a listing in which
// one cell is called passwd is none.
func titles(line []byte, words bool) bool {
	capitals, single, cells := true, true, 0
	gap := []byte("  ")
	if words {
		gap = gap[:1]
		line = bytes.ReplaceAll(line, []byte("\t"), gap)
	}
	for rest := bytes.TrimSpace(line); len(rest) > 0; cells++ {
		cell, after, _ := bytes.Cut(rest, gap)
		rest = bytes.TrimLeft(after, " \t\r")
		for _, c := range cell {
			if !isAlpha(c) && strings.IndexByte(" _-./()#'", c) < 0 {
				return false
			}
		}
		words := bytes.Count(cell, []byte(" ")) + 1
		capitals = capitals && !isLower(cell[0])
		single = single && words == 1
		if words > 4 {
			return false
		}
	}
	return cells > 1 && (capitals || single) || words
}

func startsBar(b []byte) bool {
	for _, bar := range &bars {
		if bytes.HasPrefix(b, []byte(bar)) {
			return true
		}
	}
	return false
}

func endsBar(b []byte) bool {
	for _, bar := range &bars {
		if bytes.HasSuffix(b, []byte(bar)) {
			return true
		}
	}
	return false
}

func countBars(b []byte) int {
	n := bytes.Count(b, []byte("|"))
	if bytes.IndexByte(b, 0xe2) < 0 && bytes.IndexByte(b, 0xc2) < 0 {
		return n
	}
	for _, bar := range bars[1:] {
		n += bytes.Count(b, []byte(bar))
	}
	return n
}

// judgeRow judges the cell of a line below a header.
func (e *engine) judgeRow(c *candidate, eof bool) verdict {
	if c.cell > 0 {
		return e.atCell(c)
	}
	if c.row.kind == byTuple {
		return e.judgeTuple(c, eof)
	}
	v, p := e.view.vis, c.at
	if above := v[max(0, p-maxSibling):p]; c.number == 0 && c.row.kind == byBar {
		if k := bytes.LastIndexByte(bytes.TrimSuffix(above, []byte("\n")), '\n') + 1; e.edge > p-len(above)+k || HasPlaceholder(string(above[k:])) {
			return verdict{} // that line was no header: it has its value
		}
	}
	end := bytes.IndexByte(v[p:min(len(v), p+maxValue)], '\n')
	if end < 0 {
		if len(v)-p >= maxValue {
			return verdict{}
		}
		end = len(v) - p
		if !eof {
			from, to, _ := c.row.cell(v[p:])
			return verdict{outcome: more, loose: from == to || !unlikely(v[p+from:p+to])}
		}
	}
	line := v[p : p+end]
	if c.number++; c.number < maxRows && p+end+1 <= len(v) {
		c.then = p + end + 1
	}
	if bytes.IndexFunc(line, func(r rune) bool { return r < 0x80 && isAlnum(byte(r)) }) < 0 {
		if len(bytes.TrimSpace(line)) == 0 {
			c.then = 0 // a blank line ends the table
		}
		return verdict{}
	}
	from, to, ok := c.row.cell(line)
	if !ok {
		c.then = 0
		return verdict{}
	}
	return e.toCell(c, p+from, p+to)
}

// toCell lets the candidate of a row go on to its cell, which is judged where it begins: what stands before is
// no part of it.
func (e *engine) toCell(c *candidate, from, to int) verdict {
	if from == to || !e.set.passes(e.view.vis[from:to], gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: true}) {
		return verdict{}
	}
	c.cell, c.behind = to-from, max(c.then-from, 0)
	if from > c.at {
		c.then = from
		return verdict{}
	}
	return e.atCell(c)
}

// atCell finds the cell at c.
func (e *engine) atCell(c *candidate) verdict {
	val := e.view.vis[c.at : c.at+c.cell]
	if c.then = c.at + c.behind; c.behind == 0 {
		c.then = 0
	}
	c.cell = 0
	return verdict{outcome: found, layer: layerContext, start: c.at, end: c.at + len(val), rule: c.rule, noTag: c.noTag,
		learn: c.class == classStrong && len(val) >= 12}
}

// maxRows is how far a table is followed.
const maxRows = 10000

// cell finds the cell of a column in a line.
func (col column) cell(line []byte) (from, to int, ok bool) {
	switch col.kind {
	case byBar:
		rest := line
		for n := 0; ; n++ {
			k, size := nextBar(rest)
			if n == 0 && k < 0 {
				return 0, 0, false // the table is over
			}
			if n == int(col.at) {
				to = len(line)
				if k >= 0 {
					to = len(line) - len(rest) + k
				}
				from = len(line) - len(rest)
				break
			}
			if k < 0 {
				return 0, 0, false
			}
			rest = rest[k+size:]
		}
	case byCharacter:
		for n := 0; n < int(col.at); n++ {
			k := endOfCell(line[from:], col.sep)
			if k < 0 {
				return 0, 0, false
			}
			from += k + 1
		}
		to = len(line)
		if k := endOfCell(line[from:], col.sep); k >= 0 {
			to = from + k
		} else if col.at == 0 {
			return 0, 0, false
		}
	case byAccount:
		to = len(bytes.TrimRight(line, " \t\r"))
		from = bytes.LastIndexAny(line[:to], " \t") + 1
		if k := bytes.LastIndexByte(line[from:to], ':'); k > 0 && !bytes.Contains(line[from:to], []byte("//")) {
			from += k + 1
		}
		if from == 0 || line[0] == '#' {
			return 0, 0, true
		} else if isPrompt(line) {
			return 0, 0, false
		}
	case byWords:
		fields := bytes.Fields(line)
		if len(fields) <= int(col.at) {
			return 0, 0, len(fields) > 0 && line[0] == '#'
		}
		for k, f := range fields[:int(col.at)+1] {
			from += bytes.Index(line[from:], f)
			if to = from + len(f); k < int(col.at) {
				from = to
			}
		}
	case byTabs:
		at := 0
		for from < len(line) && (at < int(col.wide) || line[from] == '\t') {
			at = nextPlace(at, line[from])
			from++
		}
		cells := 0
		if from == len(line) || at != int(col.wide) || line[max(from-1, 0)] != '\t' { // cells before it are wider than their columns
			from, cells = 0, int(col.at)
		}
		for range cells {
			k := bytes.IndexByte(line[from:], '\t')
			if k < 0 {
				return 0, 0, false
			}
			for from += k; from < len(line) && line[from] == '\t'; {
				from++
			}
		}
		to = len(line)
		if k := bytes.IndexByte(line[from:], '\t'); k >= 0 {
			to = from + k
		} else if col.at == 0 {
			return 0, 0, false
		}
	case byPosition:
		from = int(col.at)
		if from >= len(line) || from > 0 && line[from-1] != ' ' && line[from-1] != '\t' {
			n := 0 // what stands before it is wider than its column
			if from, n = cellsOf(line, int(col.sep)); n < int(col.sep) || from == len(line) {
				return 0, 0, false
			}
		}
		for k := 0; k < 2 && from+1 < len(line) && line[from] == ' '; k++ { // no title is shorter
			from++
		}
		if line[from] == ' ' {
			return from, from, true
		}
		to = from
		for to < len(line) && line[to] > ' ' {
			to++
		}
	}
	for from < to && (line[from] == ' ' || line[from] == '\t' || line[from] == '"' || line[from] == '`') {
		from++
	}
	for to > from && (line[to-1] <= ' ' || line[to-1] == '"' || line[to-1] == '`') {
		to--
	}
	return from, to, true
}

// cellsOf counts the cells of a line, which are two blanks apart, in front of the last or of one more than most, and says where that begins.
func cellsOf(line []byte, most int) (at, n int) {
	for at = len(line) - len(bytes.TrimLeft(line, " ")); n < most; n++ {
		k := bytes.Index(line[at:], []byte("  "))
		if k < 0 {
			break
		}
		at = len(line) - len(bytes.TrimLeft(line[at+k:], " "))
	}
	return at, n
}

// endOfCell returns where the first cell of a line ends: sep inside quotes does not count. -1 is
// the end of the line.
func endOfCell(b []byte, sep byte) int {
	at := bytes.IndexByte(b, sep)
	if at < 0 || b[0] != '"' {
		return at
	}
	if q := bytes.IndexByte(b[1:], '"'); q >= at {
		if k := bytes.IndexByte(b[q+2:], sep); k >= 0 {
			return q + 2 + k
		}
		return -1
	}
	return at
}

// nextBar finds the first bar and its size.
func nextBar(b []byte) (at, size int) {
	at = -1
	for _, bar := range &bars {
		if k := bytes.Index(b, []byte(bar)); k >= 0 && (at < 0 || k < at) {
			at, size = k, len(bar)
		}
	}
	return at, size
}

// linkColumns finds a name among the columns of an INSERT in SQL; the values stand in the tuples
// behind VALUES.
func linkColumns(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak && n.class != classKey || n.option(s.v) || s.line < 0 {
		return c, false
	}
	if n.end < len(s.v) { // in a list of names; the look to the left costs more
		if ch := s.v[n.end]; !isIdent(ch) && ch != ')' && strings.IndexByte("`\"', []\n\r", ch) < 0 {
			return c, false
		}
	}
	left := s.v[s.line:n.start]
	open := bytes.LastIndexByte(left, '(')
	if open < 0 {
		return c, false
	}
	copied := bytes.HasPrefix(left, []byte("COPY ")) // COPY t (name, …) FROM stdin;⏎value
	if !copied && !bytes.Contains(left[:open], []byte("INTO ")) && !bytes.Contains(left[:open], []byte("into ")) {
		return c, false
	}
	limit := n.end + maxSibling
	for s.more() && s.p < limit && s.v[s.p] != ')' {
		if ch := s.v[s.p]; !isIdent(ch) && strings.IndexByte("`\"', []\n\r", ch) < 0 {
			return c, false
		}
		s.p++
	}
	if !s.lit(")") {
		return c, false
	}
	if copied {
		if !s.lit(" FROM stdin;\n") || !s.more() {
			return c, false
		}
		c.row = column{kind: byCharacter, at: uint16(bytes.Count(left[open:], []byte(","))), sep: '\t'}
		c.at, c.form, c.doubt = s.p, formRow, likely
		return c, true
	}
	if s.space(); !s.values() {
		return c, false
	}
	c.row = column{kind: byTuple, at: uint16(bytes.Count(left[open:], []byte(",")))}
	c.at, c.form, c.doubt = s.p, formRow, likely
	return c, true
}

// values passes over the word that stands before the first tuple of an INSERT.
func (s *scan) values() bool {
	if s.p+len("values") > len(s.v) {
		s.short = !s.eof
		return false
	}
	if !hasFold(s.v[s.p:], "values") {
		return false
	}
	s.p += len("values")
	s.space()
	return s.more() && s.v[s.p] == '('
}

// bound says that the values of a tuple were places: VALUES (?, ?).
const bound = '?'

// judgeTuple judges one value of a tuple.
func (e *engine) judgeTuple(c *candidate, eof bool) verdict {
	v := e.view.vis
	s := scan{v: v, p: c.at, eof: eof}
	for s.more() && s.p-c.at < maxSpace && strings.IndexByte(", \n\r\t", s.v[s.p]) >= 0 {
		s.p++
	}
	limit := c.at + maxValue
	if c.row.sep == bound { // the tuple of what is bound stands behind a log's words
		for s.more() && s.p-c.at < maxSibling && !(s.v[s.p] == '(' && s.p+1 < len(v) && (v[s.p+1] == '\'' || isDigit(v[s.p+1]))) {
			s.p++
		}
		c.row.sep = 0
	}
	if !s.lit("(") {
		return undecided(!s.short, true)
	}
	from, to, n, open := 0, 0, uint16(0), s.p
	for start, quote := s.p, byte(0); ; s.p++ {
		if !s.more() {
			return undecided(eof, n != c.row.at || !unlikely(v[start:s.p]))
		}
		if s.p >= limit {
			return verdict{}
		}
		ch := v[s.p]
		if quote != 0 {
			if ch == '\\' && s.p+1 < len(v) {
				s.p++
			} else if ch == quote {
				quote = 0
			}
			continue
		}
		if ch == '\'' || ch == '"' {
			quote = ch
		}
		if ch != ',' && ch != ')' {
			continue
		}
		if n == c.row.at {
			from, to = start, s.p
		}
		n++
		for start = s.p + 1; start < len(v) && v[start] == ' '; start++ {
		}
		if ch == ')' {
			break
		}
	}
	if c.number++; c.number < maxRows {
		c.then = s.p + 1
	}
	for from < to && (v[to-1] == ' ' || v[to-1] == '\n') {
		to--
	}
	if len(bytes.Trim(v[open:s.p], "?%s$:0123456789, ")) == 0 {
		c.row.sep = bound
		return verdict{}
	}
	if to-from < 2 || v[from] != '\'' && v[from] != '"' || v[to-1] != v[from] {
		return verdict{}
	}
	return e.toCell(c, from+1, to-1)
}

// linkTags finds a name in a cell of the header of a table in HTML; the values stand in the same
// cell of the rows below.
func linkTags(s *scan, n *nameInfo) (c candidate, ok bool) {
	if n.class != classStrong && n.class != classWeak && n.class != classKey || !s.lit("</th>") && (s.short || !s.lit("</TH>")) {
		return c, false
	}
	left := bytes.ToLower(s.v[max(0, n.start-history):n.start])
	row := bytes.LastIndex(left, []byte("<tr"))
	if row < 0 {
		return c, false
	}
	if left = left[row:]; bytes.Contains(left, []byte("</t")) && !bytes.Contains(left, []byte("<th")) {
		return c, false
	}
	cell := bytes.Count(left, []byte("<th"))
	if open := bytes.LastIndexByte(left, '>'); cell == 0 || cell > maxColumns || open < 0 || bytes.IndexFunc(left[open+1:], func(r rune) bool { return r >= 0x80 || !isIdent(byte(r)) && !isBlank(byte(r)) }) >= 0 {
		return c, false
	}
	c.at, c.form, c.doubt, c.row = s.p, formTags, likely, column{at: uint16(cell), sep: otherRow}
	return c, true
}

// otherRow is the number of a cell that no row has: the row that counts has not begun, or is past.
const otherRow = 128

// maxElements is how many tags of a table are followed.
const maxElements = 20000

// judgeTags judges the text in front of the next tag, if it is of the cell that is looked for.
func (e *engine) judgeTags(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	for p < len(v) && p-c.at < maxJudged && v[p] <= ' ' {
		p++
	}
	from := p
	for p < len(v) && p-c.at < maxJudged && v[p] != '<' {
		p++
	}
	val := bytes.TrimRight(v[from:p], " \t\r\n")
	wanted := c.row.sep == byte(c.row.at)
	if p == len(v) && !eof {
		return verdict{outcome: more, loose: !wanted || len(val) < loosePrefix || !unlikely(val)}
	}
	if p == len(v) || v[p] != '<' || c.number >= maxElements {
		return verdict{}
	}
	tag := p
	for p < len(v) && p-tag < maxJudged && v[p] != '>' {
		p++
	}
	if p == len(v) && !eof {
		return verdict{outcome: more, loose: !wanted || len(val) < loosePrefix || !unlikely(val)}
	}
	if p == len(v) || v[p] != '>' {
		return verdict{}
	}
	judged := wanted
	switch name := v[tag+1 : p]; {
	case hasFold(name, "tr"):
		c.row.sep = 0
	case hasFold(name, "td"), hasFold(name, "th") && !hasFold(name, "the"):
		c.row.sep++
	case hasFold(name, "/td"), hasFold(name, "/th") && !hasFold(name, "/the"):
		if wanted {
			c.row.sep = otherRow
		}
	case hasFold(name, "/table"):
		return verdict{}
	}
	c.number++
	c.then = p + 1
	if !judged || !e.set.passes(val, gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: true}) {
		return verdict{}
	}
	return verdict{outcome: found, layer: layerContext, start: from, end: from + len(val), rule: c.rule, noTag: c.noTag,
		learn: c.class == classStrong && len(val) >= 12}
}

// A pair is a key, a sign and a value. Here are the forms in which the name that says what the
// value is stands elsewhere: above the object or list, or in the field behind the value.

// privateParts are the fields of a JWK that are the private key: RFC 7518.
var privateParts = [...]string{"d", "p", "q", "dp", "dq", "qi", "k"}

// notSecrets are keys of pairs that say where a secret is, or whose.
const notSecrets = "name names id ids namespace type kind path file url uri host endpoint created updated expires version ref hash digest count provider source image tag label description arn issuer " +
	"salt iterations alg algorithm use crv kty kid format policy mode role scope scopes user username owner store class method"

// maxPairRows bounds the pairs that are followed.
const maxPairRows = 64

// judgePair judges one pair of an object or list, from what stands before its key on.
func (e *engine) judgePair(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	if c.number >= maxPairRows {
		return verdict{}
	}
	inline := c.row.sep != 0
	indent, broken := 0, false
	for ; s.more() && s.p-c.at < maxSpace; s.p++ {
		switch ch := s.v[s.p]; {
		case ch == '\n':
			indent, broken = 0, true
			continue
		case isBlank(ch) || ch == '-' && !inline:
			indent++
			continue
		case ch == '\r' || inline && (ch == ',' || (ch == '{' || ch == '[') && c.number == 0):
			continue
		}
		break
	}
	if s.short || !s.more() || !inline && (!broken || indent <= int(c.row.at)) {
		return undecided(!s.short, true)
	}
	s.quote()
	from := s.p
	for s.more() && s.p-from < maxName && (isAlnum(s.v[s.p]) || s.v[s.p] == '_' || s.v[s.p] == '-' || s.v[s.p] == '.') {
		s.p++
	}
	at, key := from, s.v[from:s.p]
	if string(key) == placeholderHead[1:len(placeholderHead)-1] {
		return verdict{}
	}
	s.quote()
	s.blanks()
	if s.short || len(key) == 0 || s.operator() == opNone || s.short {
		return undecided(!s.short, true)
	}
	s.blanks()
	start := s.p
	quoted := s.quote()
	if s.short {
		return verdict{outcome: more, loose: true}
	}
	if !quoted {
		s.p = start
	}
	from = s.p
	for s.more() && s.p-from < maxValue && s.v[s.p] >= ' ' && s.v[s.p] != '"' && s.v[s.p] != '\'' && s.v[s.p] != '\\' && (quoted || s.v[s.p] != ' ' && s.v[s.p] != ',') {
		s.p++
	}
	val := s.v[from:s.p]
	if s.short {
		return verdict{outcome: more, loose: len(val) < loosePrefix || !unlikely(val)}
	}
	if !quoted {
		val = trimValue(val, formPlain)
		for !inline && s.more() && s.p-from < maxValue && s.v[s.p] != '\n' { // description: of several words
			s.p++
		}
		if s.short {
			return verdict{outcome: more, loose: true}
		}
	}
	c.number++
	if c.then = s.p; quoted && s.more() && s.v[s.p] != '\n' {
		c.then++
	}
	if c.row.kind == jwkKey {
		if !isOneOf(key, privateParts[:]) || !e.set.passes(val, gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: quoted}) {
			return verdict{}
		}
		return verdict{outcome: found, layer: layerContext, start: from, end: from + len(val), rule: c.rule}
	}
	says := string(key) == "S" || hasFold(key, "key") && len(key) <= len("key1") || hasFoldSuffix(key, "value") && len(key) <= len("x_value")
	if !says && (c.row.kind != anyKey || endsInAny(key, notSecrets)) ||
		!e.set.passes(val, gate{class: c.class, doubt: c.doubt, rule: c.rule, quoted: quoted}) {
		return verdict{}
	}
	if class, _, _ := e.namedBy(at, at+len(key)); class != classNone {
		return verdict{} // announced by its own name
	}
	return verdict{outcome: found, layer: layerContext, start: from, end: from + len(val), rule: c.rule, noTag: c.noTag,
		learn: c.class == classStrong && mayLearn(val)}
}

// readField finds the value of a field, in quotes, whose name may stand behind it.
func (e *engine) readField(i int, text string, eof bool) (candidate, outcome) {
	s := scan{v: e.view.vis, p: i, eof: eof}
	for k := range len(text) {
		if !s.more() {
			return candidate{}, more
		}
		if fold(s.v[s.p]) != text[k] {
			return candidate{}, no
		}
		s.p++
	}
	bare := text[0] == '-' // an item of a list in YAML
	if text[len(text)-1] != '"' {
		s.blanks()
		s.lit("\"")
	}
	if s.short {
		return candidate{}, more
	}
	if s.p == 0 || s.v[s.p-1] != '"' && !bare {
		return candidate{}, no
	}
	return candidate{at: s.p, form: formBefore, class: classWeak, doubt: likely, rule: "secret"}, found
}

// rawAccountKey is the length of 64 random bytes in base64. No digest that people print is so
// long and has no prefix that names it.
const rawAccountKey = 88

// nameFields are the keys of the field that holds the name of a value.
var nameFields = [...]string{"name", "key", "keyname", "parametername", "label", "id", "field", "option_name", "variable"}

// judgeBefore judges a value in quotes by the name in a field behind it.
func (e *engine) judgeBefore(c *candidate, eof bool) verdict {
	s := scan{v: e.view.vis, p: c.at, eof: eof}
	for s.more() && s.p-c.at < maxJudged && s.v[s.p] > ' ' && s.v[s.p] != '"' && s.v[s.p] != '\\' {
		s.p++
	}
	val := s.v[c.at:s.p]
	if s.short {
		return verdict{outcome: more, loose: len(val) < loosePrefix || !unlikely(val)}
	}
	if len(val) < 8 || s.at() != '"' && s.at() != '\n' || !likelySecret(val, true) {
		return verdict{}
	}
	end := s.p
	if s.v[s.p] == '\n' {
		s.p-- // no quote to pass over
	}
	if len(val) == rawAccountKey && isRawKey(val) {
		return verdict{outcome: found, layer: layerContext, start: c.at, end: end, rule: c.rule}
	}
	s.p++
	for fields := 0; fields < 6 && s.p-end < maxSibling; fields++ {
		s.space()
		if s.at() == ',' {
			s.p++
			s.space()
		}
		s.quote()
		from := s.p
		for s.more() && s.p-from < 32 && (isAlnum(s.v[s.p]) || s.v[s.p] == '_') {
			s.p++
		}
		key := s.v[from:s.p]
		s.quote()
		s.blanks()
		if s.short {
			break
		}
		if len(key) == 0 || s.at() != ':' && s.at() != '=' {
			return verdict{}
		}
		s.p++
		s.blanks()
		if !s.quote() && !s.short {
			if !s.scalar(s.p + maxSibling) {
				break
			}
			continue
		}
		from = s.p
		for s.more() && s.p-from < maxSibling && s.v[s.p] >= ' ' && s.v[s.p] != '"' && s.v[s.p] != '\\' {
			s.p++
		}
		if s.short {
			break
		}
		if isOneOf(key, nameFields[:]) {
			class, rule, noTag := e.namedBy(from, s.p)
			if class == classNone || !e.set.passes(val, gate{class: class, doubt: c.doubt, rule: rule, quoted: true}) {
				return verdict{}
			}
			return verdict{outcome: found, layer: layerContext, start: c.at, end: end, rule: rule, noTag: noTag}
		}
		if !s.more() {
			break
		}
		s.p++
	}
	if s.short {
		return verdict{outcome: more}
	}
	return verdict{}
}

// namedBy judges a name that ends at to.
func (e *engine) namedBy(from, to int) (class, string, bool) {
	v := e.view.vis
	for k := range keywords {
		kw := keywords[k].word
		for at := max(from, to-len(kw)-len("_base64")); at+len(kw) <= to; at++ {
			if !hasFold(v[at:to], kw) {
				continue
			}
			info := e.readName(at, &entry{text: kw, ref: keywordRef(k), kind: eName}, true)
			if info.outcome == found && info.end == to && (info.class == classStrong || info.class == classWeak || info.class == classKey) {
				return info.class, info.rule, info.noTag
			}
		}
	}
	return classNone, "", false
}

// isOneOf reports whether a word is in a list, ignoring case.
func isOneOf(word []byte, list []string) bool {
	for _, w := range list {
		if len(w) == len(word) && hasFold(word, w) {
			return true
		}
	}
	return false
}
