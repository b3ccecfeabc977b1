package prints

import "testing"

func TestIdentifiers(t *testing.T) {
	for _, row := range []struct {
		argv []string
		want bool
	}{
		{[]string{"gh", "run", "list", "--json", "databaseId,status", "--jq", ".[0].databaseId"}, true},
		{[]string{"gh", "pr", "view", "--json=number", "-q", ".number"}, true},
		{[]string{"gh", "pr", "list", "--json", "title", "--jq", ".[].title"}, false},
		{[]string{"gh", "pr", "list", "--json", "title", "--jq", ".[].number"}, false},
		{[]string{"gh", "pr", "list", "--json", "number", "--jq", ".[].title, .[].number"}, false},
		{[]string{"gh", "api", "x", "--json", "number", "--jq", ".number"}, false},
		{[]string{"gh", "pr", "list", "--json", "number", "--jq", ".number", "--template", "x"}, false},
	} {
		if got := identifiers(row.argv); got != row.want {
			t.Errorf("%q: %v", row.argv, got)
		}
	}
}
