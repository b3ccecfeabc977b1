package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// public stands for a host of the internet; connections to it end at a server of the test.
var public = ip.V4(8, 8, 4, 4)

// bench is a proxy whose way out leads to servers of the test.
type bench struct {
	server *Server
	http   string // addresses of the listeners
	socks  string

	mu     sync.Mutex
	looked []string
	dialed []string
	origin map[int]string // port asked for: address of the server
}

func newBench(t *testing.T, c Config, names map[string][]string) *bench {
	t.Helper()
	rules, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{server: New(rules), origin: map[int]string{}}
	b.server.own = func() ([]ip.Addr, error) { return []ip.Addr{ip.V4(8, 8, 8, 8)}, nil }
	b.server.lookup = func(_ context.Context, name string) ([]ip.Addr, error) {
		b.mu.Lock()
		b.looked = append(b.looked, name)
		b.mu.Unlock()
		list, ok := names[name]
		if !ok {
			return nil, errNoName
		}
		var out []ip.Addr
		for _, text := range list {
			a, ok := ip.Parse(text)
			if strings.HasPrefix(text, "raw ") { // as a name server would say it
				a, ok = ip.Addr(net.ParseIP(text[4:]).To16()), true
			}
			if !ok {
				t.Errorf("%q is no address", text)
			}
			out = append(out, a)
		}
		return out, nil
	}
	b.server.dial = func(ctx context.Context, a ip.Addr, port int) (stream, error) {
		b.mu.Lock()
		b.dialed = append(b.dialed, a.String()+" "+strconv.Itoa(port))
		to := b.origin[port]
		b.mu.Unlock()
		if to == "" {
			return nil, errServer
		}
		host, text, _ := net.SplitHostPort(to)
		real, _ := ip.Parse(host)
		n, _ := strconv.Atoi(text)
		return dialAddr(ctx, real, n)
	}
	for _, serve := range []struct {
		to *string
		f  func(l *net.TCPListener) error
	}{
		{&b.http, func(l *net.TCPListener) error { f, err := l.File(); b.server.ServeHTTP(f); return err }},
		{&b.socks, func(l *net.TCPListener) error { f, err := l.File(); b.server.ServeSOCKS(f); return err }},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := serve.f(l.(*net.TCPListener)); err != nil {
			t.Fatal(err)
		}
		*serve.to = l.Addr().String()
		l.Close()
	}
	t.Cleanup(func() { b.server.Close() })
	return b
}

func (b *bench) dials() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.dialed)
}

// last is the newest entry of the log.
func (b *bench) last(t *testing.T) Entry {
	t.Helper()
	r := b.server.report()
	if len(r.Log) == 0 {
		t.Fatal("nothing is logged")
	}
	return r.Log[len(r.Log)-1]
}

// say sends text to an address, closes that direction and returns the answer.
func say(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	out, _ := io.ReadAll(c)
	return string(out)
}

// echoOrigin answers each connection with what it got, once that has ended.
func echoOrigin(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				data, _ := io.ReadAll(c)
				_, _ = c.Write(append([]byte("got "), data...))
			}()
		}
	}()
	return l.Addr().String()
}

var names = map[string][]string{"api.example": {public.String()}, "evil.example": {public.String()}, "a.wild.example": {public.String()},
	"metadata.example": {"169.254.169.254"}, "both.example": {"10.0.0.1", public.String()}, "mapped.example": {"raw ::ffff:127.0.0.1"},
	"nat64.example": {"raw 64:ff9b::a00:1"}, "sixtofour.example": {"raw 2002:7f00:1::"}, "ula.example": {"fd00::1"}, "own.example": {"8.8.8.8"},
	"cgn.example": {"100.64.0.1"}, "corp.example": {"10.1.2.3"}, "meta2.example": {"169.254.169.254"}}

