package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// reader walks the JSON tree of one document. The first error sticks; everything
// read after it is dropped with the document.
type reader struct {
	src Source
	err *ParseError

	warnings []string // what has no effect, for a person
}

func (r *reader) fail(n *atip.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &ParseError{Code: errcode.PolicySyntax, File: r.src.File, Line: n.Line, Col: n.Col, Msg: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) failKey(n *atip.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &ParseError{Code: errcode.PolicySyntax, File: r.src.File, Line: n.KeyLine, Col: n.KeyCol, Msg: fmt.Sprintf(format, args...)}
	}
}

// refuse turns an error of the JSON reader into one of ours.
func (r *reader) refuse(err error) *ParseError {
	pe := &ParseError{Code: errcode.PolicySyntax, File: r.src.File, Msg: err.Error()}
	var de *atip.DocError
	if errors.As(err, &de) {
		pe.Line, pe.Col, pe.Msg = de.Line, de.Col, de.Msg
	}
	return pe
}

// object calls member for each member but comments ("$schema", "x-..."); member
// reports whether it knows the key.
func (r *reader) object(n *atip.Node, what string, member func(key string, v *atip.Node) bool) {
	if n.Kind != atip.KindObject {
		r.fail(n, "%s must be an object", what)
		return
	}
	for _, m := range n.Items {
		if r.err != nil {
			return
		}
		if strings.HasPrefix(m.Key, "x-") || m.Key == "$schema" {
			continue
		}
		if !member(m.Key, m) {
			r.failKey(m, "unknown key %q in %s", m.Key, what)
		}
	}
}

// settings says what reads the value of each key of an object.
type settings map[string]func(v *atip.Node)

// keys reads an object that has these keys and no others.
func (r *reader) keys(n *atip.Node, what string, read settings) {
	r.object(n, what, func(key string, v *atip.Node) bool {
		one, known := read[key]
		if known {
			one(v)
		}
		return known
	})
}

// entries calls entry for each member of an object whose keys are data.
func (r *reader) entries(n *atip.Node, entry func(key string, v *atip.Node)) {
	if n.Kind != atip.KindObject {
		r.fail(n, "%s must be an object", n.Key)
		return
	}
	for _, m := range n.Items {
		if r.err != nil {
			return
		}
		entry(m.Key, m)
	}
}

func (r *reader) str(n *atip.Node) string {
	if n.Kind != atip.KindString {
		r.fail(n, "%s must be a string", label(n))
		return ""
	}
	return n.Text
}

// text is a string for people: one line, at most 200 characters.
func (r *reader) text(n *atip.Node) string {
	s := r.str(n)
	if len([]rune(s)) > 200 {
		r.fail(n, "%s is longer than 200 characters", label(n))
	}
	for _, c := range s {
		if c < ' ' || c == 0x7f {
			r.fail(n, "%s contains a control character", label(n))
			break
		}
	}
	return s
}

func (r *reader) boolean(n *atip.Node) bool {
	v, ok := n.Bool()
	if !ok {
		r.fail(n, "%s must be true or false", label(n))
	}
	return v
}

func (r *reader) integer(n *atip.Node, low, high int64) int64 {
	if n.Kind == atip.KindNumber {
		if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil && v >= low && v <= high {
			return v
		}
	}
	r.fail(n, "%s must be a whole number from %d to %d", label(n), low, high)
	return low
}

// items calls item for each element; a single string stands for a list of one.
func (r *reader) items(n *atip.Node, item func(*atip.Node)) {
	if n.Kind == atip.KindString {
		item(n)
		return
	}
	if n.Kind != atip.KindArray {
		r.fail(n, "%s must be a list", label(n))
		return
	}
	for _, e := range n.Items {
		if r.err != nil {
			return
		}
		item(e)
	}
}

// strings reads a list of non-empty strings. An empty list is kept apart from a
// missing one: it is never nil.
func (r *reader) strings(n *atip.Node) []string {
	out := make([]string, 0, len(n.Items))
	r.items(n, func(e *atip.Node) {
		s := r.str(e)
		if s == "" {
			r.fail(e, "%s contains an empty string", label(n))
		}
		out = append(out, s)
	})
	return out
}

func (r *reader) oneOf(n *atip.Node, words ...string) string {
	s := r.str(n)
	if !slices.Contains(words, s) {
		r.fail(n, "%s must be one of %s, not %q", label(n), strings.Join(words, ", "), s)
	}
	return s
}

// paths reads a list of paths with their places.
func (r *reader) paths(n *atip.Node) []PathRule {
	out := make([]PathRule, 0, len(n.Items))
	r.items(n, func(e *atip.Node) {
		s := r.str(e)
		if s == "" || strings.IndexByte(s, 0) >= 0 {
			r.fail(e, "%q is not a path", s)
		}
		out = append(out, PathRule{Path: s, File: r.src.File, Line: e.Line, Col: e.Col, Layer: r.src.Layer})
	})
	return out
}

func (r *reader) duration(n *atip.Node) time.Duration {
	s := r.str(n)
	days := time.Duration(0)
	if i := strings.IndexByte(s, 'd'); i > 0 {
		v, err := strconv.ParseUint(s[:i], 10, 16)
		if err != nil {
			r.fail(n, "%s: %q is not a duration", label(n), s)
			return 0
		}
		days, s = time.Duration(v)*24*time.Hour, s[i+1:]
		if s == "" {
			return days
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || days+d <= 0 {
		r.fail(n, "%s: %q is not a duration such as 30s, 10m or 24h", label(n), n.Text)
		return 0
	}
	return days + d
}

// size reads a number of bytes, plain or with KiB, MiB, GiB, KB, MB, GB.
func (r *reader) size(n *atip.Node) int64 {
	v, ok := ParseSize(n.Text)
	if n.Kind != atip.KindNumber && n.Kind != atip.KindString || !ok {
		r.fail(n, "%s must be a size such as 65536 or \"64KiB\"", label(n))
		return 0
	}
	return v
}

// ParseSize reads a number of bytes, with a unit or without.
func ParseSize(s string) (int64, bool) {
	unit := int64(1)
	for _, u := range [...]struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if strings.HasSuffix(s, u.suffix) {
			s, unit = strings.TrimSpace(strings.TrimSuffix(s, u.suffix)), u.bytes
			break
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 1 || v > 1<<50/unit {
		return 0, false
	}
	return v * unit, true
}

func label(n *atip.Node) string {
	if n.Key == "" {
		return "value"
	}
	return n.Key
}

// raw keeps an object for the package that owns its meaning.
func (r *reader) raw(n *atip.Node) RawPart {
	return RawPart{Layer: r.src.Layer, File: r.src.File, Line: n.Line, Col: n.Col, JSON: appendJSON(nil, n)}
}

// appendJSON writes a tree back as compact JSON.
func appendJSON(b []byte, n *atip.Node) []byte {
	switch n.Kind {
	case atip.KindNull:
		return append(b, "null"...)
	case atip.KindFalse:
		return append(b, "false"...)
	case atip.KindTrue:
		return append(b, "true"...)
	case atip.KindNumber:
		return append(b, n.Text...)
	case atip.KindString:
		return appendString(b, n.Text)
	}
	open, end := byte('['), byte(']')
	if n.Kind == atip.KindObject {
		open, end = '{', '}'
	}
	b = append(b, open)
	for i, m := range n.Items {
		if i > 0 {
			b = append(b, ',')
		}
		if n.Kind == atip.KindObject {
			b = append(appendString(b, m.Key), ':')
		}
		b = appendJSON(b, m)
	}
	return append(b, end)
}

func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
