package filter

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
)

// engine decides, for one stream, which visible bytes are secret.
//
// It judges positions strictly in order and stops at the first it cannot judge
// yet. A judgement depends on the bytes of the stream alone, never on how they
// were cut into writes, and everything before the first open position is free
// to go. That is the whole release rule.
type engine struct {
	set      *Set
	snap     *snapshot
	view     view
	cursor   int         // positions before are judged
	values   []candidate // announced by a name or operator, ascending
	names    []pending   // names whose operator had not come yet
	region   region
	mode     mode
	until    byteSet
	arm      armourState
	open     verdict // what waits for more bytes, and where it starts
	holdAt   int
	memo     endMemo
	scan     scan     // of the name under judgement
	name     nameInfo // that name
	base     int64    // of view.vis[0] in the visible stream
	floor    int      // visible bytes before it left
	nameEdge int      // the edge that counts for the name under judgement
	zoned    bool     // the zone behind that was begun when it was looked at before
	edge     int      // the end of the last region, which is a border of words as a placeholder is
	terminal bool     // what is typed must show at once
	crowd    crowd
	jam      crowd
	counted  struct {
		at    int64
		forms uint32
	}
	jammed    bool       // the block of the cursor is
	entered   int64      // 1 + that block
	announced int64      // 1 + the position whose names are announced
	dense     [5]density // of names, of prefixes, of flags, of URLs, of zones
	work      int64      // calls that judged and each 64 bytes of values that they read, for TestNoCliff
	nested    nestMemo
	named     *nameMemo
	commands  commandMemo
	lines     lineMemo
	runs      runMemo
	heads     headMemo
	zone      zone
}

type mode uint8

const (
	scanning mode = iota
	swallowing
	inArmour
)

// region is a stretch to be replaced: the union of findings that overlap.
type region struct {
	open       bool
	start, end int
	best       verdict
	hash       *tagHash // feeds the tag of a swallowed value
}

type pending struct {
	at    int
	ent   entry
	paid  bool // its credit was taken
	edge  int  // that counted for it
	zoned bool // the zone behind it was begun
	hold  int  // where its value may begin already, or nowhere
}

// step is what advance stopped for.
type step uint8

const (
	starved step = iota // all judged, or the position at cursor needs more bytes
	closed              // region is complete
)

// hold returns the first visible byte that may not be written yet.
func (e *engine) hold() int {
	if e.region.open {
		if e.open.outcome == more && e.holdAt < e.region.start { // a value may begin behind its scheme
			return e.holdAt
		}
		return e.region.start
	}
	if e.open.outcome == more {
		return e.heldRun(e.holdAt)
	}
	return e.heldRun(len(e.view.vis))
}

// heldRun returns the start of the run that ends at to, if a tell-tale may follow that makes
// it a part of a token.
func (e *engine) heldRun(to int) int {
	if e.terminal {
		return to
	}
	const most = longestLookback + len("uXXXX") // the letters of an escape may stand before it
	v, from := e.view.vis, to
	for set := &sets[setAlnum]; from > 0 && to-from <= most && set.has(v[from-1]); {
		from--
	}
	if n := to - from; n > most || n == 0 {
		return to
	}
	return max(e.nearRun(from, to, e.view.decided()), e.floor)
}

// nearRun returns the start of a run that ends at to, and at the raw byte end, without what
// escapes in it keep too far away to be held.
func (e *engine) nearRun(from, to, end int) int {
	if end-from > maxRunHeld || len(e.view.raw) != len(e.view.vis) {
		for from < to && end-e.view.rawAt(from) > maxRunHeld {
			from++
		}
	}
	return from
}

