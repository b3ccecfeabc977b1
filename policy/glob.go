package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// globMatch matches s against a pattern in which * stands for any run of
// characters and ? for one. It backtracks to the last star only, so its cost is
// at most len(p)*len(s).
func globMatch(p, s string) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si < len(s) {
		switch {
		case pi < len(p) && p[pi] == '*':
			pi++
			star, mark = pi, si
		case pi < len(p) && (p[pi] == s[si] || p[pi] == '?'):
			pi++
			si++
		case star >= 0:
			mark++
			pi, si = star, mark
		default:
			return false
		}
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}

// pathGlob matches component by component: * and ? stay within one, ** stands for
// any number of components, none included.
func pathGlob(p, s string) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si <= len(s) {
		if pi <= len(p) {
			pc, pn := component(p, pi)
			if pc == "**" {
				pi = pn
				star, mark = pi, si
				continue
			}
			if sc, sn := component(s, si); globMatch(pc, sc) {
				pi, si = pn, sn
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, mark = component(s, mark)
		pi, si = star, mark
	}
	for pi <= len(p) {
		c, next := component(p, pi)
		if c != "**" {
			return false
		}
		pi = next
	}
	return true
}

// component returns the path component at i and where the next one starts, which
// is len(s)+1 after the last.
func component(s string, i int) (string, int) {
	for j := i; j < len(s); j++ {
		if s[j] == '/' {
			return s[i:j], j + 1
		}
	}
	return s[i:], len(s) + 1
}

func anyGlob(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return globMatch(p, s) })
}

func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

func contains[T comparable](list []T, x T) bool {
	return slices.ContainsFunc(list, func(y T) bool { return x == y })
}

// Matches reports whether the rule, one of paths.secret or paths.protected, names this
// absolute path or a directory above.
func (r PathRule) Matches(abs, workspace string) bool { return matchPath(r.Path, abs, workspace) }

// matchPath matches a pattern that is absolute, relative to the workspace, or a bare name
// anywhere.
func matchPath(pattern, abs, workspace string) bool {
	switch {
	case abs == "":
		return false
	case pattern[0] == '/':
		return pathGlob(pattern, abs) || pathGlob(pattern+"/**", abs)
	case strings.HasPrefix(pattern, "~/"):
		return pathGlob("**/"+pattern[2:], abs)
	case strings.IndexByte(pattern, '/') < 0:
		return pathGlob("**/"+pattern, abs) || pathGlob("**/"+pattern+"/**", abs)
	}
	return workspace != "" && (pathGlob(workspace+"/"+pattern, abs) || pathGlob(workspace+"/"+pattern+"/**", abs))
}

// HostUseOf classifies a host as it stands in a URL or an argument. Addresses are
// normalised first, in every spelling inet_aton takes (decimal, octal,
// hexadecimal, shortened) and unwrapped when IPv4 travels inside IPv6.
func HostUseOf(host string, port int) HostUse {
	h := strings.ToLower(strings.TrimRight(strings.TrimLeft(host, "["), "]."))
	if a, ok := ip.Parse(h); ok {
		return HostUse{Host: a.String(), Port: port, Kind: addressKind(a)}
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

// hostPattern is one entry of a host list: a kind, a name, "*.suffix" or a CIDR,
// with or without a port.
type hostPattern struct {
	text   string
	kind   HostKind
	isKind bool
	name   string // exact, lower case
	suffix string // with the leading dot
	prefix ip.CIDR
	ranged bool
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
		h.prefix, h.ranged = ip.ParseCIDR(s)
		return h, h.ranged
	case strings.HasPrefix(s, "*."):
		h.suffix = s[1:]
		return h, len(s) > 2 && validName(s[2:])
	default:
		if a, ok := ip.Parse(s); ok {
			h.name = a.String()
			return h, true
		}
		h.name = s
		return h, validName(s)
	}
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
	case h.ranged:
		a, ok := ip.Parse(u.Host)
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
	h.port = cmp.Or(h.port, 443)
	u.Port = cmp.Or(u.Port, 443)
	return h.match(u) && u.Kind != HostMetadata
}

// addressKind says what connecting to an address means.
func addressKind(a ip.Addr) HostKind {
	if a.Metadata() {
		return HostMetadata
	}
	if a.Is4() {
		b := a[12:]
		switch {
		case b[0] == 127, b[0] == 0:
			return HostLoopback
		case b[0] == 10, b[0] == 172 && b[1]&0xf0 == 16, b[0] == 192 && b[1] == 168, b[0] == 169 && b[1] == 254,
			b[0] == 100 && b[1]&0xc0 == 64, b[0] >= 224:
			return HostPrivate // RFC 1918, link local, RFC 6598, multicast and reserved
		}
		return HostPublic
	}
	switch {
	case [15]byte(a[:15]) == [15]byte{} && a[15] <= 1:
		return HostLoopback // :: connects to this machine too
	case a[0]&0xfe == 0xfc, a[0] == 0xfe && a[1]&0x80 != 0, a[0] == 0xff:
		return HostPrivate // unique local, link and site local, multicast
	}
	return HostPublic
}
