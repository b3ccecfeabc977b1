package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// A cut document must say the same as the whole one about every argv of the rows,
// and with words put before and after its command; the rows take turns at those,
// since all together take a minute.
func TestCutChangesNothing(t *testing.T) {
	cuts, rows := 0, 0
	for _, e := range All() {
		if e.span.parts[0] == e.span.parts[1] {
			continue
		}
		whole := parsed(t, e.Raw)
		files, err := os.ReadFile(e.Name + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(files)); lines.Scan(); {
			var r row
			if json.Unmarshal(lines.Bytes(), &r) != nil || len(r.Argv) < 2 || filepath.Base(r.Argv[0]) != e.Name {
				continue
			}
			all := variants(e, r.Argv)
			rows++
			for _, argv := range [][]string{r.Argv, all[rows*7%len(all)], all[rows*31%len(all)]} {
				r.Argv = argv
				cut := e.Cut(argv)
				if len(cut) < len(e.Raw) {
					cuts++
				}
				got, want := resolve(parsed(t, cut), r), resolve(whole, r)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%q:\ncut   %s %+v\nwhole %s %+v", argv, show(got), got.Effects, show(want), want.Effects)
				}
			}
		}
	}
	if cuts == 0 {
		t.Error("no document was ever cut")
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

func variants(e Entry, argv []string) [][]string {
	before := []string{"--no-such", "-Z", "--", "--help", "--dry-run", "-f", "--namespace", "-n", "--color=x"}
	for _, f := range rootFlags[e.span.flags[0]:e.span.flags[1]] {
		before = append(before, f.flag, f.flag+"=x")
	}
	var out [][]string
	for _, w := range before {
		out = append(out, append([]string{argv[0], w}, argv[1:]...), append([]string{argv[0], w, "x"}, argv[1:]...),
			append(append([]string{}, argv...), w))
	}
	return out
}

// Whatever the words are, the cut of a document is a document.
func FuzzCut(f *testing.F) {
	for _, s := range []string{"push\n-f", "-C\nx\npush", "--git-dir=x\nremote\nadd", "--\npush", "-", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, words string) {
		argv := append([]string{"git"}, strings.Split(words, "\n")...)
		e, ok := Find("git")
		if !ok {
			t.Fatal("git has no document")
		}
		got := parsed(t, e.Cut(argv)).Resolve(argv, atip.ResolveOptions{})
		want := parsed(t, e.Raw).Resolve(argv, atip.ResolveOptions{})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q\ncut   %s\nwhole %s", argv, show(got), show(want))
		}
	})
}
