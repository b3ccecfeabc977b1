package atip

import (
	"slices"
	"strings"
)

// Arities beside a fixed number of words.
const (
	arityUnknown    = -1
	arityRest       = -2
	arityTerminator = -3
)

// option is one declared option.
type option struct {
	name     string // the longest flag without dashes
	flags    []string
	typ      string
	arity    int  // words it takes
	optional bool // its value, if any, is attached: -i[SUF], --color[=WHEN]
	enum     val
	envVar   string
	pending  bool // not in scope yet: the arity is what all descendants agree on
}

func (o *option) has(flag string) bool {
	return slices.Contains(o.flags, flag)
}

// spelledOut is the long flag that a short one stands for, by its first letter: documents also
// list unlike flags together.
func (o *option) spelledOut(name string) string {
	if len(name) == 1 {
		for _, f := range o.flags {
			if len(f) > 3 && strings.EqualFold(f[:3], "--"+name) {
				return f[2:]
			}
		}
	}
	return name
}

func (o *option) boolean() bool { return o.arity == 0 && !o.optional }

// argument is one declared positional.
type argument struct {
	name, typ          string
	required, variadic bool
	enum               val
}

// node is one command, or the tool itself, decoded from a document.
type node struct {
	d       *Document
	v       val
	parent  *node
	name    string // canonical; "" for the root and for commands[""]
	pointer string
	depth   int // number of command names above and including this
	conv    conventions

	options   []option
	arguments []argument
	argsKnown bool // arguments were declared, if only as []
	kids      val
	x         *index      // of the document, nil if all of it is on the tape
	rec       *nodeRecord // the node's place in it: kids is empty
	broken    bool        // not an object, or its commands are not: nothing is known of it

	ext    *extension
	extBad bool // an extension was there and could not be read

	index   flagIndex
	clashes bool        // two options share a flag
	agreed  flagSummary // flags of descendants: what they agree on
	blank   *node       // commands[""], once asked for
	blanked bool
}

func (d *Document) rootNode() *node {
	n := d.newNode(nil, "", "", d.root())
	if d.index != nil {
		rec, ok := d.index.record(0)
		n.x, n.rec, n.broken = d.index, rec, n.broken || !ok
	}
	return n
}

func (d *Document) newNode(parent *node, name, pointer string, v val) *node {
	n := &node{d: d, v: v, parent: parent, name: name, pointer: pointer}
	if parent == nil {
		n.conv = defaultConventions()
	} else {
		n.conv = parent.conv
		n.depth = parent.depth
		if name != "" {
			n.depth++
		}
	}
	if !v.is(KindObject) {
		n.broken = true
		return n
	}
	var options, global, arguments, ext val
	v.members(func(key string, m val) bool {
		switch key {
		case "options":
			options = m
		case "globalOptions":
			global = m
		case "arguments":
			arguments = m
		case "commands":
			n.kids = m
			n.broken = !m.is(KindObject)
		case "x-atip-effects":
			ext = m
		}
		return true
	})
	if ext.ok() {
		n.ext = readExtension(ext, n.pointer+"/x-atip-effects")
		n.extBad = n.ext == nil
	}
	if n.ext != nil {
		n.conv.apply(n.ext)
	}
	n.readOptions(options, global)
	n.readArguments(arguments)
	return n
}

func (n *node) readOptions(lists ...val) {
	total := 0
	for _, list := range lists {
		total += list.len()
	}
	if total == 0 {
		return
	}
	n.options = make([]option, 0, total)
	flags := make([]string, 0, 2*total)
	for _, list := range lists {
		list.items(func(_ int, v val) {
			from := len(flags)
			o := option{arity: arityUnknown}
			bad := !v.is(KindObject)
			v.members(func(key string, m val) bool {
				switch key {
				case "flags":
					bad = bad || !m.is(KindArray)
					m.items(func(_ int, f val) {
						flag := f.str()
						if len(flag) < 2 || flag[0] != '-' {
							bad = true
						}
						flags = append(flags, flag)
					})
				case "type":
					o.typ = m.str()
				case "enum":
					o.enum = m
				case "envVar":
					o.envVar = m.str()
				}
				return true
			})
			o.flags = flags[from:len(flags):len(flags)]
			if bad || len(o.flags) == 0 {
				return
			}
			for _, f := range o.flags {
				if bare := strings.TrimLeft(f, "-"); len(bare) > len(o.name) {
					o.name = bare
				}
			}
			n.conv.setArity(&o)
			n.options = append(n.options, o)
		})
	}
	n.mixFlags()
}

