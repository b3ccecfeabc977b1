package remote

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSeedExamples reads the manifest and the configuration of the protocol text.
func TestSeedExamples(t *testing.T) {
	read := func(name string) []byte {
		t.Helper()
		raw, err := os.ReadFile("../../testdata/seeds/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "registries.json"), read("registries-0.6"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(t.TempDir(), dir, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Registries) != 2 || c.Registries[0].URL != "https://atip.internal.acme.com" || c.Registries[0].TokenEnvVar != "ACME_ATIP_TOKEN" ||
		c.Registries[1].URL != "https://atip.dev" || !c.Registries[0].RequireSignatures || c.Registries[0].CacheExpiry != longest {
		t.Errorf("%+v", c.Registries)
	}
	m, err := parseManifest(&Registry{URL: "https://atip.dev"}, read("manifest-0.6"))
	if err != nil || m.shims != "/shims/sha256/{hash}.json" || m.signatures != "/shims/sha256/{hash}.json.bundle" || m.catalog != "/shims/index.json" || !m.requireSignatures {
		t.Errorf("%+v %v", m, err)
	}
}
