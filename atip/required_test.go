package atip

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRequiredText(t *testing.T) {
	for expr, want := range map[string]string{
		`(?s)(?:^|[^A-Za-z_\\])s\|(?:[^|\\]|\\.)*\|[ew]`: "s|", "FUNCTAB": "FUNCTAB", "a|b": "", "ab*c": "a", "abc?de": "ab", "(a)b": "b", "(?i)abc": "",
		"(?i:abc)d": "", "[abc]de": "de", "^a.bc$": "bc", `\bab\b`: "ab", `\Qab\E`: "", "[]a]b": "", "[[:alpha:]]b": "", "a{2}b": "", "(a": "", "a)": "", "": "", `a\`: "", "é": "",
		"x**": "", "[^]a]bc": "", `\x41bc`: "", `a\.b`: "a.b", "ab[z-a]": "", "ab(*x)": "", "ab(c|d*)e": "ab", "ab\\b+": "", "ab[\\d-z]": "", "[a-c_-]xy": "xy", "(a|b)+?xy": "xy", "ab[": "", "ab^*": "",
	} {
		if got := requiredText(expr); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// FuzzRequiredText: whatever matches contains the text.
func FuzzRequiredText(f *testing.F) {
	for _, expr := range []string{`(?s)(?:^|[^A-Za-z_\\])s\|(?:[^|\\]|\\.|\[.*\])*\|x`, "ab*c", "(a|b)cd", "x?yz", "[^]a]bc", `\|\s*"`, "print.*[^|]\\|[^|]", "a(?i)b", "(a)(?i)bc", "ab+?c", "[a-\\]]x", "ab(*x)", "ab[z-a]", "ab[\\d-z]"} {
		f.Add(expr, "xs|a\\|b|xcdyz", 3)
		f.Add(expr, "ABC bcx print a|b", 0)
	}
	f.Fuzz(func(t *testing.T, expr, s string, _ int) {
		re, err := regexp.Compile(expr)
		if err != nil {
			if requiredText(expr) != "" {
				t.Errorf("%s does not compile, yet requires %q", expr, requiredText(expr))
			}
			return
		}
		for _, m := range []string{s, strings.ToUpper(s), s + s} {
			if re.MatchString(m) && !strings.Contains(m, requiredText(expr)) {
				t.Errorf("%s matches %q without %q", expr, m, requiredText(expr))
			}
		}
	})
}

// TestCuratedExpressions holds what answers without compiling against the compiled
// expressions of the curated documents, on the words of their tests.
func TestCuratedExpressions(t *testing.T) {
	files, err := filepath.Glob("../shims/builtin/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	quick := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := os.ReadFile(strings.TrimSuffix(file, ".json") + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		words := strings.FieldsFunc(string(rows), func(r rune) bool { return strings.ContainsRune(`"[],{} `, r) })
		slices.Sort(words)
		words = slices.Compact(words)
		d := parse(t, string(raw))
		for i := range d.tape {
			v := val{d, uint32(i)}
			if !v.get("re").is(KindString) {
				continue
			}
			expr := v.get("re").str()
			re := regexp.MustCompile(expr)
			if v.get("ci").is(KindTrue) {
				re = regexp.MustCompile("(?i)" + expr)
			}
			if _, ok := alternationOf(expr); ok || requiredText(expr) != "" {
				quick++
			}
			r := &resolver{d: d}
			for _, w := range words {
				if got := r.matches(v, w); got != triOf(re.MatchString(w)) {
					t.Errorf("%s: %s on %q: %v", file, expr, w, got)
				}
			}
		}
	}
	if quick < 60 {
		t.Errorf("only %d expressions are answered without compiling", quick)
	}
}
