package jsonedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Set returns the text with a value at a path of keys, and objects above it where they are
// missing. Something else than an object on the way is an error.
func (d *Doc) Set(path []string, compact string) ([]byte, error) {
	if v := d.find(path); v != nil {
		return d.spliced(v.start, v.end, d.shaped(compact, d.indentOf(v.start), bytes.ContainsRune(d.text[v.start:v.end], '\n'))), nil
	}
	return d.add(path, compact)
}

// Append returns the text with one more item in the array at a path, which is made if it is
// missing.
func (d *Doc) Append(path []string, compact string) ([]byte, error) {
	v := d.find(path)
	switch {
	case v == nil:
		return d.add(path, "["+compact+"]")
	case v.kind != '[':
		return nil, fmt.Errorf("%s is not an array", strings.Join(path, "."))
	}
	return d.insert(v, "", compact), nil
}

// add puts a member where none is.
func (d *Doc) add(path []string, compact string) ([]byte, error) {
	if d.root == nil {
		for i := len(path) - 1; i >= 0; i-- {
			compact = "{" + quote(path[i]) + ":" + compact + "}"
		}
		gap := ""
		if bytes.ContainsAny(d.text, "/") && !bytes.HasSuffix(d.text, []byte("\n")) {
			gap = d.newline() // a comment ends with its line
		}
		return append(bytes.Clone(d.text), gap+d.shaped(compact, "", true)+d.newline()...), nil
	}
	parent, depth := d.root, 0
	for ; depth < len(path)-1; depth++ {
		next := parent.member(path[depth])
		if next == nil {
			break
		}
		if next.kind != '{' {
			return nil, fmt.Errorf("%s is not an object", strings.Join(path[:depth+1], "."))
		}
		parent = next
	}
	for i := len(path) - 1; i > depth; i-- {
		compact = "{" + quote(path[i]) + ":" + compact + "}"
	}
	return d.insert(parent, path[depth], compact), nil
}

// insert puts an item behind the last one of a container; name is the key of a member.
func (d *Doc) insert(v *value, name, compact string) []byte {
	inner := d.text[v.start:v.end]
	lines := bytes.ContainsRune(inner, '\n') || len(v.items) == 0
	base := d.indentOf(v.start)
	indent := base + d.unit()
	if len(v.items) > 0 {
		if first := v.first(); d.startsLine(first) {
			indent = d.indentOf(first)
		}
	}
	item := d.shaped(compact, indent, lines)
	if v.kind == '{' {
		item = quote(name) + ": " + item
	}
	end := v.end - 1 // the closing bracket
	last := v.start + 1
	if len(v.items) > 0 {
		last = v.items[len(v.items)-1].end
	}
	behind := d.text[last:end] // blanks, comments and perhaps a comma
	text := bytes.TrimRight(behind, " \t\r\n")
	comma := ""
	if len(v.items) > 0 && !hasComma(text) {
		comma = ","
	}
	var out bytes.Buffer
	out.Write(d.text[:last])
	out.WriteString(comma)
	out.Write(text)
	if lines {
		out.WriteString(d.newline() + indent + item)
		if rest := behind[len(text):]; bytes.ContainsRune(rest, '\n') {
			out.Write(rest)
		} else {
			out.WriteString(d.newline() + base)
		}
	} else {
		out.WriteString(" " + item)
		out.Write(behind[len(text):])
	}
	out.Write(d.text[end:])
	return out.Bytes()
}

// hasComma reports a comma outside of comments.
func hasComma(text []byte) bool {
	p := parser{text: text}
	_ = p.blank()
	return p.is(',')
}

// Remove returns the text without the member at a path.
func (d *Doc) Remove(path []string) []byte {
	v := d.find(path[:len(path)-1])
	if v == nil {
		return d.text
	}
	for i, k := range v.keys {
		if k.name == path[len(path)-1] {
			return d.cut(v, i)
		}
	}
	return d.text
}

// RemoveItem returns the text without one item of the array at a path.
func (d *Doc) RemoveItem(path []string, i int) []byte {
	v := d.find(path)
	if v == nil || v.kind != '[' || i >= len(v.items) {
		return d.text
	}
	return d.cut(v, i)
}

// Has reports how many keys of a path lead to a value.
func (d *Doc) Has(path []string) int {
	n := 0
	for n < len(path) && d.find(path[:n+1]) != nil {
		n++
	}
	return n
}

func (d *Doc) cut(v *value, i int) []byte {
	start, end := v.from(i), v.items[i].end
	switch {
	case i+1 < len(v.items):
		end = v.from(i + 1)
	case i > 0:
		// The comma goes, a comment behind it stays.
		between := v.items[i-1].end
		p := parser{text: d.text, at: between}
		_ = p.blank()
		kept := string(d.text[between:p.at]) + string(d.text[p.at+1:start])
		kept = strings.TrimRight(kept, " \t\r\n")
		if strings.Contains(kept, "//") && !strings.HasPrefix(strings.TrimLeft(string(d.text[end:]), " \t\r"), "\n") {
			kept += d.newline()
		}
		return d.spliced(between, end, kept)
	default:
		if rest := string(d.text[v.start+1:start]) + string(d.text[end:v.end-1]); strings.Trim(rest, " \t\r\n,") == "" {
			start, end = v.start+1, v.end-1
		}
	}
	return d.spliced(start, end, "")
}

// from is where an item begins, with its key.
func (v *value) from(i int) int {
	if v.kind == '{' {
		return v.keys[i].start
	}
	return v.items[i].start
}

func (v *value) first() int { return v.from(0) }

func (d *Doc) spliced(start, end int, text string) []byte {
	return append(append(bytes.Clone(d.text[:start]), text...), d.text[end:]...)
}

// shaped writes a compact value over several lines, in the manner of the text.
func (d *Doc) shaped(compact, indent string, lines bool) string {
	if !lines {
		return compact
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(compact), indent, d.unit()) != nil {
		return compact
	}
	return strings.ReplaceAll(out.String(), "\n", d.newline())
}

// newline is how lines of the text end.
func (d *Doc) newline() string {
	if bytes.Contains(d.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// unit is one step of indentation: that of the first indented member.
func (d *Doc) unit() string {
	if d.root != nil && len(d.root.items) > 0 && d.startsLine(d.root.first()) {
		if indent := d.indentOf(d.root.first()); indent != "" {
			return indent
		}
	}
	return "  "
}

// indentOf are the blanks with which the line of an offset begins.
func (d *Doc) indentOf(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// startsLine reports whether only blanks stand in front of an offset in its line.
func (d *Doc) startsLine(at int) bool {
	return len(bytes.TrimLeft(d.text[bytes.LastIndexByte(d.text[:at], '\n')+1:at], " \t")) == 0
}
