package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/shims"
)

var hexA = strings.Repeat("ab", 32)

func shim(hex, version string) string {
	return ` {"atip":{"version":"0.6"},"binary":{"hash":"sha256:` + hex + `","name":"x","version":"` + version + `","platform":"linux-amd64"},"trust":{"source":"community","verified":true},"description":"d","effects":{"network":true}}` + "\n"
}

// server counts what it is asked for.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	auth  []string
}

func serve(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.Path)
		s.auth = append(s.auth, r.Header.Get("Authorization"))
		s.mu.Unlock()
		if r.URL.Path == manifestPath && r.Header.Get("X-Test") == "" {
			if h2, ok := manifests.Load(s.URL); ok {
				fmt.Fprint(w, h2)
				return
			}
			http.NotFound(w, r)
			return
		}
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// manifests holds the manifest of a server by its address.
var manifests sync.Map

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// static serves the shim of hexA with an ETag.
func static(text, etag, cacheControl string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/shims/sha256/"+hexA+".json" {
			http.NotFound(w, r)
			return
		}
		if cacheControl != "" {
			w.Header().Set("Cache-Control", cacheControl)
		}
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, text)
	}
}

type world struct {
	*Client
	now time.Time
	t   *testing.T
}

func newWorld(t *testing.T, registries ...Registry) *world {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agent-tools")
	for i := range registries {
		url := registries[i].URL
		if why := registries[i].setURL(url); why != "" {
			t.Fatal(why)
		}
	}
	w := &world{Client: New(Config{Registries: registries}, shims.Dirs{Data: dir}, func(string) string { return "" }), now: time.Now(), t: t}
	w.Now = func() time.Time { return w.now }
	t.Cleanup(w.Close)
	return w
}

// fetch asks once; code is that of the error.
func (w *world) fetch() (Result, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := w.Fetch(ctx, hexA)
	var e *Error
	if err != nil && !errors.As(err, &e) {
		w.t.Fatalf("an error without a code: %v", err)
	}
	if e != nil {
		return r, e.Code
	}
	return r, ""
}

func TestFetchStoresWhatWasServed(t *testing.T) {
	text := shim(hexA, "1")
	s := serve(t, static(text, `"1"`, "max-age=31536000, immutable"))
	w := newWorld(t, Registry{URL: s.URL})
	r, code := w.fetch()
	if code != "" || r.Outcome != Stored {
		t.Fatalf("%+v %s", r, code)
	}
	if raw, err := os.ReadFile(w.Dirs.ShimPath(hexA)); err != nil || string(raw) != text {
		t.Errorf("other bytes than those that were served: %q %v", raw, err)
	}
	found, err := shims.Lookup(shims.Query{Digest: hexA, Effective: "x"}, w.Dirs)
	if err != nil || found.Document == nil || found.Provenance.Rank.String() != "user" {
		t.Errorf("an unsigned document is the user's, whatever it claims: %+v %v", found.Provenance, err)
	}
	before := s.count()
	if r, _ := w.fetch(); r.Outcome != Fresh || s.count() != before {
		t.Errorf("%+v after %d requests", r, s.count()-before)
	}
	w.now = w.now.Add(8 * 24 * time.Hour)
	if r, _ := w.fetch(); r.Outcome != Renewed {
		t.Errorf("max-age of a year lives longer than 7 days: %+v", r)
	}
	w.now = w.now.Add(8 * 24 * time.Hour)
	if err := os.WriteFile(w.Dirs.ShimPath(hexA), []byte(text+" "), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, _ := w.fetch(); r.Outcome != Stored {
		t.Errorf("304 for damaged bytes: %+v", r)
	}
	if raw, _ := os.ReadFile(w.Dirs.ShimPath(hexA)); string(raw) != text {
		t.Error("damaged bytes stayed")
	}
}

func TestNegativeCacheAndOffline(t *testing.T) {
	s := serve(t, http.NotFound)
	w := newWorld(t, Registry{URL: s.URL})
	if r, code := w.fetch(); r.Outcome != Missing || code != "" {
		t.Fatalf("%+v %s", r, code)
	}
	before := s.count()
	if r, _ := w.fetch(); r.Outcome != Missing || s.count() != before {
		t.Errorf("%+v, %d requests", r, s.count()-before)
	}
	w.now = w.now.Add(25 * time.Hour)
	if w.fetch(); s.count() == before {
		t.Error("a negative answer of yesterday is still believed")
	}

	good := serve(t, static(shim(hexA, "1"), `"1"`, ""))
	w = newWorld(t, Registry{URL: good.URL})
	w.Config.Offline = true
	if _, code := w.fetch(); code != "E4203" || good.count() != 0 {
		t.Errorf("offline: %s, %d requests", code, good.count())
	}
	w.Config.Offline = false
	w.fetch()
	w.Config.Offline, w.now = true, w.now.Add(48*time.Hour)
	before = good.count()
	if r, code := w.fetch(); r.Outcome != Stale || code != "" || good.count() != before {
		t.Errorf("%+v %s", r, code)
	}
}

func TestPriority(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	bad := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, shim(strings.Repeat("cd", 32), "1")) }
	for _, c := range []struct {
		name  string
		first http.HandlerFunc
		code  string
		next  bool
	}{
		{"404", http.NotFound, "", true},
		{"410", status(410), "", true},
		{"401", status(401), "E4202", false},
		{"403", status(403), "E4202", false},
		{"429", status(429), "E4202", false},
		{"500", status(500), "E4202", false},
		{"another file's document", bad, "E4204", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := serve(t, c.first), serve(t, static(shim(hexA, "1"), `"1"`, ""))
			w := newWorld(t, Registry{URL: first.URL}, Registry{URL: second.URL})
			r, code := w.fetch()
			if code != c.code || (second.count() > 0) != c.next || c.next && r.Registry != second.URL {
				t.Errorf("%+v %s, the next was asked %d times", r, code, second.count())
			}
			if !c.next {
				if _, _, ok := shims.Cached(w.Dirs.ShimPath(hexA)); ok {
					t.Error("something was stored")
				}
			}
		})
	}
}