// mixFlags forgets the arity of options that share a flag and disagree on it.
func (n *node) mixFlags() {
	n.index.build(n.options, func(a, b *option) {
		n.clashes = n.clashes || a != b
		if a != b && (a.arity != b.arity || a.optional != b.optional) {
			a.arity, b.arity = arityUnknown, arityUnknown
		}
	})
}

func (n *node) readArguments(list val) {
	if !list.is(KindArray) {
		return
	}
	n.argsKnown = true
	if c := list.len(); c > 0 {
		n.arguments = make([]argument, 0, c)
	}
	list.items(func(_ int, v val) {
		a := argument{required: true}
		v.members(func(key string, m val) bool {
			switch key {
			case "name":
				a.name = m.str()
			case "type":
				a.typ = m.str()
			case "required":
				a.required = !m.is(KindFalse)
			case "variadic":
				a.variadic = m.isTrue()
			case "enum":
				a.enum = m
			}
			return true
		})
		if a.name == "" {
			n.argsKnown = false
			return
		}
		n.arguments = append(n.arguments, a)
	})
}

// own finds an option declared at this very node.
func (n *node) own(flag string) *option { return n.index.find(n.options, flag) }

// inScope finds an option of the node or of an ancestor; the nearest wins, since a
// tool hands its words to the innermost parser first.
func (n *node) inScope(flag string) *option {
	for a := n; a != nil; a = a.parent {
		if o := a.own(flag); o != nil {
			return o
		}
	}
	return nil
}

// anyKids reports subcommands, commands[""] included.
func (n *node) anyKids() bool {
	if n.rec != nil {
		return n.rec.children > 0
	}
	return n.kids.len() > 0
}

// hasKids reports subcommands other than commands[""].
func (n *node) hasKids() bool {
	if n.rec != nil {
		_, blank, _, _ := n.x.lookup(n.rec, "", false)
		return n.rec.children > 1 || n.rec.children == 1 && !blank
	}
	found := false
	n.kids.members(func(key string, _ val) bool {
		found = key != ""
		return !found
	})
	return found
}

// child is the command reached by a key of commands.
func (n *node) child(name string, v val) *node {
	return n.d.newNode(n, name, pointerTo(n.pointer+"/commands", name), v)
}

// indexed is the command of that number in the index.
func (n *node) indexed(number uint32) *node {
	rec, ok := n.x.record(number)
	var name string
	if ok {
		name, ok = n.x.str(rec.name, rec.nameLen)
	}
	var v val
	if ok {
		if d := n.x.load(rec); d != nil {
			v = d.root()
		}
	}
	c := v.d.newNode(n, name, pointerTo(n.pointer+"/commands", name), v)
	if c.x, c.rec = n.x, rec; !ok {
		c.rec, c.broken = nil, true
	}
	return c
}

// bare is commands[""], the node called without a subcommand; nil if there is none.
func (n *node) bare() *node {
	if n.blanked {
		return n.blank
	}
	n.blanked = true
	if n.rec != nil {
		child, found, _, damaged := n.x.lookup(n.rec, "", false)
		if found {
			n.blank = n.indexed(child)
		}
		n.broken = n.broken || damaged
	} else if v := n.kids.get(""); v.ok() {
		n.blank = n.child("", v)
	}
	return n.blank
}

