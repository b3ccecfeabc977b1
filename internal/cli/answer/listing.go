package answer

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// leftOutKey is the key of a document that says how many items of each list are not in it.
const leftOutKey = "left_out"

// listing is what --fields and --max-items leave of a document that lists.
type listing struct {
	c      *cli.Console
	Fields []string // dotted paths; nil for all
	most   int      // items of a list; 0 for all
	newest bool     // the items that stay are the last ones
}

// ListingOf reads the flags of a call. It returns nil if neither is given.
func ListingOf(c *cli.Console, v *cli.Values) *listing {
	if !v.Has("fields") && !v.Has("max-items") {
		return nil
	}
	l := &listing{c: c, most: v.IntOf("max-items"), newest: v.Newest()}
	for _, value := range v.All("fields") {
		for _, path := range strings.Split(value, ",") {
			l.Fields = append(l.Fields, strings.TrimSpace(path))
		}
	}
	return l
}

// Most returns the items of a list that --max-items leaves, and how many it leaves out.
func Most[T any](v *cli.Values, list []T) (kept []T, left int) {
	return atMost(list, v.IntOf("max-items"), v.Newest())
}

// atMost returns the first n items of a list, or the last ones, and how many it leaves out; 0 is
// no limit.
func atMost[T any](list []T, n int, newest bool) (kept []T, left int) {
	switch left = len(list) - n; {
	case n == 0 || left <= 0:
		return list, 0
	case newest:
		return list[left:], left
	}
	return list[:n], left
}

// List prints the document, or a line for each item of a list that --max-items leaves and then
// the end.
func List[T any](c *cli.Console, v *cli.Values, doc any, list []T, line func(T) string, end string) error {
	if c.Documents() {
		return c.Document(doc)
	}
	list, left := Most(v, list)
	for _, item := range list {
		if err := c.Text(line(item)); err != nil {
			return err
		}
	}
	return c.Text(LeftOutLine(left) + end)
}

// LeftOutLine ends a list in text that is not whole.
func LeftOutLine(left int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("(%d more left out by --max-items)\n", left)
}

// Print writes a document in place of Console.Document.
func (l *listing) Print(doc any) error {
	tree, err := decoded(doc)
	if err != nil {
		return err
	}
	if err := l.check(doc, tree); err != nil {
		return err
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return l.c.Encode(tree)
	}
	left := map[string]any{}
	for key, value := range object {
		list, ok := value.([]any)
		if !ok || !l.prints(key) {
			continue
		}
		if kept, n := atMost(list, l.most, l.newest); n > 0 {
			object[key], left[key] = kept, n
		}
	}
	if len(left) > 0 {
		object[leftOutKey] = left
	}
	if len(l.Fields) == 0 {
		return l.c.Encode(object)
	}
	if l.asText() {
		return l.c.Text(l.rows(object))
	}
	return l.c.Encode(l.selected(object))
}

// prints reports whether anything of a key of the document is chosen.
func (l *listing) prints(key string) bool {
	return len(l.Fields) == 0 || slices.ContainsFunc(l.Fields, func(path string) bool {
		first, _, _ := strings.Cut(path, ".")
		return first == key
	})
}

// asText reports whether selected fields are printed as columns.
func (l *listing) asText() bool {
	return l.c.Mode == cli.Text || l.c.Mode == cli.Auto && l.c.OutTTY
}

// selected is an object with the chosen fields, its kind, and what was left out.
func (l *listing) selected(object map[string]any) any {
	paths := slices.Clone(l.Fields)
	for _, key := range []string{"kind", leftOutKey} {
		if _, ok := object[key]; ok {
			paths = append(paths, key)
		}
	}
	return pick(object, paths)
}

// pick keeps the paths of a value; what lies on the way through a list counts for each item.
func pick(value any, paths []string) any {
	switch value := value.(type) {
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = pick(value[i], paths)
		}
		return out
	case map[string]any:
		below, whole := map[string][]string{}, map[string]bool{}
		for _, path := range paths {
			key, rest, deeper := strings.Cut(path, ".")
			if deeper {
				below[key] = append(below[key], rest)
			} else {
				whole[key] = true
			}
		}
		out := map[string]any{}
		for key, v := range value {
			if whole[key] {
				out[key] = v
			} else if more := below[key]; more != nil {
				out[key] = pick(v, more)
			}
		}
		return out
	}
	return value
}

// rows prints the chosen fields as columns with a tab between them: a line for each item of a
// list, and one line for fields that are in none.
func (l *listing) rows(object map[string]any) string {
	var keys []string
	columns := map[string][]string{}
	for _, path := range l.Fields {
		key, rest, _ := strings.Cut(path, ".")
		if _, isList := object[key].([]any); !isList {
			key, rest = "", path
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		columns[key] = append(columns[key], rest)
	}
	var b strings.Builder
	for _, key := range keys {
		if key == "" {
			b.WriteString(row(object, columns[key]))
			continue
		}
		for _, item := range object[key].([]any) {
			b.WriteString(row(item, columns[key]))
		}
		if left, ok := object[leftOutKey].(map[string]any); ok && left[key] != nil {
			b.WriteString(LeftOutLine(left[key].(int)))
		}
	}
	return b.String()
}

// row is one line of values; a path that is not there is an empty column.
func row(value any, paths []string) string {
	cells := make([]string, len(paths))
	for i, path := range paths {
		cells[i] = cell(value, path)
	}
	return strings.Join(cells, "\t") + "\n"
}

func cell(value any, path string) string {
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		object, ok := value.(map[string]any)
		if !ok {
			if list, isList := value.([]any); isList {
				parts := make([]string, len(list))
				for i, item := range list {
					parts[i] = cell(item, path)
				}
				return strings.Join(parts, " ")
			}
			return ""
		}
		value, path = object[key], rest
	}
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return Visible(value)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return Visible(string(raw))
}

