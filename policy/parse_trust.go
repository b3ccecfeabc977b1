package policy

import (
	"errors"
	"path"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// ownTrust reads the trust object of a policy of one's own.
func (r *reader) ownTrust(v *atip.Node) TrustPolicy {
	for _, m := range v.Items {
		if m.Key == "maxStateAge" {
			r.failKey(m, "maxStateAge stands in registries.json, beside the registry whose state it is about")
		}
	}
	return r.trust(v)
}

// ownSigners reports layers whose signers count by themselves; those of the others only
// remove.
func (r *reader) ownSigners() bool {
	return r.src.Layer == LayerManaged || r.src.Layer == LayerUser && !r.src.TightensOnly
}

// signers reads who may sign. Each entry is an object, or a bare identity as the protocol has
// it, which takes the issuer beside the list.
func (r *reader) signers(list, issuer *atip.Node) []signer.Signer {
	o := signer.Options{Name: r.src.File + " trust.allowedSigners", Managed: r.src.Layer == LayerManaged, Restricts: !r.ownSigners()}
	if issuer != nil {
		o.Issuer = r.str(issuer)
	}
	out, warnings, err := signer.Parse(list, o)
	r.entry(err)
	r.warnings = append(r.warnings, warnings...)
	return out
}

// entry takes over what is wrong with an entry, with its position.
func (r *reader) entry(err error) {
	var at *signer.NodeError
	if !errors.As(err, &at) {
		return
	}
	if at.Key {
		r.failKey(at.Node, "%s", at.Msg)
	} else {
		r.fail(at.Node, "%s", at.Msg)
	}
}

func (r *reader) trust(v *atip.Node) TrustPolicy {
	var t TrustPolicy
	r.object(v, "trust", func(key string, e *atip.Node) bool {
		switch key {
		case "builders":
			list, err := signer.ParseBuilders(e)
			r.entry(err)
			t.Builders = list
		case "pins":
			t.Pins = map[string][]string{}
			r.entries(e, func(name string, o *atip.Node) { t.Pins[name] = r.digests(o) })
		case "expectations":
			t.ExpectationsOff = r.oneOf(e, "on", "off") == "off"
		case "distroTrust":
			t.DistroTrust = r.oneOf(e, "off", "cached", "db", "chain")
		case "maxRootAge":
			t.MaxRootAge = r.duration(e)
		case "maxStateAge":
			t.MaxStateAge = r.duration(e)
		case "revoked":
			r.keys(e, "trust.revoked", settings{
				"sha256": func(o *atip.Node) { t.Revoked = r.digests(o) },
				"signers": func(o *atip.Node) {
					list, err := signer.ParseRevocations(o)
					r.entry(err)
					t.RevokedSigners = list
				},
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
			t.Recheck = r.oneOf(e, "always")
		default:
			return r.signatures(&t, v, e)
		}
		return true
	})
	return t
}

// signatures reads the members of an object that say which signatures are demanded, and whose;
// false for any other member.
func (r *reader) signatures(t *TrustPolicy, object, m *atip.Node) bool {
	switch m.Key {
	case "requireSignature", "requireSignatures":
		r.requireSignature(t, m)
	case "allowedSigners":
		t.Signers, t.SignersSet = r.signers(m, object.Get("issuer")), true
	case "issuer":
		return object.Get("allowedSigners") != nil
	case "minimumSlsaLevel":
		t.MinimumSLSALevel = int(r.integer(m, 0, 4))
	default:
		return false
	}
	return true
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
