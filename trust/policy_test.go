package trust

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParsePolicy(t *testing.T) {
	digest := strings.Repeat("Ab", 32)
	p, err := ParsePolicy([]byte(`{"requireSignature":"both","minimumSlsaLevel":2,"pins":{"gh":["sha256:` + digest + `"]},"expectations":"off",
		"distroTrust":"db","maxRootAge":"90d","maxStateAge":"12h","revoked":{"sha256":["` + digest + `"],"signers":[{"id":"x"}]},
		"onUnsigned":"deny","onUnverified":"allow","scripts":"descriptor","systemPaths":["/usr"],"recheck":"always","allowedSigners":[],"builders":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if !p.RequireTool || !p.RequireMetadata || p.MinimumSLSALevel != 2 || p.Pins["gh"][0] != strings.ToLower(digest) || p.Expectations ||
		p.DistroTrust != "db" || p.MaxRootAge != 90*24*time.Hour || p.MaxStateAge != 12*time.Hour || p.Revoked[0] != strings.ToLower(digest) ||
		p.OnUnsigned != OverrideDeny || p.OnUnverified != OverrideAllow || !p.ScriptDescriptor || !p.RecheckAlways || p.SystemPaths[0] != "/usr" {
		t.Errorf("%+v", p)
	}
	if p, err := ParsePolicy([]byte(`{"requireSignature":true}`)); err != nil || !p.RequireMetadata || p.RequireTool {
		t.Errorf("true means metadata: %+v, %v", p, err)
	}
	for _, bad := range []string{
		``, `[]`, `{`, `{}x`, `{} {}`, `{"unknown":1}`, `{"RequireSignature":"tool"}`, `{"requireSignature":"yes"}`, `{"requireSignature":null}`,
		`{"onUnsigned":"deny","onUnsigned":"allow"}`, `{"onUnsigned":"ask"}`, `{"minimumSlsaLevel":5}`, `{"minimumSlsaLevel":1.5}`,
		`{"pins":{"gh":["sha512:00"]}}`, `{"pins":{"gh":["zz"]}}`, `{"pins":{"":[]}}`, `{"pins":null}`, `{"systemPaths":["usr"]}`,
		`{"systemPaths":["/"]}`, `{"systemPaths":["/usr/../home"]}`, `{"revoked":{"sha1":[]}}`, `{"revoked":{"sha256":["x"]}}`, `{"maxRootAge":"-1h"}`,
		`{"maxRootAge":"90 days"}`, `{"maxRootAge":90}`, `{"scripts":"memfd"}`, `{"distroTrust":"yes"}`, `{"allowedSigners":{}}`,
	} {
		var pe *PolicyError
		if p, err := ParsePolicy([]byte(bad)); !errors.As(err, &pe) || pe.FaultCode() != "E2102" {
			t.Errorf("%s: %+v, %v", bad, p, err)
		}
	}
}

func TestLayers(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	managed := Policy{RequireTool: true, Pins: map[string][]string{"gh": {a}}, OnUnsigned: OverrideConfirm, MaxRootAge: time.Hour}
	user := Policy{RequireMetadata: true, Pins: map[string][]string{"gh": {b}, "git": {b}}, OnUnsigned: OverrideAllow, OnUnverified: OverrideAllow,
		Revoked: []string{b}, SystemPaths: []string{"/usr", "/srv/tools"}}
	p := managed.Layer(user)
	if !p.RequireTool || !p.RequireMetadata || p.Pins["gh"][0] != a || p.Pins["git"][0] != b || p.OnUnsigned != OverrideConfirm ||
		p.OnUnverified != OverrideAllow || len(p.Revoked) != 1 || p.MaxRootAge != time.Hour || len(p.SystemPaths) != 2 {
		t.Errorf("%+v", p)
	}
	project := Policy{Pins: map[string][]string{"gh": {b}, "new": {a}}, OnUnverified: OverrideConfirm, OnUnsigned: OverrideAllow,
		SystemPaths: []string{"/usr/bin", "/home/u"}, MinimumSLSALevel: 1}
	q := p.Tighten(project)
	if q.OnUnsigned != OverrideConfirm || q.OnUnverified != OverrideConfirm || q.MinimumSLSALevel != 1 || !slices.Equal(q.SystemPaths, []string{"/usr/bin"}) {
		t.Errorf("%+v", q)
	}
	id := func(name, digest string) Identity {
		return Identity{Invoked: name, Chain: []Part{{Role: RoleFile, Path: "/w/" + name, Digest: digest}}}
	}
	q.RequireTool = false
	if v := Judge(id("gh", a), q); v.Level != Compromised {
		t.Errorf("a project's pin does not bind: %+v", v)
	}
	if v := Judge(id("new", a), q); v.Action == Allow {
		t.Errorf("a project vouches for its own tool: %+v", v)
	}
	if v := Judge(id("new", b), q); v.Level != Compromised {
		t.Errorf("a project's pin does not bind: %+v", v)
	}
	if user.Pins["gh"][0] != b || managed.Only != nil {
		t.Error("a layer was changed in place")
	}
	if (Policy{}).Tighten(Policy{OnUnsigned: OverrideAllow}).OnUnsigned == OverrideAllow {
		t.Error("a project loosens onUnsigned")
	}
}

func TestWithEnvironment(t *testing.T) {
	node := Identity{Chain: []Part{{Path: "/usr/bin/tool"}, {Path: "/usr/bin/node"}}}
	for _, row := range []struct {
		env  string
		want bool
	}{
		{"NODE_OPTIONS=-r x", true}, {"LD_PRELOAD=x", true}, {"PYTHONPATH=x", false}, {"PATH=/bin", false}, {"GLIBC_TUNABLES", true},
	} {
		if got := node.WithEnvironment([]string{"A=b", row.env}).HasCap(CapLoaderEnvironment); got != row.want {
			t.Errorf("%s: %v", row.env, got)
		}
	}
	if len(node.Caps) != 0 {
		t.Error("the identity was changed in place")
	}
}
