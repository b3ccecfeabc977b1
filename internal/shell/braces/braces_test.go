package braces

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// TestBash holds the expansion against that of bash.
func TestBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a{b,c}d", "{a,b}{1,2}", "{a,{b,c}}x", "x{,y}", "{a}", "{a,b", "a{b,c}{d", "{1..5}", "{5..1}", "{1..9..3}", "{9..1..-4}", "{01..3}", "{-2..2}", "{-02..2}", "{a..e}", "{e..a..2}", "{A..C}", "{1..3..0}", "{1..a}", "{..}", "{a..}", "{1..2}{x,y}.{c,h}"} {
		word, err := syntax.NewParser().Document(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		words, ok := Expand(word)
		var got []string
		for _, w := range words {
			var b strings.Builder
			for _, part := range w.Parts {
				switch part := part.(type) {
				case *syntax.Lit:
					b.WriteString(part.Value)
				case *syntax.SglQuoted:
					b.WriteString(part.Value)
				}
			}
			got = append(got, b.String())
		}
		out, err := exec.Command(bash, "-c", `printf '%s\n' `+text).Output()
		if want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil || !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, bash has %q (%v)", text, got, want, err)
		}
	}
	for _, text := range []string{"{1..65}", "{1..9}{1..9}", "{1..99999999999999999999}"} {
		word, err := syntax.NewParser().Document(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if words, ok := Expand(word); ok && len(words) > 1 {
			t.Errorf("%s: %d words", text, len(words))
		}
	}
}
