package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// AgentDocument is our own ATIP 0.6 metadata, generated from the verb and flag
// tables. Running a command states no effect: those are the command's own.
func AgentDocument() map[string]any {
	commands := map[string]any{}
	root, _ := SpecOf("")
	commands[""] = map[string]any{"description": root.Summary, "arguments": agentArguments(root), "options": agentOptions(root)}
	for _, s := range Specs() {
		if s.Verb == "" {
			continue
		}
		commands[s.Verb] = map[string]any{"description": s.Summary, "arguments": agentArguments(s), "options": agentOptions(s), "effects": agentEffects(s.Effects)}
	}
	return map[string]any{
		"atip": map[string]any{"version": "0.6"}, "name": "atip-exec", "version": Version,
		"description": root.Summary, "homepage": "https://github.com/atip-dev/atip-exec",
		"trust": map[string]any{"source": "native", "verified": false}, "commands": commands,
	}
}

// agentPart is our metadata as far as --commands and --depth ask for it (ATIP 0.6 section
// 3.1.1). There is one level of verbs, so that a depth leaves nothing out.
func agentPart(v *Values) (map[string]any, error) {
	doc := AgentDocument()
	if !v.Has("commands") {
		return doc, nil
	}
	all, chosen := doc["commands"].(map[string]any), map[string]any{}
	var names []string
	for _, list := range v.All("commands") {
		for name := range strings.SplitSeq(list, ",") {
			if all[name] == nil {
				f := fault.New(errcode.FlagValue, "--commands: "+strconv.Quote(name)+" is not a verb").With("flag", "--commands")
				return nil, f.WithFix("choose from "+strings.Join(slices.Sorted(maps.Keys(all))[1:], ", "), "--commands explain")
			}
			names, chosen[name] = append(names, name), all[name]
		}
	}
	var depth any
	if v.Has("depth") {
		depth = v.IntOf("depth")
	}
	doc["commands"], doc["partial"], doc["filter"] = chosen, true, map[string]any{"commands": names, "depth": depth}
	doc["totalCommands"], doc["includedCommands"] = len(all), len(chosen)
	doc["omitted"] = map[string]any{"reason": "filtered", "safetyAssumption": "unknown"}
	return doc, nil
}

func agentEffects(e Effects) map[string]any {
	return map[string]any{
		"filesystem": map[string]any{"read": e.Read, "write": e.Write, "delete": false}, "network": e.Network, "subprocess": e.Subprocess,
		"idempotent": true, "reversible": true, "destructive": false, "cost": map[string]any{"billable": false},
		"interactive": map[string]any{"stdin": "none", "prompts": false, "tty": false},
	}
}

func agentArguments(s Spec) []any {
	out := []any{}
	for _, a := range s.Args {
		help := a.Help
		if help == "" {
			help = "see the help of " + s.Program + " " + s.Verb
		}
		arg := map[string]any{"name": a.Name, "type": "string", "description": help, "required": !a.Optional}
		if a.Variadic {
			arg["variadic"] = true
		}
		out = append(out, arg)
	}
	return out
}

func agentOptions(s Spec) []any {
	out := []any{}
	for _, f := range s.Flags {
		flags := []any{"--" + f.Name}
		if f.Short != 0 {
			flags = append([]any{"-" + string(f.Short)}, flags...)
		}
		o := map[string]any{"name": f.Name, "flags": flags, "type": agentType(f.Kind), "description": f.Help, "required": false}
		if f.Kind == Enum {
			enum := []any{}
			for _, e := range f.Enum {
				enum = append(enum, e)
			}
			o["enum"] = enum
		}
		if f.Env != "" {
			o["envVar"] = f.Env
		}
		if f.Kind == Strings || f.Kind == Count {
			o["variadic"] = true
		}
		out = append(out, o)
	}
	return out
}

func agentType(k Kind) string {
	switch k {
	case Bool, Count:
		return "boolean"
	case Int:
		return "integer"
	case Enum:
		return "enum"
	case Path:
		return "file"
	}
	return "string"
}
