package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// secure is a server with TLS whose requests are counted.
type secure struct {
	*httptest.Server
	asked atomic.Int64
}

func serveTLS(t *testing.T, pool *x509.CertPool, h http.HandlerFunc) *secure {
	t.Helper()
	s := &secure{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if r.Header.Get("Authorization") != "" {
			t.Error("a token went to an address that a document names")
		}
		h(w, r)
	}))
	s.Config.ErrorLog = nil
	s.StartTLS()
	pool.AddCert(s.Certificate())
	t.Cleanup(s.Close)
	return s
}

const goodEvidence = `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}`

// proves stands in for the verifier: one bundle is good, none is unsigned, any other is condemned.
func proves(q settle.Query, _ bool) (trust.Verdict, string, error) {
	both := append(append([]byte{}, dataOf(q, true)...), dataOf(q, false)...)
	switch {
	case len(both) == 0:
		return trust.Verdict{Level: trust.Unsigned, Reason: "no_signature", Action: trust.Confirm}, "", nil
	case string(both) == goodEvidence:
		return trust.Verdict{Level: trust.Verified, Reason: "signature", Action: trust.Allow}, "", nil
	case string(both) == "unknown":
		return trust.Verdict{Level: trust.Unverified, Reason: "trust_root_unknown", Action: trust.Confirm}, "", nil
	}
	return trust.Verdict{Level: trust.Unsigned, Reason: "bundle_malformed", Action: trust.Deny}, "", nil
}

func dataOf(q settle.Query, signatures bool) (out []byte) {
	list := q.Provenance
	if signatures {
		list = q.Signatures
	}
	for _, s := range list {
		out = append(out, s.Data...)
	}
	return out
}

// evidenceWorld has a document of a tool which names its evidence.
func evidenceWorld(t *testing.T, url string, registries ...Registry) (*world, Claimed) {
	t.Helper()
	w := newWorld(t, registries...)
	w.Verify = proves
	path := w.Dirs.NativePath(hexA)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"atip":{"version":"0.6"},"name":"x","version":"1","description":"d","trust":{"source":"native","integrity":{"signature":{"type":"cosign","identity":"i","issuer":"s","bundle":"` + url + `"}}},"commands":{}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	claims, err := w.Claims()
	if err != nil || len(claims) != 1 || claims[0].URL != url || claims[0].Ending != ".tool.bundle" {
		t.Fatalf("%v %+v", err, claims)
	}
	return w, claims[0]
}

func (w *world) kept() string {
	raw, _ := regular.ReadNoFollow(filepath.Join(w.Dirs.Data, "shims", "sha256", hexA+".tool.bundle"), 1<<20)
	return string(raw)
}

// TestEvidenceAddresses: what a document names is fetched from the public internet only, whatever the name
// and wherever a redirect leads. Each row runs twice: with the address taken for a public one it is stored.
func TestEvidenceAddresses(t *testing.T) {
	pool := x509.NewCertPool()
	good := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, goodEvidence) }
	inside := serveTLS(t, pool, good)
	insidePort := inside.URL[strings.LastIndex(inside.URL, ":"):]
	var to string
	outside := serveTLS(t, pool, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	reach := func(hosts ...*secure) func(string) string {
		return func(address string) string {
			for _, h := range hosts {
				if strings.HasSuffix(h.URL, address[strings.LastIndex(address, ":"):]) {
					return ""
				}
			}
			return specialAddress(address)
		}
	}
	for _, tc := range []struct {
		name, url, to string
		control       bool // stored where the address counts as public
	}{
		{"by its number", inside.URL, "", true},
		{"a name in the table of hosts", "https://localhost" + insidePort, "", false}, // the certificate is for another name
		{"IPv4 inside IPv6", "https://[::ffff:127.0.0.1]" + insidePort, "", true},
		{"nobody's address", "https://0.0.0.0" + insidePort, "", false},
		{"a short spelling", "https://127.1" + insidePort, "", false},
		{"a redirect", outside.URL, inside.URL, true},
		{"a redirect with a path", outside.URL, inside.URL + "/a/b", true},
	} {
		for _, public := range []bool{false, true} {
			w, claim := evidenceWorld(t, tc.url)
			w.roots, to = pool, tc.to
			w.special = reach(outside)
			if public {
				w.special = reach(outside, inside)
			}
			before := inside.asked.Load()
			outcome, err := w.Evidence(context.Background(), claim)
			asked := inside.asked.Load() - before
			switch {
			case !public && (err == nil || asked != 0 || w.kept() != ""):
				t.Errorf("%s: %s %v, asked %d times, kept %q", tc.name, outcome, err, asked, w.kept())
			case public && tc.control && (err != nil || outcome != Stored || w.kept() != goodEvidence):
				t.Errorf("%s, public: %s %v %q", tc.name, outcome, err, w.kept())
			}
		}
	}
	// Without the test's own view of addresses everything on this machine is refused.
	w, claim := evidenceWorld(t, outside.URL)
	w.roots = pool
	if _, err := w.Evidence(context.Background(), claim); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error(err)
	}
}

