package proxy

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// upstream is the proxy that this machine must use itself. Its credentials stay here.
type upstream struct {
	target target
	auth   string // user:password
}

func parseUpstream(text string) (*upstream, error) {
	bad := fmt.Errorf("network.upstream is not \"http://[user:password@]host:port\"")
	rest, ok := strings.CutPrefix(text, "http://")
	if !ok {
		return nil, bad
	}
	u := &upstream{}
	rest = strings.TrimSuffix(rest, "/")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		u.auth, rest = rest[:i], rest[i+1:]
	}
	if u.target, ok = parseTarget(rest, 0); !ok {
		return nil, bad
	}
	return u, nil
}

// credentials is the header line for them, "" without any.
func (u *upstream) credentials() string {
	if u.auth == "" {
		return ""
	}
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.auth)) + "\r\n"
}

// ask makes a tunnel to t through a connection to the upstream proxy.
func (u *upstream) ask(c stream, t target) error {
	to := t.authority(0)
	if _, err := c.Write([]byte("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n" + u.credentials() + "\r\n")); err != nil {
		return err
	}
	// Byte by byte: what follows the head belongs to the tunnel.
	head, err := readHead(bufio.NewReaderSize(oneByte{c}, 16))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(head), "\r\n")
	if f := strings.Fields(line); len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/1.") || f[1] != "200" {
		return errors.New("the upstream proxy refuses: " + printable(line))
	}
	return nil
}

// oneByte keeps a buffered reader from reading ahead.
type oneByte struct{ stream }

func (o oneByte) Read(b []byte) (int, error) { return o.stream.Read(b[:min(1, len(b))]) }
