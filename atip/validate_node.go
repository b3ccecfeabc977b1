package atip

import (
	"strconv"
	"strings"
)

// node checks a command and all below it.
func (c *validator) node(n *node) {
	v := n.v
	if !v.is(KindObject) {
		c.note(tolerated(), v, n.pointer, "type", "the command is not an object")
		return
	}
	if n.parent != nil {
		c.fields(v, n.pointer, "command")
		c.required(v, n.pointer, "description")
	}
	if n.broken {
		c.note(tolerated(), n.kids, n.pointer+"/commands", "type", "commands is not an object")
	}
	if e := v.get("effects"); e.ok() {
		c.effects(e, n.pointer+"/effects")
	}
	for _, field := range [...]string{"options", "globalOptions"} {
		c.options(v.get(field), n.pointer+"/"+field)
	}
	c.arguments(v.get("arguments"), n.pointer+"/arguments")
	c.sharedFlags(n)
	if x := v.get("x-atip-effects"); x.ok() {
		c.extension(n, x)
	}
	if x := v.get("x-atip-execs"); x.ok() {
		c.execs(x, n.pointer+"/x-atip-execs")
	}
	if x := v.get("x-atip-fetch"); x.ok() {
		readFetch(x, func(v val, at, msg string) { c.note(tolerated(), v, n.pointer+"/x-atip-fetch"+at, "fetch", msg) })
	}
	for _, field := range [...]string{"aliases", "x-atip-aliases", "examples"} {
		if m := v.get(field); m.ok() {
			if _, ok := m.strings(); !ok {
				c.note(tolerated(), m, n.pointer+"/"+field, "type", field+" is not an array of strings")
			}
		}
	}
	n.kids.members(func(key string, m val) bool {
		c.node(n.child(key, m))
		return true
	})
}

func (c *validator) effects(v val, pointer string) {
	if !v.is(KindObject) {
		c.note(tolerated(), v, pointer, "type", "effects is not an object")
		return
	}
	readStatement(v, false, func(m val, at, code, msg string) {
		g := tolerated()
		if code != "effect-type" {
			g = warned()
		}
		c.note(g, m, pointer+at, code, msg)
	})
	d := v.get("duration")
	for _, field := range [...]string{"typical", "timeout"} {
		if t := d.get(field); t.ok() && !validDuration(t.str()) {
			c.note(tolerated(), t, pointer+"/duration/"+field, "duration", quoteShort(t.scalar())+" is not a duration such as 60s or 1-5s")
		}
	}
}

// validDuration accepts 60s, 1.5m, 1-5s and 500ms-2s.
func validDuration(s string) bool {
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		return durationPart(s, true)
	}
	return durationPart(low, false) && durationPart(high, true)
}

func durationPart(s string, unit bool) bool {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || i > 0 && s[i] == '.') {
		i++
	}
	if i == 0 {
		return false
	}
	switch s[i:] {
	case "ms", "s", "m", "h", "d":
		return true
	case "":
		return !unit
	}
	return false
}

func (c *validator) options(list val, pointer string) {
	if list.ok() && !list.is(KindArray) {
		c.note(tolerated(), list, pointer, "type", "the list of options is not an array")
	}
	list.items(func(i int, v val) {
		at := pointer + "/" + strconv.Itoa(i)
		if !v.is(KindObject) {
			c.note(tolerated(), v, at, "type", "the option is not an object")
			return
		}
		c.fields(v, at, "option")
		c.required(v, at, "description")
		c.declared(v, at, "option")
		flags, ok := v.get("flags").strings()
		if !ok || len(flags) == 0 {
			c.note(tolerated(), v, at+"/flags", "flags", "the option has no flags and is not known")
		}
		for _, f := range flags {
			if len(f) < 2 || f[0] != '-' {
				c.note(tolerated(), v, at+"/flags", "flags", "flag "+quoteShort(f)+" does not begin with - and makes the option unknown")
			}
		}
		if e := v.get("envVar"); e.ok() && !isVariable(e.str()) {
			c.note(schema(), e, at+"/envVar", "variable", quoteShort(e.scalar())+" is not the name of a variable")
		}
	})
}

func (c *validator) arguments(list val, pointer string) {
	if list.ok() && !list.is(KindArray) {
		c.note(tolerated(), list, pointer, "type", "the list of arguments is not an array")
	}
	list.items(func(i int, v val) {
		at := pointer + "/" + strconv.Itoa(i)
		c.fields(v, at, "argument")
		c.required(v, at, "description")
		c.declared(v, at, "argument")
	})
}

