package atip

import (
	"slices"
	"strconv"
	"strings"
)

// Lint finds what a valid document probably does not mean:
//
//	L01 a command without effects       L06 a flag that clashes
//	L02 a clause beyond the bound       L07 an option of unclear arity
//	L03 a delete-like verb, harmless    L08 an example or pattern that does not resolve
//	L04 destructive, yet reversible     L09 a clause that can never apply
//	L05 deletes, yet not destructive    L10 an effect key nobody knows
//	L11 arguments beside subcommands that no call can reach
//	L12 programs that are started, although none is
func (d *Document) Lint() []Finding {
	d = d.whole()
	l := linter{validator{d: d, strict: true}}
	known := validator{d: d, strict: true}
	known.document()
	for _, f := range known.out {
		switch f.Code {
		case "bound":
			f.Code = "L02"
		case "effect-key":
			f.Code = "L10"
		case "flag":
			f.Code = "L09"
		default:
			continue
		}
		f.Severity = SeverityWarning
		l.out = append(l.out, f)
	}
	for _, c := range d.Commands(Provenance{Rank: Vendor}) {
		l.command(c)
	}
	l.patterns()
	return l.sorted()
}

type linter struct{ validator }

func (l *linter) warn(v val, pointer, code, msg string) { l.note(advised(), v, pointer, code, msg) }

func (l *linter) command(c Command) {
	n := c.node
	if n.broken {
		return
	}
	name := "the tool"
	if len(c.Path) > 0 {
		name = quoteShort(strings.Join(c.Path, " "))
	}
	destructive := c.Effects[Destructive].Value
	if c.Leaf() {
		if !l.statesAny(n) {
			l.warn(n.v, n.pointer, "L01", name+" states no effects: they are unknown")
		}
		if DeleteLike(n.name) && destructive != Yes {
			l.warn(n.v, n.pointer, "L03", name+" sounds like deleting, yet destructive is "+destructive.String())
		}
	}
	stated := readStatement(n.v.get("effects"), false, nil)
	if stated.value[Destructive] == Yes && stated.value[Reversible] == Yes {
		l.warn(n.v.get("effects"), n.pointer+"/effects", "L04", name+" is destructive, yet reversible")
	}
	if stated.deletes && destructive != Yes {
		l.warn(n.v.get("effects"), n.pointer+"/effects", "L05", name+" names what it deletes, yet destructive is "+destructive.String())
	}
	if n.v.get("x-atip-execs").len() > 0 && c.Effects[Subprocess].Value == No {
		l.warn(n.v.get("x-atip-execs"), n.pointer+"/x-atip-execs", "L12", name+" lists what it starts, yet subprocess is no")
	}
	if f := c.Fetch; f != nil {
		at := n.v.get("x-atip-fetch")
		if c.Effects[Network].Value == No {
			l.warn(at, n.pointer+"/x-atip-fetch", "L13", name+" says how it fetches, yet network is no")
		}
		for _, flag := range slices.Concat(f.Files, f.Require, f.Options, f.Without) {
			if flag, _, _ = strings.Cut(flag, "="); n.inScope(flag) == nil {
				l.warn(at, n.pointer+"/x-atip-fetch", "L13", name+" has no option "+flag+", which x-atip-fetch names")
			}
		}
		if len(f.As) > 0 && f.before(n) == nil {
			l.warn(at, n.pointer+"/x-atip-fetch", "L13", name+" names a command that does not say how it fetches")
		}
	}
	l.operands(n)
	l.flags(n)
	if n.ext != nil {
		l.clauses(n)
	}
	for i, example := range c.Examples {
		l.example(n.v.get("examples"), n.pointer+"/examples/"+strconv.Itoa(i), example, c.Path)
	}
}

// operands compares x-atip-operands with the arguments that it speaks of. Without it a word
// that names no subcommand is unresolved, whatever arguments are declared.
func (l *linter) operands(n *node) {
	takes := len(n.arguments) > 0
	if blank := n.bare(); blank != nil {
		takes = len(blank.arguments) > 0
	}
	stated := n.v.get("x-atip-operands")
	switch {
	case stated.ok() && !stated.is(KindTrue) && !stated.is(KindFalse):
		l.warn(stated, n.pointer+"/x-atip-operands", "L11", "x-atip-operands is not true or false")
	case n.operands() && !n.hasKids():
		l.warn(stated, n.pointer+"/x-atip-operands", "L11", "x-atip-operands has no effect: there are no subcommands")
	case n.operands() && !takes:
		l.warn(stated, n.pointer+"/x-atip-operands", "L11", "x-atip-operands without declared arguments")
	case !n.operands() && n.hasKids() && takes:
		l.warn(n.v, n.pointer, "L11", "the arguments are never read: beside subcommands they need x-atip-operands")
	}
}

