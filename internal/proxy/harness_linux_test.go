package proxy

import (
	"context"
	"io"
	"net"
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
