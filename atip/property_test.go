package atip

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// clauses of the property tests; options -a to -e are booleans, -o takes a value.
func randomCondition(r *rand.Rand, depth int) map[string]any {
	flag := func() string { return "-" + string("abcdeo"[r.IntN(6)]) }
	match := []map[string]any{{"equals": "x"}, {"prefix": "+"}, {"re": "^[xy]"}, {"glob": "*y"}, {"in": []string{"x", "z"}}}[r.IntN(5)]
	switch n := r.IntN(9); {
	case n < 3 || depth > 2:
		return map[string]any{"anyOption": []string{flag(), flag()}}
	case n == 3:
		return map[string]any{"optionValue": map[string]any{"flags": []string{"-o"}, "match": match}}
	case n == 4:
		return map[string]any{"anyArg": map[string]any{"from": r.IntN(2), "match": match}}
	case n == 5:
		return map[string]any{"argCount": map[string]any{"min": r.IntN(3)}}
	case n == 6:
		return map[string]any{"all": []any{randomCondition(r, depth+1), randomCondition(r, depth+1)}}
	case n == 7:
		return map[string]any{"any": []any{randomCondition(r, depth+1), randomCondition(r, depth+1)}}
	}
	return map[string]any{"allOptions": []string{flag(), flag()}}
}

func randomDanger(r *rand.Rand) map[string]any {
	out := map[string]any{}
	for _, e := range []string{"network", "subprocess", "destructive", "secretRead", "privileged", "remoteMutation"} {
		if r.IntN(4) == 0 {
			out[e] = true
		}
	}
	if r.IntN(4) == 0 {
		out["reversible"] = false
	}
	return out
}

func randomClauses(r *rand.Rand, kind string, n int) []any {
	var out []any
	for i := range n {
		c := map[string]any{"id": fmt.Sprintf("%s%d", kind, i), "if": randomCondition(r, 0)}
		if kind == "when" {
			c["add"] = randomDanger(r)
			if r.IntN(8) == 0 {
				c["addAll"] = true
			}
			if r.IntN(8) == 0 {
				c["unknown"] = true
			}
		} else {
			c["effects"] = randomDanger(r)
			c["despite"] = []string{fmt.Sprintf("when%d", r.IntN(n+1))}
		}
		out = append(out, c)
	}
	return out
}

func build(t *testing.T, base map[string]any, when, narrow []any) *Document {
	t.Helper()
	var options []any
	for _, f := range "abcde" {
		options = append(options, map[string]any{"name": string(f), "flags": []string{"-" + string(f)}, "type": "boolean"})
	}
	options = append(options, map[string]any{"name": "o", "flags": []string{"-o"}, "type": "string"})
	ext := map[string]any{"v": 1, "base": base}
	if when != nil {
		ext["when"] = when
	}
	if narrow != nil {
		ext["narrow"] = narrow
	}
	raw, err := json.Marshal(map[string]any{
		"atip": "0.6", "name": "t", "options": options,
		"arguments":      []any{map[string]any{"name": "f", "type": "string", "variadic": true, "required": false}},
		"effects":        map[string]any{"network": true, "subprocess": true, "destructive": true, "reversible": false},
		"x-atip-effects": ext,
	})
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, string(raw))
	if n := d.rootNode(); n.extBad {
		t.Fatalf("extension of the test is malformed: %s", raw)
	}
	return d
}

func randomArgv(r *rand.Rand) []string {
	argv := []string{"t"}
	for range r.IntN(5) {
		argv = append(argv, []string{"-a", "-bc", "-d", "-e", "x", "+y", "z", "-ox"}[r.IntN(8)])
	}
	return argv
}

func lower(a, b Effects) (Effect, bool) {
	for i := range a {
		if e := Effect(i); risk(e, b[i].Value) < risk(e, a[i].Value) {
			return e, true
		}
	}
	return 0, false
}

func values(c Call) (out [NumEffects]Value) {
	for i := range c.Effects {
		out[i] = c.Effects[i].Value
	}
	return out
}

func TestClauseProperties(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		base := randomDanger(r)
		when, narrow := randomClauses(r, "when", 1+r.IntN(5)), randomClauses(r, "narrow", r.IntN(3))
		full := build(t, base, when, narrow)
		plain := build(t, base, when, nil)
		fewer := build(t, base, when[1:], nil)
		slices.Reverse(when)
		slices.Reverse(narrow)
		reversed := build(t, base, when, narrow)
		for range 10 {
			argv := randomArgv(r)
			c := full.Resolve(argv, at(Org))
			if values(c) != values(reversed.Resolve(argv, at(Org))) {
				t.Fatalf("seed %d: %q: the order of clauses matters", seed, argv)
			}
			p := plain.Resolve(argv, at(Org))
			if e, ok := lower(fewer.Resolve(argv, at(Org)).Effects, p.Effects); ok {
				t.Fatalf("seed %d: %q: a when lowers %s", seed, argv, e)
			}
			for _, word := range []string{"-a", "-b", "-e", "-ox", "x", "+y", "-z", "--unknown=1"} {
				more := append(append([]string{}, argv...), word)
				if e, ok := lower(p.Effects, plain.Resolve(more, at(Org)).Effects); ok {
					t.Fatalf("seed %d: %q: adding %s lowers %s", seed, argv, word, e)
				}
			}
			// Less rank never claims more.
			u := full.Resolve(argv, at(User))
			for i := range u.Effects {
				if e := Effect(i); risk(e, u.Effects[i].Value) == 0 && u.Effects[i].Rank > User {
					t.Fatalf("seed %d: %s is claimed above the rank of its document", seed, e)
				}
			}
		}
	}
}

