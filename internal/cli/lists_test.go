package cli

import (
	"slices"
	"strings"
	"testing"
)

// TestListsHaveFlags: each verb that lists has the flags that shorten a list, no other verb has
// them, and the calls that Lists names are calls that its table knows.
func TestListsHaveFlags(t *testing.T) {
	listing := 0
	for _, s := range Specs() {
		for _, f := range listFlags {
			if has := slices.ContainsFunc(s.Flags, func(o Flag) bool { return o.Name == f.Name }); has != (len(s.Lists) > 0) {
				t.Errorf("%s: --%s is there: %v; it lists by %q", s.Verb, f.Name, has, s.Lists)
			}
		}
		for _, call := range s.Lists {
			listing++
			if name, isFlag := strings.CutPrefix(call, "--"); isFlag {
				if !slices.ContainsFunc(s.Flags, func(f Flag) bool { return f.Name == name }) {
					t.Errorf("%s has no flag %s", s.Verb, call)
				}
				continue
			}
			words := strings.Fields(strings.TrimSuffix(call, "*"))
			for i, word := range words {
				if i < len(s.Args) && strings.Contains(s.Args[i].Name, "|") && !slices.Contains(strings.Split(s.Args[i].Name, "|"), word) {
					t.Errorf("%s takes no %s", s.Verb, call)
				}
			}
			v, err := Parse(s, append(words, "--max-items", "3"), func(string) string { return "" })
			if err != nil || v.Newest() != s.Newest {
				t.Errorf("%s %s: %v", s.Verb, call, err)
			}
		}
	}
	if listing < 12 {
		t.Errorf("only %d calls list: the test looks for the wrong thing", listing)
	}
}
