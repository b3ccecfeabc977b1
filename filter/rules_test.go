package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readRules reads the rows that rules_gen.go was made from.
func readRules(t *testing.T) []Rule {
	t.Helper()
	names, err := filepath.Glob("rules/*.jsonc")
	if err != nil || len(names) == 0 {
		t.Fatal("no rules", err)
	}
	slices.Sort(names)
	var out []Rule
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			line = bytes.Trim(line, " ,\n")
			if len(line) == 0 || line[0] != '{' {
				continue
			}
			var r Rule
			dec := json.NewDecoder(bytes.NewReader(line))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&r); err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
			out = append(out, r)
		}
	}
	return out
}

// TestGenerated: the compiled table is the one in the files.
func TestGenerated(t *testing.T) {
	rules := readRules(t)
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(rules); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != rulesDigest {
		t.Errorf("rules_gen.go is stale: run go generate ./filter")
	}
	if len(rules) != len(builtinRules) {
		t.Errorf("%d rows, %d compiled", len(rules), len(builtinRules))
	}
}

func TestRules(t *testing.T) {
	settings := []string{"%s", "TOKEN=%s\n", `{"k":"%s","n":1}`, `{"a":"{\"k\":\"%s\"}"}`, "k: %s\n", "X-Auth: %s\r\nA: b\r\n",
		"https://h/?k=%s&b=c", "'%s' x", "+%s\n-old\n", "%s\r\n", "\x1b[32m%s\x1b[0m\n", "(%s), <%s>", "a\\n%s\\nb", "x%%3D%s%%26"}
	s := testSet(t, Config{NoMemory: true})
	for _, r := range readRules(t) {
		if _, err := CheckRule(&r); err != nil {
			t.Error(err)
		}
		if r.Ref == "" || r.Vendor == "" {
			t.Errorf("%s: no ref or vendor", r.ID)
		}
		for _, template := range r.Examples {
			for seed := range uint64(3) {
				token, err := ExpandTemplate(template, seed)
				if err != nil {
					t.Fatal(err)
				}
				if !compiled(t, r).matches(token, r.Prefix) {
					continue // this draw lacks the digits or letters the rule needs
				}
				for _, setting := range settings {
					if len(r.Names) > 0 {
						setting = named(setting, r.Names[0])
					}
					if r.Left == "digits" {
						setting = strings.ReplaceAll(setting, "%s", "12345678%s")
					}
					text := strings.ReplaceAll(setting, "%s", token)
					text = strings.ReplaceAll(text, "%%", "%")
					out := filterAll(t, s, text)
					// Before a colon that is part of the tell-tale the id may stay.
					if strings.Contains(out, token) || !strings.Contains(out, "[REDACTED:") {
						t.Errorf("%s in %q: %q", r.ID, setting, out)
					}
				}
			}
		}
		for _, template := range r.Counter {
			text, err := ExpandTemplate(template, 1)
			if err != nil {
				t.Fatal(err)
			}
			if out := filterAll(t, s, "a "+text+" b\n"); strings.Contains(out, "[REDACTED:"+r.ID+":") {
				t.Errorf("%s: counter %s is masked: %q", r.ID, template, out)
			}
		}
	}
}

// named puts a vendor's name before the value of a setting, in the writing that fits it.
func named(setting, name string) string {
	switch {
	case strings.HasPrefix(setting, "https:"):
		return "https://h/?" + name + "_key=%s&b=c"
	case strings.Contains(setting, `\"k\"`):
		return `{"a":"{\"` + name + `Token\":\"%s\"}"}`
	case strings.Contains(setting, `"k"`):
		return `{"` + name + `_api_key":"%s","n":1}`
	case strings.HasPrefix(setting, "'"):
		return name + ".secret = '%s' x"
	}
	return strings.ToUpper(name) + "_TOKEN=%s\n"
}

func compiled(t *testing.T, r Rule) *rule {
	t.Helper()
	c, err := compileRule(&r)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestBadRules: each is refused with its reason.
func TestBadRules(t *testing.T) {
	good := Rule{ID: "x", Prefix: []string{"abc_"}, Body: []Shape{{Set: "hex", Min: 8}}, Examples: []string{"abc_{hex:8}"}, Counter: []string{"abc_"}}
	if _, err := CheckRule(&good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Rule){
		"id":              func(r *Rule) { r.ID = "a b" },
		"no prefix":       func(r *Rule) { r.Prefix = nil },
		"short prefix":    func(r *Rule) { r.Prefix = []string{"ab"} },
		"no body":         func(r *Rule) { r.Body = nil },
		"set":             func(r *Rule) { r.Body[0].Set = "what" },
		"set and literal": func(r *Rule) { r.Body[0].Lit = "x" },
		"ambiguous":       func(r *Rule) { r.Body = []Shape{{Set: "hex", Min: 4, Max: 8}, {Lit: "a"}, {Set: "hex", Min: 4}} },
		"side by side":    func(r *Rule) { r.Body = []Shape{{Set: "hex", Min: 4, Max: 8}, {Set: "alnum", Min: 4}} },
		"too long":        func(r *Rule) { r.Body = []Shape{{Set: "hex", Min: 600}} },
		"left":            func(r *Rule) { r.Left = "x" },
		"end":             func(r *Rule) { r.End = "x" },
		"check":           func(r *Rule) { r.Check = "x" },
		"no examples":     func(r *Rule) { r.Examples = nil },
		"bad example":     func(r *Rule) { r.Examples = []string{"abc_"} },
		"bad counter":     func(r *Rule) { r.Counter = []string{"abc_{hex:12}"} },
		"bad template":    func(r *Rule) { r.Examples = []string{"abc_{hex"} },
	} {
		r := good
		r.Body = slices.Clone(good.Body)
		change(&r)
		if _, err := CheckRule(&r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNoLiteralTokens: what looks like a secret in a repository is reported by
// every scanner that reads it, ours included.
func TestNoLiteralTokens(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, findings := testSet(t, Config{NoMemory: true}).String(string(data))
		for _, f := range findings {
			if f.Layer == "prefix" || f.Layer == "armour" {
				t.Errorf("%s:%d: %s", path, f.Line, f.Rule)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestVendorMarks: each vendor is found by its word in any case, as without the marks.
func TestVendorMarks(t *testing.T) {
	for k := range vendorNames {
		word := vendorNames[k].word
		if len(word) < 4 {
			continue
		}
		first := slices.IndexFunc(vendorNames[:], func(v vendorName) bool { return v.word == word })
		for _, name := range []string{word, strings.ToUpper(word), "x_" + word + "_key"} {
			if got := vendorMarks().vendorAt([]byte(name)); got != int32(first+1) && strings.IndexFunc(word, func(r rune) bool { return !isAlnum(byte(r)) }) < 0 {
				t.Errorf("%s: row %d, want %d", name, got, first+1)
			}
		}
	}
}

// TestQualifierEnds: each qualifier is found in any case, at the end of any word.
func TestQualifierEnds(t *testing.T) {
	for k := range qualifiers {
		for word := range strings.SplitSeq(qualifiers[k].before, " ") {
			for _, text := range []string{word, strings.ToUpper(word), "x_" + word} {
				if !qualified().ends[k].has([]byte(text)) || !endsInAny([]byte(text), qualifiers[k].before) {
					t.Errorf("%s %s is not found", text, qualifiers[k].word)
				}
			}
		}
	}
}
