package filter

import "bytes"

// Some texts cost a hundred times a log although secrets crowd in them as in others: several names
// lie around each value, and each asks many links. So what is judged is counted too, in units of a
// judgement. Where more than maxJam stood in each block and a store that quieter blocks fill is used
// up, no name is asked: whatever could be a value is masked, whether a name stands beside it or not,
// at the cost of reading it. Secrets of a few bytes behind plain names, a million of them, stay below.
const (
	maxJam   = 640
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

// judgeRun judges the bytes between two stops, or goes on to the next that could be a value.
func (e *engine) judgeRun(c *candidate, eof bool) verdict {
	v, p := e.view.vis, c.at
	c.then = 0
	for e.inJam(p) {
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
		for p = max(q, p+1); p < len(v) && runStops.has(v[p]); {
			p++
		}
		if p >= len(v) {
			c.then = len(v)
			return verdict{}
		}
	}
	return verdict{}
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
		from, to = 0, len(bytes.TrimRight(run, `\`)) // a password of several words
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
	return digits < len(val) && !isNumeric(val)
}