// Records prints objects that stand one on a line, as the audit log holds them. known are
// further objects and values that say which fields a record can have.
func (l *listing) Records(lines [][]byte, left int, known ...any) error {
	items := make([]any, 0, len(lines))
	all := &keys{}
	for _, line := range lines {
		item, err := decodedJSON(line)
		if err != nil {
			return fault.New(errcode.OutputWrite, "a record cannot be selected from: "+err.Error()).WithFix("look for damage with `atip audit verify`", "atip audit verify")
		}
		items = append(items, item)
		all.addValue(item)
	}
	for _, k := range known {
		all.addType(reflect.ValueOf(k), reflect.TypeOf(k), 0)
		all.addValue(k)
	}
	if err := l.refuse(all, "a record"); err != nil {
		return err
	}
	for _, item := range items {
		if l.asText() {
			if err := l.c.Text(row(item, l.Fields)); err != nil {
				return err
			}
		} else if err := l.c.Encode(pick(item, l.Fields)); err != nil {
			return err
		}
	}
	return l.Rest(left)
}

// Rest ends records that were cut.
func (l *listing) Rest(left int) error {
	switch {
	case left == 0:
		return nil
	case l.asText():
		return l.c.Text(LeftOutLine(left))
	}
	return l.c.Encode(map[string]any{leftOutKey: map[string]int{"records": left}})
}

// check refuses a field that the document cannot have.
func (l *listing) check(doc, tree any) error {
	if len(l.Fields) == 0 {
		return nil
	}
	all := &keys{}
	all.addType(reflect.ValueOf(doc), reflect.TypeOf(doc), 0)
	all.addValue(tree)
	what := "the result"
	if object, ok := tree.(map[string]any); ok && object["kind"] != nil {
		what = fmt.Sprint(object["kind"])
	}
	return l.refuse(all, what)
}

func (l *listing) refuse(all *keys, what string) error {
	for _, path := range l.Fields {
		at, parent := all, what
		for rest := path; ; {
			key, more, deeper := strings.Cut(rest, ".")
			next := at.below[key]
			if next == nil && at.open && len(at.below) == 0 && key != "" {
				break // nothing says what is in it
			}
			if next == nil {
				names := at.names()
				f := fault.New(errcode.FlagValue, fmt.Sprintf("--fields: %q is not a field of %s", path, parent)).With("flag", "--fields").With("known", names)
				if len(names) == 0 {
					return f.WithFix(parent+" has no fields below it; name it alone", "")
				}
				return f.WithFix("known are "+strings.Join(names, ", "), "--fields "+strings.TrimSuffix(path, rest)+names[0])
			}
			if !deeper {
				break
			}
			at, rest = next, more
			parent = strings.TrimSuffix(path, "."+more)
		}
	}
	return nil
}

// keys are the keys that objects at one place of a document can have.
type keys struct {
	below map[string]*keys
	open  bool // there can be others
}

func (k *keys) at(name string) *keys {
	if k.below == nil {
		k.below = map[string]*keys{}
	}
	if k.below[name] == nil {
		k.below[name] = &keys{}
	}
	return k.below[name]
}

func (k *keys) names() []string {
	return append([]string{}, slices.Sorted(maps.Keys(k.below))...)
}

// addValue adds the keys that are there.
func (k *keys) addValue(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			k.addValue(item)
		}
	case map[string]any:
		for name, v := range value {
			k.at(name).addValue(v)
		}
	}
}

// deepest ends the walk through types that hold themselves.
const deepest = 8

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// addType adds the keys that the types of a value allow, so that a field which is left out
// of this document, being empty, is known.
func (k *keys) addType(value reflect.Value, t reflect.Type, depth int) {
	if t == nil || depth > deepest || t.Implements(textMarshaler) {
		return
	}
	if t.Implements(jsonMarshaler) {
		k.open = true
		return
	}
	inner := func(v reflect.Value) reflect.Value {
		if !v.IsValid() || v.IsNil() {
			return reflect.Value{}
		}
		return v.Elem()
	}
	switch t.Kind() {
	case reflect.Pointer:
		k.addType(inner(value), t.Elem(), depth+1)
	case reflect.Interface:
		if v := inner(value); v.IsValid() {
			k.addType(v, v.Type(), depth+1)
		} else {
			k.open = true
		}
	case reflect.Slice, reflect.Array:
		k.addType(reflect.Value{}, t.Elem(), depth+1)
		if value.IsValid() && t.Elem().Kind() != reflect.Uint8 {
			for i := range value.Len() {
				k.addType(value.Index(i), t.Elem(), depth+1)
			}
		}
	case reflect.Map:
		if !value.IsValid() || value.Len() == 0 {
			k.open = true
			return
		}
		for _, name := range value.MapKeys() {
			k.at(fmt.Sprint(name)).addType(value.MapIndex(name), t.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			var v reflect.Value
			if value.IsValid() {
				v = value.Field(i)
			}
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case tag == "-":
			case f.Anonymous && tag == "":
				k.addType(v, f.Type, depth+1)
			case !f.IsExported():
			case tag == "":
				k.at(f.Name).addType(v, f.Type, depth+1)
			default:
				k.at(tag).addType(v, f.Type, depth+1)
			}
		}
	}
}

// decoded is a document as a reader of JSON gets it.
func decoded(doc any) (any, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fault.New(errcode.Internal, err.Error())
	}
	return decodedJSON(raw)
}

func decodedJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	err := d.Decode(&tree)
	return tree, err
}
