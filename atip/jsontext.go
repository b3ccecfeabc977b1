package atip

import (
	"bytes"
	"encoding/json"
)

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
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoteJSON(m.key) + ":")
		value, err := plainJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON is JSON without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// quoteJSON writes a JSON string. What is no UTF-8 becomes U+FFFD.
func quoteJSON(s string) string {
	text, _ := plainJSON(s) // of a string there is no error
	return string(text)
}