func TestIndexReadsTheSame(t *testing.T) {
	for _, name := range []string{"git.json", "gh-0.6.json", "gh-0.1.json", "shim-curl-0.6.json", "curl-legacy.json"} {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		index, err := Index(raw, ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		indexed, err := ParseIndexed(raw, index)
		if err != nil {
			t.Fatal(err)
		}
		d := parse(t, string(raw))
		for _, line := range []string{"git push -n", "git remove -r x", "git -C x push --forc", "gh --weird pr merge 1", "gh pr list -s open", "curl -X GET http://h", "git stash drop", "x", "other y"} {
			argv := strings.Fields(line)
			a, b := fmt.Sprintf("%+v", d.Resolve(argv, at(Org))), fmt.Sprintf("%+v", indexed.Resolve(argv, at(Org)))
			if a != b {
				t.Errorf("%s: %s:\n%s\n%s", name, line, a, b)
			}
		}
		if _, err := ParseIndexed(append(raw, ' '), index); err == nil {
			t.Error("an index of another text is taken")
		}
		for i := range index {
			bent := slices.Clone(index)
			bent[i] ^= 0x41
			if d, err := ParseIndexed(raw, bent); err == nil {
				d.Resolve([]string{"git", "push", "-f"}, at(Org))
			}
		}
	}
}

// FuzzResolve: no words and no document make Resolve fail, and an inferred document
// never claims harmlessness.
func FuzzResolve(f *testing.F) {
	for _, name := range []string{"git.json", "gh-0.6.json", "shim-curl-0.6.json"} {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, "t -C x push -nf --forc=1 -- a")
	}
	f.Add([]byte(tool(opt("-a", "boolean"), files, `"parse":{}`)), "t -\xff -a\xff\xfe x")
	f.Add([]byte(tool(opt("-o", "string"), files, `"parse":{"bareCluster":true,"arity":{"-o":"terminator"}},"exec":[{"from":"rest","kind":"argv","skip":-1,"index":-9}]`)), "t xo {} + ; y")
	f.Add([]byte(tool(opt("-c", "string"), files, `"sublanguage":[{"from":"optionValue","flags":["-c"],"language":"sql"}]`)), "t -c drop")
	f.Fuzz(func(t *testing.T, raw []byte, line string) {
		d, err := Parse(raw, ParseOptions{})
		if err != nil {
			return
		}
		argv := strings.Fields(line)
		c := d.Resolve(argv, at(Vendor))
		if c.Exactness == Exact && len(c.UnknownOptions) > 0 {
			t.Fatalf("exact with unknown options %v", c.UnknownOptions)
		}
		for e, fact := range d.Resolve(argv, at(Inferred)).Effects {
			if fact.Value == harmless(Effect(e)) {
				t.Fatalf("inferred document claims %s=%s", Effect(e), fact.Value)
			}
		}
		d.Warnings()
		Validate(raw, "x.json")
	})
}

// Whatever the product of words and clauses, a call ends; too much work resolves to
// nothing.
func TestBoundedWork(t *testing.T) {
	var flags []string
	for range 4000 {
		flags = append(flags, "-a")
	}
	list, err := json.Marshal(flags)
	if err != nil {
		t.Fatal(err)
	}
	var when []string
	for i := range 60 {
		when = append(when, fmt.Sprintf(`{"id":"w%d","if":{"anyOption":%s},"add":{"destructive":true}}`, i, list))
	}
	d := parse(t, tool(opt("-a", "boolean"), files, `"base":{},"when":[`+strings.Join(when, ",")+`]`))
	argv := append([]string{"t"}, slices.Repeat([]string{"-a"}, 4000)...)
	c := d.Resolve(argv, at(Org))
	if c.Exactness != Unresolved || c.Effects[Destructive].Value == No || len(c.Warnings) == 0 {
		t.Errorf("%s, destructive %s, %v", c.Exactness, c.Effects[Destructive].Value, c.Warnings)
	}
	if c := d.Resolve(argv[:10], at(Org)); c.Exactness != Exact {
		t.Errorf("ten words: %s", c.Exactness)
	}
	if c := d.Resolve(slices.Repeat([]string{"t"}, maxWords+1), at(Org)); c.Exactness != Unresolved {
		t.Errorf("too many words: %s", c.Exactness)
	}
}