func TestNewRegistryBeforeTheOldIsAsked(t *testing.T) {
	old := serve(t, static(shim(hexA, "1"), `"1"`, ""))
	w := newWorld(t, Registry{URL: old.URL})
	w.fetch()
	fresh := serve(t, static(shim(hexA, "1"), `"2"`, ""))
	first := Registry{URL: fresh.URL}
	first.setURL(fresh.URL)
	w.Config.Registries = append([]Registry{first}, w.Config.Registries...)
	if r, _ := w.fetch(); r.Outcome != Stored || r.Registry != fresh.URL {
		t.Errorf("%+v", r)
	}
	if r, _ := w.fetch(); r.Outcome != Fresh {
		t.Errorf("%+v", r)
	}
}

func TestHostileRegistry(t *testing.T) {
	elsewhere := serve(t, static(shim(hexA, "1"), `"1"`, ""))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 8<<20))
	z.Close()
	stop := make(chan struct{})
	defer close(stop)
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		code string
	}{
		{"HTML with 200", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>not found</html>") }, "E4204"},
		{"no hash", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"atip":"0.6","name":"x","version":"1","description":"d"}`)
		}, "E4204"},
		{"duplicate keys", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Replace(shim(hexA, "1"), `"network":true`, `"network":true,"Network":false`, 1))
		}, "E4204"},
		{"endless body", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, "E4204"},
		{"announced 100 MB", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100000000") }, "E4204"},
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, "E4204"},
		{"304 without a question", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "E4204"},
		{"redirect elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
		}, "E4204"},
		{"redirect to a file", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
		}, "E4204"},
		{"redirect without end", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "E4204"},
		{"drip", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			for {
				if _, err := w.Write([]byte(" ")); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}, "E4202"},
		{"silence", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		}, "E4202"},
		{"huge headers", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-A", strings.Repeat("a", 200<<10)) }, "E4202"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.h)
			w := newWorld(t, Registry{URL: s.URL})
			w.Patience = time.Minute // each is answered at once
			if c.code == "E4202" {
				w.Patience = 300 * time.Millisecond
			}
			r, err := w.Fetch(t.Context(), hexA)
			var e *Error
			if !errors.As(err, &e) || e.Code != c.code {
				t.Errorf("%+v %v, want %s", r, err, c.code)
			}
			if _, err := os.Stat(w.Dirs.ShimPath(hexA)); err == nil {
				t.Error("something was stored")
			}
		})
	}
	if elsewhere.count() != 0 {
		t.Error("a redirect was followed to another host")
	}
}

func TestBearerTokenStaysHome(t *testing.T) {
	secret := strings.Repeat("t", 20)
	var s *server
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			static(shim(hexA, "1"), `"1"`, "")(w, r)
			return
		}
		http.Redirect(w, r, s.URL+"/moved", http.StatusFound)
	})
	w := newWorld(t, Registry{URL: s.URL, TokenEnvVar: "REGISTRY_TOKEN"})
	if _, code := w.fetch(); code != "E4202" || s.count() != 0 {
		t.Errorf("%s: asked without the token that is configured", code)
	}
	w.Getenv = func(name string) string { return map[string]string{"REGISTRY_TOKEN": secret}[name] }
	w.Refresh = true
	_, err := w.Fetch(context.Background(), hexA)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
	for i, path := range s.asked {
		if path == "/moved" || s.auth[i] != "Bearer "+secret {
			t.Errorf("%s with %q", path, s.auth[i])
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	open := Registry{URL: s.URL, TokenFile: file}
	if _, err := open.token(w.Getenv); err == nil {
		t.Error("a token that everybody can read")
	}
	os.Chmod(file, 0o600)
	if got, err := open.token(w.Getenv); err != nil || got != secret {
		t.Errorf("%q %v", got, err)
	}
	env := Registry{URL: s.URL, TokenEnvVar: "REGISTRY_TOKEN", FromEnv: true}
	if got, _ := env.token(w.Getenv); got != "" {
		t.Error("a registry of the environment gets a token")
	}
}

func TestSignaturesAreRequired(t *testing.T) {
	for _, c := range []struct {
		name     string
		local    bool
		manifest string
		ok       bool
	}{
		{"nobody asks", false, `{"trust":{"requireSignatures":false}}`, true},
		{"we do, the manifest does not", true, `{"trust":{"requireSignatures":false}}`, false},
		{"the manifest does, we do not", false, `{"trust":{"requireSignatures":true}}`, false},
		{"unreadable wish", false, `{"trust":{"requireSignatures":"no"}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".bundle") {
					fmt.Fprint(w, "raw bundle")
					return
				}
				static(shim(hexA, "1"), `"1"`, "")(w, r)
			})
			manifests.Store(s.URL, c.manifest)
			behind := serve(t, static(shim(hexA, "1"), `"1"`, ""))
			w := newWorld(t, Registry{URL: s.URL, RequireSignatures: c.local}, Registry{URL: behind.URL})
			r, code := w.fetch()
			if c.ok != (r.Outcome == Stored && code == "") || !c.ok && code != "E4204" {
				t.Errorf("%+v %s", r, code)
			}
			if n := behind.count(); n != 0 {
				t.Errorf("the registry behind it was asked %d times", n)
			}
			bundle, err := os.ReadFile(w.Dirs.ShimPath(hexA) + ".bundle")
			if c.ok != (string(bundle) == "raw bundle") {
				t.Errorf("bundle %q %v", bundle, err)
			}
		})
	}
}

