package prints

import (
	"slices"
	"strings"
)

// gitShape reports calls of git that print nothing but numbers, hashes, dates and names
// of branches, none of which begins with a dash. `git describe` is among them, although a
// tag of another repository may be called anything: what a reader of history would do
// with such an option stays in the workspace.
func gitShape(verb string, args []string) bool {
	switch verb {
	case "rev-parse":
		return each(args, func(a string) bool {
			return revision(a) || strings.HasPrefix(a, "--short") || a == "--abbrev-ref" || a == "--verify" || a == "-q" || a == "--quiet"
		})
	case "merge-base":
		return each(args, func(a string) bool { return revision(a) || a == "--all" || a == "--octopus" || a == "--fork-point" })
	case "rev-list":
		return each(args, selects)
	case "describe":
		return each(args, func(a string) bool {
			return revision(a) || slices.Contains([]string{"--tags", "--all", "--always", "--long", "--exact-match", "--dirty", "--contains", "--first-parent"}, a) ||
				strings.HasPrefix(a, "--abbrev=") || strings.HasPrefix(a, "--match=") || strings.HasPrefix(a, "--exclude=")
		})
	case "symbolic-ref":
		return each(args, func(a string) bool { return revision(a) || a == "--short" || a == "-q" || a == "--quiet" }) && len(args) < 4
	case "branch":
		return each(args, func(a string) bool {
			return revision(a) || a == "--show-current" || a == "--format=%(refname:short)" || slices.Contains([]string{"-a", "-r", "--list", "--merged", "--no-merged", "--contains", "--no-contains"}, a) || strings.HasPrefix(a, "--sort=")
		}) && slices.ContainsFunc(args, func(a string) bool { return a == "--show-current" || strings.HasPrefix(a, "--format=") })
	case "tag":
		return slices.ContainsFunc(args, func(a string) bool { return a == "-l" || a == "--list" }) && each(args, func(a string) bool {
			return revision(a) || strings.HasPrefix(a, "--sort=") || slices.Contains([]string{"-l", "--list", "--merged", "--no-merged", "--contains", "--no-contains", "--points-at"}, a)
		})
	case "for-each-ref":
		format, where := 0, 0
		return each(args, func(a string) bool {
			switch {
			case a == "--format=%(refname:short)" || a == "--format=%(refname)" || a == "--format=%(objectname)":
				format++
			case strings.HasPrefix(a, "refs/heads") || strings.HasPrefix(a, "refs/remotes"):
				where++
			default: // a commit, or a pattern that no reference matches
				return revision(a) && !strings.HasPrefix(a, "r") && !strings.ContainsAny(a, "*?[") || slices.Contains([]string{"--merged", "--no-merged", "--contains", "--no-contains", "--points-at"}, a) ||
					strings.HasPrefix(a, "--sort=") || strings.HasPrefix(a, "--count=")
			}
			return true
		}) && format > 0 && where > 0
	case "log":
		format := 0
		return each(args, func(a string) bool {
			for _, name := range []string{"--format=", "--pretty=format:", "--pretty=tformat:", "--pretty="} {
				if f, ok := strings.CutPrefix(a, name); ok {
					format++
					return slices.Contains([]string{"%H", "%h", "%T", "%t", "%ct", "%at", "%cs", "%as", "%cI", "%aI"}, f)
				}
			}
			return selects(a)
		}) && format > 0
	}
	return false
}

// selects reports an option that chooses commits and changes nothing in what is printed of each.
func selects(a string) bool {
	if revision(a) || len(a) > 1 && a[0] == '-' && IsNumber(a[1:]) {
		return true
	}
	for _, name := range []string{"--max-count=", "--max-parents=", "--min-parents=", "--since=", "--after=", "--until=", "--before=", "--author=", "--grep=", "--skip=", "-S", "-G"} {
		if strings.HasPrefix(a, name) {
			return true
		}
	}
	return slices.Contains([]string{"-n", "--", "--count", "--all", "--branches", "--tags", "--no-merges", "--merges", "--first-parent", "--reverse", "--topo-order", "--date-order",
		"--abbrev-commit"}, a)
}

// revision reports a word that is no option.
func revision(a string) bool { return a != "" && a[0] != '-' }

func each(args []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(args, func(a string) bool { return !ok(a) })
}
