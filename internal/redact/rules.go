// Package redact says what the policy wants redacted, and cleans files as the output of a command
// would be cleaned.
package redact

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/policy"
)

// object is "output.redact" of a policy.
type object struct {
	Enabled *bool          `json:"enabled"`
	Locked  bool           `json:"locked"`
	Rules   []filter.Rule  `json:"rules"`
	Names   []string       `json:"names"`
	Allow   []filter.Allow `json:"allow"`
	Known   struct {
		Env   []string `json:"env"`
		Files []string `json:"files"`
	} `json:"knownValues"`
	Tools map[string]struct {
		Disable  []string `json:"disable"`
		Binary   string   `json:"binary"`
		MaxBytes string   `json:"maxBytes"`
	} `json:"tools"`
}

// Rules are what all layers together say about redaction.
type Rules struct {
	Config filter.Config
	Env    []string // globs of variables whose values are known
	Files  []string // files whose secrets are known
	Most   int64    // bytes shown of a stream, for the tools of this run; 0 for no bound of theirs
	Notes  []string // what was ignored
	locked bool     // a managed layer forbids loosening
}

// Tool is a tool of a run. A file of the workspace does not borrow the exceptions of the tool
// whose name it has.
type Tool struct {
	Name        string
	InWorkspace bool
}

// Of merges the output objects of the policy for the tools of a run.
func Of(out policy.OutputPolicy, tools []Tool) (Rules, error) {
	var r Rules
	if out.Binary != "" {
		mode, ok := filter.BinaryModeByName(out.Binary)
		if !ok {
			return r, &policy.ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: "output.binary: unknown mode " + out.Binary}
		}
		r.Config.Binary = mode
	}
	if len(tools) > 0 && !tools[0].InWorkspace {
		r.Config.Tool = tools[0].Name
	}
	for _, part := range out.Redact {
		if err := r.add(part, tools); err != nil {
			return r, err
		}
	}
	return r, nil
}

// add merges one layer's object. Layers come outermost first, so a managed "locked"
// is known when a user's loosening is read.
func (r *Rules) add(part policy.RawPart, tools []Tool) error {
	var o object
	d := json.NewDecoder(bytes.NewReader(part.JSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return r.at(part, errcode.PolicySyntax, err)
	}
	for i := range o.Rules {
		if _, err := filter.CheckRule(&o.Rules[i]); err != nil {
			return r.at(part, errcode.RedactionRule, err)
		}
	}
	r.Config.Rules = append(r.Config.Rules, o.Rules...)
	r.Config.Names = append(r.Config.Names, o.Names...)
	loosens := o.Enabled != nil && !*o.Enabled || len(o.Allow) > 0 || len(o.Tools) > 0
	if part.Layer != policy.LayerUser && part.Layer != policy.LayerManaged {
		if loosens || len(o.Known.Env)+len(o.Known.Files) > 0 {
			return r.at(part, errcode.PolicyLayer, fmt.Errorf("the layer %s can only add rules and names", part.Layer))
		}
		return nil
	}
	r.Env, r.Files = append(r.Env, o.Known.Env...), append(r.Files, o.Known.Files...)
	if (r.locked || part.TightensOnly) && part.Layer != policy.LayerManaged {
		if loosens {
			r.Notes = append(r.Notes, part.File+": output.redact is locked by the managed policy; what loosens it is ignored")
		}
		return nil
	}
	r.locked = r.locked || o.Locked
	if o.Enabled != nil && !*o.Enabled {
		r.Config.Disabled = true
	}
	r.Config.Allow = append(r.Config.Allow, o.Allow...)
	for tool, t := range o.Tools {
		if _, ok := filter.BinaryModeByName(t.Binary); t.Binary != "" && !ok {
			return r.at(part, errcode.PolicySyntax, fmt.Errorf("tools.%s.binary: unknown mode %s", tool, t.Binary))
		}
		if _, ok := policy.ParseSize(t.MaxBytes); t.MaxBytes != "" && !ok {
			return r.at(part, errcode.PolicySyntax, fmt.Errorf("tools.%s.maxBytes must be a size such as \"64KiB\"", tool))
		}
	}
	for _, s := range tools {
		if t, ok := o.Tools[s.Name]; ok {
			// A bound loosens nothing, so it holds for any executable of that name.
			if most, ok := policy.ParseSize(t.MaxBytes); ok && (r.Most == 0 || most < r.Most) {
				r.Most = most
			}
		}
		if t, ok := o.Tools[s.Name]; ok && !s.InWorkspace {
			r.Config.DisableRules = append(r.Config.DisableRules, t.Disable...)
			if mode, known := filter.BinaryModeByName(t.Binary); known && mode > r.Config.Binary {
				r.Config.Binary = mode
			}
		}
	}
	return nil
}

func (r *Rules) at(part policy.RawPart, code string, err error) error {
	return &policy.ParseError{Code: code, File: part.File, Line: part.Line, Col: part.Col, Msg: "output.redact: " + err.Error()}
}
