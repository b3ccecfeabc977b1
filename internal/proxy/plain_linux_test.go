package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPlainHTTP: each request names its host, is alone on its connection and has one end.
func TestPlainHTTP(t *testing.T) {
	config := Config{Allow: []string{"api.example:80", "api.example:8080"}}
	for name, tc := range map[string]struct {
		say    string
		tunnel bool
		want   string // what the origin gets; "" for nothing
		reason string
	}{
		"get":              {"GET http://api.example/a?b HTTP/1.1\r\nHost: api.example\r\nX: y\r\n\r\n", false, "GET /a?b HTTP/1.1\r\nHost: api.example\r\nx: y\r\nConnection: close\r\n\r\n", ""},
		"other port":       {"GET http://api.example:8080/ HTTP/1.1\r\nHost: api.example:8080\r\n\r\n", false, "GET / HTTP/1.1\r\nHost: api.example:8080\r\nConnection: close\r\n\r\n", ""},
		"no path":          {"GET http://API.example?q HTTP/1.1\r\nHost: Api.Example:80\r\n\r\n", false, "GET /?q HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n", ""},
		"old version":      {"GET http://api.example/ HTTP/1.0\r\n\r\n", false, "GET / HTTP/1.0\r\nHost: api.example\r\nConnection: close\r\n\r\n", ""},
		"hop fields":       {"GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nProxy-Authorization: Basic x\r\nConnection: keep-alive, Foo\r\nFoo: 1\r\nUpgrade: h2c\r\nTE: x\r\n\r\n", false, "GET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n", ""},
		"body":             {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nContent-Length: 3\r\n\r\nabcGET http://api.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", false, "POST / HTTP/1.1\r\nHost: api.example\r\ncontent-length: 3\r\nConnection: close\r\n\r\nabc", ""},
		"chunks":           {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", false, "POST / HTTP/1.1\r\nHost: api.example\r\ntransfer-encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ""},
		"other host":       {"GET http://api.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", false, "", "malformed"},
		"other host port":  {"GET http://api.example/ HTTP/1.1\r\nHost: api.example:8080\r\n\r\n", false, "", "malformed"},
		"two hosts":        {"GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nHost: api.example\r\n\r\n", false, "", "malformed"},
		"two old hosts":    {"GET http://api.example/ HTTP/1.0\r\nHost: api.example\r\nHost: api.example\r\n\r\n", false, "", "malformed"},
		"no host":          {"GET http://api.example/ HTTP/1.1\r\n\r\n", false, "", "malformed"},
		"two lengths":      {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", false, "", "malformed"},
		"signed length":    {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nContent-Length: +3\r\n\r\nabc", false, "", "malformed"},
		"both lengths":     {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, "", "malformed"},
		"other encoding":   {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false, "", "malformed"},
		"folded line":      {"GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nX: a\r\n b\r\n\r\n", false, "", "malformed"},
		"blank before ':'": {"GET http://api.example/ HTTP/1.1\r\nHost : api.example\r\n\r\n", false, "", "malformed"},
		"bare LF":          {"GET http://api.example/ HTTP/1.1\nHost: api.example\n\n", false, "", "malformed"},
		"bare CR":          {"GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nX: a\rHost: evil.example\r\n\r\n", false, "", "malformed"},
		"NUL":              {"GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nX: \x00\r\n\r\n", false, "", "malformed"},
		"user":             {"GET http://api.example:80@evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", false, "", "malformed"},
		"backslash":        {"GET http://evil.example\\@api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n", false, "", "malformed"},
		"https":            {"GET https://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n", false, "", "malformed"},
		"no scheme":        {"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n", false, "", "malformed"},
		"drop length":      {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", false, "", "malformed"},
		"version 2":        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false, "", "malformed"},
		"two blanks":       {"GET  http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n", false, "", "malformed"},
		"not listed":       {"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", false, "", "not-listed"},
		"tunnel":           {"GET /a HTTP/1.1\r\nHost: api.example\r\n\r\n", true, "GET /a HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n", ""},
		"tunnel, other":    {"GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", true, "", "host"},
		"tunnel, URL":      {"GET http://evil.example/a HTTP/1.1\r\nHost: api.example\r\n\r\n", true, "", "host"},
		"tunnel, connect":  {"CONNECT evil.example:80 HTTP/1.1\r\nHost: api.example\r\n\r\n", true, "", "host"},
		"tunnel, not HTTP": {"\x16\x03\x01\x00\x00", true, "", "host"},
		"tunnel, second":   {"GET /a HTTP/1.1\r\nHost: api.example\r\n\r\nGET /b HTTP/1.1\r\nHost: evil.example\r\n\r\n", true, "GET /a HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n", ""},
		"chunk too large":  {"POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", false, "POST / HTTP/1.1\r\nHost: api.example\r\ntransfer-encoding: chunked\r\nConnection: close\r\n\r\n", "body"},
		"head too long":    {"GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", false, "", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, config, names)
			got := make(chan string, 4)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					// Reads until the proxy stops sending, then answers.
					first := make([]byte, 4096)
					_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
					n, _ := c.Read(first)
					rest := []byte{}
					if more := len(tc.want) - n; n > 0 && more > 0 {
						_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
						rest = make([]byte, more)
						got, _ := io.ReadFull(c, rest)
						rest = rest[:got]
					}
					_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
					beyond, _ := io.ReadAll(c)
					rest = append(rest, beyond...)
					if n+len(rest) > 0 { // a tunnel that was refused was open, and said nothing
						got <- string(first[:n]) + string(rest)
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					c.Close()
				}
			}()
			b.origin[80], b.origin[8080] = l.Addr().String(), l.Addr().String()
			text := tc.say
			if tc.tunnel {
				text = "CONNECT api.example:80 HTTP/1.1\r\n\r\n" + text
			}
			out := say(t, b.http, text)
			b.server.Close()
			e := b.last(t)
			if e.Reason != tc.reason {
				t.Errorf("%+v, want reason %q", e, tc.reason)
			}
			seen := ""
			if tc.want != "" || len(got) > 0 {
				select {
				case seen = <-got:
				case <-time.After(30 * time.Second):
				}
			}
			if seen != tc.want {
				t.Errorf("the server got\n%q, want\n%q", seen, tc.want)
			}
			if len(got) > 0 {
				t.Errorf("a second connection: %q", <-got)
			}
			if tc.reason == "" && !strings.Contains(tc.say, "evil") && !strings.HasSuffix(out, "\r\n\r\nok") {
				t.Errorf("the client got %q", out)
			}
		})
	}
}

