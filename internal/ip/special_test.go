package ip

import (
	"net/netip"
	"testing"
)

func TestSpecial(t *testing.T) {
	for text, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "172.15.0.1": "", "172.32.0.1": "", "100.63.0.1": "", "100.128.0.1": "", "192.167.1.1": "",
		"198.17.0.1": "", "198.20.0.1": "", "223.255.255.255": "", "2606:4700::1111": "", "2a00:1450::1": "", "3fff:1000::1": "",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"127.0.0.1": "loopback", "127.255.255.255": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"64:ff9b::7f00:1": "loopback", "2002:7f00:1::": "loopback", "::127.0.0.1": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.0.1": "private",
		"::ffff:10.0.0.1": "private", "64:ff9b::a00:1": "private", "2002:a00:1::1": "private", "2002:c0a8:101::": "private",
		"169.254.169.254": "link-local", "169.254.0.1": "link-local", "fe80::1": "link-local", "febf::1": "link-local",
		"::ffff:169.254.169.254": "link-local", "64:ff9b::a9fe:a9fe": "link-local",
		"100.64.0.1": "shared", "100.127.255.255": "shared", "fc00::1": "unique local", "fd00:ec2::254": "unique local",
		"224.0.0.1": "multicast", "239.255.255.255": "multicast", "ff02::1": "multicast",
		"240.0.0.1": "reserved", "255.255.255.255": "reserved", "192.0.0.1": "reserved", "192.88.99.1": "reserved", "198.18.0.1": "reserved",
		"fec0::1": "reserved", "64:ff9b:1::1": "reserved", "100::1": "reserved", "2001::1": "reserved", "2001:0:7f00:1::": "reserved",
		"2001:10::1": "reserved", "5f00::1": "reserved",
		"192.0.2.1": "documentation", "198.51.100.1": "documentation", "203.0.113.1": "documentation", "2001:db8::1": "documentation", "3fff::1": "documentation",
	} {
		a := Addr(netip.MustParseAddr(text).As16())
		if got := a.Special(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{"169.254.169.254": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true,
		"fd00:ec2::254": true, "100.100.100.200": true, "169.254.170.2": true, "169.254.169.253": false, "8.8.8.8": false} {
		if got := Addr(netip.MustParseAddr(text).As16()).Metadata(); got != want {
			t.Errorf("%s is a metadata address: %v", text, got)
		}
	}
}

// FuzzSpecial: whatever net/netip calls something else than
// global is refused, and so is its IPv4 form inside IPv6.
func FuzzSpecial(f *testing.F) {
	f.Add([]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1})
	f.Add([]byte{0xfe, 0x80, 15: 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 16 {
			return
		}
		n := netip.AddrFrom16([16]byte(b)).Unmap()
		odd := n.IsPrivate() || n.IsLoopback() || n.IsUnspecified() || n.IsMulticast() || n.IsLinkLocalUnicast() || n.IsInterfaceLocalMulticast()
		if odd && Addr(b).Special() == "" {
			t.Fatalf("%s passes", n)
		}
	})
}