// lookup finds a subcommand by exact name, alias, or, where the tool takes them,
// unique prefix.
func (n *node) lookup(word string) (found *node, abbreviated bool) {
	if word == "" {
		return nil, false
	}
	if n.rec != nil {
		child, ok, abbreviated, damaged := n.x.lookup(n.rec, word, n.conv.abbrevCommands)
		if n.broken = n.broken || damaged; !ok {
			return nil, false
		}
		return n.indexed(child), abbreviated
	}
	if v := n.kids.get(word); v.ok() {
		return n.child(word, v), false
	}
	var name, prefixed string
	var at, prefixAt val
	candidates := 0
	n.kids.members(func(key string, m val) bool {
		if hasAlias(m, word) {
			name, at = key, m
			return false
		}
		if n.conv.abbrevCommands && strings.HasPrefix(key, word) {
			prefixed, prefixAt = key, m
			candidates++
		}
		return true
	})
	if at.ok() {
		return n.child(name, at), false
	}
	if candidates == 1 {
		return n.child(prefixed, prefixAt), true
	}
	return nil, false
}

func hasAlias(m val, word string) bool {
	found := false
	for _, key := range [...]string{"aliases", "x-atip-aliases"} {
		m.get(key).items(func(_ int, item val) { found = found || item.str() == word && item.is(KindString) })
	}
	return found
}

// operands reports x-atip-operands: plain words of this command are its arguments although
// it has subcommands.
func (n *node) operands() bool { return n.v.get("x-atip-operands").isTrue() }

// takesArguments reports whether words that name no command can be meant for this
// node. Undeclared arguments count only where there is no command to mistype.
func (n *node) takesArguments(siblings bool) bool {
	return len(n.arguments) > 0 || !n.argsKnown && !siblings
}

// path lists the canonical names from the root.
func (n *node) path() []string {
	out := make([]string, 0, n.depth)
	return n.appendPath(out)
}

func (n *node) appendPath(out []string) []string {
	if n.parent != nil {
		out = n.parent.appendPath(out)
		if n.name != "" {
			out = append(out, n.name)
		}
	}
	return out
}

// each visits the node and all below it, in a document that is whole.
func (n *node) each(visit func(*node)) {
	visit(n)
	n.kids.members(func(key string, m val) bool {
		n.child(key, m).each(visit)
		return true
	})
}

// fromDescendants is what the commands below agree on for a flag that stands before
// the command word: its arity, as an option that is pending until the command is
// known. conflict means they disagree.
func (n *node) fromDescendants(flag string) (o *option, conflict bool) {
	if n.rec != nil {
		o, damaged := n.x.flag(n.rec, flag)
		if n.broken = n.broken || damaged; o != nil && o.arity == arityUnknown {
			return nil, true
		}
		return o, false
	}
	if n.agreed == nil {
		n.agreed = make(flagSummary)
		n.kids.members(func(key string, m val) bool {
			n.child(key, m).each(func(c *node) {
				for i := range c.options {
					n.agreed.agree(&c.options[i])
				}
			})
			return true
		})
	}
	o = n.agreed[flag]
	if o != nil && o.arity == arityUnknown {
		return nil, true
	}
	return o, false
}

// Value is a three-valued truth. The zero value is Unknown: what a document does
// not state is never read as "no".
type Value uint8

// The three truth values.
const (
	Unknown Value = iota
	No
	Yes
)

// String returns "unknown", "no" or "yes".
func (v Value) String() string {
	switch v {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// MarshalText implements encoding.TextMarshaler.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Of turns a stated JSON boolean into a Value.
func Of(b bool) Value {
	if b {
		return Yes
	}
	return No
}

// Primes reports whether the tool says that it has the Prime Directive: a command prime of
// its own, or the feature. A document that only guesses says nothing.
func (d *Document) Primes() bool {
	if d.Inferred() {
		return false
	}
	root := d.rootNode()
	if _, found := d.primeNode(root); found {
		return true
	}
	has := false
	d.root().get("atip").get("features").items(func(_ int, v val) { has = has || v.str() == "prime" })
	return has
}

func (d *Document) primeNode(root *node) (*node, bool) {
	if root.rec != nil {
		n, abbreviated := root.lookup("prime")
		return n, n != nil && !abbreviated
	}
	if v := root.kids.get("prime"); v.ok() {
		return root.child("prime", v), true
	}
	return nil, false
}

// PrimesMetadata reports whether prime takes --metadata.
func (d *Document) PrimesMetadata() bool {
	n, found := d.primeNode(d.rootNode())
	return found && n.own("--metadata") != nil
}