// declared checks what options and arguments share.
func (c *validator) declared(v val, at, what string) {
	if v.get("name").str() == "" {
		g := schema()
		if what == "argument" {
			g = tolerated()
		}
		c.note(g, v, at+"/name", "name", "the "+what+" has no name")
	}
	c.enum(v.get("type"), at+"/type", true, "string", "integer", "number", "boolean", "file", "directory", "url", "enum", "array")
	if v.get("type").str() == "enum" && v.get("enum").len() == 0 {
		c.note(schema(), v, at+"/enum", "enum", "an enum without values")
	}
	for _, field := range [...]string{"required", "variadic"} {
		if b := v.get(field); b.ok() {
			if _, ok := b.boolean(); !ok {
				c.note(schema(), b, at+"/"+field, "type", field+" is not true or false")
			}
		}
	}
}

// sharedFlags warns of flags that two options of a list declare differently.
func (c *validator) sharedFlags(n *node) {
	for i := range n.options {
		if n.options[i].arity != arityUnknown {
			continue
		}
		for j := range n.options[:i] {
			for _, f := range n.options[i].flags {
				if n.options[j].has(f) {
					c.note(warned(), n.v, n.pointer+"/options", "arity", "flag "+quoteShort(f)+" is declared twice with different arity")
				}
			}
		}
	}
}

// extension checks x-atip-effects, and that the standard effects beside it are its
// upper bound: a reader who ignores x- must never be under-warned.
func (c *validator) extension(n *node, v val) {
	pointer := n.pointer + "/x-atip-effects"
	x, ok := checkExtension(v, pointer, func(v val, at, msg string) { c.note(tolerated(), v, at, "extension", msg) })
	if !ok || !c.strict {
		return
	}
	r := &resolver{d: c.d, rank: Org}
	w := (&reading{resolver: r, n: n, afterDash: -1}).weigh()
	covered := func(effects val, at string, all bool) {
		st := readStatement(effects, true, nil)
		for i := range st.value {
			e := Effect(i)
			if !st.stated.Has(e) || e >= SecretRead || st.value[e] != e.Dangerous() {
				continue
			}
			f, ok := w.merged(e, false)
			if ok && f.Value != e.Dangerous() {
				c.note(schema(), effects, at, "bound", e.String()+" goes beyond what effects states")
			} else if !ok && all {
				c.note(advised(), effects, at, "bound", e.String()+" is not stated by effects")
			}
		}
	}
	covered(x.base, pointer+"/base", true)
	for i := range x.when {
		covered(x.when[i].body.get("add"), x.when[i].pointer+"/add", true)
	}
	c.flagsExist(n, v, pointer)
	for i := range x.narrow {
		covered(x.narrow[i].body.get("effects"), x.narrow[i].pointer+"/effects", false)
		x.narrow[i].body.get("despite").items(func(_ int, id val) {
			if !n.hasWhen(id.str()) {
				c.note(schema(), id, x.narrow[i].pointer+"/despite", "id", "no when has the id "+quoteShort(id.str()))
			}
		})
	}
}

// hasWhen looks for a when of the node, its ancestors or the commands below it.
func (n *node) hasWhen(id string) bool {
	has := func(m *node) bool {
		if m.ext == nil {
			return false
		}
		for i := range m.ext.when {
			if m.ext.when[i].id == id {
				return true
			}
		}
		return false
	}
	for a := n.parent; a != nil; a = a.parent {
		if has(a) {
			return true
		}
	}
	found := false
	n.each(func(m *node) { found = found || has(m) })
	return found
}

// flagsExist holds every flag an extension names against the declared options.
func (c *validator) flagsExist(n *node, v val, pointer string) {
	var declared map[string]bool
	exists := func(flag string) bool {
		if n.inScope(flag) != nil {
			return true
		}
		if declared == nil {
			declared = map[string]bool{}
			n.each(func(m *node) {
				for i := range m.options {
					for _, f := range m.options[i].flags {
						declared[f] = true
					}
				}
			})
		}
		return declared[flag]
	}
	check := func(f val, at string) {
		if flag := f.str(); strings.HasPrefix(flag, "-") && !exists(flag) {
			c.note(schema(), f, at, "flag", "flag "+quoteShort(flag)+" is not declared")
		}
	}
	var walk func(key string, v val, at string)
	walk = func(key string, v val, at string) {
		switch v.kind() {
		case KindObject:
			v.members(func(k string, m val) bool { walk(k, m, pointerTo(at, k)); return true })
			if key == "arity" {
				v.members(func(flag string, m val) bool {
					if strings.HasPrefix(flag, "-") && !exists(flag) {
						c.note(schema(), m, at, "flag", "flag "+quoteShort(flag)+" is not declared")
					}
					return true
				})
			}
		case KindArray:
			v.items(func(i int, item val) {
				switch key {
				case "anyOption", "allOptions", "flags", "optionalValue", "chdir":
					check(item, at+"/"+strconv.Itoa(i))
				default:
					walk(key, item, at+"/"+strconv.Itoa(i))
				}
			})
		case KindString:
			if key == "flag" {
				check(v, at)
			}
		}
	}
	walk("", v, pointer)
}
