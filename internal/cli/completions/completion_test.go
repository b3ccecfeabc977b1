package completions

import (
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/shims"
)

// TestCompletionSaysEverything holds the answers against the specs: no flag and no value of an
// enumeration is missing.
func TestCompletionSaysEverything(t *testing.T) {
	offers := func(words []string, begun string) (offered []string) {
		list, _ := ofLine(shims.Dirs{}, words, begun)
		for _, c := range list {
			offered = append(offered, c.word)
		}
		return offered
	}
	for _, s := range cli.Specs() {
		line := append([]string{"atip-exec"}, strings.Fields(s.Verb)...)
		var flags []string
		for _, f := range s.Flags {
			flags = append(flags, spellings(f)...)
			if f.Kind != cli.Enum {
				continue
			}
			for _, name := range spellings(f) {
				if got := offers(append(slices.Clone(line), name), ""); !slices.Equal(got, f.Enum) {
					t.Errorf("%s %s offers %v", s.Verb, name, got)
				}
			}
			if got := offers(line, "--"+f.Name+"="); len(got) != len(f.Enum) || got[0] != "--"+f.Name+"="+f.Enum[0] {
				t.Errorf("%s --%s= offers %v", s.Verb, f.Name, got)
			}
		}
		if got := offers(line, "-"); !slices.Equal(got, flags) {
			t.Errorf("%s offers %v, and has %v", s.Verb, got, flags)
		}
	}
	if got := offers([]string{"atip"}, "-"); !slices.Equal(got, []string{"--version", "-V", "--help", "-h"}) {
		t.Errorf("atip offers %v", got)
	}
}

// TestShellAdds holds what the shell is told to add to the words, or to complete itself.
func TestShellAdds(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"atip-exec|", "tools"},
		{"atip|", ""},
		{"atip|-", ""},
		{"atip x|", ""},
		{"atip --|", ""},
		{"atip-exec x|", "command 1"},
		{"atip-exec -q -- x|", "command 3"},
		{"atip-exec -q --|", "tools"},
		{"atip-exec --timeout 5 -C /usr x|", "command 5"},
		{"atip-exec --timeout = 5 x|", "command 4"}, // as bash splits it
		{"atip-exec --policy|", "files"},
		{"atip-exec|--policy=", "files"},
		{"atip-exec|--nonsense=", ""},
		{"atip-exec -C|", "dirs"},
		{"atip-exec -c x|", "files"},
		{"atip-exec explain -o json -- x y|", "command 5"},
		{"atip-exec explain|", "tools"},
		{"atip-exec script|", "files"},
		{"atip-exec policy|", ""},
		{"atip-exec policy --|", "files"},
		{"atip skill|", "files"},
		{"./atip delegate --tools git -- x|", "command 5"},
	} {
		words, begun, _ := strings.Cut(tt.line, "|")
		if _, got := ofLine(shims.Dirs{}, strings.Fields(words), begun); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
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
}
