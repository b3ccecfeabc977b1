package completions

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/shims"
)

// TestCompletionSaysEverything holds the tables of the scripts against the specs: no flag
// and no value of an enumeration is missing.
func TestCompletionSaysEverything(t *testing.T) {
	specs := cli.Specs()
	var ask, want strings.Builder
	ask.WriteString(BashCompletion(specs))
	fish, zsh := FishCompletion(specs), ZshCompletion(specs)
	for _, s := range specs {
		ask.WriteString("__atip_flags '" + s.Verb + "'; echo \"$flags\"\n")
		var flags []string
		for _, f := range s.Flags {
			flags = append(flags, spellings(f)...)
		}
		want.WriteString(strings.Join(flags, " ") + "\n")
		at := "verb " + s.Verb
		if s.Verb == "" {
			at = "first"
		}
		for _, f := range s.Flags {
			if f.Kind == cli.Enum {
				for _, name := range spellings(f) {
					ask.WriteString("__atip_value '" + s.Verb + ":" + name + "'; echo \"$offer\"\n")
					want.WriteString("words " + strings.Join(f.Enum, " ") + "\n")
				}
			}
			if !strings.Contains(fish, "complete -c atip-exec -n '__atip_at "+at+"' -l "+f.Name+" ") {
				t.Errorf("fish: %s --%s is missing", at, f.Name)
			}
			_, verb, _ := strings.Cut(zsh, "\n__atip_verb_"+zshName(s.Verb)+"() {")
			verb, _, _ = strings.Cut(verb, "\n}\n")
			if !strings.Contains(verb, "--"+f.Name) {
				t.Errorf("zsh: %s --%s is missing", at, f.Name)
			}
		}
	}
	for _, s := range specs {
		offered := map[string]bool{}
		for _, c := range ofLine(shims.Dirs{}, append([]string{"atip-exec"}, strings.Fields(s.Verb)...), "-") {
			offered[c.word] = true
		}
		for _, f := range s.Flags {
			for _, name := range spellings(f) {
				if !offered[name] {
					t.Errorf("powershell: %s %s is missing", s.Verb, name)
				}
			}
			if f.Kind == cli.Enum {
				if got := ofLine(shims.Dirs{}, append([]string{"atip-exec"}, append(strings.Fields(s.Verb), "--"+f.Name)...), ""); len(got) != len(f.Enum) {
					t.Errorf("powershell: %s --%s offers %v", s.Verb, f.Name, got)
				}
			}
		}
	}
	out, err := exec.Command("bash", "--norc", "-c", ask.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if string(out) != want.String() {
		t.Errorf("bash says\n%s\nand the specs\n%s", out, want.String())
	}
}

// TestSummaries holds that a text beside a word has one line and breaks no quoting.
func TestSummaries(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"print it; then stop", "print it"},
		{"`policy show`", "policy show"},
		{strings.Repeat("é", 100), strings.Repeat("é", 69) + "…"},
	} {
		if got := summaryOf(tt.text); got != tt.want {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
	if got := zshQuote("it's"); got != `'it'\''s'` {
		t.Error(got)
	}
	if got := fishQuote(`it's \`); got != `'it\'s \\'` {
		t.Error(got)
	}
}
