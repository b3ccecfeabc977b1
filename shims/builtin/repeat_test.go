package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// contradictions are the words that take back, repeat or change an option of a call.
func contradictions(o atip.OptionUse) []string {
	out := []string{o.Flag}
	if name, long := strings.CutPrefix(o.Flag, "--"); long {
		out = append(out, o.Flag+"=false", o.Flag+"=none", o.Flag+"=other", "--no-"+name)
		if rest, no := strings.CutPrefix(name, "no-"); no {
			out = append(out, "--"+rest)
		}
	}
	return out
}

// TestContradictionLowersNothing repeats each option of each row with another value, or puts
// its opposite beside it, before the option and behind it. Which of several wins is the tool's
// secret, so both together must be no milder than either alone, whatever a narrow says:
// "--dry-run --dry-run=false" is as dangerous as "--dry-run=false".
func TestContradictionLowersNothing(t *testing.T) {
	t.Parallel()
	tried, narrowed := 0, 0
	for _, e := range All() {
		doc := parsed(t, e.Raw)
		rows, err := os.ReadFile(e.Name + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(rows)); lines.Scan(); {
			var r row
			if json.Unmarshal(lines.Bytes(), &r) != nil || len(r.Argv) == 0 {
				continue
			}
			argv := r.Argv
			with := func(words ...string) (atip.Call, []string) {
				r.Argv = words
				return resolve(doc, r), words
			}
			before, _ := with(argv...)
			if before.Exactness == atip.Unresolved {
				continue
			}
			for _, o := range before.Options {
				at := slices.IndexFunc(argv, func(w string) bool { return w == o.Flag || strings.HasPrefix(w, o.Flag+"=") })
				if at < 1 {
					continue // in a cluster
				}
				behind := at + 1
				if o.Value != "" && argv[at] == o.Flag {
					behind++
				}
				if behind > len(argv) {
					continue
				}
				for _, w := range contradictions(o) {
					if w == o.Flag && o.Value != "" {
						continue // without "=" it would take the next word
					}
					alone, _ := with(slices.Replace(slices.Clone(argv), at, behind, w)...)
					for _, i := range []int{at, behind} {
						after, words := with(slices.Insert(slices.Clone(argv), i, w)...)
						if after.Exactness == atip.Unresolved || !slices.Equal(before.Path, after.Path) {
							continue
						}
						tried++
						for k := range after.Effects {
							effect := atip.Effect(k)
							if effect == atip.Read {
								continue // the only one that no decision asks about
							}
							if harm(effect, alone.Effects[k].Value) > harm(effect, before.Effects[k].Value) {
								narrowed++
							}
							for _, one := range []atip.Call{before, alone} {
								same := slices.Equal(one.Path, after.Path) && slices.Equal(one.Positionals, after.Positionals) && one.Readings == 1
								if same && harm(effect, after.Effects[k].Value) < harm(effect, one.Effects[k].Value) {
									t.Errorf("%q: %s is %s (%s), less than %s (%s) of %q", words, effect, after.Effects[k].Value, after.Effects[k].Clause, one.Effects[k].Value, one.Effects[k].Clause, one.Argv)
								}
							}
						}
					}
				}
			}
		}
	}
	if tried < 10000 || narrowed < 500 {
		t.Errorf("only %d calls tried, %d effects that an option had lowered", tried, narrowed)
	}
}
