package policy

import (
	"path"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// ofSignatures are keys that only a verified signature could satisfy, and none is verified
// here. In the forms of ATIP, which organisations hand out as they stand, they say nothing
// that requireSignature does not refuse by itself; in a policy of one's own they would read
// like a promise.
var ofSignatures = [...]string{"allowedSigners", "builders", "expectations", "distroTrust", "maxRootAge", "recheck"}

func (r *reader) ownTrust(v *atip.Node) TrustPolicy {
	refuse := func(m *atip.Node, key string) {
		r.failKey(m, "trust.%s has no effect: this version verifies no signatures; without it, requireSignature refuses what would need one", key)
	}
	for _, m := range v.Items {
		if contains(ofSignatures[:], m.Key) {
			refuse(m, m.Key)
		}
		if signers := m.Get("signers"); m.Key == "revoked" && signers != nil {
			refuse(signers, "revoked.signers")
		}
		if m.Key == "maxStateAge" {
			r.failKey(m, "maxStateAge stands in registries.json, beside the registry whose state it is about")
		}
	}
	return r.trust(v)
}

func (r *reader) trust(v *atip.Node) TrustPolicy {
	var t TrustPolicy
	r.object(v, "trust", func(key string, e *atip.Node) bool {
		switch key {
		case "requireSignature", "requireSignatures":
			r.requireSignature(&t, e)
		case "allowedSigners":
			t.AllowedSigners = []RawPart{r.raw(e)}
		case "builders":
			t.Builders = []RawPart{r.raw(e)}
		case "minimumSlsaLevel":
			t.MinimumSLSALevel = int(r.integer(e, 0, 4))
		case "pins":
			t.Pins = map[string][]string{}
			r.entries(e, func(name string, o *atip.Node) { t.Pins[name] = r.digests(o) })
		case "expectations":
			t.ExpectationsOff = r.oneOf(e, "on", "off") == "off"
		case "distroTrust":
			t.DistroTrust = r.str(e)
		case "maxRootAge":
			t.MaxRootAge = r.duration(e)
		case "maxStateAge":
			t.MaxStateAge = r.duration(e)
		case "revoked":
			r.object(e, "trust.revoked", func(k string, o *atip.Node) bool {
				switch k {
				case "sha256":
					t.Revoked = r.digests(o)
				case "signers":
					t.RevokedSigners = []RawPart{r.raw(o)}
				default:
					return false
				}
				return true
			})
		case "onUnsigned":
			t.OnUnsigned = r.oneOf(e, "allow", "confirm", "deny")
		case "onUnverified":
			t.OnUnverified = r.oneOf(e, "allow", "confirm", "deny")
		case "scripts":
			t.Scripts = r.oneOf(e, "path", "descriptor")
		case "systemPaths":
			t.SystemPaths, t.SystemPathsSet = r.strings(e), true
			for _, p := range t.SystemPaths {
				if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
					r.fail(e, "%q is not a system path", p)
				}
			}
		case "recheck":
			t.Recheck = r.str(e)
		default:
			return false
		}
		return true
	})
	return t
}

func (r *reader) requireSignature(t *TrustPolicy, e *atip.Node) {
	if b, ok := e.Bool(); ok {
		t.RequireMetadata = b
		return
	}
	switch r.oneOf(e, "off", "metadata", "shim", "tool", "both") {
	case "metadata", "shim":
		t.RequireMetadata = true
	case "tool":
		t.RequireTool = true
	case "both":
		t.RequireMetadata, t.RequireTool = true, true
	}
}

// digests reads sha256 digests, with or without the prefix, and returns them with it.
func (r *reader) digests(v *atip.Node) []string {
	out := r.strings(v)
	for i, s := range out {
		hex := strings.ToLower(strings.TrimPrefix(s, "sha256:"))
		if len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
			r.fail(v, "%q is not a sha256 digest", s)
		}
		out[i] = "sha256:" + hex
	}
	return out
}
