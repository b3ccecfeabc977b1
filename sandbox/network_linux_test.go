package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/proxy"
)

// startServices makes services of this machine that a run with a network of its own must
// not reach: TCP, UDP and an abstract socket.
func startServices(t *testing.T) (tcp, udp, abstract string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := net.Listen("unix", "@"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); p.Close(); a.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "machine\n")
			c.Close()
		}
	}()
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(b[:n], from)
		}
	}()
	return l.Addr().String(), p.LocalAddr().String(), a.Addr().String()
}

// networkAct tries one way to somebody outside; each succeeds in a process that has the
// machine's network.
func networkAct(name, arg string) error {
	host, portText, _ := strings.Cut(arg, ":")
	port, _ := strconv.Atoi(portText)
	four := &unix.SockaddrInet4{Port: port}
	copy(four.Addr[:], net.ParseIP(host).To4())
	switch name {
	case "reach-udp", "reach-dns": // a query is a datagram to a name server
		c, err := net.Dial("udp", arg)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	case "reach-tcp":
		return connectTo(unix.AF_INET, unix.SOCK_STREAM, 0, four)
	case "reach-mptcp":
		return connectTo(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, four)
	case "reach-mapped": // by its address in IPv6 form
		six := &unix.SockaddrInet6{Port: port, Addr: [16]byte{10: 0xff, 11: 0xff}}
		copy(six.Addr[12:], four.Addr[:])
		return connectTo(unix.AF_INET6, unix.SOCK_STREAM, 0, six)
	case "reach-fastopen":
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, four)
	case "reach-icmp":
		return connectTo(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, four)
	case "reach-vsock":
		return sock(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	case "reach-abstract":
		c, err := net.Dial("unix", arg)
		if err == nil {
			c.Close()
		}
		return err
	case "reach-events":
		return sock(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)
	case "reach-interface": // netlink tells of more than lo
		list, err := net.Interfaces()
		if err == nil && len(list) < 2 {
			err = unix.ENODEV
		}
		return err
	case "reach-internet": // needs a route, and no answer
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{8, 8, 8, 8}})
	}
	return errors.New("unknown act")
}

