package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestNoURLOfMetadataIsFetched: documents name hosts of this machine wherever the format has a URL, and
// nothing that reads them asks one. That the registry itself is asked shows that the way is open.
func TestNoURLOfMetadataIsFetched(t *testing.T) {
	w := newSigning(t, "")
	var mu sync.Mutex
	var asked []string
	www := filepath.Join(w.ws, "www")
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		http.FileServer(http.Dir(www)).ServeHTTP(rw, r)
	}))
	defer s.Close()
	doc := filepath.Join(w.ws, "dep.json")
	w.put(doc, fmt.Sprintf(`{"atip":{"version":"0.6"},"binary":{"hash":"sha256:%s","name":"dep","version":"1"},"name":"dep","version":"1","description":"Deployments","homepage":"%[2]s/lure/home",
		"trust":{"source":"community","integrity":{"checksum":"sha256:%[1]s","signature":{"type":"cosign","identity":"https://a.example","issuer":"https://b.example","bundle":"%[2]s/lure/bundle"}},
			"provenance":{"url":"%[2]s/lure/provenance","format":"slsa-provenance-v1","slsaLevel":3,"builder":"%[2]s/lure/builder"}},
		"effects":{"network":false,"filesystem":{"write":false}}}`, w.digest, s.URL), 0o644)
	w.atip(0, "publish", "--url", s.URL, "--state", www, doc)
	w.put(filepath.Join(w.home, ".config/agent-tools/registries.json"), `{"registries":[{"name":"Acme","url":"`+s.URL+`"}]}`, 0o600)
	w.atip(0, "fetch-shim", "sha256:"+w.digest)
	w.atip(0, "sync")
	for _, args := range [][]string{{"sync", "./dep"}, {"verify", "./dep"}, {"show", "dep"}, {"scan", "--no-probe", w.ws}, {"doctor"}} {
		cmd := exec.Command(filepath.Join(bin, "atip"), args...)
		cmd.Dir, cmd.Env = w.ws, w.command().Env
		_ = cmd.Run() // whatever it says of such a document
	}
	for _, args := range [][]string{{"explain", "--", "./dep"}, {"--", "./dep"}, {"--refresh", "--", "./dep"}} {
		w.exec(args...)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(asked, "/shims/sha256/"+w.digest+".json") {
		t.Errorf("the registry was not asked: %q", asked)
	}
	for _, path := range asked {
		if strings.HasPrefix(path, "/lure") {
			t.Errorf("%s was fetched", path)
		}
	}
}