func TestRenewalMayNotChangeTheBinary(t *testing.T) {
	text, etag := shim(hexA, "1"), `"1"`
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { static(text, etag, "")(w, r) })
	w := newWorld(t, Registry{URL: s.URL})
	w.fetch()
	text, etag, w.Refresh = strings.Replace(shim(hexA, "1"), `"network":true`, `"network":true,"destructive":true`, 1), `"2"`, true
	if r, code := w.fetch(); r.Outcome != Stored || code != "" {
		t.Errorf("a correction is refused: %+v %s", r, code)
	}
	text, etag = shim(hexA, "2"), `"3"`
	if _, code := w.fetch(); code != "E4204" {
		t.Errorf("another version for the same file: %s", code)
	}
	text = shim(hexA, "1")
	if raw, _ := os.ReadFile(w.Dirs.ShimPath(hexA)); !strings.Contains(string(raw), "destructive") {
		t.Error("the refused document replaced the good one")
	}
}

func TestDigestNeverBecomesAPath(t *testing.T) {
	s := serve(t, http.NotFound)
	w := newWorld(t, Registry{URL: s.URL})
	for _, bad := range []string{"", "../../etc/passwd", hexA[:63], hexA + "0", "sha512:" + hexA, strings.Repeat("zz", 32), emptyFile, strings.Repeat("..", 32)} {
		if _, err := w.Fetch(context.Background(), bad); err == nil || s.count() > 0 {
			t.Errorf("%q was asked for", bad)
		}
	}
	if hex, ok := Digest("SHA256:" + strings.ToUpper(hexA)); !ok || hex != hexA {
		t.Errorf("%q", hex)
	}
}

