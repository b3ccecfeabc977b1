package atip

import (
	"strings"
	"unicode/utf8"
)

// quoteJSON writes a JSON string (RFC 8259). What is no UTF-8 becomes U+FFFD.
func quoteJSON(s string) string {
	var b strings.Builder
	writeJSONString(&b, s)
	return b.String()
}

func writeJSONString(b *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	b.WriteByte('"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c == 0x7f:
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		case c < utf8.RuneSelf:
			b.WriteByte(c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			b.WriteRune(r)
			i += size
			continue
		}
		i++
	}
	b.WriteByte('"')
}

// object is a JSON object whose members keep their order: models read the properties
// of a function in the order in which they stand.
type object []member

type member struct {
	key   string
	value any // string, bool, []string, object, []any, nil
}

func (o *object) set(key string, value any) { *o = append(*o, member{key, value}) }

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	writeJSON(&b, o)
	return []byte(b.String()), nil
}

func writeJSON(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		writeJSONString(b, v)
	case bool:
		if v {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	case []string:
		b.WriteByte('[')
		for i, s := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, s)
		}
		b.WriteByte(']')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, m.key)
			b.WriteByte(':')
			writeJSON(b, m.value)
		}
		b.WriteByte('}')
	default:
		b.WriteString("null")
	}
}
