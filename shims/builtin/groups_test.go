package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A group of options that only share their type is one option to who reads metadata: a clause that names one of
// its flags holds for all of them. So no clause, argument or program text names a part of such a group.
func TestGroupsOfOptions(t *testing.T) {
	type option struct {
		Name  string
		Flags []string
	}
	type command struct {
		Options, GlobalOptions []option
		Effects                any `json:"x-atip-effects"`
		Commands               map[string]json.RawMessage
	}
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	var visit func(where string, raw []byte, above []option)
	visit = func(where string, raw []byte, above []option) {
		var c command
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		options := slices.Concat(above, c.Options, c.GlobalOptions)
		named := func(flags []string) {
			for _, o := range options {
				if !slices.Contains([]string{"value", "switch", "other-value", "other-switch"}, o.Name) {
					continue
				}
				in := func(f string) bool { return slices.Contains(flags, f) }
				if slices.ContainsFunc(o.Flags, in) && slices.ContainsFunc(o.Flags, func(f string) bool { return !in(f) }) {
					t.Errorf("%s: %q names a part of the group %q", where, flags, o.Name)
				}
			}
		}
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, one := range v {
					walk(one)
				}
			case map[string]any:
				for key, one := range v {
					if f, ok := one.(string); ok && key == "flag" {
						named([]string{f})
					}
					if list, ok := one.([]any); ok && (key == "flags" || key == "anyOption") {
						var flags []string
						for _, f := range list {
							s, _ := f.(string)
							flags = append(flags, s)
						}
						named(flags)
					}
					walk(one)
				}
			}
		}
		walk(c.Effects)
		for name, sub := range c.Commands {
			visit(where+" "+name, sub, slices.Concat(above, c.GlobalOptions))
		}
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		visit(f, raw, nil)
	}
}
