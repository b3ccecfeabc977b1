package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// Encoded is a record that is a JSON object already, without v, id, t and prev. It
// may have been encoded while there was time, before its last fields were known.
type Encoded struct {
	ID     string
	Object []byte
}

// body marshals rec to the inside of a JSON object and takes out an id, which
// together with v, t and prev is written by the log itself.
func body(rec any) (id string, inner []byte, err error) {
	if e, ok := rec.(Encoded); ok {
		// A newline between its tokens would make two lines of one record.
		if !json.Valid(e.Object) || e.Object[0] != '{' || e.Object[len(e.Object)-1] != '}' || bytes.IndexByte(e.Object, '\n') >= 0 {
			return "", nil, errNotObject
		}
		if e.ID == "" {
			e.ID = NewID()
		}
		return e.ID, e.Object[1 : len(e.Object)-1], nil
	}
	if m, ok := rec.(map[string]any); ok {
		id, _ = m["id"].(string)
		copied := make(map[string]any, len(m))
		for k, v := range m {
			switch k {
			case "v", "id", "t", "prev":
			default:
				copied[k] = v
			}
		}
		rec = copied
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rec); err != nil {
		return "", nil, err
	}
	raw := bytes.TrimRight(buf.Bytes(), "\n")
	if len(raw) < 2 || raw[0] != '{' {
		return "", nil, errNotObject
	}
	if id == "" {
		id = NewID()
	}
	return id, raw[1 : len(raw)-1], nil
}

// line assembles one line without its newline.
func line(id string, t time.Time, prev string, inner []byte) []byte {
	out := make([]byte, 0, len(inner)+192)
	out = append(out, `{"v":1,"id":`...)
	out = appendString(out, id)
	out = append(out, `,"t":"`...)
	out = t.UTC().AppendFormat(out, "2006-01-02T15:04:05.000000Z")
	out = append(out, `","prev":"`...)
	out = append(out, prev...)
	out = append(out, '"')
	if len(inner) > 0 {
		out = append(out, ',')
		out = append(out, inner...)
	}
	return append(out, '}')
}

func appendString(out []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(out, s)
	}
	return append(out, q...)
}

func hashLine(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fit cuts long fields until the record is at most limit bytes. What was cut says
// so in its place and in "cut", the number of fields.
func fit(inner []byte, limit int) ([]byte, error) {
	if len(inner) <= limit {
		return inner, nil
	}
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(append(append([]byte{'{'}, inner...), '}')))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	for field, items := fieldLimit, 256; field >= 16; field, items = field/4, max(items/4, 4) {
		cut := 0
		small := shorten(m, field, items, &cut).(map[string]any)
		small["cut"] = cut
		_, out, err := body(small)
		if err != nil {
			return nil, err
		}
		if len(out) <= limit {
			return out, nil
		}
	}
	return nil, errTooLong
}

// shorten returns v with strings of at most field bytes and arrays and objects of
// at most items entries.
func shorten(v any, field, items int, cut *int) any {
	switch v := v.(type) {
	case string:
		if len(v) <= field {
			return v
		}
		*cut++
		end := field
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		return v[:end] + "…[" + strconv.Itoa(len(v)-end) + " bytes cut]"
	case []any:
		n := min(len(v), items)
		out := make([]any, 0, n+1)
		for _, e := range v[:n] {
			out = append(out, shorten(e, field, items, cut))
		}
		if n < len(v) {
			*cut++
			out = append(out, "…["+strconv.Itoa(len(v)-n)+" entries cut]")
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			// The fields of a record are few; only data keyed by names gets long.
			if len(out) == max(items, 64) {
				*cut++
				out["…"] = strconv.Itoa(len(v)-len(out)) + " entries cut"
				break
			}
			out[k] = shorten(e, field, items, cut)
		}
		return out
	}
	return v
}
