package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsTerminal holds every help text to 100 columns, and lists each verb once.
func TestHelpFitsTerminal(t *testing.T) {
	texts := map[string]string{}
	for _, s := range Specs() {
		texts[s.Program+" "+s.Verb+" --help"] = Help(s)
	}
	for _, topic := range []string{"exit-codes", "environment", "output", "agents", "files"} {
		text, ok := Topic(topic)
		if !ok {
			t.Fatalf("there is no topic %s", topic)
		}
		texts["help "+topic] = text
	}
	texts["the list of verbs"] = VerbList("")
	for _, s := range Specs() {
		if s.Verb != "" && strings.Count(texts["the list of verbs"], "\n  "+s.Verb+" ") != 1 {
			t.Errorf("the list of verbs does not have %s once", s.Verb)
		}
	}
	for name, text := range texts {
		for _, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}