// advance judges positions until a region closes or more bytes are needed.
func (e *engine) advance(eof bool) step {
	e.open = verdict{}
	e.retryNames(eof)
	for {
		switch e.mode {
		case swallowing:
			if !e.eat(eof) {
				return starved
			}
			continue
		case inArmour:
			if !e.eatArmour(eof) {
				return starved
			}
			continue
		}
		if e.region.open && e.cursor >= e.region.end {
			return closed
		}
		v := e.view.vis
		n := len(v)
		for len(e.values) > 0 && e.values[0].at < e.cursor {
			passed := e.values[0]
			e.values = e.values[:copy(e.values, e.values[1:])]
			switch { // a finding reached over it
			case passed.form == formRun || passed.form == formZone:
				passed.at = e.cursor
				e.schedule(passed)
			case passed.cell > 0 && passed.behind > 0: // the next row
				passed.at, passed.cell = passed.at+passed.behind, 0
				e.schedule(passed)
			}
		}
		e.enterBlock()
		stop := n
		if len(e.values) > 0 {
			stop = min(stop, e.values[0].at)
		}
		for k := range e.names {
			if hold := e.names[k].hold; hold >= e.cursor {
				stop = min(stop, hold)
			}
		}
		if e.region.open {
			stop = min(stop, e.region.end)
		}
		stop = min(stop, e.cursor+densityBlock-int((e.base+int64(e.cursor))%densityBlock))
		first := unscanned
		if full := min(stop, n-2); e.cursor < full { // positions before n-2 have three bytes
			if e.cursor, first = e.snap.index.scan(v, e.cursor, full); e.cursor == full {
				first = unscanned
			}
		}
		if e.region.open && e.cursor >= e.region.end {
			return closed
		}
		e.enterBlock()
		if e.cursor >= n || !e.judge(first, eof) {
			return starved
		}
	}
}

// unscanned says that no entry was looked for yet.
const unscanned = -2

// judge evaluates everything that may start at cursor and moves on. It reports
// false if that takes more bytes. first is the first entry there.
func (e *engine) judge(first int, eof bool) bool {
	v, i := e.view.vis, e.cursor
	var list [8]*entry
	starts := list[:0]
	if i+3 <= len(v) {
		starts = e.announceAll(i, first, eof, starts)
		if len(starts) == 0 && (len(e.values) == 0 || e.values[0].at != i) && !e.waitsAt(i) {
			e.cursor = i + 1
			return true
		}
	}
	var room [4]verdict
	hits := room[:0]
	open := verdict{}
	note := func(r verdict) {
		switch r.outcome {
		case no:
		case more:
			if open.outcome == more {
				r.loose = r.loose && open.loose
			}
			open = r
		case found, swallow:
			if r.layer == layerContext && meetsPlaceholder(v, r.start, r.end) {
				return
			}
			fallthrough
		default:
			if !e.set.off(&r) {
				hits = append(hits, r)
			}
		}
	}
	sight, limited := e.sight()
	due := 0
	for due < len(e.values) && e.values[due].at == i {
		due++
	}
	var saved [2]candidate
	asked := append(saved[:0], e.values[:due]...)
	for _, zone := range [...]bool{false, true} { // where a form finds a value, that is it
		for k := range e.values[:due] {
			c := &e.values[k]
			if zone != (c.form == formZone) {
				continue
			}
			if zone && len(hits) > 0 {
				c.then = max(hits[0].end, i+1)
				continue
			}
			e.work++
			if limited {
				note(e.atSight(sight, func(eof bool) verdict { return e.judgeValue(c, eof) }))
			} else {
				note(e.judgeValue(c, eof))
			}
		}
	}
	if !limited && e.waitsAt(i) {
		note(e.heldName(i))
	}
	inside := e.region.open && i < e.region.end
	tail := false
	switch {
	case i+3 <= len(v):
		for _, ent := range starts {
			if limited {
				note(e.atSight(sight, func(eof bool) verdict { return e.judgeEntry(i, ent, eof) }))
			} else {
				note(e.judgeEntry(i, ent, eof))
			}
		}
	case eof || limited:
	case e.maybeStarts(i):
		note(verdict{outcome: more, loose: true})
	default:
		tail = !inside && len(hits) == 0
	}
	if open.outcome == more {
		open.loose = open.loose && len(hits) == 0 // a secret is here already, whatever else may be
		copy(e.values, asked)                     // all are judged again, as if for the first time
		e.open, e.holdAt = open, i
		return false
	}
	for k := range e.values[:due] {
		if c := &e.values[k]; !c.early && c.form != formRun && c.form != formZone && e.counts(i, c.form) { // which depend on the cuts
			cost := perValue
			if c.form != formRow { // of which a part may be looked at again
				cost += min(max(c.then-c.at, 0), maxJudged) / 64
			}
			e.jam.add(e.base+int64(i), cost, jamLimit)
		}
	}
	if due > 0 {
		e.follow(due)
	}
	if tail {
		e.holdTail(i)
		return false
	}
	slices.SortStableFunc(hits, byWeight)
	for _, r := range hits {
		e.take(r)
		switch {
		case r.layer == layerContext && r.rule == crowdRule:
			e.crowd.add(e.base+int64(i), 1, crowdLimit)
		case r.layer == layerContext:
			e.dense[0].found(e.base+int64(i), maxNames)
			e.crowd.add(e.base+int64(i), 1, crowdLimit)
			e.jam.add(e.base+int64(i), perFinding, jamLimit)
		case r.layer == layerPrefix:
			e.dense[1].found(e.base+int64(i), maxPrefixes)
		}
	}
	if e.mode == scanning {
		e.cursor = i + 1
	}
	return true
}

