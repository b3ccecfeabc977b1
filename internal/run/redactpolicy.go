package run

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/policy"
)

// redactObject is "output.redact" of a policy.
type redactObject struct {
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

// redaction is what all layers together say about redaction.
type redaction struct {
	config filter.Config
	env    []string // globs of variables whose values are known
	files  []string // files whose secrets are known
	locked bool     // a managed layer forbids loosening
	most   int64    // bytes shown of a stream, for the tools of this run; 0 for no bound of theirs
	notes  []string // what was ignored
}

// redactionPolicy merges the output objects of the policy for the steps of a run.
func redactionPolicy(out policy.OutputPolicy, steps []*effects.Step) (redaction, error) {
	var r redaction
	if out.Binary != "" {
		mode, ok := filter.BinaryModeByName(out.Binary)
		if !ok {
			return r, &policy.ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: "output.binary: unknown mode " + out.Binary}
		}
		r.config.Binary = mode
	}
	if len(steps) > 0 && !steps[0].File.InWorkspace {
		// A file of the workspace must not borrow the exceptions of a tool.
		r.config.Tool = steps[0].Call.Tool
	}
	for _, part := range out.Redact {
		if err := r.add(part, steps); err != nil {
			return r, err
		}
	}
	return r, nil
}

// add merges one layer's object. Layers come outermost first, so a managed "locked"
// is known when a user's loosening is read.
func (r *redaction) add(part policy.RawPart, steps []*effects.Step) error {
	var o redactObject
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
	r.config.Rules = append(r.config.Rules, o.Rules...)
	r.config.Names = append(r.config.Names, o.Names...)
	loosens := o.Enabled != nil && !*o.Enabled || len(o.Allow) > 0 || len(o.Tools) > 0
	if part.Layer != policy.LayerUser && part.Layer != policy.LayerManaged {
		if loosens || len(o.Known.Env)+len(o.Known.Files) > 0 {
			return r.at(part, errcode.PolicyLayer, fmt.Errorf("the layer %s can only add rules and names", part.Layer))
		}
		return nil
	}
	r.env, r.files = append(r.env, o.Known.Env...), append(r.files, o.Known.Files...)
	if (r.locked || part.TightensOnly) && part.Layer != policy.LayerManaged {
		if loosens {
			r.notes = append(r.notes, part.File+": output.redact is locked by the managed policy; what loosens it is ignored")
		}
		return nil
	}
	r.locked = r.locked || o.Locked
	if o.Enabled != nil && !*o.Enabled {
		r.config.Disabled = true
	}
	r.config.Allow = append(r.config.Allow, o.Allow...)
	for tool, t := range o.Tools {
		if _, ok := filter.BinaryModeByName(t.Binary); t.Binary != "" && !ok {
			return r.at(part, errcode.PolicySyntax, fmt.Errorf("tools.%s.binary: unknown mode %s", tool, t.Binary))
		}
		if _, ok := policy.ParseSize(t.MaxBytes); t.MaxBytes != "" && !ok {
			return r.at(part, errcode.PolicySyntax, fmt.Errorf("tools.%s.maxBytes must be a size such as \"64KiB\"", tool))
		}
	}
	for _, s := range steps {
		if t, ok := o.Tools[s.Call.Tool]; ok {
			// A bound loosens nothing, so it holds for any executable of that name.
			if most, ok := policy.ParseSize(t.MaxBytes); ok && (r.most == 0 || most < r.most) {
				r.most = most
			}
		}
		if t, ok := o.Tools[s.Call.Tool]; ok && !s.File.InWorkspace {
			r.config.DisableRules = append(r.config.DisableRules, t.Disable...)
			if mode, known := filter.BinaryModeByName(t.Binary); known && mode > r.config.Binary {
				r.config.Binary = mode
			}
		}
	}
	return nil
}

func (r *redaction) at(part policy.RawPart, code string, err error) error {
	return &policy.ParseError{Code: code, File: part.File, Line: part.Line, Col: part.Col, Msg: "output.redact: " + err.Error()}
}
