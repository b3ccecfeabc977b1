package atip

import (
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Classes of a Change.
const (
	ChangeDanger   = "danger"   // a danger is added, or a "no" withdrawn
	ChangeLoosened = "loosened" // the reverse: what somebody would change who wants a command to pass
	ChangeSurface  = "surface"  // commands, options, arguments
	ChangeText     = "text"
)

// Change is one difference between two documents.
type Change struct {
	Class   string   `json:"class"`
	Path    []string `json:"path"`
	Pointer string   `json:"pointer"` // into the document that has it, the new one if both do
	What    string   `json:"what"`    // an effect, "clause", "command", "option" …
	From    string   `json:"from,omitempty"`
	To      string   `json:"to,omitempty"`
	Message string   `json:"message"`
}

// Diff compares two documents of one tool, dangers first.
func Diff(from, to *Document) []Change {
	d := differ{}
	d.roots(from, to)
	old, fresh := from.Commands(Provenance{Rank: Vendor}), to.Commands(Provenance{Rank: Vendor})
	byKey := map[string]*Command{}
	for i := range old {
		byKey[old[i].key()] = &old[i]
	}
	for i := range fresh {
		b := &fresh[i]
		a := byKey[b.key()]
		delete(byKey, b.key())
		if a == nil {
			d.added(b, groupOf(b, old))
			continue
		}
		d.command(a, b)
	}
	for i := range old {
		if a := &old[i]; byKey[a.key()] != nil {
			d.gone(a, groupOf(a, fresh))
		}
	}
	sort.SliceStable(d.out, func(i, j int) bool { return classOrder(d.out[i].Class) < classOrder(d.out[j].Class) })
	return d.out
}

func classOrder(class string) int {
	switch class {
	case ChangeDanger:
		return 0
	case ChangeLoosened:
		return 1
	case ChangeSurface:
		return 2
	}
	return 3
}

func (c *Command) key() string {
	key := strings.Join(c.Path, "\x00")
	if c.Bare {
		key += "\x00\x00"
	}
	return key
}

type differ struct{ out []Change }

func (d *differ) add(class string, c *Command, what, from, to, msg string) {
	d.out = append(d.out, Change{Class: class, Path: c.Path, Pointer: c.Pointer, What: what, From: from, To: to, Message: msg})
}

// groupOf is what the words of c resolve to in a document that lacks c: the nearest group
// that it has, nil if that does not take the rest as its arguments and all is unknown.
func groupOf(c *Command, in []Command) *Command {
	for depth := len(c.Path) - 1; depth >= 0; depth-- {
		var group, blank *Command
		for i := range in {
			if x := &in[i]; slices.Equal(x.Path, c.Path[:depth]) {
				if x.Bare {
					blank = x
				} else {
					group = x
				}
			}
		}
		if group == nil {
			continue
		}
		if group.Group && !group.node.operands() {
			return nil
		}
		if blank != nil {
			group = blank
		}
		if !group.node.takesArguments(group.Group) {
			return nil
		}
		return group
	}
	return nil
}

// added weighs a new command by itself, because a destructive one breaks policies that allow all
// commands of the tool, and against what its words meant before. Usually that was unknown, so
// any effect that the command calls harmless loosens.
func (d *differ) added(c, before *Command) {
	var dangers, harmless []string
	for i, f := range c.Effects {
		e := Effect(i)
		if !c.Leaf() {
			break
		}
		if f.Value == e.Dangerous() && dangerAlone(e) {
			dangers = append(dangers, dangerWord(e))
		}
		was := risk(e, Unknown)
		if before != nil {
			was = risk(e, before.Effects[e].Value)
		}
		if risk(e, f.Value) < was {
			harmless = append(harmless, "no "+dangerWord(e))
		}
	}
	if len(dangers) > 0 {
		d.add(ChangeDanger, c, "command", "", strings.Join(dangers, " "), "new command: "+strings.Join(dangers, ", "))
	}
	switch {
	case len(harmless) > 0 && before == nil:
		d.add(ChangeLoosened, c, "command", "unknown", "", "new command: calls of it were unknown, now "+strings.Join(harmless, ", "))
	case len(harmless) > 0:
		d.add(ChangeLoosened, c, "command", "", "", "new command: its words were arguments before, now "+strings.Join(harmless, ", "))
	case len(dangers) == 0:
		d.add(ChangeSurface, c, "command", "", "", "new command")
	}
}

// gone weighs a command that is no longer there: its words may be arguments of a group now.
func (d *differ) gone(c, now *Command) {
	if now == nil {
		d.add(ChangeSurface, c, "command", "", "", "the command is gone: calls of it are unknown")
		return
	}
	class, what := ChangeSurface, ""
	for i, f := range now.Effects {
		if e := Effect(i); risk(e, f.Value) < risk(e, c.Effects[e].Value) {
			class, what = ChangeLoosened, ", without "+dangerWord(e)
		}
	}
	d.add(class, c, "command", "", "", "the command is gone: its words are arguments of another now"+what)
}

// dangerAlone leaves out what nearly every command does.
func dangerAlone(e Effect) bool {
	switch e {
	case Read, Write, Network, Subprocess, Idempotent:
		return false
	}
	return true
}

func dangerWord(e Effect) string {
	switch e {
	case Reversible:
		return "irreversible"
	case Idempotent:
		return "not idempotent"
	}
	return e.String()
}

func (d *differ) command(a, b *Command) {
	for i := range b.Effects {
		e := Effect(i)
		if !d.effect(e, b, a.Effects[e], b.Effects[e], "with some words") {
			d.effect(e, b, a.Plain[e], b.Plain[e], "without options")
		}
	}
	if from, to := a.node.v.get("effects").compact(), b.node.v.get("effects").compact(); from != to && !d.saw(b) {
		// duration, paths and the like: they change how a command is run, not what it may do.
		d.add(ChangeSurface, b, "effects", from, to, "effects differ in their details")
	}
	d.clauses(a, b)
	d.declared("argument", b, a.Arguments, b.Arguments)
	d.declared("option", b, a.Options, b.Options)
	if a.Description != b.Description {
		d.add(ChangeText, b, "description", a.Description, b.Description, "the description differs")
	}
	if strings.Join(a.Examples, "\n") != strings.Join(b.Examples, "\n") {
		d.add(ChangeText, b, "examples", "", "", "the examples differ")
	}
	if before, after := a.node.operands(), b.node.operands(); before != after {
		class := ChangeSurface
		if after {
			class = ChangeLoosened
		}
		d.add(class, b, "x-atip-operands", "", "", "words that name no subcommand are "+map[bool]string{true: "arguments, no longer unknown", false: "unknown, no longer arguments"}[after])
	}
	if before, after := aliasesOf(a.node), aliasesOf(b.node); before != after {
		d.add(ChangeSurface, b, "aliases", before, after, "the aliases differ")
	}
}

// saw reports whether any difference of the command was found yet.
func (d *differ) saw(c *Command) bool {
	return len(d.out) > 0 && d.out[len(d.out)-1].Pointer == c.Pointer
}

func aliasesOf(n *node) string {
	var all []string
	for _, key := range [...]string{"aliases", "x-atip-aliases"} {
		list, _ := n.v.get(key).strings()
		all = append(all, list...)
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// effect reports whether e differs.
func (d *differ) effect(e Effect, b *Command, from, to Fact, when string) bool {
	if from.Value == to.Value {
		return false
	}
	class := ChangeDanger
	if risk(e, to.Value) < risk(e, from.Value) {
		class = ChangeLoosened
	}
	d.add(class, b, e.String(), from.Value.String(), to.Value.String(), e.String()+" was "+from.Value.String()+", is "+to.Value.String()+" "+when)
	return true
}

// clauses compares what refines the effects. A condition that differs may hold less
// often than before, and nobody can see from outside whether it does.
func (d *differ) clauses(a, b *Command) {
	before, after := extensionParts(a.node), extensionParts(b.node)
	keys := make([]string, 0, len(before)+len(after))
	for k := range before {
		keys = append(keys, k)
	}
	for k := range after {
		if _, ok := before[k]; !ok {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		from, had := before[k]
		to, has := after[k]
		narrow := strings.HasPrefix(k, "narrow ")
		switch {
		case from == to:
		case !had && narrow, !has && !narrow:
			d.add(ChangeLoosened, b, "clause", "", "", k+map[bool]string{true: " is new", false: " is gone"}[!had])
		case !had, !has:
			d.add(ChangeDanger, b, "clause", "", "", k+map[bool]string{true: " is new", false: " is gone"}[!had])
		default:
			d.add(ChangeLoosened, b, "clause", "", "", k+" differs: it may hold less often than before")
		}
	}
}

// extensionParts is x-atip-effects in the parts that are compared: each when and
// narrow by its id, all else by its field. base shows in the effects.
func extensionParts(n *node) map[string]string {
	parts := map[string]string{}
	if n.ext == nil {
		return parts
	}
	n.ext.v.members(func(key string, m val) bool {
		switch key {
		case "v", "base":
		case "when", "narrow":
			m.items(func(_ int, c val) { parts[key+" "+quoteShort(c.get("id").str())] = c.compact() })
		default:
			parts[key] = m.compact()
		}
		return true
	})
	return parts
}

// compact is a value without its white space, members in the order of their names.
func (v val) compact() string {
	switch v.kind() {
	case KindObject:
		var members []string
		v.members(func(key string, m val) bool {
			if key != "because" && key != "description" {
				members = append(members, quoteJSON(key)+":"+m.compact())
			}
			return true
		})
		sort.Strings(members)
		return "{" + strings.Join(members, ",") + "}"
	case KindArray:
		var items []string
		v.items(func(_ int, item val) { items = append(items, item.compact()) })
		return "[" + strings.Join(items, ",") + "]"
	case KindString:
		return quoteJSON(v.str())
	case KindNull:
		return "null"
	}
	return v.scalar()
}

func (d *differ) declared(what string, b *Command, before, after []Declared) {
	key := func(x Declared) string { return strings.Join(append([]string{x.Name}, x.Flags...), " ") }
	old := map[string]Declared{}
	for _, x := range before {
		old[key(x)] = x
	}
	for _, x := range after {
		k := key(x)
		o, had := old[k]
		delete(old, k)
		switch {
		case !had:
			d.add(ChangeSurface, b, what, "", k, "new "+what+" "+k)
		case o.Arity != x.Arity:
			// Which words are values, and so which word is the command, hangs on it.
			d.add(ChangeLoosened, b, what, arityText(o.Arity), arityText(x.Arity), what+" "+k+" takes another number of words: lines are read in another way")
		case o.Type != x.Type || o.Required != x.Required || o.Variadic != x.Variadic || strings.Join(o.Enum, "\x00") != strings.Join(x.Enum, "\x00"):
			d.add(ChangeSurface, b, what, o.Type, x.Type, what+" "+k+" is declared differently")
		case o.Description != x.Description:
			d.add(ChangeText, b, what, o.Description, x.Description, "the description of "+k+" differs")
		}
	}
	for _, x := range before {
		if k := key(x); old[k].Name != "" || len(old[k].Flags) > 0 {
			d.add(ChangeSurface, b, what, k, "", what+" "+k+" is gone")
			delete(old, k)
		}
	}
}

func arityText(n int) string {
	if n < 0 {
		return "unknown"
	}
	return strconv.Itoa(n)
}

// roots compares what a document says of itself and of the tool as a whole.
func (d *differ) roots(a, b *Document) {
	at := &Command{Path: []string{}}
	rank := func(d *Document) Rank {
		if r, ok := d.DeclaredSource(); ok {
			return r
		}
		return Vendor
	}
	if from, to := rank(a), rank(b); from != to {
		class := ChangeDanger
		if to > from {
			class = ChangeLoosened
		}
		at.Pointer = "/trust/source"
		d.add(class, at, "trust.source", from.String(), to.String(), "the document claims to come from "+to.String()+", not "+from.String())
	}
	at.Pointer = "/omitted/safetyAssumption"
	from, to := a.root().get("omitted").get("safetyAssumption").str(), b.root().get("omitted").get("safetyAssumption").str()
	if from != to {
		class := ChangeDanger
		if assumption(to) < assumption(from) {
			class = ChangeLoosened
		}
		d.add(class, at, "omitted", from, to, "what is assumed of commands that are not listed differs")
	}
	if a.partial() != b.partial() {
		at.Pointer = "/partial"
		d.add(ChangeSurface, at, "partial", "", "", "only one of the two lists all commands")
	}
	at.Pointer = "/authentication/methods"
	for _, name := range b.Credentials() {
		if !slices.Contains(a.Credentials(), name) {
			d.add(ChangeDanger, at, "credential", "", name, "asks for the credential "+name)
		}
	}
	if from, to := a.root().get("x-atip-hosts").compact(), b.root().get("x-atip-hosts").compact(); from != to {
		at.Pointer = "/x-atip-hosts"
		d.add(ChangeDanger, at, "x-atip-hosts", from, to, "the tool talks to other hosts")
	}
	if from, to := a.root().get("x-atip-service").compact(), b.root().get("x-atip-service").compact(); from != to {
		at.Pointer = "/x-atip-service"
		d.add(ChangeLoosened, at, "x-atip-service", from, to, "other hosts in its words count as its own service")
	}
	if from, to := a.root().get("x-atip-execs").compact(), b.root().get("x-atip-execs").compact(); from != to {
		at.Pointer = "/x-atip-execs"
		d.add(ChangeDanger, at, "x-atip-execs", from, to, "the tool starts other programs")
	}
	for _, field := range [...]string{"name", "x-atip-names", "x-atip-multicall", "binary"} {
		if from, to := a.root().get(field).compact(), b.root().get(field).compact(); from != to {
			at.Pointer = "/" + field
			d.add(ChangeSurface, at, field, from, to, field+" differs")
		}
	}
	if from, to := a.Version(), b.Version(); from != to {
		at.Pointer = "/version"
		d.add(ChangeText, at, "version", from, to, "version "+from+" became "+to)
	}
}

// assumption orders what a partial document lets one assume.
func assumption(s string) int {
	switch s {
	case "known-safe":
		return 0
	case "same-as-included":
		return 1
	}
	return 2
}
