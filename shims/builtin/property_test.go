package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// claims is what this test needs to know of a document: its flags and the ids of
// the clauses that may lower.
type claims struct {
	Options       []flags           `json:"options"`
	GlobalOptions []flags           `json:"globalOptions"`
	Commands      map[string]claims `json:"commands"`
	Ext           struct {
		Narrow []struct {
			ID string `json:"id"`
		} `json:"narrow"`
	} `json:"x-atip-effects"`
}

type flags struct {
	Flags []string `json:"flags"`
}

func (c claims) collect(words, narrows []string) ([]string, []string) {
	for _, o := range append(c.Options, c.GlobalOptions...) {
		words = append(words, o.Flags...)
	}
	for _, n := range c.Ext.Narrow {
		narrows = append(narrows, n.ID)
	}
	for _, sub := range c.Commands {
		words, narrows = sub.collect(words, narrows)
	}
	return words, narrows
}

// harm orders the values of an effect.
func harm(e atip.Effect, v atip.Value) int {
	switch v {
	case e.Dangerous():
		return 2
	case atip.Unknown:
		return 1
	}
	return 0
}

// An added word must not lower an effect unless a narrow says so: else whoever
// writes the command line can talk a decision down with a flag that the tool
// ignores, or that a later one overrides.
func TestAddedWordLowersNothing(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		doc := parsed(t, e.Raw)
		var c claims
		if err := json.Unmarshal(e.Raw, &c); err != nil {
			t.Fatal(err)
		}
		words, narrows := c.collect(nil, nil)
		slices.Sort(words)
		words = slices.Compact(words)
		words = append(words, "x", "a=b")
		rows, err := os.ReadFile(e.Name + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for lines := bufio.NewScanner(bytes.NewReader(rows)); lines.Scan(); {
			var r row
			if json.Unmarshal(lines.Bytes(), &r) != nil || len(r.Argv) == 0 {
				continue
			}
			before := resolve(doc, r)
			argv := r.Argv
			// Three words per row, another three for the next.
			for range min(3, len(words)) {
				n++
				w := words[n%len(words)]
				r.Argv = append(slices.Clone(argv), w)
				after := resolve(doc, r)
				if after.Exactness == atip.Unresolved {
					continue // all is unknown, which no rule takes for harmless
				}
				if !slices.Equal(before.Path, after.Path) || len(after.Nested) > len(before.Nested) {
					continue // another command; or one inside, which is judged by itself
				}
				if n := len(before.Positionals); n > len(after.Positionals) || !slices.Equal(before.Positionals, after.Positionals[:n]) {
					continue // the words have other roles: what was the destination is a source
				}
				narrowed := slices.ContainsFunc(after.Effects[:], func(f atip.Fact) bool { return slices.Contains(narrows, f.Clause) })
				for i := range after.Effects {
					k, b, a := atip.Effect(i), before.Effects[i], after.Effects[i]
					if harm(k, a.Value) < harm(k, b.Value) && !narrowed {
						t.Errorf("%q with %s: %s falls from %s (%s) to %s (%s %s)", argv, w, k, b.Value, b.Clause, a.Value, a.Pointer, a.Clause)
					}
				}
			}
		}
	}
}