func connectTo(family, kind, protocol int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// TestOwnNetworkReachesNothing: whatever protocol a run with a network of its own tries,
// nobody outside is there.
func TestOwnNetworkReachesNothing(t *testing.T) {
	needNamespaces(t)
	tcp, udp, abstract := startServices(t)
	refused := "EAFNOSUPPORT"
	w := newWorld(t)
	// What each comes to with a network that has only lo, and what without sockets.
	table := []struct {
		act, own, none string
		kernel         bool // the machine itself may lack it
	}{
		{"reach-tcp:" + tcp, "ECONNREFUSED", refused, false},
		{"reach-mapped:" + tcp, "ECONNREFUSED", refused, false},
		{"reach-udp:" + udp, "ECONNREFUSED", refused, false},
		{"reach-dns:" + udp, "ECONNREFUSED", refused, false},
		{"reach-internet", "ENETUNREACH", refused, true},
		{"reach-mptcp:" + tcp, "EPROTONOSUPPORT", "EPROTONOSUPPORT", true},
		{"reach-fastopen:" + tcp, "ENOTSUP", refused, true},
		{"reach-icmp:" + tcp, "EACCES", refused, true},
		{"reach-vsock", refused, refused, true},
		{"reach-abstract:" + abstract, "ECONNREFUSED", "ECONNREFUSED", false},
		{"reach-events", "EPROTONOSUPPORT", refused, false},
		{"reach-interface", "ENODEV", refused, true},
	}
	var acts []string
	for _, row := range table {
		acts = append(acts, row.act)
	}
	free := w.unconfined(t, acts...)
	var na []string
	for _, row := range table {
		name, _, _ := strings.Cut(row.act, ":")
		switch {
		case free[name] == "ok":
		case row.kernel:
			na = append(na, name+" "+free[name])
		default:
			t.Errorf("%s without a sandbox: %s, so it shows nothing", name, free[name])
		}
	}
	t.Logf("n/a here: %v", na)
	for _, mode := range []NetMode{NetNone, NetLoopback, NetAllowlist} {
		j := w.child(t, w.third(t, func(in *Input) { in.Net.Mode = mode }), acts...)
		j.Proxy = &proxy.Config{}
		r := confined(t, j)
		got := outcomes(t, r.Out)
		for _, row := range table {
			name, _, _ := strings.Cut(row.act, ":")
			want := row.own
			if mode == NetNone {
				want = row.none
			}
			if got[name] != want {
				t.Errorf("%s %s: %q, want %s; %s", mode, name, got[name], want, r.Err)
			}
		}
		if r.Receipt.Net.Mode != mode || r.Receipt.Tier != T3 {
			t.Errorf("%s: receipt %+v at %s", mode, r.Receipt.Net, r.Receipt.Tier)
		}
	}
}

// TestLoopbackServesItself: a server and its client, over both versions of IP.
func TestLoopbackServesItself(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	text := `python3 -c '
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    s = socket.create_server((host, 0), family=family)
    c = socket.create_connection(s.getsockname()[:2])
    a, _ = s.accept()
    a.sendall(b"hi"); print(c.recv(2).decode())'`
	for _, mode := range []NetMode{NetLoopback, NetAllowlist} {
		j := w.shell(w.third(t, func(in *Input) { in.Net.Mode = mode }), text)
		j.Proxy = &proxy.Config{}
		if r := confined(t, j); r.Out != "hi\nhi\n" {
			t.Errorf("%s: %q %s", mode, r.Out, r.Err)
		}
	}
}

// TestAllowlistClients are programs that people use, through the proxy to a server of
// this machine that is listed by its address.
func TestAllowlistClients(t *testing.T) {
	needNamespaces(t)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from "+r.Host) }))
	defer origin.Close()
	host := strings.TrimPrefix(origin.URL, "http://")
	closed, err := net.Listen("tcp", "127.0.0.1:0") // nobody may ask for this one
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	w := newWorld(t)
	p := w.third(t, func(in *Input) { in.Net = Net{Mode: NetAllowlist, Allow: []string{host}} })
	for name, tc := range map[string]struct {
		text, want string
		via        string
	}{
		"curl":             {"curl -sS --noproxy '' http://" + host + "/", "hello from " + host, "http"},
		"curl by tunnel":   {"curl -sS --noproxy '' -p http://" + host + "/", "hello from " + host, "connect"},
		"curl by SOCKS":    {"curl -sS --noproxy '' --proxy socks5h://127.0.0.1:1080 http://" + host + "/", "hello from " + host, "socks"},
		"curl over IPv6":   {"curl -sS --noproxy '' --proxy http://[::1]:3128 http://" + host + "/", "hello from " + host, "http"},
		"python":           {"no_proxy= NO_PROXY= python3 -c 'import urllib.request as u; print(u.urlopen(\"http://" + host + "/\").read().decode())'", "hello from " + host, "http"},
		"refused":          {"curl -sS --noproxy '' http://" + closed.Addr().String() + "/", "atip-exec: " + closed.Addr().String() + ": it is not on the list of hosts of this run", "http"},
		"refused by SOCKS": {"curl -s --noproxy '' --proxy socks5h://127.0.0.1:1080 http://" + closed.Addr().String() + "/; echo $?", "97", "socks"},
		"no proxy at all":  {"curl -s --noproxy '*' http://" + host + "/; echo $?", "7", ""},
	} {
		j := w.shell(p, tc.text)
		j.Env = append(j.Env, envList(p.Env)...)
		j.Proxy = &proxy.Config{Allow: []string{host}}
		r := confined(t, j)
		if strings.TrimSpace(r.Out) != tc.want || r.Err != "" {
			t.Errorf("%s: %q, want %q; %s", name, r.Out, tc.want, r.Err)
		}
		via, denied := "", strings.HasPrefix(name, "refused")
		for _, e := range r.Proxy.Log {
			via = e.Via
			if (e.Decision == "deny") != denied || e.Host != "127.0.0.1" {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if via != tc.via || r.Proxy.Requests != len(r.Proxy.Log) {
			t.Errorf("%s: %+v", name, r.Proxy)
		}
	}
}

func envList(env map[string]string) []string {
	var out []string
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// TestProxyIsNowhereElse: what the wrapper listens on is not in the machine's network and
// has no name in a file system. A listener of the wrapper's own shows that this would be seen.
func TestProxyIsNowhereElse(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	j := w.shell(w.third(t, func(in *Input) { in.Net.Mode = NetAllowlist }), "cat /proc/net/tcp")
	j.Proxy = &proxy.Config{}
	r := confined(t, j)
	for _, port := range []int{ProxyPort, SOCKSPort} {
		if !strings.Contains(r.Out, fmt.Sprintf("0100007F:%04X 00000000:0000 0A", port)) {
			t.Errorf("port %d does not listen inside: %s %s", port, r.Out, r.Err)
		}
	}
	if r.Holds < 2 || len(r.Exposed) != 0 {
		t.Errorf("the wrapper holds %d listeners, exposed %v", r.Holds, r.Exposed)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, exposed := heldListeners(); len(exposed) == 0 {
		t.Error("a listener in the machine's network is not seen")
	}
}

// TestForwardedPort: a port inside leads to one service of the machine, and no other does.
func TestForwardedPort(t *testing.T) {
	needNamespaces(t)
	tcp, _, _ := startServices(t)
	_, text, _ := net.SplitHostPort(tcp)
	port, _ := strconv.Atoi(text)
	w := newWorld(t)
	for _, inside := range []int{port, 80} { // below 1024 too
		j := w.shell(w.third(t, func(in *Input) { in.Net = Net{Mode: NetAllowlist, Forward: []int{inside}} }),
			"exec 3<>/dev/tcp/127.0.0.1/"+itoa(inside)+" && cat <&3")
		j.Proxy, j.Forward = &proxy.Config{}, map[int]string{inside: tcp}
		r := confined(t, j)
		if r.Out != "machine\n" || r.Err != "" || len(r.Proxy.Log) != 1 || r.Proxy.Log[0].Via != "forward" {
			t.Errorf("port %d: %q %s %+v", inside, r.Out, r.Err, r.Proxy)
		}
	}
	j := w.shell(w.third(t, func(in *Input) { in.Net = Net{Mode: NetAllowlist, Forward: []int{ProxyPort}} }), "true")
	j.Proxy, j.Forward = &proxy.Config{}, map[int]string{ProxyPort: tcp}
	if r := confined(t, j); r.Code != "E4102" || r.Rest != "[]" {
		t.Errorf("the proxy's own port: %+v", r.brief())
	}
}

// TestDirectHosts: programs that know no proxy reach a granted host by its name, at its
// port, and the same questions are asked. Nothing else of the machine's names is lost.
func TestDirectHosts(t *testing.T) {
	needNamespaces(t)
	tcp, _, _ := startServices(t)
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	go func() { // every host is the same service
		for {
			c, err := upstream.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				if n, _ := c.Read(b); !strings.HasPrefix(string(b[:n]), "CONNECT db.example:5432 ") {
					return
				}
				to, err := net.Dial("tcp", tcp)
				if err != nil {
					return
				}
				defer to.Close()
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				_, _ = io.Copy(c, to)
			}()
		}
	}()
	w := newWorld(t)
	text := `talk() { python3 -c 'import socket,sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 10).recv(99).decode().strip() or "closed")' "$@" 2>&1 | tail -1 | sed 's/.*Error: //'; }
talk db.example 5432; talk DB.example 5432; talk db.example 5433; talk other.example 5432; talk web.example 443 </dev/null
getent hosts localhost >/dev/null && echo localhost; echo x >/etc/hosts || echo read-only`
	p := w.third(t, func(in *Input) {
		in.Net = Net{Mode: NetAllowlist, Direct: []Direct{{"db.example", 5432}, {"web.example", 443}, {"denied.example", 22}}}
	})
	j := w.shell(p, text)
	j.Proxy = &proxy.Config{Allow: []string{"db.example:5432", "web.example:443", "denied.example:22"}, Deny: []string{"denied.example"}, Upstream: "http://" + upstream.Addr().String()}
	r := confined(t, j)
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if len(lines) < 7 || lines[0] != "machine" || lines[1] != "machine" || !strings.Contains(lines[2], "refused") || strings.Contains(lines[3], "machine") ||
		!strings.Contains(lines[4], "reset") || lines[5] != "localhost" || lines[len(lines)-1] != "read-only" {
		t.Errorf("%q %s", lines, r.Err)
	}
	for _, e := range r.Proxy.Log {
		if e.Via != "direct" || e.Host == "web.example" && e.Reason == "" || e.Host != "db.example" && e.Host != "web.example" {
			t.Errorf("%+v", e)
		}
	}
	if len(r.Proxy.Log) != 3 {
		t.Errorf("%+v", r.Proxy)
	}
	// The machine's own file is as it was.
	if out, err := exec.Command("getent", "hosts", "db.example").Output(); err == nil {
		t.Errorf("the machine knows db.example: %s", out)
	}
}

func TestHostsFileOfARun(t *testing.T) {
	n := Net{Direct: []Direct{{"a.example", 22}, {"b.example", 443}, {"a.example", 80}}}
	got := n.hostsFile("127.0.0.1\tlocalhost\n# c\n9.9.9.9 x A.Example # y\n\n10.0.0.1 c.example\n")
	if want := "127.77.0.1 a.example\n127.77.0.2 b.example\n127.0.0.1 localhost\n10.0.0.1 c.example\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAllowlistNeedsTheProxy: without somebody to serve it, it is not started.
func TestAllowlistNeedsTheProxy(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	if r := confined(t, w.shell(w.third(t, func(in *Input) { in.Net.Mode = NetAllowlist }), "true")); r.Code != "E5001" || r.Rest != "[]" {
		t.Errorf("%+v", r.brief())
	}
}

// TestProxyPortsCannotBeTaken: a run cannot put itself between the proxy and its other
// programs, and no socket of the proxy is open in it.
func TestProxyPortsCannotBeTaken(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	j := w.shell(w.third(t, func(in *Input) { in.Net.Mode = NetAllowlist }), `python3 -c '
import socket
for o in (0, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    for host, port in (("127.0.0.1", 3128), ("0.0.0.0", 3128), ("127.0.0.1", 1080)):
        s = socket.socket()
        if o: s.setsockopt(socket.SOL_SOCKET, o, 1)
        try:
            s.bind((host, port)); s.listen(); print("taken", o, host, port)
        except OSError as e: pass
'; ls -l /proc/self/fd | grep -c socket`)
	j.Proxy = &proxy.Config{}
	if r := confined(t, j); strings.TrimSpace(r.Out) != "0" {
		t.Errorf("%q %s", r.Out, r.Err)
	}
	// The control: without a sandbox such a port can be had.
	out, err := exec.Command("python3", "-c", "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); print('taken')").Output()
	if err != nil || strings.TrimSpace(string(out)) != "taken" {
		t.Errorf("%q %v", out, err)
	}
}
