package builtin

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// group is a command that has others below it.
type group struct {
	Commands map[string]json.RawMessage `json:"commands"`
	Operands bool                       `json:"x-atip-operands"`
}

// groups lists the command words of every group of a document, and whether it takes
// arguments of its own.
func groups(t *testing.T, raw json.RawMessage, path []string, visit func(path []string, operands bool)) {
	t.Helper()
	var g group
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	kids := 0
	for name, child := range g.Commands {
		if name != "" {
			kids++
			groups(t, child, append(slices.Clone(path), name), visit)
		}
	}
	if kids > 0 {
		visit(path, g.Operands)
	}
}

// TestNoSuchCommand is the row "TOOL frobnicate-xyz" of every document and each of its groups.
func TestNoSuchCommand(t *testing.T) {
	t.Parallel()
	checked, taking := 0, 0
	for _, e := range All() {
		doc := parsed(t, e.Raw)
		groups(t, e.Raw, nil, func(path []string, operands bool) {
			if operands {
				taking++
				return
			}
			checked++
			argv := append(append([]string{e.Name}, path...), "frobnicate-xyz")
			call := resolve(doc, row{Argv: argv})
			if call.Exactness != atip.Unresolved {
				t.Errorf("%q is %s: a word that names no command must be unresolved, or the group says x-atip-operands", argv, call.Exactness)
			}
			for i, f := range call.Effects {
				if harm(atip.Effect(i), f.Value) == 0 {
					t.Errorf("%q: %s is %s", argv, atip.Effect(i), f.Value)
				}
			}
		})
	}
	if checked < 600 || taking > 40 {
		t.Errorf("%d groups checked, %d take arguments: each of the latter has to be looked at", checked, taking)
	}
}
