package generate

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/atip"
)

// Node is one command with its own help.
type Node struct {
	Command
	Help   Help
	Failed bool // its help could not be had
	Kids   []Node
}

// Subject is the executable that is described.
type Subject struct {
	Name, Version, Digest, Platform string
	Method                          string // where the commands come from; "" for help
}

// Document turns the commands of a tool into ATIP metadata.
func Document(s Subject, root Node, at time.Time) map[string]any {
	doc := command(root, s.Name+": "+root.Help.Summary)
	version := s.Version
	version = cmp.Or(version, "unknown")
	doc["atip"] = map[string]any{"version": "0.6"}
	doc["name"], doc["version"] = s.Name, version
	doc["binary"] = map[string]any{"hash": "sha256:" + s.Digest, "name": s.Name, "version": version, "platform": s.Platform}
	doc["trust"] = map[string]any{"source": "inferred", "verified": false}
	method := s.Method
	method = cmp.Or(method, "help-parsing")
	confidence := "low"
	if root.Help.Framework != "" {
		confidence = "medium"
	}
	doc["_generation"] = map[string]any{"method": method, "timestamp": at.UTC().Format(time.RFC3339), "confidence": confidence, "framework": root.Help.Framework}
	if root.anyFailed() {
		doc["partial"] = true
		doc["omitted"] = map[string]any{"reason": "filtered", "safetyAssumption": "unknown"}
	}
	return doc
}

func (n Node) anyFailed() bool {
	failed := n.Failed
	for _, k := range n.Kids {
		failed = failed || k.anyFailed()
	}
	return failed
}

func command(n Node, fallback string) map[string]any {
	out := map[string]any{"description": described(n.Description, n.Help.Summary, fallback)}
	if len(n.Aliases) > 0 {
		out["aliases"] = n.Aliases
	}
	// An empty list would claim that there are no options.
	if len(n.Help.Options) > 0 {
		list, unknown := options(n.Help.Options)
		out["options"] = list
		if parse := conventions(n.Help.Options, unknown); len(parse) > 0 {
			out["x-atip-effects"] = map[string]any{"v": 1, "parse": parse}
		}
	}
	if len(n.Kids) > 0 {
		kids := map[string]any{}
		for _, k := range n.Kids {
			kids[k.Name] = command(k, k.Name)
		}
		out["commands"] = kids
	} else if dangerous(n.Command) {
		out["effects"] = map[string]any{"destructive": true}
	}
	return out
}

// dangerous reads danger from words. It finds less than three of four destructive
// commands, and what it does not find is unknown, not harmless.
func dangerous(c Command) bool {
	if atip.DeleteLike(c.Name) {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.Description), " ")
	return c.Name != "" && atip.DeleteLike(strings.Trim(first, ".,:;"))
}

func described(texts ...string) string {
	for _, t := range texts {
		t = strings.Join(strings.Fields(t), " ")
		if t = strings.Trim(t, ": "); t == "" {
			continue
		}
		if utf8.RuneCountInString(t) > 200 {
			t = string([]rune(t)[:197]) + "..."
		}
		return t
	}
	return "not described"
}

// maxOptions is how many options one list of a document may hold.
const maxOptions = 512

func options(list []Option) (out []any, unknown []string) {
	seen := map[string]bool{}
	for _, o := range list {
		if len(out) == maxOptions {
			break // what is left out is an unknown option, as any that no help names
		}
		var flags []string
		for _, f := range o.Flags {
			if !seen[f] {
				seen[f] = true
				flags = append(flags, f)
			}
		}
		if len(flags) == 0 {
			continue
		}
		name := ""
		for _, f := range flags {
			if bare := strings.TrimLeft(f, "-"); len(bare) > len(name) {
				name = bare
			}
		}
		entry := map[string]any{"name": name, "flags": flags, "description": described(o.Description, o.Metavar, name)}
		switch {
		case o.Arity == None:
			entry["type"] = "boolean"
		case len(o.Enum) > 1:
			entry["type"], entry["enum"] = "enum", o.Enum
		default:
			entry["type"] = typeOf(o.Metavar)
		}
		if o.Arity == Unknown {
			unknown = append(unknown, flags[0])
		}
		out = append(out, entry)
	}
	return out, unknown
}

func typeOf(metavar string) string {
	switch strings.ToLower(metavar) {
	case "file", "filename", "path", "infile", "outfile":
		return "file"
	case "dir", "directory", "folder":
		return "directory"
	case "int", "integer", "num", "number", "n", "count", "uint":
		return "integer"
	case "url", "uri":
		return "url"
	}
	return "string"
}

func conventions(list []Option, unknown []string) map[string]any {
	parse := map[string]any{}
	if len(unknown) > 0 {
		arity := map[string]any{}
		for _, f := range unknown {
			arity[f] = "unknown"
		}
		parse["arity"] = arity
	}
	var attached []string
	for _, o := range list {
		if o.Arity == Attached {
			attached = append(attached, o.Flags...)
		}
	}
	if len(attached) > 0 {
		parse["optionalValue"] = attached
	}
	return parse
}
