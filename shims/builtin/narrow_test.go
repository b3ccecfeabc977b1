package builtin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestNarrowingFlags: all flags of an option mean the same to a condition. A flag that narrows a call
// must not stand in an option that gathers several for brevity: each of them would narrow.
func TestNarrowingFlags(t *testing.T) {
	t.Parallel()
	type option struct {
		Name  string   `json:"name"`
		Flags []string `json:"flags"`
	}
	type node struct {
		Options  []option                   `json:"options"`
		Global   []option                   `json:"globalOptions"`
		Commands map[string]json.RawMessage `json:"commands"`
		Effects  struct {
			Narrow []struct {
				ID string `json:"id"`
				If any    `json:"if"`
			} `json:"narrow"`
		} `json:"x-atip-effects"`
	}
	var flags func(condition any) []string
	flags = func(condition any) (out []string) {
		switch c := condition.(type) {
		case map[string]any:
			for key, x := range c {
				if list, ok := x.([]any); ok && (key == "anyOption" || key == "allOptions" || key == "flags") {
					for _, flag := range list {
						out = append(out, flag.(string))
					}
					continue
				}
				if key != "not" { // which narrows less by more flags
					out = append(out, flags(x)...)
				}
			}
		case []any:
			for _, x := range c {
				out = append(out, flags(x)...)
			}
		}
		return out
	}
	clauses := 0
	var walk func(at string, raw []byte, scope []option)
	walk = func(at string, raw []byte, scope []option) {
		var n node
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		scope = slices.Concat(n.Options, n.Global, scope)
		for _, clause := range n.Effects.Narrow {
			clauses++
			for _, flag := range flags(clause.If) {
				i := slices.IndexFunc(scope, func(o option) bool { return slices.Contains(o.Flags, flag) })
				if i >= 0 && slices.ContainsFunc([]string{"switch", "value", "other", "more", "misc"}, func(word string) bool { return strings.HasPrefix(scope[i].Name, word) }) && len(scope[i].Flags) > 2 {
					t.Errorf("%s: clause %s narrows by %s, and so by %v", at, clause.ID, flag, scope[i].Flags)
				}
			}
		}
		for name, sub := range n.Commands {
			walk(at+" "+name, sub, scope)
		}
	}
	for _, e := range All() {
		walk(e.Name, e.Raw, nil)
	}
	if clauses < 100 {
		t.Errorf("%d clauses", clauses)
	}
}
