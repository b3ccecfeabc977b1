package approve

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// MarshalJSON writes Bound in its canonical form, so that bytes which are not UTF-8
// survive and the digest can be computed again from the file.
func (r Request) MarshalJSON() ([]byte, error) {
	bound, err := appendCanonical(nil, r.Bound, 0)
	if err != nil {
		return nil, err
	}
	type plain Request // without this method
	return json.Marshal(struct {
		plain
		Bound json.RawMessage `json:"bound"`
	}{plain(r), bound})
}

// restore turns decoded JSON back into the values it was made from.
func restore(v any) (any, error) {
	switch x := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(x), 10, 64); err == nil {
			return n, nil
		}
		n, err := strconv.ParseUint(string(x), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number", x)
		}
		return n, nil
	case []any:
		for i := range x {
			e, err := restore(x[i])
			if err != nil {
				return nil, err
			}
			x[i] = e
		}
	case map[string]any:
		if s, ok := x[bytesKey].(string); ok && len(x) == 1 {
			raw, err := base64.StdEncoding.Strict().DecodeString(s)
			return string(raw), err
		}
		for k := range x {
			e, err := restore(x[k])
			if err != nil {
				return nil, err
			}
			x[k] = e
		}
	}
	return v, nil
}
