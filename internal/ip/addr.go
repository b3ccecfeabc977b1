// Package ip reads and classifies IP addresses. Package net/netip would do, but it costs
// every command its package initialisation.
package ip

import (
	"slices"
	"strconv"
	"strings"
)

// Addr is an IP address, IPv4 in its IPv6-mapped form.
type Addr [16]byte

// V4 is the IPv4 address a.b.c.d.
func V4(a, b, c, d byte) Addr { return Addr{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d} }

// Is4 reports an IPv4 address.
func (a Addr) Is4() bool { return zero(a[:10]) && a[10] == 0xff && a[11] == 0xff }

func zero(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// Parse reads an address in every spelling that connects to it; IPv4 that
// travels inside IPv6 is unwrapped.
func Parse(h string) (Addr, bool) {
	if strings.IndexByte(h, ':') < 0 {
		return parseIPv4(h)
	}
	h, _, _ = strings.Cut(h, "%") // a zone does not change where the address is
	a, ok := parseIPv6(h)
	return a.Unwrap(), ok
}

// parseIPv4 reads what inet_aton(3) reads: one to four parts, each decimal, octal
// with a leading 0 or hexadecimal with 0x; the last part fills the rest.
func parseIPv4(h string) (Addr, bool) {
	parts := strings.Split(h, ".")
	if len(parts) > 4 {
		return Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		if p == "" || p[0] < '0' || p[0] > '9' {
			return Addr{}, false
		}
		n, err := parseAton(p)
		if err != nil {
			return Addr{}, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return Addr{}, false
			}
			v |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(4-i)) {
			return Addr{}, false
		}
		v |= n
	}
	return V4(byte(v>>24), byte(v>>16), byte(v>>8), byte(v)), true
}

func parseAton(p string) (uint64, error) {
	switch {
	case strings.HasPrefix(p, "0x"):
		return strconv.ParseUint(p[2:], 16, 64)
	case len(p) > 1 && p[0] == '0':
		return strconv.ParseUint(p[1:], 8, 64)
	}
	return strconv.ParseUint(p, 10, 64)
}

// parseIPv6 reads RFC 4291 text: eight groups, one run of zeros as "::", the last
// four bytes dotted if wanted.
func parseIPv6(h string) (Addr, bool) {
	head, tail, gap := strings.Cut(h, "::")
	left, ok1 := groups(head, !gap)
	right, ok2 := groups(tail, true)
	if !ok1 || !ok2 {
		return Addr{}, false
	}
	n := len(left) + len(right)
	if gap && n > 14 || !gap && n != 16 {
		return Addr{}, false
	}
	var a Addr
	copy(a[:], left)
	copy(a[16-len(right):], right)
	return a, true
}

// groups reads colon-separated groups; dotted says that they may end in IPv4.
func groups(s string, dotted bool) ([]byte, bool) {
	if s == "" {
		return nil, true
	}
	var out []byte
	parts := strings.Split(s, ":")
	for i, p := range parts {
		if dotted && i == len(parts)-1 && strings.IndexByte(p, '.') >= 0 {
			a, ok := parseIPv4(p)
			if !ok || strings.Count(p, ".") != 3 {
				return nil, false
			}
			out = append(out, a[12:]...)
			continue
		}
		n, err := strconv.ParseUint(p, 16, 16)
		if err != nil || len(p) > 4 || p[0] == '+' {
			return nil, false
		}
		out = append(out, byte(n>>8), byte(n))
	}
	return out, len(out) <= 16
}

// Unwrap takes the IPv4 address out of NAT64 (64:ff9b::/96), 6to4 (2002::/16) and
// IPv4-compatible addresses.
func (a Addr) Unwrap() Addr {
	switch {
	case a[0] == 0 && a[1] == 0x64 && a[2] == 0xff && a[3] == 0x9b && zero(a[4:12]), zero(a[:12]) && !zero(a[12:15]):
		return V4(a[12], a[13], a[14], a[15])
	case a[0] == 0x20 && a[1] == 0x02:
		return V4(a[2], a[3], a[4], a[5])
	}
	return a
}

// String is the canonical text: dotted, or RFC 5952.
func (a Addr) String() string {
	if a.Is4() {
		b := strconv.AppendInt(nil, int64(a[12]), 10)
		for _, c := range a[13:] {
			b = strconv.AppendInt(append(b, '.'), int64(c), 10)
		}
		return string(b)
	}
	start, length := -1, 1 // the longest run of at least two zero groups
	for i := range 8 {
		n := 0
		for i+n < 8 && a[2*(i+n)] == 0 && a[2*(i+n)+1] == 0 {
			n++
		}
		if n > length {
			start, length = i, n
		}
	}
	var b []byte
	for i := 0; i < 8; i++ {
		if i == start {
			b = append(b, "::"...)
			i += length - 1
			continue
		}
		if len(b) > 0 && b[len(b)-1] != ':' {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(a[2*i])<<8|uint64(a[2*i+1]), 16)
	}
	return string(b)
}

// CIDR is a range of addresses; bits counts in the IPv6 form.
type CIDR struct {
	base Addr
	bits int
}

// ParseCIDR reads an address range, "10.0.0.0/8".
func ParseCIDR(s string) (CIDR, bool) {
	host, length, _ := strings.Cut(s, "/")
	var a Addr
	ok := false
	if strings.IndexByte(host, ':') >= 0 {
		a, ok = parseIPv6(host)
	} else {
		a, ok = parseIPv4(host)
		ok = ok && strings.Count(host, ".") == 3
	}
	n, err := strconv.ParseUint(length, 10, 8)
	if a.Is4() && strings.IndexByte(host, ':') < 0 {
		n += 96
	}
	return CIDR{a, int(n)}, ok && err == nil && n <= 128
}

// Contains reports whether a lies in the range.
func (c CIDR) Contains(a Addr) bool {
	whole := c.bits / 8
	if string(a[:whole]) != string(c.base[:whole]) {
		return false
	}
	rest := c.bits % 8
	return rest == 0 || (a[whole]^c.base[whole])>>(8-rest) == 0
}

// Single reports a range of one address.
func (c CIDR) Single() bool { return c.bits == 128 }
