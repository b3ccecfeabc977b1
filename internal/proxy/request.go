package proxy

import (
	"strconv"
	"strings"
)

// maxHead bounds the head of a request.
const maxHead = 16 << 10

// request is the head of one HTTP request. Only what has one reading becomes one.
type request struct {
	connect bool
	target  target
	length  int64 // of the body
	chunked bool

	method, path, version string
	fields                []field
}

// field is one header line.
type field struct{ name, value string }

// parseRequest reads a head that ends in an empty line. Sent to a proxy, it names its
// target as a whole URL; inside a tunnel to want, it names it in its Host field.
func parseRequest(head []byte, want *target) (request, bool) {
	text, ok := strings.CutSuffix(string(head), "\r\n\r\n")
	if !ok {
		return request{}, false
	}
	first, rest, _ := strings.Cut(text, "\r\n")
	method, uri, version, ok := requestLine(first)
	if !ok {
		return request{}, false
	}
	fields, ok := parseFields(rest)
	if !ok {
		return request{}, false
	}
	if method == "CONNECT" {
		t, ok := parseTarget(uri, 0)
		return request{connect: true, target: t}, ok && want == nil
	}
	r := request{method: method, path: uri, version: version, fields: fields}
	if want == nil || !strings.HasPrefix(uri, "/") && uri != "*" {
		if r.target, r.path, ok = parseURL(uri); !ok || want != nil && !same(r.target, *want) {
			return request{}, false
		}
	} else {
		r.target = *want
	}
	if !r.frame() {
		return request{}, false
	}
	return r, true
}

func same(a, b target) bool { return a.host == b.host && a.port == b.port }

// requestLine takes the three words of the first line.
func requestLine(line string) (method, uri, version string, ok bool) {
	method, rest, _ := strings.Cut(line, " ")
	uri, version, ok = strings.Cut(rest, " ")
	if !ok || !token(method) || uri == "" || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return "", "", "", false
	}
	for i := 0; i < len(uri); i++ {
		if uri[i] <= ' ' || uri[i] >= 0x7f || uri[i] == '#' {
			return "", "", "", false
		}
	}
	return method, uri, version, true
}

// parseURL splits "http://host[:port]/path".
func parseURL(uri string) (target, string, bool) {
	const scheme = "http://"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return target{}, "", false
	}
	authority, path := uri[len(scheme):], "/"
	if i := strings.IndexAny(authority, "/?\\"); i >= 0 {
		authority, path = authority[:i], authority[i:]
	}
	if path[0] == '\\' {
		return target{}, "", false
	}
	if path[0] == '?' {
		path = "/" + path
	}
	t, ok := parseTarget(authority, 80)
	return t, path, ok
}

func parseFields(text string) ([]field, bool) {
	var out []field
	if text == "" {
		return nil, true
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		// A line that goes on the one before starts with a blank, so its name is no token.
		if !ok || !token(name) {
			return nil, false
		}
		for i := 0; i < len(value); i++ {
			if value[i] < ' ' && value[i] != '\t' || value[i] == 0x7f {
				return nil, false
			}
		}
		out = append(out, field{strings.ToLower(name), strings.Trim(value, " \t")})
	}
	return out, true
}

// token is what RFC 9110 section 5.6.2 calls so.
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// frame checks what says where the request ends and whom it is for: two servers that
// disagree about either see different requests.
func (r *request) frame() bool {
	hosts, lengths := 0, 0
	for _, f := range r.fields {
		switch f.name {
		case "host":
			hosts++
			t, ok := parseTarget(f.value, 80)
			if !ok || !same(t, r.target) {
				return false
			}
		case "content-length":
			n, err := strconv.ParseInt(f.value, 10, 63)
			if err != nil || n < 0 || len(f.value) > 18 || f.value[0] < '0' || f.value[0] > '9' {
				return false
			}
			lengths++
			r.length = n
		case "transfer-encoding":
			if r.chunked || !strings.EqualFold(f.value, "chunked") || r.version == "HTTP/1.0" {
				return false
			}
			r.chunked = true
		case "connection":
			for name := range strings.SplitSeq(f.value, ",") {
				switch strings.ToLower(strings.Trim(name, " \t")) {
				case "host", "content-length", "transfer-encoding":
					return false
				}
			}
		}
	}
	return hosts <= 1 && lengths <= 1 && (hosts == 1 || r.version == "HTTP/1.0") && !(r.chunked && lengths > 0)
}

// head is what goes to the server, without the fields of this hop. The connection carries
// one request, so that no second one can name another host. Another proxy is told the
// whole URL.
func (r *request) head(next *upstream) []byte {
	drop := map[string]bool{"host": true, "connection": true, "proxy-connection": true, "proxy-authorization": true,
		"keep-alive": true, "te": true, "upgrade": true, "http2-settings": true, "trailer": true}
	for _, f := range r.fields {
		if f.name == "connection" {
			for name := range strings.SplitSeq(f.value, ",") {
				drop[strings.ToLower(strings.Trim(name, " \t"))] = true
			}
		}
	}
	authority, uri := r.target.authority(80), r.path
	if next != nil {
		uri = "http://" + authority + r.path
	}
	b := []byte(r.method + " " + uri + " " + r.version + "\r\nHost: " + authority + "\r\n")
	if next != nil {
		b = append(b, next.credentials()...)
	}
	for _, f := range r.fields {
		if !drop[f.name] {
			b = append(b, f.name+": "+f.value+"\r\n"...)
		}
	}
	return append(b, "Connection: close\r\n\r\n"...)
}
