package shell

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/prints"
)

// maxAlternatives is how many values a word may have before it counts as unknown.
const maxAlternatives = 16

// text is one value of a word, as far as it is known.
type text struct {
	s     string // may hold Holes
	glob  bool   // an unquoted pattern character stands in it
	lead  bool   // and is its first character
	rough bool   // a number or a name whose digits are not known stands as 0
	unset bool   // of a variable: it may not be set
	from  []int  // the commands whose output is in it
	whole bool   // it is all that one command prints, or a line or a word of it, unchanged
}

// value is the alternatives of a text; never empty.
type value []text

func constant(s string) value       { return value{{s: s}} }
func number() value                 { return value{{s: "0", rough: true}} }
func unknown(from []int) value      { return value{{s: Hole, from: from}} }
func (t text) known() bool          { return strings.IndexByte(t.s, 0) < 0 }
func (t text) exact() bool          { return t.known() && !t.rough }
func (v value) one() (string, bool) { return v[0].s, len(v) == 1 && v[0].exact() && !v[0].unset }

// known reports whether every alternative is.
func (v value) known() bool {
	for i := range v {
		if !v[i].known() {
			return false
		}
	}
	return true
}

// numbers reports that every alternative is one.
func (v value) numbers() bool {
	return !slices.ContainsFunc(v, func(t text) bool { return !prints.IsNumber(t.s) })
}

func (v value) sources() []int {
	var out []int
	for i := range v {
		out = union(out, v[i].from)
	}
	return out
}

// concat appends t to a.
func concat(a, t text) text {
	if a.s == "" && len(a.from) == 0 {
		t.rough, t.glob = t.rough || a.rough, t.glob || a.glob
		return t
	}
	a.glob, a.rough = a.glob || t.glob, a.rough || t.rough
	if len(a.s)+len(t.s) > maxText {
		// "x=$x$x" doubles it each time.
		a.s, t.s = Hole, ""
	}
	a.s += t.s
	a.from, a.whole = union(a.from, t.from), false
	return a
}

func union(a, b []int) []int {
	if len(b) == 0 {
		return a
	}
	out := slices.Clone(a)
	for _, i := range b {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

func (t text) same(u text) bool {
	return t.s == u.s && t.glob == u.glob && t.rough == u.rough && t.unset == u.unset && t.whole == u.whole && slices.Equal(t.from, u.from)
}

// mixed reports that it may be more than the whole output of a command.
func (v value) mixed() bool {
	return slices.ContainsFunc(v, func(t text) bool { return !t.whole })
}

func (v value) same(u value) bool { return slices.EqualFunc(v, u, text.same) }

// or is the alternatives of both.
func (v value) or(u value) value {
	out := slices.Clone(v)
	for _, t := range u {
		if !slices.ContainsFunc(out, t.same) {
			out = append(out, t)
		}
	}
	if len(out) > maxAlternatives {
		return unknown(out.sources())
	}
	return out
}

// changed is v after an operation: it may not be what was printed any more.
func (v value) changed() value {
	out := slices.Clone(v)
	for i := range out {
		out[i].whole = false
	}
	return out
}

// each applies f to every known alternative; what is not known stays so.
func (v value) each(f func(string) string) value {
	out := make(value, 0, len(v))
	for _, t := range v {
		if t.known() {
			if t.s = f(t.s); len(t.s) > maxText {
				t.s = Hole
			}
		} else {
			t.s = Hole
		}
		if !slices.ContainsFunc(out, t.same) {
			out = append(out, t)
		}
	}
	return out
}

// name reports a text without a slash, although not all of it is known.
func (t text) name() bool {
	return strings.IndexByte(t.s, '/') < 0 && strings.IndexByte(strings.ReplaceAll(t.s, HoleName, ""), 0) < 0
}

// eachName is v once every slash in it has become something else.
func (v value) eachName() value {
	var out value
	for _, t := range v {
		out = out.or(value{{s: HoleName, from: t.from}})
	}
	return out
}

// fields are the words an expansion becomes.
type fields []text

// partial is a word on its way to its fields.
type partial struct {
	done fields
	cur  text
	open bool // cur is a word even if it is empty
}

func (p partial) finish() fields {
	if !p.open {
		return p.done
	}
	return append(slices.Clip(p.done), p.cur)
}

// piece is one alternative of a part of a word.
type piece struct {
	fields        fields
	quoted        bool // an empty piece makes a word all the same
	before, after bool // a separator stands in front of it, or behind
}

func (p partial) add(x piece) partial {
	if x.before && p.open {
		p.done, p.cur, p.open = append(slices.Clip(p.done), p.cur), text{}, false
	}
	if len(x.fields) > 1 {
		p.done = slices.Grow(slices.Clip(p.done), len(x.fields))
	}
	for i, f := range x.fields {
		if i > 0 {
			p.done, p.cur = append(p.done, p.cur), text{}
		}
		if !p.open && f.lead {
			p.cur.lead = true
		}
		lead := p.cur.lead
		p.cur, p.open = concat(p.cur, f), true
		p.cur.lead = lead
	}
	if x.quoted && len(x.fields) > 0 {
		p.open = true
	}
	if x.after && p.open {
		p.done, p.cur, p.open = append(slices.Clip(p.done), p.cur), text{}, false
	}
	return p
}

// product adds every alternative of a part to every alternative so far.
func product(have []partial, pieces []piece) ([]partial, bool) {
	if len(have)*len(pieces) > maxAlternatives {
		return nil, false
	}
	out := make([]partial, 0, len(have)*len(pieces))
	for _, p := range have {
		for _, x := range pieces {
			out = append(out, p.add(x))
		}
	}
	return out, true
}

// plainHoles forgets what is known of unknown text.
var plainHoles = strings.NewReplacer(HoleSplit, Hole, HoleName, Hole)

// split divides an unquoted value into fields at white space.
func split(t text) piece {
	t.unset = false
	if !t.known() {
		s := plainHoles.Replace(t.s)
		s = strings.ReplaceAll(s, Hole, HoleSplit)
		t.s, t.glob = s, true
		if !strings.ContainsAny(s, " \t\n") {
			return piece{fields: fields{t}}
		}
	}
	if t.s == "" {
		return piece{}
	}
	x := piece{before: strings.ContainsRune(" \t\n", rune(t.s[0])), after: strings.ContainsRune(" \t\n", rune(t.s[len(t.s)-1]))}
	for _, s := range strings.FieldsFunc(t.s, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }) {
		f := text{s: s, from: t.from, rough: t.rough}
		if i := pattern(s); i >= 0 {
			f.glob, f.lead = true, i == 0
		}
		x.fields = append(x.fields, f)
	}
	return x
}

// pattern is where the first pattern character of s stands, -1 if there is none.
func pattern(s string) int {
	i := strings.IndexAny(s, "*?[")
	if i >= 0 && s[i] == '[' && strings.IndexByte(s[i:], ']') < 0 {
		return strings.IndexAny(s, "*?")
	}
	return i
}