// counts reports the first candidate of a form at i: a second one, of another name, may come after the first was judged.
func (e *engine) counts(i int, f form) bool {
	if at := e.base + int64(i); e.counted.at != at {
		e.counted.at, e.counted.forms = at, 0
	}
	was := e.counted.forms
	e.counted.forms |= 1 << f
	return e.counted.forms != was
}

// sight returns how much of the stream the candidates at the cursor may see, and whether more
// is there: escapes in them are held with them.
func (e *engine) sight() (int, bool) {
	v := &e.view
	if len(v.raw) == len(v.vis) || len(v.raw) <= maxHeld {
		return len(v.vis), false
	}
	from := e.cursor
	if e.region.open {
		from = min(from, e.region.start)
	}
	most := v.rawAt(from) + maxHeld
	if v.decided() <= most {
		return len(v.vis), false
	}
	return v.visAt(most), true
}

// atSight judges a candidate that sees only n visible bytes: what is undecided then is judged
// as at the end of the stream, and what is a secret so far goes with all that follows.
func (e *engine) atSight(n int, judge func(eof bool) verdict) verdict {
	whole := e.view.vis
	e.view.vis = whole[:n]
	r := judge(false)
	if r.outcome == more {
		if r = judge(true); r.outcome == found && r.end == n {
			r.outcome, r.until = swallow, unspaced()
		}
	}
	e.view.vis = whole
	return r
}

// announceAll handles the names and URLs at i, and appends what else may start there.
func (e *engine) announceAll(i, first int, eof bool, starts []*entry) []*entry {
	v, x := e.view.vis, e.snap.index
	e.nameEdge = e.edge
	again := e.announced == e.base+int64(i)+1 // and complete, or waiting
	e.announced = e.base + int64(i) + 1
	if first == unscanned {
		first = x.entryAt(v, i)
	}
	for k := first; k >= 0; k = x.after(v, i, k) {
		switch ent := &x.entries[k]; {
		case ent.kind < eName:
			starts = append(starts, ent)
		case again || e.jammed:
		case e.region.open && i+3 > e.region.end:
		default:
			e.zoned = false
			e.announce(i, ent, eof, false)
		}
	}
	return starts
}

// mayAnnounce reports whether there is credit for what stands at i.
func (e *engine) mayAnnounce(i int, kind entryKind) bool {
	at := e.base + int64(i)
	switch kind {
	case eURL:
		return e.dense[3].room(at, maxURLs)
	case eName, eVendor:
		return e.dense[0].room(at, maxNames)
	}
	return e.dense[2].room(at, maxFlags)
}

