package proxy

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

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
	for target, want := range map[string]string{"10.1.2.3:5432": "HTTP/1.1 403 ", "192.0.2.7:5432": "HTTP/1.1 200 "} {
		denying := newBench(t, Config{Allow: []string{"10.1.2.3:5432", "192.0.2.7:5432"}, Deny: []string{"10.0.0.0/8"}, Upstream: "http://10.0.0.1:8888"}, nil)
		denying.origin[8888] = l.Addr().String()
		if out := say(t, denying.http, "CONNECT "+target+" HTTP/1.1\r\n\r\n"); !strings.HasPrefix(out, want) {
			t.Errorf("%s: %q", target, out)
		}
	}
	if !slices.Equal(b.looked, []string{"proxy.corp", "proxy.corp", "proxy.corp"}) {
		t.Errorf("looked up %v", b.looked)
	}
}

// TestClosedPort: a port on which nothing listens looks like one to the programs of a run, as far as
// a proxy can tell them, and is no answer of the host's.
func TestClosedPort(t *testing.T) {
	b := newBench(t, Config{Allow: []string{"api.example:5432", "api.example:80"}}, names)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.origin[5432], b.origin[80] = l.Addr().String(), l.Addr().String()
	l.Close()
	const why = "connection refused: nothing listens on that port"
	if out := say(t, b.http, "CONNECT api.example:5432 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(out, "HTTP/1.1 502 "+why+"\r\n") || !strings.HasSuffix(out, "\r\n\r\natip-exec: api.example:5432: "+why+"\n") {
		t.Errorf("%q", out)
	}
	if e := b.last(t); e.Decision != "allow" || e.Reason != "refused" {
		t.Errorf("%+v", e)
	}
	if out := say(t, b.socks, "\x05\x01\x00\x05\x01\x00\x03\x0bapi.example\x15\x38"); !strings.HasPrefix(out, "\x05\x00\x05\x05") {
		t.Errorf("%q", out)
	}
	for _, row := range []struct {
		words []string
		want  string
	}{
		{[]string{"curl", "-sS", "-m", "9", "-x", "http://" + b.http, "http://api.example/"}, "curl: (56)"},
		{[]string{"curl", "-sS", "-m", "9", "-x", "http://" + b.http, "https://api.example:5432/"}, "502"},
		{[]string{"curl", "-sS", "-m", "9", "-x", "socks5h://" + b.socks, "https://api.example:5432/"}, "curl: (97)"},
		{[]string{"git", "-c", "http.proxy=http://" + b.http, "ls-remote", "https://api.example:5432/x"}, "fatal: unable to access"},
		{[]string{"python3", "-c", "import sys, urllib.request as r\nr.build_opener(r.ProxyHandler({'https': 'http://" + b.http + "'})).open('https://api.example:5432/')"}, why},
	} {
		cmd := exec.Command(row.words[0], row.words[1:]...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), row.want) {
			t.Errorf("%v: %v %s", row.words, err, out)
		}
	}
}
