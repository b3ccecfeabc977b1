package proxy

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// tape is a connection that says what is on it and keeps what it hears.
type tape struct {
	in  *bytes.Reader
	mu  sync.Mutex
	out bytes.Buffer
}

func (t *tape) Read(b []byte) (int, error) { return t.in.Read(b) }
func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(b)
}
func (t *tape) Close() error                { return nil }
func (t *tape) CloseWrite() error           { return nil }
func (t *tape) Reset() error                { return nil }
func (t *tape) SetDeadline(time.Time) error { return nil }

// hello is a ClientHello for a name.
func hello(name string) []byte {
	sni := append([]byte{0, byte(len(name) + 3), 0, 0, byte(len(name))}, name...)
	ext := append([]byte{0, 0, 0, byte(len(sni))}, sni...)
	body := append(append([]byte{3, 3}, make([]byte, 32)...), 0, 0, 2, 0x13, 1, 1, 0, 0, byte(len(ext)))
	body = append(body, ext...)
	msg := append([]byte{1, 0, 0, byte(len(body))}, body...)
	return append([]byte{22, 3, 1, 0, byte(len(msg))}, msg...)
}

// FuzzProxy: whatever a client says, only listed names are looked up, in their one
// spelling; only public addresses and those listed are connected to; and what goes out
// on ports 80 and 443 names the host that was allowed.
func FuzzProxy(f *testing.F) {
	for _, s := range []string{"CONNECT api.example:443 HTTP/1.1\r\n\r\n" + string(hello("api.example")), "CONNECT a.wild.example:22 HTTP/1.1\r\n\r\nx",
		"CONNECT api.example:443 HTTP/1.1\r\n\r\n" + string(hello("evil.example")), "CONNECT api.example.:443 HTTP/1.1\r\n\r\n",
		"GET http://api.example/x HTTP/1.1\r\nHost: api.example\r\n\r\n", "POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"CONNECT api.example:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: api.example\r\n\r\n", "CONNECT 2130706433:22 HTTP/1.1\r\n\r\n", "CONNECT [2001:4860::1]:22 HTTP/1.1\r\n\r\n"} {
		f.Add([]byte(s), false)
	}
	for _, s := range []string{socksRequest(3, append([]byte{11}, "api.example"...), 443) + string(hello("api.example")), socksRequest(1, []byte{8, 8, 4, 4}, 22) + "x",
		socksRequest(3, append([]byte{10}, "2130706433"...), 22), socksRequest(3, append([]byte{14}, "a.wild.example"...), 22)} {
		f.Add([]byte(s), true)
	}
	rules, err := Compile(Config{Allow: []string{"api.example:443", "api.example:80", "*.wild.example:22", "8.8.4.4:22", "10.0.0.1:22"}, Deny: []string{"no.wild.example"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, socks bool) {
		s := New(rules)
		defer s.cancel()
		s.own = func() ([]ip.Addr, error) { return nil, nil }
		s.lookup = func(_ context.Context, name string) ([]ip.Addr, error) {
			if name != "api.example" && !strings.HasSuffix(name, ".wild.example") || name == "no.wild.example" || name != strings.ToLower(name) || strings.ContainsAny(name, " %@/:[]\x00") || strings.HasPrefix(name, ".") || strings.Contains(name, "..") {
				t.Fatalf("looked up %q", name)
			}
			return []ip.Addr{ip.V4(127, 0, 0, 1), public}, nil
		}
		up := &tape{in: bytes.NewReader([]byte("answer"))}
		port := 0
		s.dial = func(_ context.Context, a ip.Addr, p int) (stream, error) {
			if a != public && a != ip.V4(10, 0, 0, 1) || p != 443 && p != 80 && p != 22 || port != 0 {
				t.Fatalf("connected to %s:%d after %d", a, p, port)
			}
			port = p
			return up, nil
		}
		c := &tape{in: bytes.NewReader(data)}
		if socks {
			s.socks(c)
		} else {
			s.http(c)
		}
		up.mu.Lock()
		sent := slices.Clone(up.out.Bytes())
		up.mu.Unlock()
		switch {
		case len(sent) == 0:
		case port == 443:
			if name, err := serverName(sent); err != nil || !strings.EqualFold(name, "api.example") {
				t.Fatalf("port 443 got %q: %q %v", sent, name, err)
			}
		case port == 80:
			head, body, _ := bytes.Cut(sent, []byte("\r\n\r\n"))
			if n := strings.Count(strings.ToLower(string(head)), "\nhost:"); n != 1 || !bytes.Contains(head, []byte("\r\nHost: api.example\r\n")) || !bytes.HasSuffix(head, []byte("\r\nConnection: close")) {
				t.Fatalf("port 80 got %q", sent)
			}
			if bytes.Contains(head, []byte("\n ")) || bytes.ContainsAny(head, "\x00") || len(body) > len(data) {
				t.Fatalf("port 80 got %q", sent)
			}
		}
		if r := s.report(); len(r.Log) > 1 || port != 0 && r.Requests != 1 {
			t.Fatalf("%+v", r)
		}
	})
}

// FuzzServerName: a handshake that is taken holds the name in it, and more bytes behind
// it change nothing.
func FuzzServerName(f *testing.F) {
	whole := hello("api.example")
	f.Add(whole)
	f.Add(append([]byte{22, 3, 1, 0, 3}, append(slices.Clone(whole[5:8]), append([]byte{22, 3, 3, 0, byte(len(whole) - 8)}, whole[8:]...)...)...))
	f.Add(hello(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, err := serverName(b)
		if err != nil {
			return
		}
		if again, err := serverName(append(slices.Clone(b), "more"...)); err != nil || again != name {
			t.Fatalf("%q, then %q %v", name, again, err)
		}
		if name != "" && len(b) < len(name)+9 {
			t.Fatalf("%q out of %q", name, b)
		}
	})
}

// FuzzAnswers: no reply makes the reader fail, or gives an address of the wrong kind.
func FuzzAnswers(f *testing.F) {
	q := question(7, "api.example", typeA)
	f.Add(reply(q, 0, record("@", typeA, []byte{8, 8, 4, 4})))
	f.Add(reply(q, 0, record("@", typeCNAME, wireName("cdn.example")), record("cdn.example", typeA, []byte{8, 8, 4, 4})))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := answers(b, 7, "api.example", typeA)
		for _, a := range list {
			if !a.Is4() || err != nil {
				t.Fatalf("%v %v", list, err)
			}
		}
	})
}

func TestServerName(t *testing.T) {
	whole := hello("api.example")
	for i := range len(whole) {
		if name, err := serverName(whole[:i]); err != errShort {
			t.Fatalf("%d bytes: %q %v", i, name, err)
		}
	}
	split := append([]byte{22, 3, 1, 0, 3}, whole[5:8]...)
	split = append(split, 22, 3, 3, 0, byte(len(whole)-8))
	split = append(split, whole[8:]...)
	if name, err := serverName(split); name != "api.example" || err != nil {
		t.Errorf("over two records: %q %v", name, err)
	}
	twice := slices.Clone(whole)
	ext := whole[len(whole)-20:]
	twice = append(twice, ext...)
	twice[4] += 20
	twice[8] += 20
	twice[len(whole)-21] += 20
	if name, err := serverName(twice); err != errNoHello {
		t.Errorf("two names: %q %v", name, err)
	}
}