// TestHosts is what each spelling of a host comes to, through both protocols.
func TestHosts(t *testing.T) {
	config := Config{Allow: []string{"api.example", "api.example:5432", "*.wild.example:5432", "metadata.example:5432", "both.example:5432", "mapped.example:5432",
		"nat64.example:5432", "sixtofour.example:5432", "ula.example:5432", "own.example:5432", "cgn.example:5432", "corp.example:5432", "denied.wild.example:5432",
		"missing.example:5432", "8.8.4.4:5432", "127.0.0.1:2375", "127.0.0.1:2376", "11.1.1.1:5432", "11.1.1.1:5433", "9.9.9.9:5432", "10.9.9.9:5432", "[2001:4860::1]:5432", "meta2.example:5432"},
		Deny: []string{"denied.wild.example", "9.9.9.0/24", "loopback:2375", "11.0.0.0/8:5432", "named"}, Private: []string{"10.1.0.0/16", "169.254.0.0/16"}}
	for _, tc := range []struct {
		authority string
		reason    string // "" passes
		dialed    string
	}{
		{"api.example:5432", "", "8.8.4.4 5432"},
		{"API.Example:5432", "", "8.8.4.4 5432"},
		{"a.wild.example:5432", "", "8.8.4.4 5432"},
		{"both.example:5432", "", "8.8.4.4 5432"},
		{"corp.example:5432", "", "10.1.2.3 5432"},
		{"8.8.4.4:5432", "", "8.8.4.4 5432"},
		{"10.9.9.9:5432", "", "10.9.9.9 5432"}, // listed as it stands
		{"[2001:4860::1]:5432", "", "2001:4860::1 5432"},
		{"127.0.0.1:2375", "denied", ""},
		{"127.0.0.1:2376", "", "127.0.0.1 2376"},
		{"11.1.1.1:5432", "denied", ""},
		{"11.1.1.1:5433", "", "11.1.1.1 5433"},
		{"9.9.9.9:5432", "denied", ""},
		{"api.example:80", "not-listed", ""},
		{"api.example:5433", "not-listed", ""},
		{"evil.example:5432", "not-listed", ""},
		{"wild.example:5432", "not-listed", ""},
		{"xwild.example:5432", "not-listed", ""},
		{"denied.wild.example:5432", "denied", ""},
		{"missing.example:5432", "unresolved", ""},
		{"metadata.example:5432", "rebinding", ""},
		{"meta2.example:5432", "rebinding", ""}, // a range around it is not enough
		{"mapped.example:5432", "rebinding", ""},
		{"nat64.example:5432", "rebinding", ""},
		{"sixtofour.example:5432", "rebinding", ""},
		{"ula.example:5432", "rebinding", ""},
		{"own.example:5432", "rebinding", ""},
		{"cgn.example:5432", "rebinding", ""},
		{"api.example.:5432", "malformed", ""},
		{"api..example:5432", "malformed", ""},
		{".api.example:5432", "malformed", ""},
		{"api%00.example:5432", "malformed", ""},
		{"api\x00.example:5432", "malformed", ""},
		{"evil.example@api.example:5432", "malformed", ""},
		{"api.example@evil.example:5432", "malformed", ""},
		{"äpi.example:5432", "malformed", ""},
		{"xn--pi-uia.example:5432", "not-listed", ""},
		{"2130706433:5432", "malformed", ""},
		{"0x7f.1:5432", "malformed", ""},
		{"0x7f000001:5432", "malformed", ""},
		{"127.1:5432", "malformed", ""},
		{"0177.0.0.1:5432", "malformed", ""},
		{"127.0.0.1:5432", "not-listed", ""},
		{"008.8.4.4:5432", "malformed", ""},
		{"[::ffff:127.0.0.1]:5432", "malformed", ""},
		{"[::ffff:8.8.4.4]:5432", "malformed", ""},
		{"[64:ff9b::808:404]:5432", "malformed", ""},
		{"[2001:4860:0::1]:5432", "malformed", ""},
		{"[2001:4860::1%eth0]:5432", "malformed", ""},
		{"[::1]:5432", "not-listed", ""},
		{"[api.example]:5432", "malformed", ""},
		{"api.example:05432", "malformed", ""},
		{"api.example:+5432", "malformed", ""},
		{"api.example:65536", "malformed", ""},
		{"api.example:0", "malformed", ""},
		{"api.example:", "malformed", ""},
		{"api.example", "malformed", ""}, // CONNECT needs a port
		{strings.Repeat("a", 64) + ".example:5432", "malformed", ""},
		{strings.Repeat("a.", 127) + "example:5432", "malformed", ""},
	} {
		for _, via := range []string{"connect", "socks"} {
			host, port, _ := cutPort(tc.authority)
			if via == "socks" && (strings.HasPrefix(tc.authority, "[") || port == 0 || len(host) > 255) {
				continue // SOCKS has forms of its own for these
			}
			b := newBench(t, config, names)
			b.origin[5432] = echoOrigin(t)
			b.origin[2376], b.origin[5433] = b.origin[5432], b.origin[5432]
			var out string
			if via == "connect" {
				out = say(t, b.http, "CONNECT "+tc.authority+" HTTP/1.1\r\nHost: x\r\n\r\nhello")
			} else {
				out = say(t, b.socks, socksRequest(3, append([]byte{byte(len(host))}, host...), port)+"hello")
			}
			e := b.last(t)
			if e.Reason != tc.reason || (e.Decision == "allow") != (tc.reason == "" || tc.reason == "unresolved") || e.Via != via && !(via == "connect" && tc.reason == "malformed") {
				t.Errorf("%s %q: %+v, want reason %q", via, tc.authority, e, tc.reason)
			}
			if got := strings.Join(b.dials(), ","); got != tc.dialed {
				t.Errorf("%s %q: connected to %q, want %q", via, tc.authority, got, tc.dialed)
			}
			if passed := strings.HasSuffix(out, "got hello"); passed != (tc.reason == "") {
				t.Errorf("%s %q: %q", via, tc.authority, out)
			}
			if via == "connect" && tc.reason != "" && !strings.Contains(out, "X-Atip-Denied: "+tc.reason) {
				t.Errorf("%s %q: answer %q", via, tc.authority, out)
			}
			if via == "socks" && tc.reason == "not-listed" && out != "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00" {
				t.Errorf("%s %q: answer %q", via, tc.authority, out)
			}
		}
	}
}

