package atip

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Hints is what a client of the Model Context Protocol may assume of a tool. What is
// unknown counts as the dangerous value.
type Hints struct{ ReadOnly, Destructive, Idempotent, OpenWorld bool }

// HintsOf draws hints from effects.
func HintsOf(e Effects) Hints {
	return Hints{
		ReadOnly:    e[Write].Value == No && e[Delete].Value == No && e[RemoteMutation].Value != Yes && e[Destructive].Value != Yes,
		Destructive: e[Destructive].Value != No && !(e[Write].Value == No && e[Delete].Value == No && e[Network].Value == No) || e[Delete].Value == Yes && e[Reversible].Value != Yes,
		Idempotent:  e[Idempotent].Value == Yes,
		OpenWorld:   e[Network].Value != No,
	}
}

// callError says why the arguments of a function make no command line; param is "" if none is to blame.
func callError(function, param, why string) error {
	details, at := map[string]any{"function": function}, function+": "
	if param != "" {
		details["parameter"] = param
		at += param + ": "
	}
	return &errcode.Error{Code: errcode.ArgumentType, Msg: at + why, Details: details}
}

// Function is one compiled function for those who serve it.
type Function struct {
	Name, Description string
	Schema            any // JSON Schema of the arguments
	Effects           Effects
}

// List lists the functions that were compiled.
func (c *Compiled) List(strict bool) []Function {
	out := make([]Function, 0, len(c.functions))
	for i := range c.functions {
		f := &c.functions[i]
		out = append(out, Function{Name: f.name, Description: describe(f.text, SafetyFlags(f.effects), maxDescription), Schema: f.schema(CompileOptions{Strict: strict}), Effects: f.effects})
	}
	return out
}

// Call makes the command line for a call of a function. The name is looked up, never
// split; each value is one word or a part of one. What the document does not read back as
// the same command, with the same words as arguments, is an error.
func (c *Compiled) Call(name string, arguments map[string]json.RawMessage) ([]string, error) {
	i := slices.IndexFunc(c.functions, func(f function) bool { return f.name == name })
	if i < 0 {
		return nil, callError(name, "", "there is no such function")
	}
	f := &c.functions[i]
	words := f.words
	if f.actions != nil {
		action := ""
		if raw, ok := arguments["action"]; !ok || json.Unmarshal(raw, &action) != nil || !slices.Contains(f.actions, action) {
			return nil, callError(name, "action", "it is not one of "+strings.Join(f.actions, ", "))
		}
		words = append(slices.Clone(words), action)
	}
	for key := range arguments {
		if !slices.ContainsFunc(f.parameters, func(p parameter) bool { return p.name == key }) {
			return nil, callError(name, quoteShort(key), "there is no such parameter")
		}
	}
	var options, positionals []string
	for i := range f.parameters {
		p := &f.parameters[i]
		if p.name == "action" && f.actions != nil {
			continue
		}
		values, given, err := p.values(arguments[p.name])
		switch {
		case err != "":
			return nil, callError(name, p.name, err)
		case !given && p.required:
			return nil, callError(name, p.name, "it is required")
		case !given:
		case p.flags == nil:
			positionals = append(positionals, values...)
		default:
			options = append(options, p.option(values)...)
		}
	}
	return c.checked(f, words, options, positionals)
}

// checked joins the parts so that the document reads the same command back.
func (c *Compiled) checked(f *function, words, options, positionals []string) ([]string, error) {
	dashed := slices.ContainsFunc(positionals, func(s string) bool { return len(s) > 0 && s[0] == '-' })
	join := func(options []string, front bool) []string {
		argv := []string{words[0]}
		if front {
			argv = append(argv, options...)
		}
		argv = append(argv, words[1:]...)
		if !front {
			argv = append(argv, options...)
		}
		if dashed {
			argv = append(argv, "--")
		}
		return append(argv, positionals...)
	}
	for _, front := range [...]bool{false, true} {
		argv := join(options, front)
		call := c.document.Resolve(argv, ResolveOptions{Provenance: c.provenance})
		if !slices.Equal(call.Path, words[1:]) || len(call.UnknownOptions) > 0 {
			continue
		}
		if dashed && len(call.Positionals) < len(positionals) {
			break // "--" does not end the options of this tool
		}
		return argv, nil
	}
	if dashed {
		return nil, callError(f.name, "", "an argument begins with a dash, and the tool would take it for an option")
	}
	return nil, callError(f.name, "", "the words would be read as another command: "+strings.Join(join(options, false), " "))
}

// option writes an option once for each value.
func (p *parameter) option(values []string) []string {
	flag := p.flags[0]
	for _, f := range p.flags {
		if strings.HasPrefix(f, "--") {
			flag = f
			break
		}
	}
	if p.typ == "boolean" {
		return []string{flag}
	}
	var out []string
	for _, v := range values {
		if strings.HasPrefix(flag, "--") && p.arity <= 1 {
			out = append(out, flag+"="+v)
		} else {
			out = append(out, flag, v)
		}
	}
	return out
}

// values are the words that a JSON value stands for; false and null stand for none.
func (p *parameter) values(raw json.RawMessage) (words []string, given bool, problem string) {
	text := strings.TrimSpace(string(raw))
	if text == "" || text == "null" || text == "false" && p.typ == "boolean" {
		return nil, false, ""
	}
	if p.typ != "array" {
		word, problem := p.word(raw, p.typ)
		return []string{word}, problem == "", problem
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, false, "it is not an array"
	}
	for _, e := range list {
		word, problem := p.word(e, p.items)
		if problem != "" {
			return nil, false, problem
		}
		words = append(words, word)
	}
	return words, len(words) > 0, ""
}

func (p *parameter) word(raw json.RawMessage, typ string) (string, string) {
	switch typ {
	case "boolean":
		if string(raw) != "true" {
			return "", "it is not true or false"
		}
		return "true", ""
	case "integer", "number":
		var n json.Number
		if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil {
			return "", "it is not " + map[string]string{"integer": "an integer", "number": "a number"}[typ]
		}
		if typ == "integer" {
			if whole, err := n.Float64(); err != nil || whole != float64(int64(whole)) {
				return "", "it is not an integer"
			} else if _, err := n.Int64(); err != nil {
				return strconv.FormatInt(int64(whole), 10), ""
			}
		}
		return n.String(), ""
	}
	var s string
	switch {
	case json.Unmarshal(raw, &s) != nil:
		return "", "it is not a string"
	case strings.IndexByte(s, 0) >= 0:
		return "", "it holds a NUL byte"
	case len(p.enum) > 0 && !slices.Contains(p.enum, s):
		return "", quoteShort(s) + " is not one of " + strings.Join(p.enum, ", ")
	}
	return s, ""
}