// holdTail looks for candidates behind i, one of the last two positions. The
// cursor stays at i, where a name may start: names hold nothing back.
func (e *engine) holdTail(i int) {
	for k := i + 1; k < len(e.view.vis); k++ {
		if at := e.base + int64(k); at%densityBlock == 0 && e.jam.at(at, jamLimit) { // where whatever could be a value is one
			e.open, e.holdAt = verdict{outcome: more, loose: true}, k
			return
		}
		for j := range e.values {
			if e.values[j].at != k {
				continue
			}
			c := e.values[j]
			if r := e.judgeValue(&c, false); r.outcome != no {
				e.open, e.holdAt = verdict{outcome: more, loose: r.outcome == more && r.loose}, k
				return
			}
		}
		if e.waitsAt(k) {
			e.open, e.holdAt = e.heldName(k), k
			return
		}
		if e.maybeStarts(k) {
			e.open, e.holdAt = verdict{outcome: more, loose: true}, k
			return
		}
	}
}

// waitsAt reports whether the value of a name may begin at i, and the bytes so far do not say.
func (e *engine) waitsAt(i int) bool {
	for k := range e.names {
		if e.names[k].hold == i {
			return true
		}
	}
	return false
}

// heldName is the verdict on such a position.
func (e *engine) heldName(i int) verdict {
	so := e.view.vis[i:]
	return verdict{outcome: more, loose: len(so) < loosePrefix || !unlikely(so)}
}

// follow removes the first due values and schedules what comes after them, such
// as the next cookie of a header.
func (e *engine) follow(due int) {
	var next [8]candidate
	n := 0
	for k := range e.values[:due] {
		if c, ok := e.values[k].next(e.view.vis); ok && n < len(next) {
			next[n] = c
			n++
		}
	}
	e.values = e.values[:copy(e.values, e.values[due:])]
	for _, c := range next[:n] {
		e.schedule(c)
	}
}

// schedule enters a value that was announced.
func (e *engine) schedule(c candidate) {
	if c.at < e.cursor || len(e.values) >= maxScheduled {
		return
	}
	if c.form == formRow {
		rows := 0
		for k := range e.values {
			if e.values[k].form == formRow {
				rows++
			}
		}
		if rows >= maxColumns {
			return
		}
	}
	k := len(e.values)
	for k > 0 && e.values[k-1].at >= c.at {
		if k--; e.values[k].same(&c) {
			return
		}
	}
	e.values = append(e.values, candidate{})
	copy(e.values[k+1:], e.values[k:])
	e.values[k] = c
}

// Names side by side, a hundred in the space of a secret, would cost more than all else
// together. So each block of the stream may hold so many that are looked at in vain, and some
// more come out of a store that quieter blocks fill: text that is dense for a while is judged
// whole, and no text costs much for each of its bytes. What is a secret does not count.
const (
	densityBlock = 4 << 10 // bytes
	densityStore = 1024

	// in a block
	maxNames    = 32
	maxPrefixes = 42
	maxFlags    = 32
	maxURLs     = 128
)

// density counts one kind of position. A name at the end of the buffer is counted when its word
// is whole, perhaps after some behind it. So what a block may hold depends on the blocks before
// the last, which are final, and not on how the stream was cut.
type density struct {
	block     int64
	now, last int      // of this block, of the one before
	debt      int      // of all before these
	recent    [8]int64 // behind the last positions counted
	turn      uint8
}

// room reports whether the position at, or the same as the last, may be looked at.
func (d *density) room(at int64, most int) bool {
	if slices.Contains(d.recent[:], at+1) {
		return true // another entry there
	}
	count := d.of(at, most)
	if d.debt+*count >= densityStore+most {
		return false
	}
	*count++
	d.recent[d.turn&7] = at + 1
	d.turn++
	return true
}

