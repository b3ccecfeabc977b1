package run

import (
	"bytes"
	"encoding/json"

	"github.com/atip-dev/atip-exec/internal/marshal"
)

// Redactor returns what takes secrets out of texts about p: a plan that is only
// printed shows command lines too, and its reader may be an agent.
func (p *Plan) Redactor() func(string) string {
	return (&execution{plan: p}).clean
}

// RedactDocument runs every string of a document through clean. A document without secrets
// is returned as it is.
func RedactDocument(doc any, clean func(string) string) any {
	raw, err := marshal.JSON(doc)
	if err != nil || clean(string(raw)) == string(raw) {
		return doc
	}
	return redactEncoded(raw, clean)
}

// redactEncoded decodes an object and cleans each string in it.
func redactEncoded(raw []byte, clean func(string) string) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return map[string]any{"unprintable": err.Error()}
	}
	return redactStrings(plain, clean)
}

func redactStrings(v any, clean func(string) string) any {
	switch v := v.(type) {
	case string:
		return clean(v)
	case []any:
		for i := range v {
			v[i] = redactStrings(v[i], clean)
		}
	case map[string]any:
		for k := range v {
			v[k] = redactStrings(v[k], clean)
		}
	}
	return v
}
