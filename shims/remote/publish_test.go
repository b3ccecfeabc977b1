package remote

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPublishedFolderIsARegistry serves a published folder with a plain file server
// and fetches from it.
func TestPublishedFolderIsARegistry(t *testing.T) {
	dir, other := t.TempDir(), strings.Repeat("cd", 32)
	o := PublishOptions{Name: "test", Now: time.Now()}
	p, err := Publish(dir, []Upload{{File: "a", Raw: []byte(shim(hexA, "1")), Bundle: []byte("raw bundle")}, {File: "b", Raw: []byte(shim(other, "2"))}}, o)
	if err != nil || p.Total != 2 || p.Tools != 1 || p.Signed != 1 || len(p.Added) != 2 {
		t.Fatalf("%+v %v", p, err)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer s.Close()
	w := newWorld(t, Registry{URL: s.URL})
	if r, code := w.fetch(); r.Outcome != Stored || code != "" {
		t.Errorf("%+v %s", r, code)
	}
	if raw, _ := os.ReadFile(w.Dirs.ShimPath(hexA)); string(raw) != shim(hexA, "1") {
		t.Error("other bytes than those that were published")
	}
	if raw, _ := os.ReadFile(w.Dirs.ShimPath(hexA) + ".bundle"); string(raw) != "raw bundle" {
		t.Errorf("%q", raw)
	}
	offered, err := w.Catalog(t.Context())
	if err != nil || len(offered) != 1 || strings.Join(offered[0].Versions, " ") != "1 2" {
		t.Errorf("%+v %v", offered, err)
	}
	w.Refresh = true
	if r, _ := w.fetch(); r.Outcome != Renewed {
		t.Errorf("Last-Modified of a file server: %+v", r)
	}
	// Signatures that are required once stay required.
	o.RequireSignatures = true
	if _, err := Publish(dir, nil, o); err != nil {
		t.Fatal(err)
	}
	o.RequireSignatures = false
	if p, err := Publish(dir, nil, o); err != nil || p.Total != 2 {
		t.Fatalf("%+v %v", p, err)
	}
	if _, code := w.fetch(); code != "E4204" {
		t.Errorf("%s", code)
	}
}

func TestPublishRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Publish(dir, []Upload{{File: "a", Raw: []byte(shim(hexA, "1"))}}, PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"another version for the same file": shim(hexA, "2"),
		"no hash":                           `{"atip":"0.6","name":"x","version":"1","description":"d"}`,
		"the empty file":                    shim(emptyFile, "1"),
		"not strict":                        strings.Replace(shim(hexA, "1"), `"d"`, `"d","Description":"e"`, 1),
		"not valid":                         strings.Replace(shim(hexA, "1"), `"network":true`, `"network":"yes"`, 1),
		"a comment":                         "// x\n" + shim(hexA, "1"),
	} {
		other := Upload{File: "good", Raw: []byte(shim(strings.Repeat("ef", 32), "1"))}
		if _, err := Publish(dir, []Upload{other, {File: name, Raw: []byte(raw)}}, PublishOptions{}); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "shims", "sha256", "*")); len(left) != 1 {
		t.Errorf("something was written beside a refused document: %q", left)
	}
}

// TestDocuments: only what has the name of a document is one.
func TestDocuments(t *testing.T) {
	dir, other := t.TempDir(), strings.Repeat("cd", 32)
	if list, err := Documents(dir); err != nil || len(list) != 0 {
		t.Errorf("an empty folder: %v, %v", list, err)
	}
	at := filepath.Join(dir, "shims", "sha256")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{other + ".json", hexA + ".json", hexA + ".json.bundle", "ab.list", "x.json", strings.ToUpper(hexA) + ".json"} {
		if err := os.WriteFile(filepath.Join(at, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []Document{{hexA, filepath.Join(at, hexA+".json")}, {other, filepath.Join(at, other+".json")}}
	if list, err := Documents(dir); err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v", list, err)
	}
}