// spent reports whether no position there can be looked at, without counting it.
func (d *density) spent(at int64, most int) bool {
	count := d.of(at, most)
	return d.debt+*count >= densityStore+most && !slices.Contains(d.recent[:], at+1)
}

// found takes back what the name of a secret counted, and once more.
func (d *density) found(at int64, most int) { *d.of(at, most) -= 2 }

// of returns the count of the block of a position.
func (d *density) of(at int64, most int) *int {
	b := at / densityBlock
	if b-d.block > densityStore {
		*d = density{block: b}
	}
	for ; d.block < b; d.block++ {
		d.debt = max(d.debt+d.last-most, 0)
		d.last, d.now = d.now, 0
	}
	if b < d.block {
		return &d.last
	}
	return &d.now
}

// Secrets a few bytes long, hundreds in the space of one block, would cost more than ten times the
// text around them. Where more than maxCrowd have stood in each block and a store that quieter
// blocks fill is used up, a secret is masked as anywhere, but has no tag and is not learned; behind a name
// with a value right beside it no other is looked for; and a value of letters and digits is masked
// also if it reads like a word.
const (
	maxCrowd   = 48
	crowdStore = 512
)

// crowd counts context findings, or judgements. What it says of a block follows from the blocks before the last,
// which are final, and so not from how the stream was cut.
type crowd struct {
	block int64
	found [4]int // of the last blocks, by their lowest bits
	over  [4]bool
	debt  int
}

// limit says how much each block may hold and the store besides, and how much more than the store
// holds is remembered.
type limit struct{ most, store, over int }

var crowdLimit = limit{maxCrowd, crowdStore, maxCrowd}

// add counts n.
func (c *crowd) add(at int64, n int, l limit) {
	b := at / densityBlock
	c.enter(b, l)
	if b > c.block-2 {
		c.found[b&3] += n
	}
}

// at reports whether the store is used up in the block of a position.
func (c *crowd) at(at int64, l limit) bool {
	b := at / densityBlock
	c.enter(b, l)
	return c.over[b&3]
}

// enter goes on to a block.
func (c *crowd) enter(b int64, l limit) {
	if b-c.block > int64(2*l.store) {
		*c = crowd{block: b}
	}
	for c.block < b {
		c.block++
		c.debt = min(max(c.debt+c.found[(c.block-2)&3]-l.most, 0), l.store+l.over)
		c.over[c.block&3] = c.debt >= l.store
		c.found[c.block&3] = 0
	}
}

// nestMemo counts the values in vain of one run without an end: in name=name=name=… each
// holds the next.
type nestMemo struct{ run, last, n int }

// maxNested is how many of them are judged.
const maxNested = 8

func (m *nestMemo) spent(p, run int) bool { return m.run == run && m.n >= maxNested && p > m.last }

func (m *nestMemo) rejected(p, run int) {
	if m.run != run {
		*m = nestMemo{run, -1, 0}
	}
	if p > m.last {
		m.n++
		m.last = p
	}
}

func (m *nestMemo) forget(cut int) { m.run, m.last = m.run-cut, max(m.last-cut, -1) }

// maxScheduled bounds the announced values; a real line has a handful.
const maxScheduled = 256

// retryNames looks again at names that stood at the end of the buffer.
func (e *engine) retryNames(eof bool) {
	names := e.names
	e.names = nil
	for _, n := range names {
		e.nameEdge, e.zoned = n.edge, n.zoned
		e.announce(n.at, &n.ent, eof, n.paid)
	}
}

// maybeStarts reports whether the last one or two bytes, from i on, may be the
// beginning of a candidate.
func (e *engine) maybeStarts(i int) bool {
	t := e.view.vis[i:]
	if !e.snap.index.first[t[0]] {
		return false
	}
	x := e.snap.index
	for k := range x.screens {
		if byte(x.screens[k].want) != t[0] {
			continue
		}
		ent := &x.entries[k]
		if ent.kind > eArmour {
			continue
		}
		if len(t) > 1 && ent.text[1] != t[1] && !(ent.kind == eKnown && isSpace(ent.text[1]) && isSpace(t[1])) {
			continue
		}
		if ent.kind == ePrefix && !e.fits(&e.snap.rules[ent.ref], i) {
			continue
		}
		return true
	}
	return false
}

