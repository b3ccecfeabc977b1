package proxy

import (
	"errors"
	"strings"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// Record types and the class of the internet (RFC 1035, RFC 3596).
const (
	typeA     = 1
	typeCNAME = 5
	typeAAAA  = 28
	classIN   = 1
)

var (
	errNoName = errors.New("there is no such name")
	errAnswer = errors.New("the name server's answer is malformed")
	errServer = errors.New("the name server cannot say")
	errCut    = errors.New("the answer is cut off")
)

// question is a query for one type of record of a canonical name.
func question(id uint16, name string, kind uint16) []byte {
	b := []byte{byte(id >> 8), byte(id), 1 /* recursion desired */, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0, byte(kind>>8), byte(kind), 0, classIN)
}

// answers reads the addresses in a reply to question(id, name, kind), following aliases
// from name. A reply that is not to this very question is an error.
func answers(msg []byte, id uint16, name string, kind uint16) ([]ip.Addr, error) {
	c := cursor{b: msg, ok: true}
	gotID, flags := c.number(2), c.number(2)
	questions, records := c.number(2), c.number(2)
	c.take(4)
	if !c.ok || gotID != int(id) || flags&0x8000 == 0 || flags&0x7800 != 0 || questions != 1 {
		return nil, errAnswer
	}
	asked, ok := c.name(msg)
	if !ok || asked != name || c.number(2) != int(kind) || c.number(2) != classIN || !c.ok {
		return nil, errAnswer
	}
	switch {
	case flags&0x0200 != 0:
		return nil, errCut
	case flags&0xf == 3:
		return nil, errNoName
	case flags&0xf != 0:
		return nil, errServer
	}
	var out []ip.Addr
	owner := name
	for range records {
		of, ok := c.name(msg)
		rtype, class := c.number(2), c.number(2)
		c.take(4)
		at := len(msg) - len(c.b) + 2
		data := c.part(2)
		if !ok || !c.ok {
			return nil, errAnswer
		}
		if class != classIN || of != owner {
			continue
		}
		switch {
		case rtype == typeCNAME:
			in := cursor{b: msg[at:], ok: true}
			if owner, ok = in.name(msg); !ok {
				return nil, errAnswer
			}
		case rtype == int(kind) && kind == typeA && len(data) == 4:
			out = append(out, ip.V4(data[0], data[1], data[2], data[3]))
		case rtype == int(kind) && kind == typeAAAA && len(data) == 16:
			out = append(out, ip.Addr(data))
		}
	}
	return out, nil
}

// name reads a name in lower case; msg is what its pointers point into.
func (c *cursor) name(msg []byte) (string, bool) {
	var b []byte
	at := c
	for jumps := 0; ; {
		n := at.number(1)
		switch {
		case !at.ok:
			c.ok = false
			return "", false
		case n == 0:
			if len(b) > 0 {
				b = b[:len(b)-1]
			}
			return string(b), c.ok && len(b) <= 253
		case n&0xc0 == 0xc0:
			low := at.number(1)
			to := (n&0x3f)<<8 | low
			if jumps++; !at.ok || jumps > 16 || to >= len(msg) {
				c.ok = false
				return "", false
			}
			at = &cursor{b: msg[to:], ok: true}
		case n > 63:
			c.ok = false
			return "", false
		default:
			for _, x := range at.take(n) {
				if x >= 'A' && x <= 'Z' {
					x += 'a' - 'A'
				}
				if x == '.' { // a dot inside a label would read as two
					c.ok = false
					return "", false
				}
				b = append(b, x)
			}
			if b = append(b, '.'); len(b) > 256 {
				c.ok = false
				return "", false
			}
		}
	}
}

// hostsFile finds a name in the text of /etc/hosts.
func hostsFile(text, name string) []ip.Addr {
	var out []ip.Addr
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		a, ok := ip.Parse(f[0])
		for _, n := range f[1:] {
			if ok && strings.EqualFold(n, name) {
				out = append(out, a)
				break
			}
		}
	}
	return out
}

// nameServers finds the servers in the text of /etc/resolv.conf. Without one it is this
// machine (resolv.conf(5)). Search domains play no part: names are whole here.
func nameServers(text string) []ip.Addr {
	var out []ip.Addr
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" || len(out) == 3 {
			continue
		}
		if a, ok := ip.Parse(f[1]); ok {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		out = append(out, ip.V4(127, 0, 0, 1))
	}
	return out
}
