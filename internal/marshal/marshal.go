// Package marshal writes what encoding/json writes, without what that prepares for a second value
// of the same type: a process writes one record.
package marshal

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSON is json.Marshal: it writes the same bytes.
func JSON(v any) ([]byte, error) {
	e := Encoder{out: make([]byte, 0, 6<<10)}
	e.value(reflect.ValueOf(v))
	return e.out, e.err
}

// Encoder writes values one after the other. The zero Encoder is ready to use.
type Encoder struct {
	out   []byte
	err   error
	known map[reflect.Type][]member // of structs; nil where they are looked at once only
}

// member is a field of a struct as it is written.
type member struct {
	index     int
	name      string // quoted, with its colon
	omitEmpty bool
	other     bool // the whole struct is left to the package
}

// Again encodes one value after the other, in the same buffer: what is returned is good
// until the next one.
func (e *Encoder) Again(v any) ([]byte, error) {
	if e.known == nil {
		e.known = map[reflect.Type][]member{}
	}
	e.out, e.err = e.out[:0], nil
	e.value(reflect.ValueOf(v))
	return e.out, e.err
}

// other leaves a value to the package.
func (e *Encoder) other(v any) {
	raw, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.out = append(e.out, raw...)
}

func (e *Encoder) value(v reflect.Value) {
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		e.out = append(e.out, "null"...)
		return
	}
	if v.Kind() == reflect.Interface {
		e.value(v.Elem())
		return
	}
	if v.CanInterface() {
		holder := v
		if v.CanAddr() && v.Kind() != reflect.Pointer {
			holder = v.Addr() // its methods are those of the value and more
		}
		switch x := holder.Interface().(type) {
		case json.Marshaler:
			e.other(x)
			return
		case encoding.TextMarshaler:
			text, err := x.MarshalText()
			if err != nil && e.err == nil {
				e.err = err
			}
			e.string(string(text))
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		e.value(v.Elem())
	case reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case reflect.String:
		e.string(v.String())
	case reflect.Slice:
		switch {
		case v.IsNil():
			e.out = append(e.out, "null"...)
		case v.Type().Elem().Kind() == reflect.Uint8:
			e.other(v.Interface())
		default:
			e.list(v)
		}
	case reflect.Array:
		e.list(v)
	case reflect.Map:
		e.object(v)
	case reflect.Struct:
		e.fields(v)
	default:
		e.other(v.Interface())
	}
}

// string writes what needs no escape itself.
func (e *Encoder) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			e.other(s)
			return
		}
	}
	e.out = append(append(append(e.out, '"'), s...), '"')
}

func (e *Encoder) list(v reflect.Value) {
	e.out = append(e.out, '[')
	for i := range v.Len() {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.value(v.Index(i))
	}
	e.out = append(e.out, ']')
}

func (e *Encoder) object(v reflect.Value) {
	if v.IsNil() {
		e.out = append(e.out, "null"...)
		return
	}
	if v.Type().Key() != reflect.TypeFor[string]() {
		e.other(v.Interface())
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	e.out = append(e.out, '{')
	for i, key := range keys {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.string(key.String())
		e.out = append(e.out, ':')
		e.value(v.MapIndex(key))
	}
	e.out = append(e.out, '}')
}

// fields writes a struct. What is rare, embedding and options of single fields, is left
// to the package, together with the whole struct.
func (e *Encoder) fields(v reflect.Value) {
	start := len(e.out)
	e.out = append(e.out, '{')
	for _, m := range e.members(v.Type()) {
		if m.other {
			e.out = e.out[:start]
			e.other(v.Interface())
			return
		}
		field := v.Field(m.index)
		if m.omitEmpty && empty(field) {
			continue
		}
		if len(e.out) > start+1 {
			e.out = append(e.out, ',')
		}
		e.out = append(e.out, m.name...)
		e.value(field)
	}
	e.out = append(e.out, '}')
}

func (e *Encoder) members(t reflect.Type) []member {
	if list, ok := e.known[t]; ok {
		return list
	}
	list := make([]member, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		name = cmp.Or(name, f.Name)
		if f.Anonymous || option != "" && option != "omitempty" {
			list = []member{{other: true}}
			break
		}
		quoted := Encoder{}
		quoted.string(name)
		list = append(list, member{index: i, name: string(append(quoted.out, ':')), omitEmpty: option == "omitempty"})
	}
	if e.known != nil {
		e.known[t] = list
	}
	return list
}

// empty is what omitempty leaves out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

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

// Redacted is an encoded object with each string in it run through clean.
func Redacted(object []byte, clean func(string) string) []byte {
	if text := string(object); clean(text) == text && escapedClean(text, clean) {
		return object
	}
	out, err := json.Marshal(CleanObject(object, clean))
	if err != nil {
		out, _ = json.Marshal(map[string]any{"undescribed": err.Error()})
	}
	return out
}

// escapedClean reports whether clean leaves alone each string of an encoded object that has an escaped
// character, as a value is not seen in the encoded text there. A record has few of them.
func escapedClean(object string, clean func(string) string) bool {
	for rest := object; ; {
		open := strings.IndexByte(rest, '"')
		if open < 0 {
			return true
		}
		rest = rest[open:]
		end, escaped := 1, false
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				escaped = true
				end++
			}
			end++
		}
		if end >= len(rest) {
			return false // no JSON
		}
		if escaped {
			var word string
			if json.Unmarshal([]byte(rest[:end+1]), &word) != nil || clean(word) != word {
				return false
			}
		}
		rest = rest[end+1:]
	}
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
