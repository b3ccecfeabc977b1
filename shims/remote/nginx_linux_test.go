package remote

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/shims"
)

// nginx serves a folder on a port of its own until the test ends.
func nginx(t *testing.T, www, location string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // not in the PATH of a normal user
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("nginx is needed; scripts/test installs it: ", err)
	}
	// Another process may take a free port before nginx does.
	for range 5 {
		if url, ok := startNginx(t, program, www, location); ok {
			return url
		}
	}
	t.Fatal("nginx does not start")
	return ""
}

func startNginx(t *testing.T, program, www, location string) (url string, ok bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/errors;
events {}
http {
	types { application/json json; text/plain list; }
	access_log off; gzip on; gzip_min_length 1; gzip_types application/json; gzip_proxied any;
	client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
	server { listen %[2]s; root %[3]s; etag on; location / { %[4]s } }
}
`, dir, addr, www, location)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// Whatever becomes of this process, the server ends.
	cmd := exec.Command("timeout", "-k", "1", "120", program, "-p", dir, "-c", config, "-e", filepath.Join(dir, "errors"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); <-ended })
	for {
		select {
		case <-ended:
			raw, _ := os.ReadFile(filepath.Join(dir, "errors"))
			t.Logf("nginx ended: %s", raw)
			return "", false
		case <-time.After(10 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return "http://" + addr, true
		}
	}
}

// TestNginx fetches from a published folder behind a server that nobody here wrote.
func TestNginx(t *testing.T) {
	www := t.TempDir()
	other := strings.Repeat("cd", 32)
	publish := func(now time.Time, texts ...string) {
		t.Helper()
		var uploads []Upload
		for _, text := range texts {
			uploads = append(uploads, Upload{File: "x", Raw: []byte(text), Bundle: []byte("raw bundle")})
		}
		if _, err := Publish(www, uploads, PublishOptions{Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	publish(time.Now(), shim(hexA, "1"), shim(other, "2"))
	url := nginx(t, www, `expires 1h; if ($arg_x) { return 418; }`)
	w := newWorld(t, Registry{URL: url})
	path := w.Dirs.ShimPath(hexA)
	r, code := w.fetch()
	if code != "" || r.Outcome != Stored {
		miss, _ := shims.Missed(path, w.now)
		t.Fatalf("%+v %s %s", r, code, miss.Why)
	}
	raw, meta, ok := shims.Cached(path)
	if !ok || string(raw) != shim(hexA, "1") || !strings.Contains(meta.ETag, `"`) || meta.LastModified == "" {
		t.Errorf("%q %+v", raw, meta)
	}
	if left := meta.Expires.Sub(w.now); left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("Cache-Control: max-age=3600 is good for %s", left)
	}
	if bundle, _ := os.ReadFile(path + ".bundle"); string(bundle) != "raw bundle" {
		t.Errorf("%q", bundle)
	}
	// The server speaks gzip to whoever wants it; the answer to us is not encoded.
	req, _ := http.NewRequest(http.MethodGet, url+"/shims/sha256/"+hexA+".json", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := (&http.Transport{}).RoundTrip(req)
	if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the server compresses nothing: %v %v", res, err)
	} else {
		res.Body.Close()
	}
	// Its own validators renew, a corrected document replaces, one that is gone is missing.
	w.now = w.now.Add(2 * time.Hour)
	if r, code = w.fetch(); r.Outcome != Renewed || code != "" {
		t.Errorf("%+v %s", r, code)
	}
	fixed := strings.Replace(shim(hexA, "1"), `"network":true`, `"network":true,"destructive":true`, 1)
	publish(time.Now().Add(time.Minute), fixed)
	w.now = w.now.Add(2 * time.Hour)
	if r, code = w.fetch(); r.Outcome != Stored || code != "" {
		t.Errorf("%+v %s", r, code)
	}
	if raw, _ := os.ReadFile(path); string(raw) != fixed {
		t.Errorf("%q", raw)
	}
	if err := os.Remove(filepath.Join(www, "shims", "sha256", hexA+".json")); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * time.Hour)
	if r, code = w.fetch(); r.Outcome != Stale || code != "" {
		t.Errorf("%+v %s", r, code)
	}
	offered, err := w.Catalog(t.Context())
	if err != nil || len(offered) != 1 {
		t.Errorf("%+v %v", offered, err)
	}
	if ahead, err := w.Prefetch(t.Context(), "x"); err != nil || ahead[other].Outcome != Stored {
		t.Errorf("%+v %v", ahead, err)
	}

	// With a token, and with a redirect where one is not followed.
	closed := nginx(t, www, `if ($http_authorization != "Bearer right") { return 401; }`)
	w = newWorld(t, Registry{URL: closed, TokenEnvVar: "T"})
	token := "wrong"
	w.Getenv = func(string) string { return token }
	if r, code = w.fetch(); code != "E4202" {
		t.Errorf("%+v %s", r, code)
	}
	publish(time.Now(), fixed)
	token, w.Refresh = "right", true
	if r, code = w.fetch(); r.Outcome != Stored || code != "" {
		t.Errorf("%+v %s", r, code)
	}
	moved := nginx(t, www, `return 302 `+url+`$request_uri;`)
	w = newWorld(t, Registry{URL: moved})
	if r, code = w.fetch(); code != "E4204" {
		t.Errorf("a redirect to another port: %+v %s", r, code)
	}
	// An error page with status 200 is HTML, and a directory is no document.
	html := nginx(t, www, `error_page 404 =200 /404.html;`)
	w = newWorld(t, Registry{URL: html})
	if err := os.WriteFile(filepath.Join(www, "404.html"), []byte("<html>nothing here</html>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, code = w.fetch(); code != "E4204" {
		t.Errorf("%+v %s", r, code)
	}
}
