package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// A document read by its index must say the same as the whole one about every argv
// of the rows, and with words put before and after its command; a tenth
// of the rows each, since all together take a minute.
func TestIndexChangesNothing(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, e := range All() {
		if e.Index == nil {
			continue
		}
		whole := parsed(t, e.Raw)
		indexed, err := e.Parse()
		if err != nil {
			t.Fatal(e.Name, err)
		}
		var c claims
		if err := json.Unmarshal(e.Raw, &c); err != nil {
			t.Fatal(err)
		}
		words, _ := c.collect([]string{"--no-such", "-Z", "--", "x", "--color=x"}, nil)
		file, err := os.ReadFile(e.Name + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
			var r row
			if json.Unmarshal(lines.Bytes(), &r) != nil || len(r.Argv) < 2 {
				continue
			}
			rows++
			argv, w := r.Argv, words[rows*7%len(words)]
			argvs := [][]string{argv}
			switch rows % 10 {
			case 0:
				argvs = append(argvs, append([]string{argv[0], w}, argv[1:]...))
			case 5:
				argvs = append(argvs, append(slices.Clone(argv), w))
			}
			for _, r.Argv = range argvs {
				if got, want := resolve(indexed, r), resolve(whole, r); !reflect.DeepEqual(got, want) {
					t.Errorf("%q:\nindexed %s %+v\nwhole   %s %+v", r.Argv, show(got), got.Effects, show(want), want.Effects)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("no document has an index")
	}
}

func parsed(t *testing.T, raw []byte) *atip.Document {
	t.Helper()
	doc, err := atip.Parse(raw, atip.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
