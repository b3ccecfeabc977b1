package trust

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Layer lays a lower layer under p: managed over user. Demands add up; where both
// speak about the same thing p wins.
func (p Policy) Layer(lower Policy) Policy {
	out := p.demands(lower)
	out.Pins = maps.Clone(lower.Pins)
	if out.Pins == nil && p.Pins != nil {
		out.Pins = map[string][]string{}
	}
	maps.Copy(out.Pins, p.Pins)
	if out.OnUnsigned == OverrideUnset {
		out.OnUnsigned = lower.OnUnsigned
	}
	if out.OnUnverified == OverrideUnset {
		out.OnUnverified = lower.OnUnverified
	}
	if out.SystemPaths == nil {
		out.SystemPaths = lower.SystemPaths
	}
	if out.DistroTrust == "" {
		out.DistroTrust = lower.DistroTrust
	}
	out.AllowedSigners = append(slices.Clip(p.AllowedSigners), lower.AllowedSigners...)
	out.Builders = append(slices.Clip(p.Builders), lower.Builders...)
	return out
}

// Tighten applies a layer that may only narrow, such as a project's: its pins
// bind but vouch for nothing, its paths and signers are kept only where p has
// them too.
func (p Policy) Tighten(project Policy) Policy {
	out := p.demands(project)
	out.bind(project.Pins)
	out.OnUnsigned = strictest(p.OnUnsigned, project.OnUnsigned)
	out.OnUnverified = strictest(p.OnUnverified, project.OnUnverified)
	if project.SystemPaths != nil {
		have := p.SystemPaths
		if have == nil {
			have = DefaultSystemPaths()
		}
		out.SystemPaths = slices.DeleteFunc(slices.Clone(project.SystemPaths), func(dir string) bool { return !below(dir, have) })
	}
	if project.AllowedSigners != nil {
		out.AllowedSigners = slices.DeleteFunc(slices.Clone(p.AllowedSigners), func(raw json.RawMessage) bool { return !hasRaw(project.AllowedSigners, raw) })
	}
	return out
}

// demands joins what can only make a policy stricter.
func (p Policy) demands(q Policy) Policy {
	out := p
	out.RequireTool = p.RequireTool || q.RequireTool
	out.RequireMetadata = p.RequireMetadata || q.RequireMetadata
	out.MinimumSLSALevel = max(p.MinimumSLSALevel, q.MinimumSLSALevel)
	out.Revoked = append(slices.Clip(p.Revoked), q.Revoked...)
	out.RevokedSigners = append(slices.Clip(p.RevokedSigners), q.RevokedSigners...)
	out.Expectations = p.Expectations || q.Expectations
	out.RecheckAlways = p.RecheckAlways || q.RecheckAlways
	out.ScriptDescriptor = p.ScriptDescriptor || q.ScriptDescriptor
	out.MaxRootAge = shorter(p.MaxRootAge, q.MaxRootAge)
	out.MaxStateAge = shorter(p.MaxStateAge, q.MaxStateAge)
	out.Only = maps.Clone(p.Only)
	out.bind(q.Only)
	return out
}

// bind adds pins that vouch for nothing; two for one name must both hold.
func (p *Policy) bind(pins map[string][]string) {
	if p.Only == nil && len(pins) > 0 {
		p.Only = map[string][]string{}
	}
	for name, digests := range pins {
		if have, ok := p.Only[name]; ok {
			digests = slices.DeleteFunc(slices.Clone(digests), func(d string) bool { return !contains(have, d) })
		}
		p.Only[name] = digests
	}
}

// strictest returns the stricter of two overrides; an unset one asks for no
// change, so against it only what is stricter than "confirm" counts.
func strictest(a, b Override) Override {
	switch {
	case a == OverrideDeny || b == OverrideDeny:
		return OverrideDeny
	case a == OverrideAllow && b != OverrideUnset:
		return b
	}
	return a
}

func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func hasRaw(list []json.RawMessage, raw json.RawMessage) bool {
	return slices.ContainsFunc(list, func(have json.RawMessage) bool {
		var a, b bytes.Buffer
		return json.Compact(&a, have) == nil && json.Compact(&b, raw) == nil && bytes.Equal(a.Bytes(), b.Bytes())
	})
}
