// Package hostword finds the hosts in a word of a command line that no document calls text: a URL, user@host:, host=, host:port, an address in any spelling. A tool that has the
// network may connect to any of them.
package hostword

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// Host is one host that a word names. Its name may hold a NUL where the reader of shell
// strings could not know the word.
type Host struct {
	Scheme string // lower case, "" without one
	Name   string // lower case, without brackets
	Port   int    // 0 if the word does not say
}

const maxParts = 32 // of a list in one word

// In finds the hosts of a word. name is that of the option or argument whose value it is, ""
// if it has none.
func In(name, word string) []Host {
	var f finder
	f.word(strings.ToLower(name), strings.ToLower(word), 0)
	return f.found
}

type finder struct{ found []Host }

func (f *finder) add(h Host) {
	if slices.Contains(f.found, h) {
		return
	}
	f.found = append(f.found, h)
}

func (f *finder) word(name, w string, depth int) {
	if w == "" || depth > 4 {
		return
	}
	if fields := strings.Fields(w); len(fields) > 1 {
		f.fields(fields, depth)
		return
	}
	if strings.Contains(w, "://") {
		f.urls(w)
		return
	}
	if last(name) == "inventory" && strings.Contains(w, ",") {
		// ansible -i host1,host2,
		for _, p := range strings.Split(w, ",") {
			if host, port := split(p); isHost(host) {
				f.add(Host{Name: host, Port: port})
			}
		}
		return
	}
	if parts := strings.FieldsFunc(w, func(r rune) bool { return r == ',' || r == ';' }); len(parts) > 1 && len(parts) <= maxParts {
		for _, p := range parts {
			f.word(name, p, depth+1)
		}
		return
	}
	if key, value, ok := strings.Cut(w, "="); ok && isName(key) {
		f.word(key, value, depth+1)
		return
	}
	if listens(name) {
		return
	}
	if h, ok := remote(w); ok {
		f.add(h)
		return
	}
	if h, ok := endpoint(w); ok {
		f.add(h)
		return
	}
	if h, ok := named(name, w); ok {
		f.add(h)
	}
}

// fields reads a word with blanks: a connection string such as "host=db user=u", or a list
// that begins with a URL. Anything else is text.
func (f *finder) fields(fields []string, depth int) {
	pairs := true
	for _, x := range fields {
		key, _, ok := strings.Cut(x, "=")
		pairs = pairs && ok && isName(key)
	}
	switch {
	case pairs && len(fields) <= maxParts:
		for _, x := range fields {
			f.word("", x, depth+1)
		}
	case strings.Contains(fields[0], "://"):
		f.urls(fields[0])
	}
}

// urls finds each scheme://host in a word; one may stand inside another, as in git::https://h.
func (f *finder) urls(w string) {
	for range maxParts {
		i := strings.Index(w, "://")
		if i < 0 {
			return
		}
		from := i
		for from > 0 && schemeByte(w[from-1]) {
			from--
		}
		scheme, rest := w[from:i], w[i+len("://"):]
		if h := authority(rest); h.Name != "" && !hostless(scheme) {
			h.Scheme = scheme
			f.add(h)
		}
		w = rest
	}
}

// hostless names schemes behind which no host of the network stands: files, sockets, and
// names in a service of the tool's own.
func hostless(scheme string) bool {
	switch scheme {
	case "file", "unix", "npipe", "fd", "data", "about", "mem", "memory", "sqlite", "sqlite3", "dir", "oci-archive", "docker-archive", "containers-storage", "docker-daemon", "docker-image", "oci-layout",
		"s3", "s3a", "s3n", "gs", "gcs", "az", "azblob", "abfs", "abfss", "wasb", "wasbs", "hdfs", "dbfs", "r2", "b2", "op", "keyring", "env", "arn", "vscode", "chrome", "node", "resource", "classpath":
		return true
	}
	return false
}

// authority reads [user@]host[:port] in front of a path, as a URL has it.
func authority(s string) Host {
	if i := strings.IndexAny(s, "/?#\\,;\"'<> "); i >= 0 {
		s = s[:i]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	name, port := split(s)
	return Host{Name: name, Port: port}
}

// split parts host and port; one that is no number counts as none.
func split(s string) (string, int) {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		name, after, closed := strings.Cut(rest, "]")
		if !closed {
			return "", 0
		}
		return name, number(strings.TrimPrefix(after, ":"))
	}
	if strings.Count(s, ":") > 1 {
		return s, 0 // an IPv6 address without brackets
	}
	name, port, _ := strings.Cut(s, ":")
	return strings.TrimSuffix(name, "."), number(port)
}

func number(s string) int {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil {
		return int(n)
	}
	return 0
}

// remote reads user@host:path.
func remote(w string) (Host, bool) {
	user, rest, ok := strings.Cut(w, "@")
	if !ok || user == "" || strings.ContainsAny(user, "/:") {
		return Host{}, false
	}
	if strings.HasPrefix(rest, "[") {
		name, port := split(rest)
		_, address := ip.Parse(name)
		return Host{Name: name, Port: port}, address
	}
	host, path, ok := strings.Cut(rest, ":")
	if !ok || path == "" || host == "" || !isHost(host) || notHost(host) {
		return Host{}, false
	}
	return Host{Name: strings.TrimSuffix(host, "."), Port: number(path)}, true
}

