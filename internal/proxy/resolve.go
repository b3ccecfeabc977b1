package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// How often and how long name servers are asked.
const (
	dnsAttempts = 2
	dnsPatience = 2 * time.Second
)

// lookupHost finds the addresses of a name in /etc/hosts or by DNS, as the Go standard
// library does where it has no C library. It knows no other source.
func lookupHost(ctx context.Context, name string) ([]ip.Addr, error) {
	hosts, _ := os.ReadFile("/etc/hosts")
	if out := hostsFile(string(hosts), name); len(out) > 0 {
		return out, nil
	}
	conf, _ := os.ReadFile("/etc/resolv.conf")
	return lookupDNS(ctx, nameServers(string(conf)), name, exchangeDNS)
}

// exchange sends one query to a name server and returns its reply.
type exchange func(ctx context.Context, server ip.Addr, query []byte, stream bool) ([]byte, error)

// lookupDNS asks for both kinds of addresses at once. Those of IPv4 come first: where
// there is no IPv6, trying it costs nothing, but not the other way round.
func lookupDNS(ctx context.Context, servers []ip.Addr, name string, send exchange) ([]ip.Addr, error) {
	type result struct {
		addrs []ip.Addr
		err   error
	}
	six := make(chan result, 1)
	go func() {
		a, err := ask(ctx, servers, name, typeAAAA, send)
		six <- result{a, err}
	}()
	out, err := ask(ctx, servers, name, typeA, send)
	r := <-six
	out = append(out, r.addrs...)
	if len(out) == 0 {
		if err == nil {
			err = r.err
		}
		if err == nil {
			err = errNoName
		}
		return nil, err
	}
	return slices.Compact(out), nil
}

func ask(ctx context.Context, servers []ip.Addr, name string, kind uint16, send exchange) ([]ip.Addr, error) {
	last := error(errServer)
	for range dnsAttempts {
		for _, server := range servers {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var b [2]byte
			_, _ = rand.Read(b[:]) // cannot fail
			id := uint16(b[0])<<8 | uint16(b[1])
			query := question(id, name, kind)
			reply, err := send(ctx, server, query, false)
			if err == nil {
				var out []ip.Addr
				out, err = answers(reply, id, name, kind)
				if errors.Is(err, errCut) {
					if reply, err = send(ctx, server, query, true); err == nil {
						out, err = answers(reply, id, name, kind)
					}
				}
				if err == nil || errors.Is(err, errNoName) {
					return out, err
				}
			}
			last = err
		}
	}
	return nil, last
}

// exchangeDNS speaks to port 53 by UDP, or by TCP where the answer did not fit.
func exchangeDNS(ctx context.Context, server ip.Addr, query []byte, stream bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsPatience)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if stream {
		c, err := dialAddr(ctx, server, 53)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := c.SetDeadline(deadline); err != nil {
			return nil, err
		}
		if _, err := c.Write(append([]byte{byte(len(query) >> 8), byte(len(query))}, query...)); err != nil {
			return nil, err
		}
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return nil, err
		}
		reply := make([]byte, int(size[0])<<8|int(size[1]))
		_, err = io.ReadFull(c, reply)
		return reply, err
	}
	c, err := datagramTo(server, 53)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return askDatagram(c, query, deadline)
}

func askDatagram(c stream, query []byte, deadline time.Time) ([]byte, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := c.Write(query); err != nil {
		return nil, err
	}
	reply := make([]byte, 4096)
	for {
		n, err := c.Read(reply)
		if err != nil {
			return nil, err
		}
		// Another reply may be a late one to an earlier query, or somebody's guess.
		if n >= 12 && reply[0] == query[0] && reply[1] == query[1] {
			return reply[:n], nil
		}
	}
}
