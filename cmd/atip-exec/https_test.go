package main_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHTTPS fetches over TLS: from a host whose certificate is known and says its name,
// and from no other.
func TestHTTPS(t *testing.T) {
	w := newWorld(t)
	digest := strings.Repeat("ab", 32)
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/shims/sha256/"+digest+".json" {
			http.NotFound(rw, r)
			return
		}
		fmt.Fprintf(rw, `{"atip":"0.6","binary":{"hash":"sha256:%s","name":"x","version":"1"},"description":"d"}`, digest)
	}))
	defer s.Close()
	s.Config.ErrorLog = nil
	roots := filepath.Join(w.home, "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	fetch := func(url string, env ...string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, "atip"), "fetch-shim", "--refresh", "-o", "json", digest)
		cmd.Dir = w.ws
		cmd.Env = append([]string{"HOME=" + w.home, "PATH=/usr/bin:/bin", "ATIP_REGISTRIES=" + url}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	url := s.URL + "/base"
	if out, err := fetch(url); err == nil || !strings.Contains(out, "E4202") || !strings.Contains(out, "certificate") {
		t.Errorf("an unknown certificate: %v %s", err, out)
	}
	if out, err := fetch(strings.Replace(url, "127.0.0.1", "localhost", 1), "SSL_CERT_FILE="+roots); err == nil || !strings.Contains(out, "certificate") {
		t.Errorf("a certificate of another name: %v %s", err, out)
	}
	if out, err := fetch(url, "SSL_CERT_FILE="+roots); err != nil || !strings.Contains(out, `"outcome":"stored"`) {
		t.Errorf("%v %s", err, out)
	}
}