func (e *engine) judgeEntry(i int, ent *entry, eof bool) verdict {
	v := e.view.vis
	switch ent.kind {
	case eKnown:
		if ent.ref < 0 {
			return e.snap.matchEscaped(v, i, eof)
		}
		nd := &e.snap.needles[ent.ref]
		if nd.lead != 0 && !e.view.hides(i, nd.lead) {
			return verdict{}
		}
		return matchKnown(v, i, nd, &e.snap.values[nd.value], eof)
	case eArmour:
		return e.heads.matchArmour(v, i, ent.text, eof)
	}
	n := min(len(ent.text), len(v)-i)
	if string(v[i:i+n]) != ent.text[:n] {
		return verdict{}
	}
	r := &e.snap.rules[ent.ref]
	if !e.fits(r, i) {
		return verdict{}
	}
	if n < len(ent.text) {
		if eof {
			return verdict{}
		}
		return verdict{outcome: more, loose: true}
	}
	if !e.dense[1].room(e.base+int64(i), maxPrefixes) {
		return verdict{}
	}
	e.work++
	out := e.runs.matchRule(v, i, n, r, eof)
	if out.outcome == no && out.end > i {
		out = e.beforeKnown(i, out.end, r, eof)
	}
	if out.outcome == found || out.outcome == swallow {
		out.start = max(e.nearRun(r.start(v, i), i, e.view.rawAt(i)), e.floor, e.edge)
	}
	return out
}

// fits reports whether a token of r may start at i.
func (e *engine) fits(r *rule, i int) bool {
	return r.fits(e.view.vis[e.edge:], i-e.edge)
}

// beforeKnown judges a token of exact length that a letter or digit follows: it is one if that
// begins a known value or a key, whose placeholder will be a border.
func (e *engine) beforeKnown(i, p int, r *rule, eof bool) verdict {
	v, x := e.view.vis, e.snap.index
	if p+3 > len(v) {
		if eof {
			return verdict{}
		}
		return verdict{outcome: more}
	}
	for k := x.entryAt(v, p); k >= 0; k = x.after(v, p, k) {
		if kind := x.entries[k].kind; kind != eKnown && kind != eArmour {
			continue
		}
		switch e.judgeEntry(p, &x.entries[k], eof).outcome {
		case no:
		case more:
			return verdict{outcome: more}
		default:
			return verdict{outcome: found, layer: layerPrefix, start: i, end: p, rule: r.id, learn: true}
		}
	}
	return verdict{}
}

// byWeight orders findings at one position, the one that names a region first: in which order
// they were announced depends on the cuts.
func byWeight(a, b verdict) int {
	if c := cmp.Or(cmp.Compare(b.layer, a.layer), cmp.Compare(b.end, a.end)); c != 0 || a.noTag == b.noTag {
		return cmp.Or(c, cmp.Compare(a.rule, b.rule))
	} else if b.noTag {
		return -1
	}
	return 1
}

// take adds a finding to the region.
func (e *engine) take(r verdict) {
	if !e.region.open {
		e.region = region{open: true, start: r.start, end: r.end, best: r}
	} else {
		e.region.start = min(e.region.start, r.start)
		e.region.end = max(e.region.end, r.end)
		if r.layer > e.region.best.layer {
			e.region.best = r
		}
	}
	switch r.outcome {
	case swallow:
		e.mode, e.until = swallowing, r.until
		e.region.end = max(e.region.end, r.end)
		e.region.hash = e.set.newTag()
		e.region.hash.write(e.view.vis[r.start:e.region.end])
		e.cursor = e.region.end
	case armoured:
		e.startArmour(r)
	}
}

