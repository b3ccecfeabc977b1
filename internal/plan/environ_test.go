package plan

import (
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/internal/quote"
)

func TestScrub(t *testing.T) {
	environ := []string{"PATH=/bin", "LD_PRELOAD=/x.so", "PYTHONPATH=/p", "GIT_SSH_COMMAND=sh", "BASH_FUNC_x%%=() { :; }", "GH_TOKEN=a", "NPM_TOKEN=b",
		"DATABASE_URL=postgres://u:pw@h/db", "HOMEPAGE_URL=https://example.com/", "A=1", "A=2", "=odd", "noequals", "ATIP_EXEC_SANDBOX=T3", "NODE_OPTIONS=--inspect", "TMPDIR=/tmp"}
	out, _ := scrub(environ, environRules{declared: []string{"GH_TOKEN"}, pass: []string{"NODE_*"}, drop: []string{"HOMEPAGE_URL"}, set: map[string]string{"TMPDIR": "/w/tmp", "X": "y"}})
	want := []string{"PATH=/bin", "GH_TOKEN=a", "A=1", "NODE_OPTIONS=--inspect", "TMPDIR=/w/tmp", "X=y"}
	if !slices.Equal(out.Entries, want) {
		t.Errorf("entries %q, want %q", out.Entries, want)
	}
	dropped := []string{"ATIP_EXEC_SANDBOX", "BASH_FUNC_x%%", "DATABASE_URL", "GIT_SSH_COMMAND", "HOMEPAGE_URL", "LD_PRELOAD", "NPM_TOKEN", "PYTHONPATH"}
	if !slices.Equal(out.Dropped, dropped) {
		t.Errorf("dropped %q, want %q", out.Dropped, dropped)
	}
	if !slices.Equal(out.Credentials, []string{"GH_TOKEN"}) {
		t.Errorf("credentials %q", out.Credentials)
	}
}

func TestQuote(t *testing.T) {
	tests := []struct {
		words []string
		want  string
	}{
		{[]string{"git", "push", "-f"}, "git push -f"},
		{[]string{"sh", "-c", "f | g & h"}, "sh -c 'f | g & h'"},
		{[]string{"echo", "it's", ""}, `echo 'it'\''s' ''`},
		{[]string{"echo", "a\nb", "\xff", "\u202e"}, `echo $'a\nb' $'\xff' $'\u202e'`},
		{[]string{"echo", "it's\n\"x\" $HOME \\"}, `echo $'it\'s\n\"x\" $HOME \\'`},
	}
	for _, tt := range tests {
		if got := quote.Words(tt.words); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.words, got, tt.want)
		}
	}
}