// TestKeepAliveEnds: a client that goes on with the same connection finds it closed and
// opens another, as every client does.
func TestKeepAliveEnds(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Host, " ", len(body))
	}))
	defer origin.Close()
	b := newBench(t, Config{Allow: []string{"api.example:80"}}, names)
	b.origin[80] = origin.Listener.Addr().String()
	proxy, _ := url.Parse("http://" + b.http)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for i := range 5 {
		resp, err := client.Post("http://api.example/", "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", i*50000))))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := fmt.Sprint("api.example ", i*50000); string(body) != want {
			t.Errorf("%q, want %q", body, want)
		}
	}
	if r := b.server.report(); r.Requests != 5 || r.Denied != 0 {
		t.Errorf("%+v", r)
	}
}

// TestSecondRequest: where the server keeps the connection open although it was asked not
// to, a client that goes on with it is not left waiting, and the server sees one request.
func TestSecondRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		_, _ = readHead(in)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		rest, _ := io.ReadAll(in)
		seen <- string(rest)
	}()
	b := newBench(t, Config{Allow: []string{"api.example:80"}}, names)
	b.origin[80] = l.Addr().String()
	c, err := net.Dial("tcp", b.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	const request = "GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n"
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	if _, err := readHead(in); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(in, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second request: %d bytes, %v", n, err)
	}
	b.server.Close()
	if rest := <-seen; rest != "" {
		t.Errorf("the server also got %q", rest)
	}
}