// notHost names what stands between @ and : and is no host: the kind of a digest, or the way
// in which a package is referred to.
func notHost(s string) bool {
	switch s {
	case "sha1", "sha256", "sha384", "sha512", "md5", "blake3", "npm", "jsr", "workspace", "file", "link", "portal", "patch", "catalog":
		return true
	}
	return false
}

// endpoint reads an address, with or without a port, and host:port, each perhaps in front of a
// path.
func endpoint(w string) (Host, bool) {
	s, _, _ := strings.Cut(w, "/")
	if strings.HasPrefix(s, "[") || strings.Count(s, ":") > 1 {
		name, port := split(s)
		_, ok := ip.Parse(name)
		return Host{Name: name, Port: port}, ok && strings.ContainsAny(name, "0123456789")
	}
	name, text, colon := strings.Cut(s, ":")
	name = strings.TrimSuffix(name, ".")
	port := number(text)
	if isAddress(name, colon && port > 0) {
		return Host{Name: name, Port: port}, true
	}
	if port == 0 || !isHost(name) {
		return Host{}, false
	}
	// Without a dot it may be the tag of an image, lines of a file, a pair of ids.
	return Host{Name: name, Port: port}, dotted(name) || name == "localhost" || port >= 1024 && letter(name[0])
}

// isAddress reports an address. What inet_aton(3) takes is wide: "1.2" and "42" are addresses
// to it. Fewer than four parts count where nobody writes a version or a number so: in hex or
// octal, in front of a port, or where they lead to this machine or a metadata service.
func isAddress(s string, port bool) bool {
	a, ok := ip.Parse(s)
	if !ok {
		return false
	}
	parts := strings.Split(s, ".")
	if len(parts) == 4 {
		return true
	}
	big := a[12] != 0 // a number that is no count
	for _, p := range parts {
		if strings.HasPrefix(p, "0x") && big || len(parts) > 1 && len(p) > 1 && p[0] == '0' && big {
			return true
		}
	}
	if len(parts) > 1 {
		return port && big && len(parts) > 2 || a[12] == 127 || a.Metadata()
	}
	return port && big
}

// isHost reports letters, digits, dots, dashes and underscores, and a NUL for what is not known.
func isHost(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == 0 || c >= 0x80) {
			return false
		}
	}
	return s != ""
}

// dotted reports a name that a resolver outside knows: dots, and letters behind the last one.
func dotted(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return i > 0 && i+2 < len(s) && letter(s[i+1])
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0x80 }

// named reads the value of something that is called host, server, url and the like.
func named(name, w string) (Host, bool) {
	s, path, _ := strings.Cut(w, "/")
	host, text, _ := strings.Cut(s, ":")
	switch last(name) {
	case "host", "hostname", "hostaddr", "server", "pghost", "pghostaddr":
		if !isHost(host) || !letter(host[0]) && !dotted(host) || host == "true" || host == "false" {
			return Host{}, false
		}
	case "hosts", "servers", "addr", "address", "addresses", "endpoint", "endpoints", "url", "uri", "registry", "proxy", "gateway", "broker", "brokers", "peer", "upstream":
		if !isHost(host) || !dotted(host) && host != "localhost" {
			return Host{}, false
		}
	case "repo", "repository":
		if !isHost(host) || !dotted(host) || strings.Count(path, "/") == 0 {
			return Host{}, false
		}
	default:
		return Host{}, false
	}
	return Host{Name: strings.TrimSuffix(host, "."), Port: number(text)}, true
}

// last is the part of a name that says what it is: "url" of "api-url".
func last(name string) string { return name[strings.LastIndexAny(name, "-_.")+1:] }

// listens reports an option that says where a server waits: nothing is reached there.
func listens(name string) bool {
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		switch part {
		case "bind", "listen", "listener", "listening":
			return true
		}
	}
	return false
}

func isName(s string) bool {
	s = strings.TrimLeft(s, "-")
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return false
		}
	}
	return s != ""
}

func schemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}

// Remote reads [user@]host:path and host::module, as tools that copy over ssh take them. The
// port is that of ssh, or of the daemon of rsync.
func Remote(word string) (Host, bool) {
	if strings.Contains(word, "://") {
		return Host{}, false
	}
	host, path, ok := strings.Cut(strings.ToLower(word), ":")
	if strings.HasPrefix(word, "[") || strings.Contains(word, "@[") {
		inner, _, closed := strings.Cut(word[strings.IndexByte(word, '[')+1:], "]")
		host, path, ok = strings.ToLower(inner), "", closed
		return Host{Name: host, Port: 22}, ok
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if !ok || !isHost(host) {
		return Host{}, false
	}
	if strings.HasPrefix(path, ":") {
		return Host{Name: host, Port: 873}, true
	}
	return Host{Name: host, Port: 22}, true
}
