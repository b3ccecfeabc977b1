package atip

import (
	"slices"
	"strings"
)

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
