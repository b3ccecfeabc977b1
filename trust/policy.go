package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Policy is the "trust" object of a policy. Its zero value requires no signature
// and allows nothing more for it.
type Policy struct {
	RequireTool      bool
	RequireMetadata  bool
	MinimumSLSALevel int
	// Pins bind a name or path to sha256 hex digests and stand in for a
	// signature; Only binds in the same way and helps nothing: it is what a
	// layer that may only tighten can say.
	Pins         map[string][]string
	Only         map[string][]string
	Revoked      []string // sha256 hex digests
	OnUnsigned   Override
	OnUnverified Override
	SystemPaths  []string // nil: DefaultSystemPaths

	// What the verifier, the caches and the start need; Decide does not look.
	AllowedSigners   []json.RawMessage
	Builders         []json.RawMessage
	RevokedSigners   []json.RawMessage
	Expectations     bool
	DistroTrust      string // off, cached, db, chain; "" is cached
	MaxRootAge       time.Duration
	MaxStateAge      time.Duration
	ScriptDescriptor bool
	RecheckAlways    bool
}

func (p Policy) required(s Subject) bool {
	if s == Metadata {
		return p.RequireMetadata
	}
	return p.RequireTool
}

// PolicyError says that a "trust" object cannot be obeyed.
type PolicyError struct {
	Key string
	Why string
}

func (e *PolicyError) Error() string { return fmt.Sprintf("trust policy: %s: %s", e.Key, e.Why) }

// FaultCode implements fault.Coded.
func (e *PolicyError) FaultCode() string { return "E2102" }

// FaultDetails implements fault.Coded.
func (e *PolicyError) FaultDetails() map[string]any {
	return map[string]any{"key": e.Key, "why": e.Why}
}

// ParsePolicy reads a "trust" object. Keys are exact: an unknown, repeated or
// differently cased one is an error, because obeying half a policy is worse than
// stopping.
func ParsePolicy(raw []byte) (Policy, error) {
	p := Policy{Expectations: true}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return Policy{}, &PolicyError{Key: "trust", Why: "not an object"}
	}
	var seen []string
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return Policy{}, &PolicyError{Key: "trust", Why: "malformed"}
		}
		if slices.Contains(seen, key) {
			return Policy{}, &PolicyError{Key: key, Why: "given twice"}
		}
		seen = append(seen, key)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return Policy{}, &PolicyError{Key: key, Why: err.Error()}
		}
		if why := p.set(key, value); why != "" {
			return Policy{}, &PolicyError{Key: key, Why: why}
		}
	}
	if _, err := dec.Token(); err != nil {
		return Policy{}, &PolicyError{Key: "trust", Why: "not closed"}
	}
	if _, err := dec.Token(); err != io.EOF {
		return Policy{}, &PolicyError{Key: "trust", Why: "data after the object"}
	}
	return p, nil
}

// set obeys one key and says why it cannot; "" if it can.
func (p *Policy) set(key string, raw json.RawMessage) (why string) {
	switch key {
	case "requireSignature", "requireSignatures":
		return p.setRequire(raw)
	case "allowedSigners":
		return decode(raw, &p.AllowedSigners)
	case "builders":
		return decode(raw, &p.Builders)
	case "minimumSlsaLevel":
		if why := decode(raw, &p.MinimumSLSALevel); why != "" {
			return why
		}
		if p.MinimumSLSALevel < 0 || p.MinimumSLSALevel > 4 {
			return "must be 0 to 4"
		}
	case "pins":
		if why := decode(raw, &p.Pins); why != "" {
			return why
		}
		for name, digests := range p.Pins {
			if name == "" {
				return "a pin needs a name or path"
			}
			if why := normalise(digests); why != "" {
				return name + ": " + why
			}
		}
	case "expectations":
		return word(raw, map[string]func(){"on": func() { p.Expectations = true }, "off": func() { p.Expectations = false }})
	case "distroTrust":
		set := func(s string) func() { return func() { p.DistroTrust = s } }
		return word(raw, map[string]func(){"off": set("off"), "cached": set("cached"), "db": set("db"), "chain": set("chain")})
	case "maxRootAge":
		return age(raw, &p.MaxRootAge)
	case "maxStateAge":
		return age(raw, &p.MaxStateAge)
	case "revoked":
		return p.setRevoked(raw)
	case "onUnsigned":
		return override(raw, &p.OnUnsigned)
	case "onUnverified":
		return override(raw, &p.OnUnverified)
	case "scripts":
		return word(raw, map[string]func(){"path": func() {}, "descriptor": func() { p.ScriptDescriptor = true }})
	case "systemPaths":
		p.SystemPaths = []string{}
		if why := decode(raw, &p.SystemPaths); why != "" {
			return why
		}
		for _, dir := range p.SystemPaths {
			if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || len(dir) < 2 {
				return fmt.Sprintf("%q is not a clean absolute path below the root", dir)
			}
		}
	case "recheck":
		return word(raw, map[string]func(){"always": func() { p.RecheckAlways = true }, "auto": func() {}})
	default:
		return "unknown key"
	}
	return ""
}

func (p *Policy) setRequire(raw json.RawMessage) string {
	switch string(raw) {
	case "true", `"metadata"`, `"shim"`:
		p.RequireMetadata = true
	case `"tool"`:
		p.RequireTool = true
	case `"both"`:
		p.RequireTool, p.RequireMetadata = true, true
	case "false", `"off"`:
	default:
		return "must be off, metadata, shim, tool, both, true or false"
	}
	return ""
}

func (p *Policy) setRevoked(raw json.RawMessage) string {
	var keys map[string]json.RawMessage
	if why := decode(raw, &keys); why != "" {
		return why
	}
	for key, value := range keys {
		why := "unknown key " + key
		switch key {
		case "sha256":
			if why = decode(value, &p.Revoked); why == "" {
				why = normalise(p.Revoked)
			}
		case "signers":
			why = decode(value, &p.RevokedSigners)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

func decode(raw json.RawMessage, v any) string {
	if string(raw) == "null" {
		return "must not be null"
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return err.Error()
	}
	return ""
}

func word(raw json.RawMessage, words map[string]func()) string {
	var s string
	if why := decode(raw, &s); why != "" {
		return why
	}
	if set, ok := words[s]; ok {
		set()
		return ""
	}
	var names []string
	for name := range words {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprintf("%q is none of %s", s, strings.Join(names, ", "))
}

func override(raw json.RawMessage, o *Override) string {
	set := func(v Override) func() { return func() { *o = v } }
	return word(raw, map[string]func(){"deny": set(OverrideDeny), "confirm": set(OverrideConfirm), "allow": set(OverrideAllow)})
}

// age reads a Go duration, or days as "90d".
func age(raw json.RawMessage, d *time.Duration) string {
	var s string
	if why := decode(raw, &s); why != "" {
		return why
	}
	var days int
	if n, err := fmt.Sscanf(s, "%dd", &days); err == nil && n == 1 && s == fmt.Sprintf("%dd", days) && days > 0 && days < 1e5 {
		*d = time.Duration(days) * 24 * time.Hour
		return ""
	}
	v, err := time.ParseDuration(s)
	if err != nil || v <= 0 {
		return fmt.Sprintf("%q is not a duration such as 90d or 12h", s)
	}
	*d = v
	return ""
}

// normalise turns digests into lower-case hex in place.
func normalise(digests []string) string {
	for i, d := range digests {
		hex := strings.ToLower(strings.TrimPrefix(d, "sha256:"))
		if len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
			return fmt.Sprintf("%q is not a sha256 digest", d)
		}
		digests[i] = hex
	}
	return ""
}
