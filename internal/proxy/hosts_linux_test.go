package proxy

import (
	"strconv"
	"strings"
	"testing"
)

// TestHosts is what each spelling of a host comes to, through both protocols.
func TestHosts(t *testing.T) {
	config := Config{Allow: []string{"api.example", "api.example:5432", "*.wild.example:5432", "metadata.example:5432", "both.example:5432", "mapped.example:5432",
		"nat64.example:5432", "sixtofour.example:5432", "ula.example:5432", "own.example:5432", "cgn.example:5432", "corp.example:5432", "denied.wild.example:5432",
		"missing.example:5432", "8.8.4.4:5432", "127.0.0.1:2375", "127.0.0.1:2376", "11.1.1.1:5432", "11.1.1.1:5433", "9.9.9.9:5432", "10.9.9.9:5432", "[2001:4860::1]:5432", "meta2.example:5432"},
		Deny: []string{"denied.wild.example", "9.9.9.0/24", "loopback:2375", "11.0.0.0/8:5432", "named"}, Private: []string{"10.1.0.0/16", "169.254.0.0/16"}}
	for _, tc := range []struct {
		authority string
		reason    string // "" passes
		dialed    string
	}{
		{"api.example:5432", "", "8.8.4.4 5432"},
		{"API.Example:5432", "", "8.8.4.4 5432"},
		{"a.wild.example:5432", "", "8.8.4.4 5432"},
		{"both.example:5432", "", "8.8.4.4 5432"},
		{"corp.example:5432", "", "10.1.2.3 5432"},
		{"8.8.4.4:5432", "", "8.8.4.4 5432"},
		{"10.9.9.9:5432", "", "10.9.9.9 5432"}, // listed as it stands
		{"[2001:4860::1]:5432", "", "2001:4860::1 5432"},
		{"127.0.0.1:2375", "denied", ""},
		{"127.0.0.1:2376", "", "127.0.0.1 2376"},
		{"11.1.1.1:5432", "denied", ""},
		{"11.1.1.1:5433", "", "11.1.1.1 5433"},
		{"9.9.9.9:5432", "denied", ""},
		{"api.example:80", "not-listed", ""},
		{"api.example:5433", "not-listed", ""},
		{"evil.example:5432", "not-listed", ""},
		{"wild.example:5432", "not-listed", ""},
		{"xwild.example:5432", "not-listed", ""},
		{"denied.wild.example:5432", "denied", ""},
		{"missing.example:5432", "unresolved", ""},
		{"metadata.example:5432", "rebinding", ""},
		{"meta2.example:5432", "rebinding", ""}, // a range around it is not enough
		{"mapped.example:5432", "rebinding", ""},
		{"nat64.example:5432", "rebinding", ""},
		{"sixtofour.example:5432", "rebinding", ""},
		{"ula.example:5432", "rebinding", ""},
		{"own.example:5432", "rebinding", ""},
		{"cgn.example:5432", "rebinding", ""},
		{"api.example.:5432", "malformed", ""},
		{"api..example:5432", "malformed", ""},
		{".api.example:5432", "malformed", ""},
		{"api%00.example:5432", "malformed", ""},
		{"api\x00.example:5432", "malformed", ""},
		{"evil.example@api.example:5432", "malformed", ""},
		{"api.example@evil.example:5432", "malformed", ""},
		{"äpi.example:5432", "malformed", ""},
		{"xn--pi-uia.example:5432", "not-listed", ""},
		{"2130706433:5432", "malformed", ""},
		{"0x7f.1:5432", "malformed", ""},
		{"0x7f000001:5432", "malformed", ""},
		{"127.1:5432", "malformed", ""},
		{"0177.0.0.1:5432", "malformed", ""},
		{"127.0.0.1:5432", "not-listed", ""},
		{"008.8.4.4:5432", "malformed", ""},
		{"[::ffff:127.0.0.1]:5432", "malformed", ""},
		{"[::ffff:8.8.4.4]:5432", "malformed", ""},
		{"[64:ff9b::808:404]:5432", "malformed", ""},
		{"[2001:4860:0::1]:5432", "malformed", ""},
		{"[2001:4860::1%eth0]:5432", "malformed", ""},
		{"[::1]:5432", "not-listed", ""},
		{"[api.example]:5432", "malformed", ""},
		{"api.example:05432", "malformed", ""},
		{"api.example:+5432", "malformed", ""},
		{"api.example:65536", "malformed", ""},
		{"api.example:0", "malformed", ""},
		{"api.example:", "malformed", ""},
		{"api.example", "malformed", ""}, // CONNECT needs a port
		{strings.Repeat("a", 64) + ".example:5432", "malformed", ""},
		{strings.Repeat("a.", 127) + "example:5432", "malformed", ""},
	} {
		for _, via := range []string{"connect", "socks"} {
			host, port, _ := cutPort(tc.authority)
			if via == "socks" && (strings.HasPrefix(tc.authority, "[") || port == 0 || len(host) > 255) {
				continue // SOCKS has forms of its own for these
			}
			b := newBench(t, config, names)
			b.origin[5432] = echoOrigin(t)
			b.origin[2376], b.origin[5433] = b.origin[5432], b.origin[5432]
			var out string
			if via == "connect" {
				out = say(t, b.http, "CONNECT "+tc.authority+" HTTP/1.1\r\nHost: x\r\n\r\nhello")
			} else {
				out = say(t, b.socks, socksRequest(3, append([]byte{byte(len(host))}, host...), port)+"hello")
			}
			e := b.last(t)
			if e.Reason != tc.reason || (e.Decision == "allow") != (tc.reason == "" || tc.reason == "unresolved") || e.Via != via && !(via == "connect" && tc.reason == "malformed") {
				t.Errorf("%s %q: %+v, want reason %q", via, tc.authority, e, tc.reason)
			}
			if got := strings.Join(b.dials(), ","); got != tc.dialed {
				t.Errorf("%s %q: connected to %q, want %q", via, tc.authority, got, tc.dialed)
			}
			if passed := strings.HasSuffix(out, "got hello"); passed != (tc.reason == "") {
				t.Errorf("%s %q: %q", via, tc.authority, out)
			}
			if via == "connect" && tc.reason != "" && !strings.Contains(out, "X-Atip-Denied: "+tc.reason) {
				t.Errorf("%s %q: answer %q", via, tc.authority, out)
			}
			if via == "socks" && tc.reason == "not-listed" && out != "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00" {
				t.Errorf("%s %q: answer %q", via, tc.authority, out)
			}
		}
	}
}

func cutPort(s string) (string, int, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
	if err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != s[i+1:] {
		n = 0
	}
	return s[:i], n, true
}