// eat drops the rest of a swallowed value and reports whether it ended.
func (e *engine) eat(eof bool) bool {
	v, p := e.view.vis, e.cursor
	for p < len(v) && e.until.has(v[p]) {
		p++
	}
	e.region.hash.write(v[e.cursor:p])
	e.cursor, e.region.end = p, max(e.region.end, p)
	if p == len(v) && !eof {
		return false
	}
	e.mode = scanning
	return true
}

// forget moves all positions by cut visible bytes.
func (e *engine) forget(cut int) {
	e.cursor -= cut
	e.base += int64(cut)
	e.floor = max(e.floor-cut, 0)
	e.edge = max(e.edge-cut, 0)
	e.nested.forget(cut)
	for i := range e.values {
		e.values[i].at -= cut
	}
	for i := range e.names {
		e.names[i].at -= cut
		e.names[i].edge = max(e.names[i].edge-cut, 0)
		e.names[i].hold = max(e.names[i].hold-cut, nowhere)
	}
	if e.region.open {
		e.region.start -= cut
		e.region.end -= cut
		e.region.best.start -= cut
		e.region.best.end -= cut
	}
	e.holdAt -= cut
	e.memo.from -= cut
	e.memo.to -= cut
	e.commands.at -= cut
	e.lines.forget(cut)
	e.runs.forget(cut)
	e.heads.forget(cut)
	e.arm.forget(cut)
}

// Some texts would cost twenty times what a log costs although secrets crowd in them as in others: several names
// lie around each value, and each asks many links. So what is judged is counted too, in units of a
// judgement. Where more than maxJam stood in each block and a store that quieter blocks fill is used
// up, no name is asked: whatever could be a value is masked, whether a name stands beside it or not,
// at the cost of reading it. Secrets of a few bytes behind plain names, a million of them, stay below.
const (
	maxJam   = 540
	jamStore = 32 << 10

	// maxJammed is how many blocks the most jammed text is read so before it is judged again.
	maxJammed = 16

	perName    = 16 // and its links
	perNext    = 2  // if only the value beside it was asked
	perValue   = 1
	perFinding = 1

	// maxJamTail is how far a value may stand behind a block that is jammed.
	maxJamTail = 256
	// leastRun is the length of the shortest values that are masked there, as elsewhere.
	leastRun  = 8
	crowdRule = "crowd"
)

var jamLimit = limit{maxJam, jamStore, maxJammed * maxJam}

// enterBlock looks whether the block of the cursor is jammed when the cursor comes to it, at its
// first byte or behind a finding there.
func (e *engine) enterBlock() {
	at := e.base + int64(e.cursor)
	b := at/densityBlock + 1
	if b == e.entered {
		return
	}
	e.entered, e.jammed = b, e.jam.at(at, jamLimit)
	if !e.jammed {
		return
	}
	for k := range e.values {
		if e.values[k].form == formRun {
			return
		}
	}
	e.schedule(candidate{at: e.cursor, form: formRun, rule: crowdRule, noTag: true})
}

// inJam reports whether runs at i are judged: a name at the end of a jammed block was not asked.
func (e *engine) inJam(i int) bool {
	at := e.base + int64(i)
	return e.jam.at(at, jamLimit) || e.jam.at(max(at-maxJamTail, 0), jamLimit)
}

// runStops end a run of a jammed block: what ends a value between quotes, brackets or tags, and
// the controls.
var runStops = byteSet{1<<' ' - 1 | 1<<'"' | 1<<'\'' | 1<<'<' | 1<<'>', 1<<('`'-64) | 1<<63}

