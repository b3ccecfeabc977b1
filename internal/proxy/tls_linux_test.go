package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestTLS: port 443 must begin with a handshake for the host that was asked for.
func TestTLS(t *testing.T) {
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello "+r.Host) }))
	defer origin.Close()
	config := Config{Allow: []string{"api.example", "8.8.4.4"}}
	for _, tc := range []struct{ host, sni, reason string }{
		{"api.example", "api.example", ""}, {"api.example", "API.EXAMPLE", ""}, {"8.8.4.4", "", ""},
		{"api.example", "evil.example", "sni"}, {"api.example", "", "sni"}, {"8.8.4.4", "api.example", "sni"},
	} {
		b := newBench(t, config, names)
		b.origin[443] = origin.Listener.Addr().String()
		proxy, _ := url.Parse("http://" + b.http)
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: tc.sni}}}
		if tc.sni == "" {
			// crypto/tls sends no name for an address.
			client.Transport.(*http.Transport).TLSClientConfig.ServerName = "192.0.2.1"
		}
		began := time.Now()
		resp, err := client.Get("https://" + tc.host + "/")
		if (err == nil) != (tc.reason == "") {
			t.Errorf("%+v: %v", tc, err)
		}
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "hello "+tc.host {
				t.Errorf("%+v: %q", tc, body)
			}
		} else if !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%+v: the client is told %v", tc, err)
		}
		client.CloseIdleConnections()
		if tc.reason != "" && time.Since(began) > 30*time.Second {
			t.Errorf("%+v took %v", tc, time.Since(began))
		}
		if e := b.last(t); e.Reason != tc.reason {
			t.Errorf("%+v: %+v", tc, e)
		}
	}
	// What is no handshake at all.
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n", "SSH-2.0-x\r\n", "\x80\x2e\x01\x03\x01", "\x16\x03\x01\x00\x00", "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00"} {
		b := newBench(t, config, names)
		seen := echoOrigin(t)
		b.origin[443] = seen
		out := say(t, b.http, "CONNECT api.example:443 HTTP/1.1\r\n\r\n"+text)
		if e := b.last(t); e.Reason != "sni" || strings.Contains(out, "got") && !strings.HasSuffix(out, "got ") {
			t.Errorf("%q: %+v %q", text, e, out)
		}
	}
	b := newBench(t, Config{Allow: []string{"api.example:443"}}, names)
	if out := say(t, b.http, "GET http://api.example:443/ HTTP/1.1\r\nHost: api.example:443\r\n\r\n"); !strings.Contains(out, "X-Atip-Denied: sni") || len(b.dials()) != 0 {
		t.Errorf("plain text to port 443: %q", out)
	}
}
