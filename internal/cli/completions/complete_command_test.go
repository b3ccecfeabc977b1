package completions

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// TestCommandCandidates walks along the words of a wrapped command.
func TestCommandCandidates(t *testing.T) {
	d, err := atip.Parse([]byte(`{"atip":{"version":"0.6"},"name":"t","version":"1","description":"d","globalOptions":[{"name":"format","flags":["-o","--format"],"type":"enum","enum":["json","text"],"description":"f"}],
"commands":{"pr":{"description":"p","commands":{"list":{"description":"List","options":[{"name":"state","flags":["--state"],"type":"enum","enum":["open","closed"],"description":"s"},{"name":"web","flags":["-w","--web"],"type":"boolean","description":"w"}],
"arguments":[{"name":"where","type":"enum","enum":["here","there"],"description":"w"},{"name":"rest","type":"enum","enum":["more"],"variadic":true,"description":"r"}]},"merge":{"description":"Merge","arguments":[{"name":"n","type":"integer","description":"n"}]}}},"repo":{"description":"r"}}}`), atip.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	commands := d.Commands(atip.Provenance{Rank: atip.User})
	for _, tt := range []struct{ line, want string }{
		{"|", "pr repo"},
		{"pr|", "list merge"},
		{"-o|", "json text"},
		{"-o json|", "pr repo"},
		{"--format=json pr|", "list merge"},
		{"pr list|", "here there"},
		{"pr list --state|", "open closed"},
		{"pr list --state open|", "here there"},
		{"pr list --web|", "here there"},
		{"pr list here|", "more"},
		{"pr list here more|", "more"},
		{"pr list|-", "--state -w --web -o --format"},
		{"pr merge|", ""},
		{"pr merge 1|", ""},
		{"nothing|", ""},
		{"pr --|", ""},
		{"|-", "-o --format"},
	} {
		line, begun, _ := strings.Cut(tt.line, "|")
		var got []string
		for _, c := range commandCandidates(commands, strings.Fields(line), begun) {
			got = append(got, c.word)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
}
