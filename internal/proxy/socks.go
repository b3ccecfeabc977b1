package proxy

import (
	"bufio"
	"errors"
	"io"
	"slices"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// Replies of SOCKS5 (RFC 1928 section 6).
const (
	socksOK          = 0
	socksRefused     = 2
	socksUnreachable = 4
	socksClosed      = 5
	socksCommand     = 7
	socksAddress     = 8
)

var errSocks = errors.New("it is no SOCKS5 request")

// readGreeting reads the first message and reports whether the client can do without
// authentication, which is all there is.
func readGreeting(in *bufio.Reader) (bool, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return false, err
	}
	if head[0] != 5 || head[1] == 0 {
		return false, errSocks
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(in, methods); err != nil {
		return false, err
	}
	if slices.Contains(methods, 0) {
		return true, nil
	}
	return false, nil
}

// readSocks reads the request. A reply other than socksOK says why there is none.
func readSocks(in *bufio.Reader) (target, byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return target{}, 0, err
	}
	if head[0] != 5 || head[2] != 0 {
		return target{}, 0, errSocks
	}
	size := 0
	switch head[3] {
	case 1:
		size = 4
	case 4:
		size = 16
	case 3:
		n, err := in.ReadByte()
		if err != nil {
			return target{}, 0, err
		}
		size = int(n)
	default:
		return target{}, socksAddress, nil
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(in, rest); err != nil {
		return target{}, 0, err
	}
	host, port := rest[:size], int(rest[size])<<8|int(rest[size+1])
	if head[1] != 1 { // BIND and UDP would need a port of this machine
		return target{host: "", port: port}, socksCommand, nil
	}
	t, ok := target{}, port != 0
	switch head[3] {
	case 1:
		t.addr, t.ip = ip.V4(host[0], host[1], host[2], host[3]), true
		t.host = t.addr.String()
	case 4:
		t.addr, t.ip = ip.Addr(host), true
		t.host = t.addr.String()
		// IPv4 has a form of its own.
		ok = ok && t.addr.Unwrap() == t.addr && !t.addr.Is4()
	default:
		named := false
		t, named = parseHost(string(host))
		// A name in brackets would be an address in the wrong form.
		ok = ok && named && host[0] != '['
	}
	t.port = port
	if !ok {
		return target{host: printable(string(host)), port: port}, socksRefused, nil
	}
	return t, socksOK, nil
}
