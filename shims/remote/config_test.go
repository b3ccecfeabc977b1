package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadConfig(t *testing.T) {
	managed, user := t.TempDir(), t.TempDir()
	put := func(dir, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "registries.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{}
	read := func() (Config, error) { return ReadConfig(managed, user, func(n string) string { return env[n] }) }
	if c, err := read(); err != nil || len(c.Registries) != 0 || c.Offline {
		t.Errorf("%+v %v", c, err)
	}
	// The standard's own example.
	put(user, `{"registries":[
		{"name":"ATIP Community","url":"https://atip.dev","enabled":true,"priority":100,"requireSignatures":true},
		{"name":"Acme","url":"https://atip.internal.acme.com/","enabled":true,"priority":50,"requireSignatures":true,"auth":{"type":"bearer","tokenEnvVar":"ACME_ATIP_TOKEN"}},
		{"name":"off","url":"https://off.invalid","enabled":false}],
		// comments are for people
		"defaults":{"cacheExpiry":"7d","requireSignatures":false}}`)
	env["ATIP_REGISTRIES"], env["ATIP_OFFLINE"] = "http://127.0.0.1:8080, https://atip.dev", "0"
	c, err := read()
	if err != nil || len(c.Registries) != 3 || c.Offline {
		t.Fatalf("%+v %v", c, err)
	}
	first, last := c.Registries[0], c.Registries[2]
	if first.Name != "Acme" || first.URL != "https://atip.internal.acme.com" || first.TokenEnvVar != "ACME_ATIP_TOKEN" || first.CacheExpiry != longest || !first.RequireSignatures {
		t.Errorf("%+v", first)
	}
	if !last.FromEnv || last.URL != "http://127.0.0.1:8080" || !c.Registries[1].RequireSignatures {
		t.Errorf("%+v", c.Registries)
	}
	put(managed, `{"locked":true,"registries":[{"url":"https://only.invalid","cacheExpiry":"1h"}]}`)
	env["ATIP_OFFLINE"] = "1"
	if c, err := read(); err != nil || len(c.Registries) != 1 || c.Registries[0].CacheExpiry != time.Hour || !c.Offline {
		t.Errorf("a lock of the administrator: %+v %v", c, err)
	}
	put(managed, `{}`)
	for text, want := range map[string]string{
		`[]`:                "object",
		`{"registries":{}}`: "array",
		`{"registries":[{"url":"https://a.invalid","prioriti":1}]}`:                               `1:43: unknown key "prioriti"`,
		`{"registries":[{"name":"x"}]}`:                                                           "without url",
		`{"registries":[{"url":"https://u:p@a.invalid"}]}`:                                        "no password",
		`{"registries":[{"url":"http://a.invalid"}]}`:                                             "neither https",
		`{"registries":[{"url":"http://127.0.0.1.a.invalid"}]}`:                                   "neither https",
		`{"registries":[{"url":"https://a.invalid/x?y"}]}`:                                        "plain path",
		`{"registries":[{"url":"https://a.invalid/../x"}]}`:                                       "plain path",
		`{"registries":[{"url":"file:///etc"}]}`:                                                  "host",
		`{"registries":[{"url":"https://a.invalid","auth":{"type":"basic","tokenEnvVar":"X"}}]}`:  "bearer",
		`{"registries":[{"url":"https://a.invalid","auth":{"type":"bearer"}}]}`:                   "neither",
		`{"registries":[{"url":"https://a.invalid","auth":{"type":"bearer","tokenFile":"rel"}}]}`: "absolute",
		`{"registries":[{"url":"https://a.invalid","cacheExpiry":"soon"}]}`:                       "duration",
		`{"registries":[{"url":"https://a.invalid","requireSignatures":1}]}`:                      "true or false",
		`{"registries":[{"url":"https://a.invalid","url":"https://b.invalid"}]}`:                  "1:",
	} {
		put(user, text)
		if _, err := read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	put(user, `{}`)
	env["ATIP_REGISTRIES"] = "http://evil.invalid"
	if _, err := read(); err == nil {
		t.Error("a plain http registry of the environment")
	}
}

func TestEndpoint(t *testing.T) {
	r := &Registry{}
	r.setURL("https://a.invalid/base")
	for s, want := range map[string]string{
		"/s/{hash}.json":                          "/s/{hash}.json",
		"https://a.invalid/base/s/{hash}.json":    "/s/{hash}.json",
		"https://a.invalid/other/{hash}.json":     "",
		"https://b.invalid/base/s/{hash}.json":    "",
		"https://a.invalid.evil/base/{hash}.json": "",
		"//b.invalid/{hash}":                      "",
		"/s/../{hash}":                            "",
		"/s/{hash}/{hash}":                        "",
		"/s/x.json":                               "",
		"/s/{hash}?x":                             "",
		"/s/%2e%2e/{hash}":                        "",
		"s/{hash}":                                "",
		"":                                        "",
	} {
		got, ok := endpoint(r, s, true)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", s, got, ok)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(`{"endpoints":{"shims":"/s/{hash}.json","catalog":"https://a.invalid/base/c.json"},"trust":{"requireSignatures":true}}`)
	f.Add(`{"endpoints":{"shims":"/%2e%2e/{hash}"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r := &Registry{}
		r.setURL("https://a.invalid/base")
		m, err := parseManifest(r, []byte(text))
		if err != nil {
			return
		}
		for _, path := range []string{m.shims, m.signatures} {
			full := strings.Replace(path, "{hash}", hexA, 1)
			if !strings.HasPrefix(full, "/") || strings.HasPrefix(full, "//") || strings.Contains(full, "..") || strings.Count(full, hexA) != 1 || strings.ContainsAny(full, "?#%@{} ") {
				t.Errorf("%q is asked for", full)
			}
		}
	})
}
