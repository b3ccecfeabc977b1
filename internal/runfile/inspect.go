package runfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Member is one member of an Object.
type Member struct {
	Key   string
	Value any
}

// Object is a JSON object whose members keep their order.
type Object []Member

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonText(m.Key) + ":")
		var value bytes.Buffer
		enc := json.NewEncoder(&value)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m.Value); err != nil {
			return nil, err
		}
		b.Write(bytes.TrimRight(value.Bytes(), "\n"))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// jsonText is a string literal, of JSON and of Python and JavaScript too.
func jsonText(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// Schema is the input of a function as JSON Schema: inline, without references or
// unions, which some clients drop a tool for.
func (fn *Function) Schema() Object {
	properties, required := Object{}, []string{}
	for i := range fn.Params {
		p := &fn.Params[i]
		property := Object{{"type", p.Type.String()}}
		if p.Rest {
			property = Object{{"type", "array"}, {"items", Object{{"type", "string"}}}}
		}
		if p.Desc != "" {
			property = append(property, Member{"description", p.Desc})
		}
		if p.HasDefault {
			property = append(property, Member{"default", p.defaultValue()})
		} else if !p.Rest {
			required = append(required, p.Name)
		}
		properties = append(properties, Member{p.Name, property})
	}
	return Object{{"type", "object"}, {"properties", properties}, {"required", required}}
}

// defaultValue is the default with its type; Parse has checked it.
func (p *Param) defaultValue() any {
	if p.Type == String {
		return p.Default
	}
	return json.RawMessage(p.Default)
}

// ToolName is the name of a function as providers accept it.
func (fn *Function) ToolName() string {
	name := []byte(strings.ReplaceAll(fn.Name, ":", "__"))
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			name[i] = '_'
		}
	}
	if len(name) > 64 {
		sum := sha256.Sum256([]byte(fn.Name))
		return string(name[:55]) + "_" + hex.EncodeToString(sum[:4])
	}
	return string(name)
}

// Offered lists the functions that agents see: those with a description, or all. Two that
// would have one name as a tool are an error.
func (f *File) Offered(all, safeOnly bool) ([]*Function, error) {
	names := map[string]*Function{}
	out := []*Function{}
	for _, fn := range f.Functions {
		if fn.Desc == "" && !all || safeOnly && !fn.Safe {
			continue
		}
		name := fn.ToolName()
		if other := names[name]; other != nil {
			return nil, &Error{Code: errcode.RunfileSyntax, File: fn.File, Line: fn.Line, Message: fmt.Sprintf("as tools %s and %s of line %d are both called %s", fn.Name, other.Name, other.Line, name), Fix: "rename one"}
		}
		names[name] = fn
		out = append(out, fn)
	}
	return out, nil
}

// Inspect describes functions for an agent; "run" is the form of run RFC 003.
func (f *File) Inspect(functions []*Function, format string) any {
	list := []any{}
	for _, fn := range functions {
		name, desc, schema := Member{"name", fn.ToolName()}, Member{"description", fn.Desc}, fn.Schema()
		switch format {
		case "openai":
			list = append(list, Object{{"type", "function"}, {"function", Object{name, desc, {"parameters", schema}}}})
		case "gemini":
			list = append(list, Object{name, desc, {"parameters", schema}})
		case "mcp":
			list = append(list, Object{name, desc, {"inputSchema", schema}})
		default:
			list = append(list, Object{name, desc, {"input_schema", schema}})
		}
	}
	switch format {
	case "openai", "anthropic", "gemini":
		return list
	case "atip":
		return f.atip(functions)
	}
	return Object{{"tools", list}}
}

// atip is the ATIP 0.6 document of the functions as sub-commands of run. An effect is
// denied only where the ceiling of the function denies it.
func (f *File) atip(functions []*Function) Object {
	commands := Object{}
	for _, fn := range functions {
		desc := fn.Desc
		if desc == "" {
			desc = fn.Name
		}
		arguments := []any{}
		for i := range fn.Params {
			p := &fn.Params[i]
			text := p.Desc
			if text == "" {
				text = p.Name
			}
			kind := p.Type.String()
			if p.Type == JSONObject {
				kind = "string"
			}
			a := Object{{"name", p.Name}, {"type", kind}, {"description", text}, {"required", !p.HasDefault && !p.Rest}}
			if p.Rest {
				a = append(a, Member{"variadic", true})
			}
			if p.HasDefault && p.Type != JSONObject {
				a = append(a, Member{"default", p.defaultValue()})
			}
			arguments = append(arguments, a)
		}
		command := Object{{"description", desc}, {"arguments", arguments}}
		if effects := fn.effects(); len(effects) > 0 {
			command = append(command, Member{"effects", effects})
		}
		commands = append(commands, Member{fn.Name, command})
	}
	text := f.Instructions
	if text == "" {
		text = "functions of " + f.Path
	}
	return Object{{"atip", Object{{"version", "0.6"}}}, {"name", "run"}, {"version", "1.0.0"}, {"description", text}, {"commands", commands}}
}

// effects states what the ceiling of a function excludes.
func (fn *Function) effects() Object {
	if !fn.Limited {
		return nil
	}
	files := Object{}
	for _, name := range [...]string{"write", "delete"} {
		if !fn.May(name) {
			files = append(files, Member{name, false})
		}
	}
	out := Object{}
	if len(files) > 0 {
		out = append(out, Member{"filesystem", files})
	}
	for _, name := range [...]string{"network", "subprocess"} {
		if !fn.May(name) {
			out = append(out, Member{name, false})
		}
	}
	return out
}

// List is one line for each function: its call and its description.
func List(functions []*Function) string {
	var b strings.Builder
	width := 0
	for _, fn := range functions {
		width = max(width, min(len(fn.usage()), 40))
	}
	for _, fn := range functions {
		fmt.Fprintf(&b, "%-"+strconv.Itoa(width)+"s  %s\n", fn.usage(), fn.Desc)
	}
	return b.String()
}
