package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// command is a node of a document, as far as lint looks at it.
type command struct {
	Effects       map[string]json.RawMessage `json:"effects"`
	Options       []option                   `json:"options"`
	GlobalOptions []option                   `json:"globalOptions"`
	Commands      map[string]command         `json:"commands"`
}

type option struct {
	Flags []string `json:"flags"`
}

// lint finds what is well-formed and still cannot be meant. Its codes are those
// of "atip lint".
func lint(raw []byte) ([]string, error) {
	var root command
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	var found []string
	root.lint("", nil, func(code, path, msg string) { found = append(found, code+" "+path+": "+msg) })
	return found, nil
}

func (c command) lint(path string, inherited map[string]json.RawMessage, report func(code, path, msg string)) {
	effects := maps.Clone(inherited)
	if effects == nil {
		effects = map[string]json.RawMessage{}
	}
	maps.Copy(effects, c.Effects)
	stated := func(key, value string) bool { return string(effects[key]) == value }
	if len(c.Commands) == 0 && len(effects) == 0 {
		report("L01", path, "a command without effects")
	}
	if stated("destructive", "true") && stated("reversible", "true") {
		report("L04", path, "destructive, yet reversible")
	}
	if d := effects["deletes"]; len(d) > len("[]") && !stated("destructive", "true") {
		report("L05", path, "deletes something, but is not destructive")
	}
	var flags []string
	for _, o := range append(slices.Clone(c.Options), c.GlobalOptions...) {
		flags = append(flags, o.Flags...)
	}
	slices.Sort(flags)
	for i := 1; i < len(flags); i++ {
		if flags[i] == flags[i-1] {
			report("L06", path, "flag "+flags[i]+" is declared twice")
		}
	}
	if path == "" {
		effects = nil // what the root states is joined, not inherited
	}
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		c.Commands[name].lint(strings.TrimPrefix(path+" "+name, " "), effects, report)
	}
}
