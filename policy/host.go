package policy

import (
	"net/netip"
	"strconv"
	"strings"
)

// HostUseOf classifies a host as it stands in a URL or an argument. Addresses are
// normalised first, in every spelling inet_aton takes (decimal, octal,
// hexadecimal, shortened) and unwrapped when IPv4 travels inside IPv6.
func HostUseOf(host string, port int) HostUse {
	h := strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if a, ok := parseAddr(h); ok {
		return HostUse{Host: a.String(), Port: port, Kind: addrKind(a)}
	}
	use := HostUse{Host: h, Port: port}
	switch {
	case h == "metadata.google.internal" || h == "metadata.goog" || h == "metadata":
		use.Kind = HostMetadata
	case h == "localhost" || strings.HasSuffix(h, ".localhost") || h == "ip6-localhost" || h == "localhost.localdomain":
		use.Kind = HostLoopback
	}
	return use
}

func parseAddr(h string) (netip.Addr, bool) {
	if i := strings.IndexByte(h, '%'); i >= 0 {
		h = h[:i] // a zone does not change where the address is
	}
	if strings.IndexByte(h, ':') >= 0 {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return netip.Addr{}, false
		}
		return unwrap(a), true
	}
	return parseIPv4(h)
}

// parseIPv4 reads what inet_aton(3) reads: one to four parts, each decimal, octal
// with a leading 0 or hexadecimal with 0x; the last part fills the rest.
func parseIPv4(h string) (netip.Addr, bool) {
	parts := strings.Split(h, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		if p == "" || p[0] < '0' || p[0] > '9' {
			return netip.Addr{}, false
		}
		n, err := parseAton(p)
		if err != nil {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return netip.Addr{}, false
			}
			v |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(4-i)) {
			return netip.Addr{}, false
		}
		v |= n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
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

// unwrap takes the IPv4 address out of mapped, NAT64 (64:ff9b::/96), 6to4
// (2002::/16) and IPv4-compatible IPv6 addresses.
func unwrap(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b && zero(b[4:12]), zero(b[:12]) && !zero(b[12:15]):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func addrKind(a netip.Addr) HostKind {
	switch a.String() {
	case "169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254":
		return HostMetadata
	}
	cgnat := a.Is4() && a.As4()[0] == 100 && a.As4()[1]&0xc0 == 64
	switch {
	case a.IsLoopback(), a.IsUnspecified():
		return HostLoopback
	case a.IsPrivate(), a.IsLinkLocalUnicast(), a.IsMulticast(), cgnat:
		return HostPrivate
	}
	return HostPublic
}

// hostPattern is one entry of a host list: a kind, a name, "*.suffix" or a CIDR,
// with or without a port.
type hostPattern struct {
	text   string
	kind   HostKind
	isKind bool
	name   string // exact, lower case
	suffix string // with the leading dot
	prefix netip.Prefix
	port   int
}

func parseHostPattern(text string) (hostPattern, bool) {
	h := hostPattern{text: text}
	s := strings.ToLower(text)
	if s == "" {
		return h, false
	}
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (strings.Count(s, ":") == 1 || s[0] == '[' && s[i-1] == ']') {
		port, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || port == 0 {
			return h, false
		}
		h.port, s = int(port), s[:i]
	}
	for k := HostPublic; k <= HostMetadata; k++ {
		if s == k.String() {
			h.kind, h.isKind = k, true
			return h, true
		}
	}
	s = strings.Trim(s, "[]")
	switch {
	case strings.IndexByte(s, '/') >= 0:
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return h, false
		}
		h.prefix = p.Masked()
	case strings.HasPrefix(s, "*."):
		h.suffix = s[1:]
		return h, len(s) > 2 && validName(s[2:])
	default:
		if a, ok := parseAddr(s); ok {
			h.name = a.String()
			return h, true
		}
		h.name = s
		return h, validName(s)
	}
	return h, true
}

func validName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

// match reports whether the pattern covers the use. A pattern without a port
// covers every port: for a rule that denies this is the strict reading; allow
// lists add their own port test.
func (h hostPattern) match(u HostUse) bool {
	if h.port != 0 && h.port != u.Port {
		return false
	}
	switch {
	case h.isKind:
		return u.Kind == h.kind
	case h.prefix.IsValid():
		a, ok := parseAddr(u.Host)
		return ok && h.prefix.Contains(a)
	case h.suffix != "":
		return strings.HasSuffix(u.Host, h.suffix) && len(u.Host) > len(h.suffix)
	}
	return u.Host == h.name
}

// listed is match for an allow list: a host alone means its port 443, and an
// unstated port of the use counts as 443 too.
func (h hostPattern) listed(u HostUse) bool {
	if h.isKind {
		return h.match(u)
	}
	if h.port == 0 {
		h.port = 443
	}
	if u.Port == 0 {
		u.Port = 443
	}
	return h.match(u) && u.Kind != HostMetadata
}
