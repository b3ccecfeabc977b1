package proxy

import (
	"net"
	"strings"
	"testing"
)

// socksRequest is a greeting and a CONNECT.
func socksRequest(kind byte, host []byte, port int) string {
	return "\x05\x01\x00\x05\x01\x00" + string(kind) + string(host) + string([]byte{byte(port >> 8), byte(port)})
}

func TestSOCKS(t *testing.T) {
	config := Config{Allow: []string{"8.8.4.4:5432", "[2001:4860::1]:5432"}}
	six := []byte(net.ParseIP("2001:4860::1").To16())
	mapped := []byte(net.ParseIP("8.8.4.4").To16())
	for name, tc := range map[string]struct{ say, want, reason string }{
		"address":         {socksRequest(1, []byte{8, 8, 4, 4}, 5432), "\x05\x00\x05\x00", ""},
		"IPv6":            {socksRequest(4, six, 5432), "\x05\x00\x05\x00", ""},
		"other address":   {socksRequest(1, []byte{127, 0, 0, 1}, 5432), "\x05\x00\x05\x02", "not-listed"},
		"mapped address":  {socksRequest(4, mapped, 5432), "\x05\x00\x05\x02", "malformed"},
		"BIND":            {"\x05\x01\x00\x05\x02\x00\x01\x08\x08\x04\x04\x15\x38", "\x05\x00\x05\x07", "method"},
		"UDP":             {"\x05\x01\x00\x05\x03\x00\x01\x08\x08\x04\x04\x15\x38", "\x05\x00\x05\x07", "method"},
		"unknown type":    {"\x05\x01\x00\x05\x01\x00\x02\x08\x08\x04\x04\x15\x38", "\x05\x00\x05\x08", "malformed"},
		"no password":     {"\x05\x01\x02", "\x05\xff", "-"},
		"SOCKS4":          {"\x04\x01\x15\x38\x08\x08\x04\x04\x00", "\x05\xff", "-"},
		"empty name":      {socksRequest(3, []byte{0}, 5432), "\x05\x00\x05\x02", "malformed"},
		"name in braces":  {socksRequest(3, append([]byte{14}, "[2001:4860::1]"...), 5432), "\x05\x00\x05\x02", "malformed"},
		"no more of it":   {"\x05\x01\x00\x05\x01", "\x05\x00", "-"},
		"reserved is set": {"\x05\x01\x00\x05\x01\x01\x01\x08\x08\x04\x04\x15\x38", "\x05\x00", "-"},
		"port 0":          {socksRequest(1, []byte{8, 8, 4, 4}, 0), "\x05\x00\x05\x02", "malformed"},
	} {
		b := newBench(t, config, names)
		b.origin[5432] = echoOrigin(t)
		out := say(t, b.socks, tc.say)
		if !strings.HasPrefix(out, tc.want) || tc.want == out[:min(2, len(out))] && len(out) != 2 {
			t.Errorf("%s: %q, want %q", name, out, tc.want)
		}
		if tc.reason == "-" {
			if n := len(b.server.report().Log); n != 0 {
				t.Errorf("%s: %d entries", name, n)
			}
		} else if e := b.last(t); e.Reason != tc.reason {
			t.Errorf("%s: %+v", name, e)
		}
		if dialed := len(b.dials()) > 0; dialed != (tc.reason == "") {
			t.Errorf("%s: connected: %v", name, dialed)
		}
	}
}
