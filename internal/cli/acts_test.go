package cli

import (
	"strings"
	"testing"
)

// TestPathsAreJudged: each flag and argument that names a file says what happens to it, so that
// a new one cannot be forgotten, and each verb how far it reaches.
func TestPathsAreJudged(t *testing.T) {
	names := func(word string) bool {
		for _, part := range strings.FieldsFunc(word, func(r rune) bool { return r == '|' }) {
			switch part {
			case "FILE", "DIR", "PATH", "MANIFEST", "OLD", "NEW":
				return true
			}
		}
		return false
	}
	// Words of verbs that name no file by themselves: the verb reads them below its own directory.
	own := map[string]string{"compile TOOL": "a tool", "sandbox PATH": "of a quarantined run"}
	flags := 0
	for _, spec := range Specs() {
		if spec.Verb != "" && spec.Acts == Widens && len(spec.Wider) == 0 {
			t.Errorf("%s: says nothing of how far it reaches", spec.Verb)
		}
		if strings.Contains(spec.Summary, "write") && spec.Acts == Reads && spec.Verb != "safety-prompt" {
			t.Logf("%s reads, and its summary says it writes", spec.Verb)
		}
		for _, f := range spec.Flags {
			if f.Kind == Path || names(f.Value) || len(f.Words) > 0 || strings.Contains(f.Help, "to read") {
				flags++
				if f.Access == NoFile {
					t.Errorf("%s --%s names a file and does not say what happens to it", spec.Verb, f.Name)
				}
			}
		}
		for _, a := range spec.Args {
			if _, known := own[spec.Verb+" "+a.Name]; !known && names(a.Name) && a.Access == NoFile && !strings.Contains(a.Name, "TOOL") && !strings.Contains(a.Name, "NAME") {
				t.Errorf("%s %s names a file and does not say what happens to it", spec.Verb, a.Name)
			}
		}
	}
	if flags < 20 {
		t.Errorf("only %d flags name files: the test looks for the wrong thing", flags)
	}
}