// judgeRun judges the bytes between two stops, or goes on to the next that could be a value. Whether a later block
// is jammed is asked when the cursor is there: until then more is judged, how much depends on the cuts.
func (e *engine) judgeRun(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	c.then = 0
	for {
		for p < len(v) && (runStops.has(v[p]) || p == c.at && v[p]&0xc0 == 0x80) { // a block may begin within a character
			p++
		}
		if p >= len(v) {
			c.then = len(v)
			return verdict{}
		}
		if (e.base+int64(p))/densityBlock > (e.base+int64(c.at))/densityBlock {
			c.then = p
			return verdict{}
		}
		if !e.inJam(p) {
			return verdict{}
		}
		q := p
		for q < len(v) && q-p < maxValue && !runStops.has(v[q]) {
			q++
		}
		open := q == len(v) && !eof && q-p < maxValue
		from, to := couldBeValue(v, p, q)
		if p > c.at && (open || from < to) { // it starts there
			c.then = p
			return verdict{}
		}
		if open {
			return verdict{outcome: more, loose: from == to}
		}
		if from < to {
			c.then = q
			r := verdict{outcome: found, layer: layerContext, start: from, end: to, rule: crowdRule, noTag: true}
			if q-p >= maxValue {
				r.end, r.outcome, r.until = q, swallow, byteSet{^runStops[0], ^runStops[1], ^runStops[2], ^runStops[3]}
			}
			return r
		}
		p = q
	}
}

// couldBeValue returns where in the run v[p:q] the words that could be values begin and end.
func couldBeValue(v []byte, p, q int) (from, to int) {
	run := v[p:q]
	if len(run) < leastRun || bytes.Contains(run, []byte(placeholderHead)) {
		return p, p
	}
	from = -1
	for i := 0; i < len(run); i++ {
		j := bytes.IndexByte(run[i:], ' ')
		if j = i + j; j < i {
			j = len(run)
		}
		a, b := i, j
		for a < b && structural.has(run[a]) {
			a++
		}
		for b > a && structural.has(run[b-1]) {
			b--
		}
		if b-a >= leastRun && doubtful(run[a:b]) {
			if to = b; from < 0 {
				from = behindName(run, a, b)
			}
		}
		i = j
	}
	if from < 0 && p > 0 && q < len(v) && v[p-1] == v[q] && (v[q] == '"' || v[q] == '\'') && run[0] != ' ' && !structural.has(run[0]) && doubtful(run) {
		n := len(bytes.TrimRight(run, `\`))
		secret := n >= 12 || bytes.ContainsFunc(run[:n], func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) }) // not "secret id"
		if secret && run[n-1] != '=' && run[n-1] != ':' {
			from, to = 0, n // a password of several words
		}
	}
	return p + max(from, 0), p + to
}

// behindName returns where in run[a:b] a value begins: behind name= if the name can be nothing else.
func behindName(run []byte, a, b int) int {
	k := bytes.IndexAny(run[a:b], "=:") + 1
	if k > 1 && b-a-k >= leastRun && !doubtful(run[a:a+k-1]) && doubtful(run[a+k:b]) {
		return a + k
	}
	return a
}

// structural are the marks around the values of a document.
var structural = byteSet{1<<'(' | 1<<')' | 1<<',' | 1<<';' | 1<<':' | 1<<'=' | 1<<'&',
	1<<('['-64) | 1<<(']'-64) | 1<<('{'-64) | 1<<('}'-64) | 1<<('|'-64) | 1<<('\\'-64)}

// doubtful reports all but words and numbers.
func doubtful(val []byte) bool {
	digits, upper, lower := tally(val)
	if upper+lower == len(val) {
		return upper > 0 && lower > 0 || unlikely(val)
	}
	if digits+upper == 0 && joinedWords(val, lower) {
		return false
	}
	return digits < len(val) && !isNumeric(val)
}

// joinedWords reports words in small letters with nothing between them but the marks of a document, so
// many letters in all.
func joinedWords(val []byte, lower int) bool {
	marks := 0
	for from, i := 0, 0; i <= len(val); i++ {
		if i < len(val) && !structural.has(val[i]) {
			continue
		}
		if marks++; i-from >= 4 && unlikely(val[from:i]) {
			return false
		}
		from = i + 1
	}
	return lower+marks-1 == len(val)
}