func cutPort(s string) (string, int, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
	if err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != s[i+1:] {
		n = 0
	}
	return s[:i], n, true
}

// socksRequest is a greeting and a CONNECT.
func socksRequest(kind byte, host []byte, port int) string {
	return "\x05\x01\x00\x05\x01\x00" + string(kind) + string(host) + string([]byte{byte(port >> 8), byte(port)})
}

func TestSOCKS(t *testing.T) {
	config := Config{Allow: []string{"8.8.4.4:5432", "[2001:4860::1]:5432"}}
	six := []byte(net.ParseIP("2001:4860::1").To16())
	mapped := []byte(net.ParseIP("8.8.4.4").To16())
	for name, tc := range map[string]struct{ say, want, reason string }{
		"address":         {socksRequest(1, []byte{8, 8, 4, 4}, 5432), "\x05\x00\x05\x00", ""},
		"IPv6":            {socksRequest(4, six, 5432), "\x05\x00\x05\x00", ""},
		"other address":   {socksRequest(1, []byte{127, 0, 0, 1}, 5432), "\x05\x00\x05\x02", "not-listed"},
		"mapped address":  {socksRequest(4, mapped, 5432), "\x05\x00\x05\x02", "malformed"},
		"BIND":            {"\x05\x01\x00\x05\x02\x00\x01\x08\x08\x04\x04\x15\x38", "\x05\x00\x05\x07", "method"},
		"UDP":             {"\x05\x01\x00\x05\x03\x00\x01\x08\x08\x04\x04\x15\x38", "\x05\x00\x05\x07", "method"},
		"unknown type":    {"\x05\x01\x00\x05\x01\x00\x02\x08\x08\x04\x04\x15\x38", "\x05\x00\x05\x08", "malformed"},
		"no password":     {"\x05\x01\x02", "\x05\xff", "-"},
		"SOCKS4":          {"\x04\x01\x15\x38\x08\x08\x04\x04\x00", "\x05\xff", "-"},
		"empty name":      {socksRequest(3, []byte{0}, 5432), "\x05\x00\x05\x02", "malformed"},
		"name in braces":  {socksRequest(3, append([]byte{14}, "[2001:4860::1]"...), 5432), "\x05\x00\x05\x02", "malformed"},
		"no more of it":   {"\x05\x01\x00\x05\x01", "\x05\x00", "-"},
		"reserved is set": {"\x05\x01\x00\x05\x01\x01\x01\x08\x08\x04\x04\x15\x38", "\x05\x00", "-"},
		"port 0":          {socksRequest(1, []byte{8, 8, 4, 4}, 0), "\x05\x00\x05\x02", "malformed"},
	} {
		b := newBench(t, config, names)
		b.origin[5432] = echoOrigin(t)
		out := say(t, b.socks, tc.say)
		if !strings.HasPrefix(out, tc.want) || tc.want == out[:min(2, len(out))] && len(out) != 2 {
			t.Errorf("%s: %q, want %q", name, out, tc.want)
		}
		if tc.reason == "-" {
			if n := len(b.server.report().Log); n != 0 {
				t.Errorf("%s: %d entries", name, n)
			}
		} else if e := b.last(t); e.Reason != tc.reason {
			t.Errorf("%s: %+v", name, e)
		}
		if dialed := len(b.dials()) > 0; dialed != (tc.reason == "") {
			t.Errorf("%s: connected: %v", name, dialed)
		}
	}
}

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
		if tc.reason != "" && time.Since(began) > 5*time.Second {
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
					_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
					data, _ := io.ReadAll(c)
					got <- string(data)
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

func TestDelegatedHosts(t *testing.T) {
	b := newBench(t, Config{Allow: []string{"api.example:5432", "a.wild.example:5432"}, Within: [][]string{{"*.wild.example"}, {"api.example", "a.wild.example"}}}, names)
	b.origin[5432] = echoOrigin(t)
	for host, want := range map[string]string{"api.example": "not-delegated", "a.wild.example": ""} {
		say(t, b.http, "CONNECT "+host+":5432 HTTP/1.1\r\n\r\nx")
		if e := b.last(t); e.Reason != want {
			t.Errorf("%s: %+v", host, e)
		}
	}
	b = newBench(t, Config{Allow: []string{"api.example:5432", "10.9.9.9:5432"}, Within: [][]string{{"public", "10.0.0.0"}}}, names)
	b.origin[5432] = echoOrigin(t)
	for host, want := range map[string]string{"api.example": "", "10.9.9.9": "not-delegated"} {
		say(t, b.http, "CONNECT "+host+":5432 HTTP/1.1\r\n\r\nx")
		if e := b.last(t); e.Reason != want {
			t.Errorf("%s under public: %+v", host, e)
		}
	}
	b = newBench(t, Config{Allow: []string{"api.example:5432"}, Within: [][]string{{}}}, names)
	say(t, b.http, "CONNECT api.example:5432 HTTP/1.1\r\n\r\nx")
	if e := b.last(t); e.Reason != "not-delegated" {
		t.Errorf("a delegation without hosts: %+v", e)
	}
}

func TestForward(t *testing.T) {
	b := newBench(t, Config{}, names)
	b.origin[5432] = echoOrigin(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.server.ServeForward(f, "127.0.0.1:5432"); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if out := say(t, l.Addr().String(), "query"); out != "got query" {
		t.Errorf("%q", out)
	}
	if e := b.last(t); e.Via != "forward" || e.Host != "127.0.0.1" || e.Up != 5 || e.Down != 9 || strings.Join(b.dials(), "") != "127.0.0.1 5432" {
		t.Errorf("%+v %v", e, b.dials())
	}
}

// TestUpstream: the proxy of the machine is asked, with its own credentials, and looks
// names up itself.
func TestUpstream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heads := make(chan string, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			head, _ := readHead(in)
			heads <- string(head)
			if strings.HasPrefix(string(head), "CONNECT no.") {
				_, _ = io.WriteString(c, "HTTP/1.1 407 No\r\n\r\n")
			} else {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nfirst words")
			}
			c.Close()
		}
	}()
	b := newBench(t, Config{Allow: []string{"api.example:5432", "api.example:80", "no.example:5432"}, Upstream: "http://me:secret@proxy.corp:8888"}, map[string][]string{"proxy.corp": {"10.0.0.1"}})
	b.origin[8888] = l.Addr().String()
	if out := say(t, b.http, "CONNECT api.example:5432 HTTP/1.1\r\n\r\n"); !strings.HasSuffix(out, "\r\n\r\nfirst words") {
		t.Errorf("%q", out)
	}
	if head := <-heads; head != "CONNECT api.example:5432 HTTP/1.1\r\nHost: api.example:5432\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n" {
		t.Errorf("%q", head)
	}
	say(t, b.http, "GET http://api.example/x HTTP/1.1\r\nHost: api.example\r\n\r\n")
	if head := <-heads; head != "GET http://api.example/x HTTP/1.1\r\nHost: api.example\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\nConnection: close\r\n\r\n" {
		t.Errorf("%q", head)
	}
	if out := say(t, b.http, "CONNECT no.example:5432 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(out, "HTTP/1.1 502 ") {
		t.Errorf("%q", out)
	}
	if out := say(t, b.http, "CONNECT evil.example:5432 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(out, "HTTP/1.1 403 ") {
		t.Errorf("%q", out)
	}
	if !slices.Equal(b.looked, []string{"proxy.corp", "proxy.corp", "proxy.corp"}) {
		t.Errorf("looked up %v", b.looked)
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []Config{
		{Allow: []string{""}}, {Allow: []string{"a b"}}, {Allow: []string{"*.1.2.3.4"}}, {Allow: []string{"api.example."}}, {Allow: []string{"10.0.0.0/8"}},
		{Allow: []string{"a:0"}}, {Allow: []string{"*"}}, {Allow: []string{"*.*.a"}}, {Allow: []string{"0x7f.1"}},
		{Deny: []string{"a b"}}, {Deny: []string{"loopback:x"}}, {Deny: []string{"10.0.0.0/8:0"}}, {Deny: []string{"10.0.0.0/33"}}, {Private: []string{"intranet"}}, {Private: []string{"10.0.0.0/40"}},
		{Within: [][]string{{"a b"}}}, {Upstream: "socks5://x:1"}, {Upstream: "http://x"}, {Upstream: "http://x:1/path"},
	} {
		if _, err := Compile(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	for _, c := range []Config{
		{Allow: []string{"a", "*.a", "a:1", "*.a:1", "1.2.3.4", "1.2.3.4:1", "2001:db8::1", "[2001:db8::1]:1", "[2001:db8::1]"}},
		{Deny: []string{"a", "10.0.0.0/8", "fc00::/7", "private", "metadata", "loopback", "service", "named", "public"}},
		{Private: []string{"10.0.0.0/8", "fd00::/8", "10.0.0.1", "fd00::1", "[fd00::1]"}},
	} {
		if _, err := Compile(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	b := newBench(t, Config{Allow: []string{"api.example:5432"}}, names)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range maxConnections {
		c, err := net.Dial("tcp", b.http)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	c, err := net.Dial("tcp", b.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(headPatience / 2))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one too many: %v", err)
	}
	if e := b.last(t); e.Reason != "busy" {
		t.Errorf("%+v", e)
	}
	// Close ends them all, whatever they wait for.
	b.server.Close()
	_ = open[0].SetDeadline(time.Now().Add(headPatience / 2))
	if _, err := open[0].Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the server")
	}
}
