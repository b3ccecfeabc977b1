package proxy

import (
	"io"
	"net"
	"testing"
	"time"
)

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
