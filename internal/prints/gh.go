package prints

import "strings"

// identifiers reports a call of gh that prints the numbers of runs, issues or pull
// requests and nothing else: `gh run list --json databaseId --jq '.[0].databaseId'`.
func identifiers(argv []string) bool {
	fields, query := "", ""
	for i, w := range argv {
		name, value, attached := strings.Cut(w, "=")
		if !attached && i+1 < len(argv) {
			value = argv[i+1]
		}
		switch name {
		case "--json":
			fields = value
		case "-q", "--jq":
			query = value
		case "-t", "--template":
			return false
		}
	}
	field := ""
	switch {
	case strings.HasSuffix(query, ".databaseId"):
		field = "databaseId"
	case strings.HasSuffix(query, ".number"):
		field = "number"
	default:
		return false
	}
	switch strings.TrimSuffix(query, field) {
	case ".", ".[].", ".[0].", ".[-1].", ".[] | .", "first | .":
	default:
		return false
	}
	for f := range strings.SplitSeq(fields, ",") {
		if f == field {
			return len(argv) > 2 && argv[0] == "gh" && (argv[1] == "run" || argv[1] == "pr" || argv[1] == "issue")
		}
	}
	return false
}
