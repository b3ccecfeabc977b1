package approve

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sort"
	"strconv"
)

// maxChanges bounds what Changed lists: after a few, everything is different.
const maxChanges = 20

// Changed names where two bound objects differ, such as "cwd" or "steps[0].sha256".
// It never tells the values: those of variables are digests of secrets.
func Changed(a, b map[string]any) []string {
	var out []string
	differences("", normal(a), normal(b), &out)
	sort.Strings(out)
	return out
}

func differences(at string, a, b any, out *[]string) {
	if len(*out) >= maxChanges || reflect.DeepEqual(a, b) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for k := range x {
			differences(join(at, k), x[k], y[k], out)
		}
		for k := range y {
			if _, ok := x[k]; !ok {
				differences(join(at, k), nil, y[k], out)
			}
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			differences(at+"["+strconv.Itoa(i)+"]", x[i], y[i], out)
		}
		return
	}
	*out = append(*out, at)
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// normal brings an object into the types that reading a request gives. One without a canonical form, which
// nothing can bind, stays as it is.
func normal(bound map[string]any) any {
	raw, err := appendCanonical(nil, bound, 0)
	if err != nil {
		return bound
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var read any
	if err = d.Decode(&read); err == nil {
		read, err = restore(read)
	}
	if err != nil {
		return bound
	}
	return read
}
