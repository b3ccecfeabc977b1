package ip

import (
	"net/netip"
	"testing"
)

// The standard library is the oracle for what it reads at all.
func FuzzAddr(f *testing.F) {
	for _, s := range []string{"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "fe80::1", "2001:db8:0:0:1:0:0:1", "1:0:0:2::", "1.2.3.4", "1:2", "::1.2.3", "12345::", ":1", "1:::2", "0:0:0:0:0:0:0:0", "+1::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := netip.ParseAddr(s)
		if err != nil || want.Zone() != "" {
			return
		}
		got, ok := parseIPv6(s)
		if want.Is4() {
			got, ok = parseIPv4(s)
		}
		if !ok || got != Addr(want.As16()) {
			t.Fatalf("%q: %v %v, want %v", s, got, ok, want)
		}
		if got.String() != want.Unmap().String() {
			t.Fatalf("%q: %s, want %s", s, got, want.Unmap())
		}
	})
}

func TestAddrRefuses(t *testing.T) {
	for _, s := range []string{"", ":", "1:2", ":::", "1::2::3", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::", "g::", "::1.2.3", "1.2.3.4::", "+1::", "1:2:3:4:5:6:7:1.2.3.4"} {
		if a, ok := parseIPv6(s); ok {
			t.Errorf("%q is %v", s, a)
		}
		if _, err := netip.ParseAddr(s); err == nil {
			t.Errorf("%q is an address after all", s)
		}
	}
	for _, s := range []string{"10.0.0.0/33", "10/8", "::/129", "x/8", "10.0.0.0/", "10.0.0.0/-1"} {
		if c, ok := ParseCIDR(s); ok {
			t.Errorf("%q is %v", s, c)
		}
	}
	for _, row := range []struct {
		cidr, addr string
		want       bool
	}{{"10.0.0.0/8", "10.255.0.1", true}, {"10.0.0.0/9", "10.128.0.1", false}, {"0.0.0.0/0", "1.2.3.4", true}, {"0.0.0.0/0", "fe80::1", false}, {"fc00::/7", "fd00::1", true}, {"::/0", "1.2.3.4", true}} {
		c, ok := ParseCIDR(row.cidr)
		a, ok2 := Parse(row.addr)
		if !ok || !ok2 || c.Contains(a) != row.want {
			t.Errorf("%s in %s: %v", row.addr, row.cidr, c.Contains(a))
		}
	}
}
