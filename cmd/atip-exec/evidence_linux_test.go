package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSyncEvidence: a signed program whose document names its provenance by an address is not verified until
// the provenance is here. One byte of it more or less is not kept, and no command fetches it by itself.
func TestSyncEvidence(t *testing.T) {
	t.Parallel()
	w := newSigning(t, toolPolicy)
	w.atip(0, "sign", "--key", w.key, w.tool)
	w.atip(0, "verify", "--keep", w.tool)
	w.put(filepath.Join(w.ws, "predicate.json"), `{"buildDefinition":{"buildType":"https://example.com/build","externalParameters":{"source":{"uri":"https://example.com/dep"}}},"runDetails":{"builder":{"id":"https://example.com/builder"}}}`, 0o600)
	w.atip(0, "attest", "--key", w.key, "--type", "https://slsa.dev/provenance/v1", "--predicate", "predicate.json", "--bundle", "dep.intoto", w.tool)
	good, err := os.ReadFile(filepath.Join(w.ws, "dep.intoto"))
	if err != nil {
		t.Fatal(err)
	}
	served, asked := good, 0
	var document string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/shims/sha256/" + w.digest + ".json":
			_, _ = rw.Write([]byte(document))
		case "/built/dep.jsonl":
			asked++
			_, _ = rw.Write(served)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(s.Close)
	document = `{"atip":{"version":"0.6"},"binary":{"hash":"sha256:` + w.digest + `","name":"dep","version":"1"},"description":"Deployments",
		"trust":{"source":"community","verified":true,"provenance":{"url":"` + s.URL + `/built/dep.jsonl","format":"slsa-provenance-v1","slsaLevel":3}},"effects":{"network":false}}`
	w.put(filepath.Join(w.home, ".config/agent-tools/registries.json"), `{"registries":[{"name":"Acme","url":"`+s.URL+`"}]}`, 0o600)
	w.atip(0, "sync", w.tool)
	kept := filepath.Join(w.home, ".local/share/agent-tools/shims/sha256", w.digest+".tool.intoto.jsonl")
	reason := func(want string) {
		t.Helper()
		if v := w.explained(w.tool).Trust; v.Reason != want {
			t.Errorf("%s %s, want %s", v.Level, v.Reason, want)
		}
	}
	reason("provenance_unavailable")
	if asked != 0 {
		t.Error("a command fetched what a document names")
	}
	bad := []byte(strings.Replace(string(good), `"payload":"`, `"payload":"AAAA`, 1))
	for _, served = range [][]byte{bad, []byte("<html>"), good[:len(good)/2]} {
		w.atip(65, "sync", "--evidence", w.tool)
		if _, err := os.Lstat(kept); err == nil {
			t.Error("kept what proves nothing")
		}
	}
	reason("provenance_unavailable")
	served = good
	if out := w.atip(0, "sync", "--evidence", "-o", "text", w.tool); !strings.Contains(out, "1 stored") {
		t.Error(out)
	}
	reason("signature+provenance")
	served = bad
	w.atip(65, "sync", "--evidence")
	reason("signature+provenance")
	served = good
	if out := w.atip(0, "sync", "--evidence", "-o", "text"); !strings.Contains(out, "1 at hand") {
		t.Error(out)
	}
	document = strings.Replace(document, "http://", "https://", 1)
	w.atip(0, "sync", w.tool)
	if out := w.atip(65, "sync", "--evidence"); !strings.Contains(out, "loopback") {
		t.Error(out)
	}
	reason("signature+provenance")
}
