package approve

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"unicode/utf8"
)

// bytesKey marks a string that is not UTF-8 in canonical form. Replacing bad bytes,
// as encoding/json does, would give two different commands one digest.
const bytesKey = "$bytes"

// Digest is what a grant binds: sha256 over the canonical JSON of bound (sorted
// keys, no white space, integers only).
func Digest(bound map[string]any) (string, error) {
	b, err := appendCanonical(nil, bound, 0)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// appendCanonical writes v. It takes exactly the types below: a value that could be
// written in two ways has no place in what is signed.
func appendCanonical(b []byte, v any, depth int) ([]byte, error) {
	if depth > 32 {
		return nil, fmt.Errorf("bound object is nested too deeply")
	}
	switch x := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, x), nil
	case int:
		return strconv.AppendInt(b, int64(x), 10), nil
	case int64:
		return strconv.AppendInt(b, x, 10), nil
	case uint64:
		return strconv.AppendUint(b, x, 10), nil
	case string:
		return appendText(b, x), nil
	case []byte:
		return appendText(b, string(x)), nil
	case []string:
		b = append(b, '[')
		for i, s := range x {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, s)
		}
		return append(b, ']'), nil
	case []any:
		b = append(b, '[')
		for i, e := range x {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendCanonical(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case []map[string]any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = x[i]
		}
		return appendCanonical(b, list, depth)
	case map[string]string:
		m := make(map[string]any, len(x))
		for k, s := range x {
			m[k] = s
		}
		return appendCanonical(b, m, depth)
	case map[string]any:
		return appendObject(b, x, depth)
	}
	return nil, fmt.Errorf("bound object holds a %T, which has no canonical form", v)
}

func appendObject(b []byte, m map[string]any, depth int) ([]byte, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		if k == bytesKey || !utf8.ValidString(k) {
			return nil, fmt.Errorf("bound object has the key %q", k)
		}
		keys = append(keys, k)
	}
	sort.Strings(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, k), ':')
		var err error
		if b, err = appendCanonical(b, m[k], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendText writes a JSON string, escaping only what must be.
func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		b = append(b, `{"`+bytesKey+`":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(s))
		return append(b, `"}`...)
	}
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
