package proxy

import "errors"

// Errors of readHello that are not about the connection.
var (
	errNoHello = errors.New("it is no TLS handshake")
	errShort   = errors.New("it is not all there")
)

// maxHello bounds a ClientHello; post-quantum key shares make them a few kilobytes.
const maxHello = 16 << 10

// serverName finds the name that a TLS ClientHello asks for, "" if it names none
// (RFC 8446 section 4.1.2, RFC 6066 section 3). errShort asks for more bytes. A message
// that could be read in two ways is no handshake.
func serverName(b []byte) (string, error) {
	var hello []byte
	for {
		// A handshake message may be spread over several records.
		if len(hello) >= 4 {
			n := int(hello[1])<<16 | int(hello[2])<<8 | int(hello[3])
			if hello[0] != 1 || n > maxHello {
				return "", errNoHello
			}
			if len(hello) >= 4+n {
				return nameOf(hello[4 : 4+n])
			}
		}
		if len(b) > 0 && b[0] != 22 || len(b) > 1 && b[1] != 3 {
			return "", errNoHello
		}
		if len(b) < 5 {
			return "", errShort
		}
		n := int(b[3])<<8 | int(b[4])
		if n == 0 || n > 1<<14 {
			return "", errNoHello
		}
		if len(b) < 5+n {
			return "", errShort
		}
		hello, b = append(hello, b[5:5+n]...), b[5+n:]
	}
}

// cursor takes length-prefixed parts off a message.
type cursor struct {
	b  []byte
	ok bool
}

func (c *cursor) take(n int) []byte {
	if !c.ok || len(c.b) < n {
		c.ok = false
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) number(size int) int {
	n := 0
	for _, x := range c.take(size) {
		n = n<<8 | int(x)
	}
	return n
}

// part is a vector whose length stands before it in size bytes.
func (c *cursor) part(size int) []byte { return c.take(c.number(size)) }

func nameOf(body []byte) (string, error) {
	c := cursor{b: body, ok: true}
	c.take(2 + 32) // version, random
	if len(c.part(1)) > 32 {
		return "", errNoHello
	}
	c.part(2) // cipher suites
	c.part(1) // compression methods
	if !c.ok {
		return "", errNoHello
	}
	if len(c.b) == 0 {
		return "", nil // no extensions at all
	}
	ext := cursor{b: c.part(2), ok: c.ok}
	if !c.ok || len(c.b) != 0 {
		return "", errNoHello
	}
	name, seen := "", false
	for len(ext.b) > 0 && ext.ok {
		kind := ext.number(2)
		data := ext.part(2)
		if !ext.ok || kind != 0 {
			continue
		}
		list := cursor{b: data, ok: true}
		names := cursor{b: list.part(2), ok: list.ok}
		first := names.number(1)
		host := names.part(2)
		if seen || !list.ok || len(list.b) != 0 || !names.ok || len(names.b) != 0 || first != 0 || len(host) == 0 {
			return "", errNoHello
		}
		name, seen = string(host), true
	}
	if !ext.ok {
		return "", errNoHello
	}
	return name, nil
}
