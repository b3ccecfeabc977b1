package atip

import (
	"regexp"
	"testing"
)

var alternations = []string{
	"^(a|bc)$", "(?i)^(delete|rm|kill-all)(-.*)?$", "^(list|status)", "(^|-)(run|create)(-|$)", "(?i)(^|:)(deploy|push)(:|$)", "(^|:)(k|s)", "(?i)^(k|s)$", "(^|-)(a-b|b)$", "^(a:b|c)(:|$)",
	"(get-x|decrypt|export-)", "^(list|get)-", "(?i)^(dev|emulators?)(-.*)?$", "(?i)(abc|xs?)$", "(^|-)(ab?|c)",
	"^(a|ch|cha.*|x)$", "(?i)^(telnet|imaps?):", "(^|:)(k.*|ab?)$",
}

func TestAlternationForms(t *testing.T) {
	for _, expr := range alternations {
		if _, ok := alternationOf(expr); !ok {
			t.Errorf("%s is compiled", expr)
		}
	}
	for _, expr := range []string{"a|b", "^(.*|a)$", "^(a.*b)$", "^(a.*)", "^(a.*|b)-", "^(a*)$", "^(a?b)$", "^(a-?)$", "^(-?)$", "^(ab??)$", "(?s)(a)", "^(a||b)$", "^()$", "^(a|)$", "^(a.|b)$", "^(a|b)+$", "^(a(b|c))$", "^(a|b", "^(a|b)x$", "(^|,)(a)$", "^(?:a|b)$", "^(a?)$", ""} {
		if _, ok := alternationOf(expr); ok {
			t.Errorf("%s is taken for an alternation of words", expr)
		}
	}
}

// FuzzAlternation: the compiled expression is the oracle.
func FuzzAlternation(f *testing.F) {
	for i := range alternations {
		for _, s := range []string{"", "a", "bc", "DELETE-all", "rm-\n", "rm-x\xff", "run", "x-run-y", "x:push", "deploy:x", "K", "\u212a", "\u017f", "s\n", "-a-b", "a:b:", "::c", "a-b", "xget-xx", "list-", "emulator", "EMULATORS-x", "zx", "export", "c-a", "chain", "ch\n", "cha\nx", "IMAP:", "imaps:/", "x:kilo"} {
			f.Add(i, s)
		}
	}
	f.Fuzz(func(t *testing.T, i int, s string) {
		if i < 0 || i >= len(alternations) {
			return
		}
		a, _ := alternationOf(alternations[i])
		got, known := a.matches(s)
		if want := regexp.MustCompile(alternations[i]).MatchString(s); known && got != want {
			t.Errorf("%s on %q: %v, want %v", alternations[i], s, got, want)
		}
		if !known && !a.ci {
			t.Errorf("%s on %q is left open", alternations[i], s)
		}
	})
}