func TestSpecialAddress(t *testing.T) {
	for address, want := range map[string]string{"10.1.2.3:443": "private", "169.254.169.254:443": "link-local", "[fe80::1%eth0]:443": "link-local", "[fd00::1]:443": "unique local", "127.0.0.1:443": "loopback",
		"[::1]:443": "loopback", "100.64.0.1:443": "shared", "8.8.8.8:443": "", "[2606:4700::1]:443": "", "nonsense": "malformed"} {
		if got := specialAddress(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// TestHostileEvidence: what answers badly leaves what was there as it was.
func TestHostileEvidence(t *testing.T) {
	pool := x509.NewCertPool()
	other := serveTLS(t, pool, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, goodEvidence) })
	plain := httptest.NewServer(other.Config.Handler)
	t.Cleanup(plain.Close)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		url    string // instead of the server's
		code   string
		stored bool
	}{
		{name: "good", answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, goodEvidence) }, stored: true},
		{name: "not there", answer: http.NotFound},
		{name: "an outage", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, code: errcode.RegistryUnavailable},
		{name: "a page", answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in</html>") }, code: errcode.RegistryAnswer},
		{name: "too long, and says so", answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1048577") }, code: errcode.RegistryAnswer},
		{name: "too long", answer: func(w http.ResponseWriter, _ *http.Request) {
			for range 1025 {
				if _, err := w.Write(bytes.Repeat([]byte("a"), 1024)); err != nil {
					return
				}
			}
		}, code: errcode.RegistryAnswer},
		{name: "encoded", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, goodEvidence)
		}, code: errcode.RegistryAnswer},
		{name: "silence", answer: func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}, code: errcode.RegistryUnavailable},
		{name: "breaks off", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, goodEvidence[:10])
		}, code: errcode.RegistryUnavailable},
		{name: "not modified", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, code: errcode.RegistryAnswer},
		{name: "leads to http", answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) }, code: errcode.RegistryAnswer},
		{name: "leads to another host", answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, stored: true},
		{name: "leads round in circles", answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }, code: errcode.RegistryAnswer},
		{name: "http", url: plain.URL, code: errcode.RegistryAnswer},
		{name: "a file", url: "file:///etc/passwd", code: errcode.RegistryAnswer},
		{name: "with a password", url: strings.Replace(other.URL, "https://", "https://user:word@", 1), code: errcode.RegistryAnswer},
		{name: "no host", url: "https:///etc/passwd", code: errcode.RegistryAnswer},
	} {
		if tc.answer == nil {
			tc.answer = http.NotFound
		}
		server := serveTLS(t, pool, tc.answer)
		for _, had := range []string{"", "unknown", goodEvidence} {
			url := tc.url
			if url == "" {
				url = server.URL + "/x.bundle"
			}
			w, claim := evidenceWorld(t, url)
			w.roots, w.special = pool, func(string) string { return "" }
			if tc.name == "silence" {
				w.Patience = 50 * time.Millisecond
			}
			if had != "" {
				if err := shims.WriteFile(filepath.Join(w.Dirs.Data, "shims", "sha256", hexA+".tool.bundle"), []byte(had)); err != nil {
					t.Fatal(err)
				}
			}
			outcome, err := w.Evidence(context.Background(), claim)
			var e *Error
			errors.As(err, &e)
			want := had
			if tc.stored {
				want = goodEvidence
			}
			if (e == nil) != (tc.code == "") || e != nil && e.Code != tc.code || w.kept() != want {
				t.Errorf("%s, %q before: %s %v, kept %q", tc.name, had, outcome, err, w.kept())
			}
		}
	}
}

