package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// TestEveryClauseMatters takes each when and each narrow away in turn: some row must
// notice. A clause that nothing notices is untested, or can never hold.
func TestEveryClauseMatters(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		var tree map[string]any
		if err := json.Unmarshal(e.Raw, &tree); err != nil {
			t.Fatal(err)
		}
		if tree["commands"] != nil {
			continue // hundreds of commands share their clauses; a row for each would say the same again
		}
		raw, err := os.ReadFile(e.Name + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		var rows []row
		for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
			var r row
			if json.Unmarshal(lines.Bytes(), &r) == nil && len(r.Argv) > 0 {
				rows = append(rows, r)
			}
		}
		whole := parsed(t, e.Raw)
		want := make([]atip.Call, len(rows))
		for i, r := range rows {
			want[i] = resolve(whole, r)
		}
		var unseen []string
		eachClause(tree, func(id string) {
			mutant, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			doc := parsed(t, mutant)
			for i, r := range rows {
				if differ(resolve(doc, r), want[i]) {
					return
				}
			}
			unseen = append(unseen, id)
		})
		if len(unseen) > 0 {
			sort.Strings(unseen)
			t.Errorf("%s: no row notices the absence of %s", e.Name, strings.Join(unseen, " "))
		}
	}
}

// differ ignores by which clause an effect came about.
func differ(a, b atip.Call) bool {
	for i := range a.Effects {
		if a.Effects[i].Value != b.Effects[i].Value {
			return true
		}
	}
	return !reflect.DeepEqual(a.Nested, b.Nested) || !reflect.DeepEqual(a.Resources, b.Resources)
}

// eachClause calls visit with the document's other clauses in place.
func eachClause(doc map[string]any, visit func(id string)) {
	x, _ := doc["x-atip-effects"].(map[string]any)
	for _, field := range []string{"when", "narrow"} {
		list, _ := x[field].([]any)
		for i := range list {
			id, _ := list[i].(map[string]any)["id"].(string)
			x[field] = append(append([]any{}, list[:i]...), list[i+1:]...)
			visit(id)
			x[field] = list
		}
	}
}
