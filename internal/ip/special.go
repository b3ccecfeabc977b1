package ip

// Special says why an address is no host of the public internet, "" if it is one. IPv4
// that travels inside IPv6 counts as what it leads to. Names that others register can
// resolve to any address, so this is what stands between a name and a service that
// trusts its network.
func (a Addr) Special() string {
	if in := a.Unwrap(); in != a {
		return in.Special()
	}
	if a.Is4() {
		return special4(a[12], a[13], a[14])
	}
	switch {
	case a == Addr{}:
		return "unspecified"
	case a == Addr{15: 1}:
		return "loopback"
	case a[0]&0xfe == 0xfc:
		return "unique local"
	case a[0] == 0xfe && a[1]&0xc0 == 0x80:
		return "link-local"
	case a[0] == 0xff:
		return "multicast"
	case a[0]&0xe0 != 0x20: // all that is assigned to hosts is in 2000::/3
		return "reserved"
	case a[0] == 0x20 && a[1] == 0x01 && a[2] < 0x02: // protocol assignments: Teredo, ORCHID, benchmarks
		return "reserved"
	case a[0] == 0x20 && a[1] == 0x01 && a[2] == 0x0d && a[3] == 0xb8, a[0] == 0x3f && a[1] == 0xff && a[2] < 0x10:
		return "documentation"
	}
	return ""
}

// special4 looks at the first three bytes; the registry is IANA's of special-purpose
// addresses (RFC 6890).
func special4(a, b, c byte) string {
	switch {
	case a == 0:
		return "unspecified"
	case a == 127:
		return "loopback"
	case a == 10, a == 172 && b&0xf0 == 16, a == 192 && b == 168:
		return "private"
	case a == 169 && b == 254:
		return "link-local"
	case a == 100 && b&0xc0 == 64:
		return "shared"
	case a >= 224 && a < 240:
		return "multicast"
	case a >= 240, a == 192 && b == 0 && c == 0, a == 192 && b == 88 && c == 99, a == 198 && b&0xfe == 18:
		return "reserved"
	case a == 192 && b == 0 && c == 2, a == 198 && b == 51 && c == 100, a == 203 && b == 0 && c == 113:
		return "documentation"
	}
	return ""
}

// Metadata reports an address at which clouds hand out credentials to whoever asks.
func (a Addr) Metadata() bool {
	switch a.Unwrap().String() {
	case "169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254":
		return true
	}
	return false
}
