package run

import (
	"encoding/json"
	"fmt"

	"github.com/atip-dev/atip-exec/filter"
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
		Disable []string `json:"disable"`
		Binary  string   `json:"binary"`
	} `json:"tools"`
}

// applyRedact adds one layer's object. Layers come outermost first, so a managed
// "locked" is known when a user's loosening is read.
func applyRedact(cfg *filter.Config, part policy.RawPart, steps []*step) error {
	var o redactObject
	if err := json.Unmarshal(part.JSON, &o); err != nil {
		return &policy.ParseError{Code: "E2040", File: part.File, Line: part.Line, Col: part.Col, Msg: "output.redact: " + err.Error()}
	}
	cfg.Rules = append(cfg.Rules, o.Rules...)
	cfg.Names = append(cfg.Names, o.Names...)
	loosens := o.Enabled != nil && !*o.Enabled || len(o.Allow) > 0
	if part.Layer != policy.LayerUser && part.Layer != policy.LayerManaged {
		if loosens {
			return &policy.ParseError{Code: "E2043", File: part.File, Line: part.Line, Col: part.Col, Msg: fmt.Sprintf("output.redact: the layer %s can only add rules", part.Layer)}
		}
		return nil
	}
	if o.Enabled != nil && !*o.Enabled {
		cfg.Disabled = true
	}
	cfg.Allow = append(cfg.Allow, o.Allow...)
	for _, s := range steps {
		if t, ok := o.Tools[s.Call.Tool]; ok && !s.File.InWorkspace {
			cfg.DisableRules = append(cfg.DisableRules, t.Disable...)
		}
	}
	return nil
}

// redactionOff reports whether a policy switched redaction off.
func (p *Plan) redactionOff() bool {
	if p.policies == nil {
		return false
	}
	cfg, err := filterConfig(p.policies.Output(), p.steps)
	return err == nil && cfg.Disabled
}
