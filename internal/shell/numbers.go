package shell

import (
	"slices"
	"strings"
)

// PrintsNumbers reports a call of gh that prints the numbers of runs, issues or pull
// requests and nothing else: `gh run list --json databaseId --jq '.[0].databaseId'`.
func PrintsNumbers(argv []string) bool {
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

// PrintsNumber reports a command that prints numbers or plain names and nothing else.
func PrintsNumber(argv []string) bool {
	shape, ok := shapeOf(argv)
	return ok && shape == "0"
}

// printNumbers reports that each of these commands prints lines of which every word is a number or
// a plain name, and nothing else.
func (w *walker) printNumbers(from []int) bool {
	return len(from) > 0 && !slices.ContainsFunc(from, func(i int) bool { return !w.printsNumbers(i, 0) })
}

func (w *walker) printsNumbers(i, depth int) bool {
	if i >= len(w.cmds) || depth > maxAlternatives {
		return false
	}
	c := &w.cmds[i]
	if c.Kind != External || c.Bounded || len(c.Globs) > 0 || len(c.Path) > 0 || len(c.Redirects) > 0 || strings.IndexByte(strings.Join(c.Argv, ""), 0) >= 0 {
		return false
	}
	if shape, ok := shapeOf(c.Argv); ok {
		return shape == "0"
	}
	keeps := func(a string) bool { return a != "" && a[0] == '-' && strings.Trim(a[1:], "nru0123456789") == "" }
	args := c.Argv[1:]
	switch c.Argv[0] {
	case "sort", "head", "tail", "tac", "shuf", "uniq":
	case "grep":
		// Some of the lines: one pattern, and options that choose among lines.
		if len(args) == 0 {
			return false
		}
		last := args[len(args)-1]
		if args = args[:len(args)-1]; last == "" || last[0] == '-' {
			return false
		}
		keeps = func(a string) bool { return len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "vEFiwx") == "" }
	default:
		return false
	}
	var before []int
	for _, f := range w.flows {
		if f.To == i && f.Kind == FlowStdin {
			before = append(before, f.From)
		}
	}
	return !c.Mixed && len(before) > 0 && each(args, keeps) &&
		!slices.ContainsFunc(before, func(i int) bool { return !w.printsNumbers(i, depth+1) })
}
