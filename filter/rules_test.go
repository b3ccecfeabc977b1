package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// settings are the twelve of filter.md §17.3: where a token (‹›) stands in what tools print, and
// a value under its vendor's name («»).
var settings = []struct{ name, token, value string }{
	{"bare", "‹›", "« key ‹›"},
	{"env", "TOKEN=‹›\n", "«_API_KEY=‹›\n"},
	{"json", `{"k":"‹›","n":1}`, `{"«_api_key":"‹›","n":1}`},
	{"nested", `{"a":"{\"k\":\"‹›\"}"}`, `{"a":"{\"«Token\":\"‹›\"}"}`},
	{"yaml", "k: ‹›\nb: 1\n", "«:\n  «_secret: ‹›\nb: 1\n"},
	{"header", "X-Auth: ‹›\r\nA: b\r\n", "X-«-Token: ‹›\r\nA: b\r\n"},
	{"url", "https://h.example/?k=‹›&b=c", "https://h.example/?«_key=‹›&b=c"},
	{"quoted", "'‹›' x", "«.secret = '‹›' x"},
	{"diff", "+‹›\n-old\n", "+«_token: ‹›\n-old\n"},
	{"crlf", "‹›\r\nb\r\n", "«_key=‹›\r\nb\r\n"},
	{"coloured", "\x1b[32m‹›\x1b[0m\n", "«_key=\x1b[32m‹›\x1b[0m\n"},
	{"punctuation", "(‹›), <‹›>; ‹›.", "(«_key=\"‹›\"), <«_token>‹›</«_token>; «_secret: ‹›,"},
	{"escaped", "a\\n‹›\\nb", "a\\n«_key=‹›\\nb"},
	{"percent", "x%3D‹›%26", "«_key%3D‹›%26b%3Dc"},
	{"element", "<v>\n  ‹›\n</v>\n", "<«Token>\n  ‹›\n</«Token>\n"},
	{"argument", "f(\"k\", \"‹›\")", "f(\"«_KEY\", \"‹›\")"},
}

// draws expands a template until it has n tokens that r accepts: some draws lack the digits or
// letters that it needs.
func draws(t *testing.T, r *Rule, template string, n int) []string {
	t.Helper()
	var out []string
	c := compiled(t, *r)
	for seed := uint64(0); len(out) < n && seed < 200; seed++ {
		token, err := ExpandTemplate(template, seed)
		if err != nil {
			t.Fatal(err)
		}
		if c.matches(token, r.Prefix) {
			out = append(out, token)
		}
	}
	if len(out) < n {
		t.Errorf("%s: %d of %d draws of %s are tokens", r.ID, len(out), n, template)
	}
	return out
}

// TestRules: five tokens of each example are masked in each setting, whole and with nothing
// beside them, however the writes are cut; counters pass.
func TestRules(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	placeholder := regexp.MustCompile(`\[REDACTED:[^\]]*\]`)
	for _, r := range readRules(t) {
		if _, err := CheckRule(&r); err != nil {
			t.Error(err)
		}
		if r.Ref == "" || r.Vendor == "" {
			t.Errorf("%s: no ref or vendor", r.ID)
		}
		for _, template := range r.Examples {
			for k, token := range draws(t, &r, template, 5) {
				for _, setting := range settings {
					if setting.name == "percent" && strings.ContainsAny(token, "?&") {
						continue // the mark would be escaped too
					}
					text := setting.token
					if len(r.Names) > 0 {
						text = strings.ReplaceAll(setting.value, "«", r.Names[k%len(r.Names)])
						if setting.name == "env" {
							text = strings.ToUpper(text)
						}
					}
					want := text
					text = strings.ReplaceAll(text, "‹›", token)
					out := filterAll(t, s, text)
					if got := placeholder.ReplaceAllString(out, "‹›"); got != want {
						t.Errorf("%s, %s: %q\ngot  %q\nwant %q", r.ID, setting.name, text, out, want)
					}
					if k == 0 {
						for _, size := range [...]int{1, 7} {
							if cut := filterCuts(t, s, text, size); cut != out {
								t.Errorf("%s, %s in pieces of %d: %q\ngot  %q\nwant %q", r.ID, setting.name, size, text, cut, out)
							}
						}
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

// TestNoTail: what a mark joins to a token goes with it, if it is as random: no row masks the
// first half of a token.
func TestNoTail(t *testing.T) {
	s := testSet(t, Config{NoMemory: true})
	for _, r := range readRules(t) {
		if len(r.Prefix) == 0 || strings.Contains(r.Prefix[0], "/") || len(r.Body) > 0 && r.Body[len(r.Body)-1].Set == "" {
			continue // a literal at the end ends the token
		}
		token := draws(t, &r, r.Examples[0], 1)[0]
		for n, mark := range []string{"-", "_", ".", "~", "+", "="} {
			tail, err := ExpandTemplate("{alnum:20}", uint64(n))
			if err != nil {
				t.Fatal(err)
			}
			if mark == "=" {
				tail = ""
			}
			text := "'" + token + mark + tail + "' next-words.txt"
			out := filterAll(t, s, text)
			if masked := strings.Contains(out, "[REDACTED:"); masked && !strings.HasSuffix(out, "]' next-words.txt") {
				t.Errorf("%s: %q leaves a tail: %q", r.ID, text, out)
			}
		}
		if last := r.Body[len(r.Body)-1].Set; !strings.HasPrefix(last, "token") && last != "base64url" && last != "path" && r.Check == "" {
			if out := filterAll(t, s, token+".tar.gz "+token+"~bak.\n"); strings.Contains(out, "[REDACTED:") && !(strings.Contains(out, "].tar.gz ") && strings.HasSuffix(out, "]~bak.\n")) {
				t.Errorf("%s: a word behind the token is masked: %q", r.ID, out)
			}
		}
	}
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
		"alphabet":        func(r *Rule) { r.Alphabet = "-" },
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