// statesAny reports whether the command, a group or the tool states any effect.
func (l *linter) statesAny(n *node) bool {
	for a := n; a != nil; a = a.parent {
		if s := readStatement(a.v.get("effects"), false, nil); s.stated != 0 {
			return true
		}
		if a.ext != nil && a.ext.base.ok() {
			return true
		}
	}
	return false
}

// DeleteLike reports whether one of the words of a command's name promises to take
// something away. Words alone find destructive commands with a recall of 0.72: every
// command they miss hangs on a flag.
func DeleteLike(name string) bool {
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == ':' || r == '.' }) {
		switch strings.ToLower(word) {
		case "delete", "destroy", "purge", "prune", "wipe", "erase", "drop", "truncate", "terminate", "shred", "remove", "rm", "unpublish", "uninstall":
			return true
		}
	}
	return false
}

func (l *linter) flags(n *node) {
	for i := range n.options {
		o := &n.options[i]
		for _, f := range o.flags {
			for j := range n.options[:i] {
				if n.options[j].has(f) {
					l.warn(n.v, n.pointer+"/options", "L06", "flag "+quoteShort(f)+" is declared twice")
				}
			}
			if n.parent == nil {
				continue
			}
			if above := n.parent.inScope(f); above != nil && above.arity != o.arity && above.arity != arityUnknown && o.arity != arityUnknown {
				l.warn(n.v, n.pointer+"/options", "L06", "flag "+quoteShort(f)+" takes another number of words here than above")
			}
		}
		if o.arity == arityUnknown && !l.saidUnknown(n, o) {
			l.warn(n.v, n.pointer+"/options", "L07", "how many words "+quoteShort(o.flags[0])+" takes is not declared")
		}
	}
}

// saidUnknown reports whether parse.arity calls the option unknown on purpose.
func (l *linter) saidUnknown(n *node, o *option) bool {
	for a := n; a != nil; a = a.parent {
		for _, f := range o.flags {
			if a.ext != nil && a.ext.parse.get("arity").get(f).str() == "unknown" {
				return true
			}
		}
	}
	return false
}

// clauses looks for conditions that no words can meet.
func (l *linter) clauses(n *node) {
	for i := range n.ext.when {
		l.condition(n, n.ext.when[i].cond, n.ext.when[i].pointer+"/if")
	}
	for i := range n.ext.narrow {
		c := &n.ext.narrow[i]
		l.condition(n, c.cond, c.pointer+"/if")
		for a := n; a != nil; a = a.parent {
			if a.ext == nil {
				continue
			}
			for j := range a.ext.when {
				w := &a.ext.when[j]
				if implies(c.cond, w.cond) && !listHas(c.body.get("despite"), []string{w.id}) {
					l.warn(c.body, c.pointer, "L09", "narrow "+quoteShort(c.id)+" is always defeated by when "+quoteShort(w.id))
				}
			}
		}
	}
}

// implies reports whether narrow being true makes when true, as far as two lists of
// options show it.
func implies(narrow, when val) bool {
	flags, ok := narrow.get("anyOption").strings()
	return ok && !slices.ContainsFunc(flags, func(f string) bool { return !listHas(when.get("anyOption"), []string{f}) })
}

func (l *linter) condition(n *node, v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "argCount":
			low, hasLow := m.get("min").integer()
			high, hasHigh := m.get("max").integer()
			if hasLow && hasHigh && low > high {
				l.warn(m, at, "L09", "no number of arguments is at least "+strconv.Itoa(low)+" and at most "+strconv.Itoa(high))
			}
		case "optionValue":
			l.optionValue(n, m, at)
		case "all", "any":
			m.items(func(_ int, item val) { l.condition(n, item, at) })
		case "not":
			l.condition(n, m, at)
		}
		return true
	})
}

// optionValue looks for a value that the enum of the option does not have.
func (l *linter) optionValue(n *node, v val, at string) {
	want := v.get("match").get("equals")
	if !want.ok() || v.get("match").get("ci").isTrue() {
		return
	}
	possible, declared := false, false
	v.get("flags").items(func(_ int, f val) {
		o := n.inScope(f.str())
		if o == nil {
			return
		}
		declared = true
		possible = possible || o.enum.len() == 0 || listHas(o.enum, []string{want.str()})
	})
	if declared && !possible {
		l.warn(v, at, "L09", quoteShort(want.str())+" is no value of that option")
	}
}
