// Package jsonedit changes single values of a JSON text with comments and leaves each other
// byte as it was: settings files belong to their user, who wrote comments, an order and line
// ends into them.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a text.
const (
	maxText  = 4 << 20
	maxDepth = 64
)

// SyntaxError is where a text is no JSON.
type SyntaxError struct {
	Line, Col int // from 1; columns count bytes
	Why       string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Why) }

// value is one value and where it stands.
type value struct {
	kind       byte // '{', '[' or 's' for any other
	start, end int
	keys       []key // of an object, one for each item
	items      []*value
}

type key struct {
	name  string
	start int
}

// Doc is a text that was read.
type Doc struct {
	text []byte
	root *value
}

// Parse reads a text. An empty one counts as an empty object, and as JSON with comments it may
// have commas behind last items. A key that stands twice is an error: which one counts differs
// from reader to reader.
func Parse(text []byte) (*Doc, error) {
	d := &Doc{text: text}
	p := parser{text: text}
	switch {
	case len(text) > maxText:
		return nil, p.bad(0, "longer than 4 MiB")
	case !utf8.Valid(text):
		return nil, p.bad(0, "not UTF-8")
	}
	p.at = len(text) - len(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err := p.blank(); err != nil {
		return nil, err
	}
	if p.at == len(text) {
		return d, nil
	}
	root, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if root.kind != '{' {
		return nil, p.bad(root.start, "not an object")
	}
	if err := p.blank(); err != nil {
		return nil, err
	}
	if p.at < len(text) {
		return nil, p.bad(p.at, "text behind the end")
	}
	d.root = root
	return d, nil
}

type parser struct {
	text []byte
	at   int
}

func (p *parser) bad(at int, why string) error {
	before := p.text[:min(at, len(p.text))]
	return &SyntaxError{Line: bytes.Count(before, []byte("\n")) + 1, Col: at - bytes.LastIndexByte(before, '\n'), Why: why}
}

// blank passes over blanks and comments.
func (p *parser) blank() error {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.at++
		case bytes.HasPrefix(p.text[p.at:], []byte("//")):
			end := bytes.IndexByte(p.text[p.at:], '\n')
			if end < 0 {
				end = len(p.text) - p.at
			}
			p.at += end
		case bytes.HasPrefix(p.text[p.at:], []byte("/*")):
			end := bytes.Index(p.text[p.at+2:], []byte("*/"))
			if end < 0 {
				return p.bad(p.at, "a comment without an end")
			}
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// is reports whether the next byte is c.
func (p *parser) is(c byte) bool { return p.at < len(p.text) && p.text[p.at] == c }

func (p *parser) value(depth int) (*value, error) {
	switch {
	case depth > maxDepth:
		return nil, p.bad(p.at, "nested too deeply")
	case p.is('{'), p.is('['):
		return p.container(depth)
	case p.is('"'):
		start := p.at
		_, err := p.word()
		return &value{kind: 's', start: start, end: p.at}, err
	}
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune(" \t\r\n,]}/\"{[:", rune(p.text[p.at])) {
		p.at++
	}
	if !json.Valid(p.text[start:p.at]) {
		return nil, p.bad(start, "a value is missing or malformed")
	}
	return &value{kind: 's', start: start, end: p.at}, nil
}

func (p *parser) container(depth int) (*value, error) {
	v := &value{kind: p.text[p.at], start: p.at}
	closing := map[byte]byte{'{': '}', '[': ']'}[v.kind]
	for p.at++; ; {
		if err := p.blank(); err != nil {
			return nil, err
		}
		if p.is(closing) {
			p.at++
			v.end = p.at
			return v, nil
		}
		if v.kind == '{' {
			if err := p.key(v); err != nil {
				return nil, err
			}
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
		if err := p.blank(); err != nil {
			return nil, err
		}
		if p.is(',') {
			p.at++
		} else if !p.is(closing) {
			return nil, p.bad(p.at, fmt.Sprintf("expected a comma or %q", closing))
		}
	}
}

// key reads the name of a member and its colon.
func (p *parser) key(v *value) error {
	k := key{start: p.at}
	if !p.is('"') {
		return p.bad(p.at, "expected a key in double quotes")
	}
	var err error
	if k.name, err = p.word(); err != nil {
		return err
	}
	if slices.ContainsFunc(v.keys, func(other key) bool { return other.name == k.name }) {
		return p.bad(k.start, "the key "+k.name+" stands twice")
	}
	v.keys = append(v.keys, k)
	if err := p.blank(); err != nil {
		return err
	}
	if !p.is(':') {
		return p.bad(p.at, "expected a colon")
	}
	p.at++
	return p.blank()
}

// word reads a string.
func (p *parser) word() (string, error) {
	start := p.at
	for p.at++; p.at < len(p.text) && p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	if p.at >= len(p.text) {
		return "", p.bad(start, "a string without an end")
	}
	p.at++
	var out string
	if err := json.Unmarshal(p.text[start:p.at], &out); err != nil {
		return "", p.bad(start, "a malformed string")
	}
	return out, nil
}

// find is the value at a path of keys, nil if there is none, and the value above it.
func (d *Doc) find(path []string) *value {
	v := d.root
	for _, name := range path {
		if v = v.member(name); v == nil {
			return nil
		}
	}
	return v
}

func (v *value) member(name string) *value {
	if v == nil {
		return nil
	}
	for i, k := range v.keys {
		if k.name == name {
			return v.items[i]
		}
	}
	return nil
}

// Get is the value at a path, in the compact form that Compact makes; "" if there is none.
func (d *Doc) Get(path ...string) string {
	v := d.find(path)
	if v == nil {
		return ""
	}
	return d.compact(v)
}

// Items are the items of the array at a path, each in compact form.
func (d *Doc) Items(path ...string) []string {
	v := d.find(path)
	if v == nil || v.kind != '[' {
		return nil
	}
	var out []string
	for _, item := range v.items {
		out = append(out, d.compact(item))
	}
	return out
}

// compact writes a value without comments and blanks.
func (d *Doc) compact(v *value) string {
	switch v.kind {
	case 's':
		return Compact(string(d.text[v.start:v.end]))
	case '[':
		var parts []string
		for _, item := range v.items {
			parts = append(parts, d.compact(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	var parts []string
	for i, item := range v.items {
		parts = append(parts, quote(v.keys[i].name)+":"+d.compact(item))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Compact is a JSON value without blanks, and with strings written in one way. Members keep
// their order.
func Compact(text string) string {
	var s string
	if json.Unmarshal([]byte(text), &s) == nil {
		return quote(s)
	}
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}

func quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return strings.TrimSuffix(out.String(), "\n")
}
