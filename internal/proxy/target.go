package proxy

import (
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// target is where a request wants to go. Host is canonical: a lower-case name, or the
// canonical text of an address.
type target struct {
	host string
	port int
	addr ip.Addr // of a literal
	ip   bool
}

// authority is the target as a Host header names it.
func (t target) authority(dflt int) string {
	host := t.host
	if strings.IndexByte(host, ':') >= 0 {
		host = "[" + host + "]"
	}
	if t.port == dflt {
		return host
	}
	return host + ":" + strconv.Itoa(t.port)
}

// parseTarget reads "host:port". Without a port it is dflt, and 0 means that there must
// be one. Whatever has two readings is refused: what this program compares must be what
// any other program that sees the bytes connects to.
func parseTarget(s string, dflt int) (target, bool) {
	host, port := s, dflt
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return target{}, false
		}
		host = s[:end+1]
		if s = s[end+1:]; s != "" {
			if port = parsePort(strings.TrimPrefix(s, ":")); s[0] != ':' {
				return target{}, false
			}
		}
	} else if before, after, ok := strings.Cut(s, ":"); ok {
		host, port = before, parsePort(after)
	}
	if port == 0 {
		return target{}, false
	}
	t, ok := parseHost(host)
	t.port = port
	return t, ok
}

// parsePort returns 0 for what is none.
func parsePort(s string) int {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = n*10 + int(s[i]-'0')
	}
	if n > 65535 {
		return 0
	}
	return n
}

// parseHost reads a name, an IPv4 address, or an IPv6 address in brackets.
func parseHost(s string) (target, bool) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || strings.IndexByte(inner, ':') < 0 {
			return target{}, false
		}
		return parseLiteral(inner)
	}
	if len(s) > 253 || s == "" {
		return target{}, false
	}
	name := []byte(s)
	label := 0
	for i, c := range name {
		switch {
		case c == '.':
			if label == 0 {
				return target{}, false
			}
			label = 0
			continue
		case c >= 'A' && c <= 'Z':
			name[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return target{}, false
		}
		if label++; label > 63 {
			return target{}, false
		}
	}
	if label == 0 { // a dot at the end
		return target{}, false
	}
	s = string(name)
	if numeric(s[strings.LastIndexByte(s, '.')+1:]) {
		return parseLiteral(s)
	}
	return target{host: s}, true
}

// numeric reports a last label that some program takes for a part of an address.
func numeric(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return true
	}
	for i := 0; i < len(label); i++ {
		if label[i] < '0' || label[i] > '9' {
			return false
		}
	}
	return true
}

// parseLiteral takes an address in its one canonical spelling. IPv4 inside IPv6 has none.
func parseLiteral(s string) (target, bool) {
	a, ok := ip.Parse(s)
	if !ok || a.String() != s {
		return target{}, false
	}
	return target{host: s, addr: a, ip: true}, true
}
