package recipe

import (
	"cmp"
	"strings"
)

// ReadJustfile reads recipes: a header that ends in a colon and its dependencies, and
// indented lines.
func ReadJustfile(text string) (rules map[string]*Recipe, first string) {
	rules = map[string]*Recipe{}
	var open *Recipe
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if open != nil && strings.TrimSpace(line) != "" {
				open.Lines = append(open.Lines, interpolated(strings.TrimLeft(strings.TrimSpace(line), "@-")))
			}
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		open = nil
		head, deps, ok := strings.Cut(line, ":")
		words := strings.Fields(head)
		if !ok || len(words) == 0 || strings.HasPrefix(deps, "=") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[") {
			continue
		}
		name := strings.TrimPrefix(words[0], "@")
		open = &Recipe{}
		open.deps = strings.Fields(strings.NewReplacer("&&", " ", "(", " ", ")", " ").Replace(deps))
		rules[name] = open
		first = cmp.Or(first, name)
	}
	return rules, first
}

// interpolated replaces {{…}}, which only just can tell.
func interpolated(line string) string {
	for {
		i := strings.Index(line, "{{")
		j := strings.Index(line, "}}")
		if i < 0 || j < i {
			return line
		}
		line = line[:i] + unknownText + line[j+2:]
	}
}