// TestWorseEvidenceIsNotKept: evidence of a lower standing replaces nothing that was proven.
func TestWorseEvidenceIsNotKept(t *testing.T) {
	pool := x509.NewCertPool()
	server := serveTLS(t, pool, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "unknown") })
	for had, want := range map[string]string{"": "unknown", goodEvidence: goodEvidence} {
		w, claim := evidenceWorld(t, server.URL)
		w.roots, w.special = pool, func(string) string { return "" }
		if had != "" {
			if err := shims.WriteFile(filepath.Join(w.Dirs.Data, "shims", "sha256", hexA+".tool.bundle"), []byte(had)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Evidence(context.Background(), claim); w.kept() != want || (err == nil) != (had == "") {
			t.Errorf("%q before: %v, kept %q", had, err, w.kept())
		}
	}
}

// TestEvidenceReplacesOnlyItsFile: a link or a FIFO in the place of the file leads nowhere.
func TestEvidenceReplacesOnlyItsFile(t *testing.T) {
	pool := x509.NewCertPool()
	server := serveTLS(t, pool, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, goodEvidence) })
	for name, plant := range map[string]func(at, victim string) error{
		"a link":      func(at, victim string) error { return os.Symlink(victim, at) },
		"a hard link": func(at, victim string) error { return os.Link(victim, at) },
		"a FIFO":      func(at, _ string) error { return syscall.Mkfifo(at, 0o600) },
	} {
		w, claim := evidenceWorld(t, server.URL)
		w.roots, w.special = pool, func(string) string { return "" }
		victim, at := filepath.Join(t.TempDir(), "victim"), filepath.Join(w.Dirs.Data, "shims", "sha256", hexA+".tool.bundle")
		if err := os.WriteFile(victim, []byte("unknown"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := plant(at, victim); err != nil {
			t.Fatal(err)
		}
		_, err := w.Evidence(context.Background(), claim)
		raw, _ := os.ReadFile(victim)
		if string(raw) != "unknown" {
			t.Errorf("%s: the file that it led to was written: %v", name, err)
		}
		if info, failed := os.Lstat(at); err == nil && (failed != nil || !info.Mode().IsRegular() || w.kept() != goodEvidence) {
			t.Errorf("%s: %v", name, failed)
		}
	}
}

// TestEvidenceOfARegistry: below its own address a registry is asked as for its documents; what names an
// address on this machine that is nobody's registry, or another one, is refused.
func TestEvidenceOfARegistry(t *testing.T) {
	statement := goodEvidence
	serveOne := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/prov/x.jsonl" {
			fmt.Fprint(w, statement)
			return
		}
		http.NotFound(w, r)
	}
	s, foreign := serve(t, serveOne), serve(t, serveOne)
	for _, tc := range []struct {
		name, url string
		stored    bool
	}{
		{"its own", s.URL + "/base/prov/x.jsonl", true},
		{"another registry's", foreign.URL + "/base/prov/x.jsonl", false},
		{"beside its own", s.URL + "/other/x.jsonl", false},
		{"its own as a prefix", s.URL + "/base2/x.jsonl", false},
	} {
		w := newWorld(t, Registry{URL: s.URL + "/base"}, Registry{URL: foreign.URL + "/base"})
		w.Verify = proves
		path := w.Dirs.ShimPath(hexA)
		text := strings.Replace(shim(hexA, "1"), `"verified":true`, `"verified":true,"provenance":{"url":"`+tc.url+`"}`, 1)
		if err := shims.Store(path, []byte(text), nil, shims.Meta{Registry: w.Config.Registries[0].URL, FetchedAt: w.now}); err != nil {
			t.Fatal(err)
		}
		claims, err := w.Claims()
		if err != nil || len(claims) != 1 || claims[0].Ending != ".tool.intoto.jsonl" {
			t.Fatalf("%v %+v", err, claims)
		}
		outcome, err := w.Evidence(context.Background(), claims[0])
		raw, _ := os.ReadFile(strings.TrimSuffix(path, ".json") + ".tool.intoto.jsonl")
		if tc.stored != (err == nil && outcome == Stored && string(raw) == statement) || !tc.stored && len(raw) > 0 {
			t.Errorf("%s: %s %v %q", tc.name, outcome, err, raw)
		}
	}
	if foreign.count() != 0 {
		t.Error("another registry was asked")
	}
}
