package marshal

import (
	"bytes"
	"encoding/json"
)

// Clean runs every string of a document through clean. A document in which it changes nothing is
// returned as it is.
func Clean(doc any, clean func(string) string) any {
	raw, err := JSON(doc)
	if err != nil || clean(string(raw)) == string(raw) {
		return doc
	}
	return CleanObject(raw, clean)
}

// CleanObject decodes an encoded object and runs each string in it through clean.
func CleanObject(raw []byte, clean func(string) string) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return map[string]any{"unprintable": err.Error()}
	}
	return CleanStrings(plain, clean)
}

// CleanStrings runs each string of a decoded document through clean, in place.
func CleanStrings(v any, clean func(string) string) any {
	switch v := v.(type) {
	case string:
		return clean(v)
	case []any:
		for i := range v {
			v[i] = CleanStrings(v[i], clean)
		}
	case map[string]any:
		for k := range v {
			v[k] = CleanStrings(v[k], clean)
		}
	}
	return v
}

// CleanAll is a list of words that were run through clean.
func CleanAll(words []string, clean func(string) string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = clean(w)
	}
	return out
}
