package policy

import (
	"os"
	"strings"
	"testing"
)

// TestSeedExamples reads the policies of the protocol texts: what an agent may approve
// by itself, what may be delegated, and both forms of an organization's policy.
func TestSeedExamples(t *testing.T) {
	for _, name := range []string{"permissions-0.1", "delegation-0.1", "delegation-0.6", "org-policy-0.6", "org-shims-0.6"} {
		raw, err := os.ReadFile("../testdata/seeds/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(Source{File: name, Raw: raw, Layer: LayerUser})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		set, err := Compile([]*Document{d})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := set.TrustPolicy(); strings.HasPrefix(name, "org") && (!got.RequireMetadata || len(got.Signers) != 2) {
			t.Errorf("%s: what it asks of signatures is lost: %+v", name, got)
		} else if name == "org-shims-0.6" && got.MinimumSLSALevel != 2 {
			t.Errorf("%s: level %d", name, got.MinimumSLSALevel)
		}
	}
}
