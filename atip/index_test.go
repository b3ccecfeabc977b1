package atip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// randomTree is a document whose commands share names, aliases, prefixes and flags of
// different arity, so that every question an index answers has an odd answer somewhere.
func randomTree(r *rand.Rand) map[string]any {
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	option := func() map[string]any {
		o := map[string]any{"name": "x", "flags": []string{pick("-a", "-b", "--all", "--alpha", "--be")}, "type": pick("boolean", "string", "odd")}
		if r.Intn(3) == 0 {
			o["flags"] = append(o["flags"].([]string), pick("--al", "-c", "--gamma\u00e9"))
		}
		return o
	}
	effects := func() map[string]any {
		e := map[string]any{}
		for _, k := range []string{"network", "destructive", "reversible", "subprocess"} {
			if r.Intn(2) == 0 {
				e[k] = r.Intn(2) == 0
			}
		}
		return e
	}
	var node func(depth int) any
	node = func(depth int) any {
		if r.Intn(25) == 0 {
			return []any{3, "text", nil, []any{}}[r.Intn(4)]
		}
		n := map[string]any{"description": strings.Repeat("d", r.Intn(20)), "effects": effects()}
		for _, field := range []string{"options", "globalOptions"} {
			var list []any
			for range r.Intn(3) {
				list = append(list, option())
			}
			if list != nil || r.Intn(4) == 0 {
				n[field] = append([]any{}, list...)
			}
		}
		if r.Intn(3) == 0 {
			n["arguments"] = []any{map[string]any{"name": "w", "type": "file", "variadic": r.Intn(2) == 0, "required": false}}[:r.Intn(2)]
		}
		if r.Intn(3) == 0 {
			n["aliases"] = []any{pick("ls", "rm", "list", "", "r\"m"), 4}
		}
		x := map[string]any{"v": 1}
		if r.Intn(3) == 0 {
			x["parse"] = map[string]any{"abbrevCommands": r.Intn(2) == 0, "abbrev": r.Intn(2) == 0}
		}
		if r.Intn(3) == 0 {
			x["base"] = effects()
			x["when"] = []any{map[string]any{"id": "w", "if": map[string]any{"anyOption": []string{"-a"}}, "add": map[string]any{"destructive": true}}}
		}
		if len(x) > 1 {
			n["x-atip-effects"] = x
		}
		if depth < 4 && r.Intn(4) > 0 {
			kids := map[string]any{}
			for range r.Intn(5) {
				kids[pick("list", "listen", "remove", "rm", "", "re\u00e9", "x/y", "add")] = node(depth + 1)
			}
			n["commands"] = kids
			if r.Intn(25) == 0 && depth > 0 {
				n["commands"] = "broken"
			}
		}
		return n
	}
	root, ok := node(0).(map[string]any)
	if !ok {
		root = map[string]any{}
	}
	root["atip"], root["name"] = "0.6", "t"
	if r.Intn(4) == 0 {
		root["omitted"] = map[string]any{"safetyAssumption": pick("unknown", "known-safe", "known-unsafe", "same-as-included")}
	}
	return root
}

// TestIndexedProperty: a document read by its index, in memory or piece by piece, says
// the same of every call as the whole one.
func TestIndexedProperty(t *testing.T) {
	words := []string{"list", "listen", "li", "l", "rm", "remove", "r", "re\u00e9", "x/y", "add", "ls", "r\"m", "-a", "-b", "--all", "--al", "--alpha=1", "--be", "-c", "--", "-ab", "--nope", "x", ""}
	calls := 0
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		raw, err := json.MarshalIndent(randomTree(r), "", strings.Repeat(" ", r.Intn(3)))
		if err != nil {
			t.Fatal(err)
		}
		if r.Intn(4) == 0 {
			raw = append([]byte("\n  "), raw...)
		}
		d, err := Parse(raw, ParseOptions{})
		if err != nil {
			continue // two keys that differ in case only
		}
		index, err := Index(raw, ParseOptions{})
		if err != nil {
			t.Fatal(seed, err)
		}
		inMemory, err := ParseIndexed(raw, index)
		if err != nil {
			t.Fatal(seed, err)
		}
		pieces, err := OpenIndexed(bytes.NewReader(raw), int64(len(raw)), struct{ io.ReaderAt }{bytes.NewReader(index)}, int64(len(index)))
		if err != nil {
			t.Fatal(seed, err)
		}
		for range 40 {
			argv := []string{"t"}
			for range r.Intn(6) {
				argv = append(argv, words[r.Intn(len(words))])
			}
			o := at([]Rank{Inferred, User, Org}[r.Intn(3)])
			if r.Intn(6) == 0 {
				o.InvokedAs = "other"
			}
			calls++
			want := d.Resolve(argv, o)
			for name, x := range map[string]*Document{"in memory": inMemory, "in pieces": pieces} {
				if got := x.Resolve(argv, o); !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, %s: %q:\n%s\n%s\n%s", seed, name, argv, raw, brief(got), brief(want))
				}
			}
		}
		if !slices.Equal(flagsOf(inMemory.Commands(Provenance{})), flagsOf(d.Commands(Provenance{}))) {
			t.Errorf("seed %d: the list of commands differs", seed)
		}
	}
	if calls < 10000 {
		t.Errorf("only %d calls", calls)
	}
}

func brief(c Call) string { return fmt.Sprintf("%v %v %+v", c.Path, c.Exactness, c) }

func flagsOf(list []Command) (out []string) {
	for _, c := range list {
		out = append(out, fmt.Sprint(c.Path, c.Options))
	}
	return out
}

// FuzzIndexed: neither a damaged index nor another text makes a call fail, and the text
// of an index never claims more than its document.
func FuzzIndexed(f *testing.F) {
	var raw []byte
	for seed := range int64(40) {
		more, err := json.Marshal(randomTree(rand.New(rand.NewSource(seed))))
		if err != nil {
			f.Fatal(err)
		}
		if _, err := Parse(more, ParseOptions{}); err == nil && len(more) > len(raw) {
			raw = more
		}
	}
	index, err := Index(raw, ParseOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, index, "t list -a --nope x")
	f.Add(raw, index[:len(index)/2], "t")
	f.Fuzz(func(t *testing.T, raw, index []byte, line string) {
		if d, err := ParseIndexed(raw, index); err == nil {
			d.Resolve(strings.Fields(line), at(Vendor))
			d.Warnings()
		}
	})
}
