package atip

// Command is one command of a document, for those who read the document as a whole:
// show, lint, diff and the compilation for providers.
type Command struct {
	Path        []string `json:"path"`           // canonical names; empty for the tool itself
	Bare        bool     `json:"bare,omitempty"` // commands[""]: called without a subcommand
	Group       bool     `json:"group,omitempty"`
	Pointer     string   `json:"pointer"`
	Description string   `json:"description,omitempty"`
	// Effects is the upper bound: what the command may do with any words.
	Effects Effects `json:"-"`
	// Plain is what it does without any option, before clauses add or narrow.
	Plain     Effects    `json:"-"`
	Arguments []Declared `json:"arguments"`
	Options   []Declared `json:"options"` // its own
	Inherited []Declared `json:"-"`       // those of its groups and of the tool, nearest first
	Examples  []string   `json:"examples,omitempty"`
	// Execs is what it starts, of its own list and of those above; nil if there is none.
	Execs []string `json:"execs,omitempty"`
	// Fetch is how it is split into fetching and running; nil if it is not.
	Fetch *Fetch `json:"fetch,omitempty"`

	node *node
}

// Declared is one argument or option as it is declared.
type Declared struct {
	Name        string   `json:"name"`
	Flags       []string `json:"flags,omitempty"`
	Type        string   `json:"type,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Required    bool     `json:"required"`
	Variadic    bool     `json:"variadic,omitempty"`
	EnvVar      string   `json:"envVar,omitempty"`
	HasDefault  bool     `json:"-"`
	Arity       int      `json:"-"` // words an option takes; negative if not a fixed number
}

// Commands lists the tool and every command below it, parents first. p says how far
// the document is believed, as for Resolve.
func (d *Document) Commands(p Provenance) []Command {
	d = d.whole()
	r := &resolver{d: d, start: 1, partial: d.partial(), rank: p.Rank, source: p.Source}
	if d.Inferred() {
		r.rank = Inferred
	}
	var out []Command
	d.rootNode().each(func(n *node) { out = append(out, r.command(n)) })
	return out
}

func (r *resolver) command(n *node) Command {
	r.spent = 0
	c := Command{
		Path: n.path(), Bare: n.parent != nil && n.name == "", Group: n.hasKids(), Pointer: n.pointer,
		Description: n.v.get("description").str(), node: n,
	}
	c.Examples, _ = n.v.get("examples").strings()
	if n.broken {
		c.Effects, c.Plain = r.nothing(n), r.nothing(n)
		return c
	}
	bound := (&reading{resolver: r, n: n, afterDash: -1}).weigh()
	bound.upper()
	plain := (&reading{resolver: r, n: n, afterDash: -1}).weigh()
	plain.all()
	c.Effects, c.Plain = bound.result, plain.result
	c.Arguments, c.Options = declaredArguments(n), declaredOptions(n)
	c.Fetch = readFetch(n.v.get("x-atip-fetch"), nil)
	for a := n; a != nil; a = a.parent {
		for _, name := range goodExecs(a.v.get("x-atip-execs")) {
			c.Execs = appendOnce(c.Execs, name)
		}
	}
	for a := n.parent; a != nil; a = a.parent {
		c.Inherited = append(c.Inherited, declaredOptions(a)...)
	}
	return c
}

// Leaf reports whether the command can be called: it is no group, or the group called
// by itself.
func (c Command) Leaf() bool { return !c.Group && (c.Bare || c.node.bare() == nil) }

func declaredArguments(n *node) []Declared {
	out := []Declared{}
	n.v.get("arguments").items(func(_ int, v val) {
		if a := declaredOf(v); a.Name != "" {
			a.Required = !v.get("required").is(KindFalse)
			out = append(out, a)
		}
	})
	return out
}

func declaredOptions(n *node) []Declared {
	out := []Declared{}
	for _, field := range [...]string{"options", "globalOptions"} {
		n.v.get(field).items(func(_ int, v val) {
			o := declaredOf(v)
			o.Flags, _ = v.get("flags").strings()
			if len(o.Flags) == 0 {
				return
			}
			own := n.own(o.Flags[0])
			if own == nil {
				return
			}
			o.Arity = own.arity
			if o.Name == "" {
				o.Name = own.name
			}
			o.Required = v.get("required").isTrue()
			out = append(out, o)
		})
	}
	return out
}

func declaredOf(v val) Declared {
	d := Declared{
		Name: v.get("name").str(), Type: v.get("type").str(), Description: v.get("description").str(),
		Variadic: v.get("variadic").isTrue(), EnvVar: v.get("envVar").str(), HasDefault: v.get("default").ok(),
	}
	v.get("enum").items(func(_ int, e val) { d.Enum = append(d.Enum, e.scalar()) })
	return d
}

// Credentials lists the variables that authentication.methods asks for.
func (d *Document) Credentials() []string {
	var out []string
	d.root().get("authentication").get("methods").items(func(_ int, m val) {
		if name := m.get("envVar").str(); name != "" {
			out = appendOnce(out, name)
		}
	})
	return out
}

// Partial reports that commands may exist which the document does not list.
func (d *Document) Partial() bool { return d.partial() }

// Map lists effects under their keys, those of plans and policies.
func (e Effects) Map() map[string]Fact {
	out := make(map[string]Fact, NumEffects)
	for i, f := range e {
		out[Effect(i).String()] = f
	}
	return out
}
