package escape

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// loopbackProbes are for a run that has a loopback of its own, or none where it cannot have
// one: that of the machine is out of reach, and everything beyond it.
func loopbackProbes() []Probe {
	refused := []string{"EAFNOSUPPORT"}
	nobody := []string{"ECONNREFUSED"} // its own loopback, where nothing listens there
	return append([]Probe{
		{name: "tcp", want: refused, private: nobody, act: dial("tcp", port)},
		{name: "tcp-mapped", want: refused, private: nobody, only: mayNeedKernel, act: dial("tcp", mapped)},
		{name: "tcp-by-name", want: refused, private: nobody, only: mayNeedKernel, act: byName},
	}, beyondProbes()...)
}

// allowlistProbes are for a run that may reach a list of hosts: whatever is not on it is
// refused by its proxy, too, however it is spelled.
func allowlistProbes() []Probe {
	answers := []string{"400", "403", "SOCKS 2"}
	return append([]Probe{
		{name: "tcp", want: answers, private: []string{"ECONNREFUSED"}, act: dial("tcp", port)},
		{name: "proxy", want: answers, act: orProxy(port, tunnel)},
		{name: "proxy-mapped", want: answers, only: mayNeedKernel, act: orProxy(mapped, tunnel)},
		{name: "proxy-by-name", want: answers, only: mayNeedKernel, act: orProxy(localhost, tunnel)},
		{name: "socks", want: answers, act: orProxy(port, socks)},
		{name: "socks-by-name", want: answers, only: mayNeedKernel, act: orProxy(localhost, socks)},
	}, beyondProbes()...)
}

// beyondProbes try to leave a network of one's own.
func beyondProbes() []Probe {
	refused := []string{"EAFNOSUPPORT"}
	return []Probe{
		{name: "route", want: refused, private: []string{"ENETUNREACH"}, only: mayNeedKernel, act: func(Scene) error {
			// A datagram socket that is connected has looked for a route, and sent nothing. The
			// address is one of documentation.
			c, err := net.Dial("udp", "192.0.2.1:9")
			if err == nil {
				err = c.Close()
			}
			return err
		}},
		{name: "mptcp", want: refused, private: []string{"EPROTONOSUPPORT"}, only: mayNeedKernel, act: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{name: "packet", want: refused, only: mayNeedKernel, act: socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{name: "vsock", want: refused, only: mayNeedKernel, act: socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "fast-open", want: refused, private: []string{"ENOTSUP"}, only: mayNeedKernel, act: fastOpen},
		{name: "unix-path", want: refused, act: dial("unix", socketPath)},
		{name: "unix-abstract", want: refused, private: []string{"ECONNREFUSED", "EPERM"}, act: dial("unix", abstractSocket)},
	}
}

// mapped is the address of the listener as an address of version 6.
func mapped(s Scene) string {
	_, p, _ := strings.Cut(port(s), ":")
	return "[::ffff:127.0.0.1]:" + p
}

func localhost(s Scene) string {
	_, p, _ := strings.Cut(port(s), ":")
	return "localhost:" + p
}

// byName looks the name up in the file alone: what a resolver answers is not the question.
func byName(s Scene) error { return dial("tcp", localhost)(s) }

// orProxy is a direct connection or, where there is none, one through the proxy of the run.
func orProxy(address func(Scene) string, by func(target string) error) func(Scene) error {
	return func(s Scene) error {
		if dial("tcp", address)(s) == nil {
			return nil
		}
		return by(address(s))
	}
}

// The addresses of the proxy in a run; package sandbox names the ports.
const (
	httpProxy  = "127.0.0.1:3128"
	socksProxy = "127.0.0.1:1080"
)

// ask sends to a proxy and reads n bytes of its answer.
func ask(proxy string, n int, messages ...[]byte) ([]byte, error) {
	c, err := net.DialTimeout("tcp", proxy, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, n)
	for i, m := range messages {
		if _, err := c.Write(m); err != nil {
			return nil, err
		}
		want := n
		if i < len(messages)-1 {
			want = 2 // the greeting of SOCKS
		}
		if _, err := io.ReadFull(c, buf[:want]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func tunnel(target string) error {
	answer, err := ask(httpProxy, len("HTTP/1.1 200"), []byte("CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"))
	if err != nil {
		return err
	}
	status := string(answer[len("HTTP/1.1 "):])
	if status == "200" {
		return nil
	}
	return errors.New(status)
}

func socks(target string) error {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	request := []byte{5, 1, 0}
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		four := a.As4()
		request = append(append(request, 1), four[:]...)
	} else {
		request = append(append(request, 3, byte(len(host))), host...)
	}
	answer, err := ask(socksProxy, 2, []byte{5, 1, 0}, append(request, byte(number>>8), byte(number)))
	if err != nil {
		return err
	}
	if answer[1] == 0 {
		return nil
	}
	return errors.New("SOCKS " + strconv.Itoa(int(answer[1])))
}