func TestSync(t *testing.T) {
	version := `"1"`
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/policy.json" {
			fmt.Fprint(w, `{"policy":{"version":"1","execution":{"requireConfirmation":{"destructive":true}}}}`)
			return
		}
		static(shim(hexA, "1"), version, "")(w, r)
	})
	gone := serve(t, http.NotFound)
	w := newWorld(t, Registry{URL: s.URL}, Registry{URL: gone.URL})
	w.fetch()
	other := strings.Repeat("cd", 32)
	if err := shims.Store(w.Dirs.ShimPath(other), []byte(shim(other, "1")), nil, shims.Meta{Registry: "https://removed.invalid"}); err != nil {
		t.Fatal(err)
	}
	mine := strings.Repeat("ef", 32)
	if err := os.WriteFile(w.Dirs.ShimPath(mine), []byte(shim(mine, "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := map[string]Synced{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.Sync(ctx, func(s Synced) { steps[s.What] = s }); err != nil {
		t.Fatal(err)
	}
	if steps["shim"].Outcome != Renewed || steps["policy"].Outcome != Stored || steps["dropped"].Digest != other || len(steps) != 3 {
		t.Errorf("%+v", steps)
	}
	if _, err := os.Stat(w.Dirs.ShimPath(other)); err == nil {
		t.Error("a document of a removed registry stayed")
	}
	if _, err := os.Stat(w.Dirs.ShimPath(mine)); err != nil {
		t.Error("a document that a person wrote is gone")
	}
	if raw, err := os.ReadFile(w.registryFile(&w.Config.Registries[0], "policy.json")); err != nil || !strings.Contains(string(raw), "requireConfirmation") {
		t.Errorf("%q %v", raw, err)
	}
	w.Config.Offline = true
	var e *Error
	if err := w.Sync(ctx, func(Synced) {}); !errors.As(err, &e) || e.Code != "E4203" {
		t.Errorf("%v", err)
	}
}

func TestLifetime(t *testing.T) {
	for _, c := range []struct {
		header string
		expiry time.Duration
		want   time.Duration
	}{
		{"", 0, 24 * time.Hour},
		{"", 12 * time.Hour, 12 * time.Hour},
		{"", 30 * 24 * time.Hour, longest},
		{"max-age=60", 0, time.Minute},
		{"max-age=60", time.Second, time.Second},
		{"public, Max-Age=31536000, immutable", 0, longest},
		{"no-store, max-age=60", 0, 0},
		{"max-age=-5", 0, 24 * time.Hour},
		{"max-age=99999999999999", 0, 24 * time.Hour},
	} {
		h := http.Header{}
		if c.header != "" {
			h.Set("Cache-Control", c.header)
		}
		if got := lifetime(h, &Registry{CacheExpiry: c.expiry}); got != c.want {
			t.Errorf("%q and %s: %s, want %s", c.header, c.expiry, got, c.want)
		}
	}
}

// late answers when the deadline of the request has passed: with the headers, or with the end of the body.
type late struct {
	status int
	body   bool // what comes late is the end of the body
}

func (l late) RoundTrip(req *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: l.status, Header: http.Header{}, Body: http.NoBody, Request: req}
	if l.body {
		res.Body = lateEnd{req.Context()}
		return res, nil
	}
	<-req.Context().Done()
	return res, nil
}

type lateEnd struct{ context.Context }

func (l lateEnd) Read([]byte) (int, error) { <-l.Done(); return 0, io.EOF }
func (lateEnd) Close() error               { return nil }

// TestLateAnswer: an answer that comes when the time is over is none, whatever it says: a server that
// hears of the end may answer at that moment, and net/http may hand that on.
func TestLateAnswer(t *testing.T) {
	for _, l := range []late{{200, false}, {304, false}, {404, false}, {503, false}, {200, true}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://registry.invalid/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("If-None-Match", `"1"`)
		got, err := (&Registry{URL: "https://registry.invalid"}).take(&http.Client{Transport: l}, req, 100)
		var e *Error
		if !errors.As(err, &e) || e.Code != "E4202" || !strings.Contains(e.Error(), "no answer in time") || got.status != 0 {
			t.Errorf("%+v: %+v %v", l, got, err)
		}
		cancel()
	}
}
