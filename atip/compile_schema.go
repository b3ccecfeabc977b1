package atip

import (
	"cmp"
	"strings"
)

// parameter is one property of a function.
type parameter struct {
	name     string
	typ      string // a JSON Schema type
	items    string // of an array
	text     string
	enum     []string
	required bool
	taken    bool     // an option: it gives way where an argument has the name
	flags    []string // of an option; an argument has none
	arity    int      // words that the option takes
}

// parameters are the arguments, then the options, then those of groups and tool.
func (c *Command) parameters() []parameter {
	var out []parameter
	used := map[string]bool{}
	put := func(p parameter) {
		p.name = propertyName(p.name)
		if used[p.name] && p.taken {
			p.name += "_option"
		}
		if !used[p.name] {
			used[p.name] = true
			out = append(out, p)
		}
	}
	for _, a := range c.Arguments {
		p := schemaOf(a)
		p.required = a.Required && !a.HasDefault
		put(p)
	}
	flags := map[string]bool{}
	for _, list := range [2][]Declared{c.Options, c.Inherited} {
		for _, o := range list {
			shadowed := false
			for _, f := range o.Flags {
				shadowed = shadowed || flags[f]
				flags[f] = true
			}
			if shadowed {
				continue
			}
			p := schemaOf(o)
			p.required, p.taken = o.Required, true
			put(p)
		}
	}
	return out
}

// propertyName keeps to what all providers accept as the name of a property.
func propertyName(s string) string {
	s = functionName([]string{s})
	return s[:min(len(s), maxFunctionName)]
}

func schemaOf(d Declared) parameter {
	p := parameter{name: d.Name, text: d.Description, enum: d.Enum, flags: d.Flags, arity: d.Arity}
	hint := ""
	switch d.Type {
	case "boolean", "integer", "number":
		p.typ = d.Type
	case "file":
		p.typ, hint = "string", "file path"
	case "directory":
		p.typ, hint = "string", "directory path"
	case "url":
		p.typ, hint = "string", "URL"
	case "array":
		p.typ, p.items = "array", "string"
	default:
		p.typ = "string"
	}
	if p.typ != "string" && p.typ != "array" {
		p.enum = nil
	}
	if d.Variadic && p.typ != "array" {
		p.items, p.typ = p.typ, "array"
	}
	p.text = cmp.Or(p.text, d.Name)
	if hint != "" {
		p.text += " (" + hint + ")"
	}
	return p
}

// schema is the object that holds the parameters.
func (f *function) schema(o CompileOptions) object {
	strict := o.Strict && o.Provider == "openai"
	properties, required := object{}, []string{}
	for _, p := range f.parameters {
		optional := !p.required
		properties.set(p.name, p.schema(strict && optional))
		if strict || !optional {
			required = append(required, p.name)
		}
	}
	s := object{{"type", "object"}, {"properties", properties}, {"required", required}}
	if strict {
		s.set("additionalProperties", false)
	}
	return s
}

// schema is one property. There is no default and no format: strict mode refuses the
// one, providers ignore the other.
func (p *parameter) schema(nullable bool) object {
	var s object
	if nullable {
		s.set("type", []string{p.typ, "null"})
	} else {
		s.set("type", p.typ)
	}
	if p.typ == "array" {
		items := object{{"type", p.items}}
		if len(p.enum) > 0 {
			items.set("enum", p.enum)
		}
		s.set("items", items)
	} else if len(p.enum) > 0 {
		enum := make([]any, 0, len(p.enum)+1)
		for _, e := range p.enum {
			enum = append(enum, e)
		}
		if nullable {
			enum = append(enum, nil)
		}
		s.set("enum", enum)
	}
	s.set("description", p.text)
	return s
}

// byAction joins the commands of each group into one function. Its flags are those of
// the worst of them, and each command's own stand in the text.
func byAction(functions []function) []function {
	var out []function
	at := map[string]int{}
	for _, f := range functions {
		if len(f.words) < 2 {
			out = append(out, f)
			continue
		}
		group, action := f.words[:len(f.words)-1], f.words[len(f.words)-1]
		key := strings.Join(group, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, function{words: group, effects: f.effects, parameters: []parameter{{name: "action", typ: "string", text: "what to do", required: true}}})
		}
		g := &out[i]
		g.parameters[0].enum = append(g.parameters[0].enum, action)
		g.actions = append(g.actions, action)
		if g.text != "" {
			g.text += "; "
		}
		g.text += action + ": " + describe(f.text, SafetyFlags(f.effects), 0)
		g.effects = JoinEffects(g.effects, f.effects)
		for _, p := range f.parameters {
			g.merge(p)
		}
	}
	return out
}

// merge adds a parameter of one action; all but the action itself are optional.
func (f *function) merge(p parameter) {
	p.required = false
	for i := range f.parameters {
		have := &f.parameters[i]
		if have.name != p.name {
			continue
		}
		if i > 0 && have.typ == p.typ && have.items == p.items {
			if strings.Join(have.enum, "\x00") != strings.Join(p.enum, "\x00") {
				have.enum = nil
			}
			return
		}
		p.name += "_option"
		f.merge(p)
		return
	}
	f.parameters = append(f.parameters, p)
}
