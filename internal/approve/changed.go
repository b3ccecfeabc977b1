package approve

import (
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

// normal brings a value into the types that reading a request gives.
func normal(v any) any {
	switch x := v.(type) {
	case int:
		return int64(x)
	case uint64:
		if x <= 1<<63-1 {
			return int64(x)
		}
	case []byte:
		return string(x)
	case []string:
		out := make([]any, len(x))
		for i := range x {
			out[i] = x[i]
		}
		return out
	case []map[string]any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = normal(x[i])
		}
		return out
	case map[string]string:
		out := make(map[string]any, len(x))
		for k := range x {
			out[k] = x[k]
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = normal(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k := range x {
			out[k] = normal(x[k])
		}
		return out
	}
	return v
}
