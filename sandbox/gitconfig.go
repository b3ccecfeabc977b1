package sandbox

import (
	"errors"
	"slices"
	"strings"
)

// gitKeys reads a git configuration file into section.subsection.key = values, section
// and key in lower case. It accepts less than git does: what it cannot read is an
// error, and an error counts as a change.
func gitKeys(text string) (map[string][]string, error) {
	keys, section := map[string][]string{}, ""
	for raw := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		raw = strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r")
		// A continued line ends inside a comment, and control characters are blanks to
		// some readers and not to others: neither is worth a second reading of the rules.
		if strings.HasSuffix(raw, "\\") || strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, errors.New("continued line or control character")
		}
		line := strings.Trim(raw, " \t")
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			head, rest, ok := cutSection(line)
			if !ok {
				return nil, errors.New("section header")
			}
			section, line = head, strings.Trim(rest, " \t")
			if line == "" || line[0] == '#' || line[0] == ';' {
				continue
			}
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.Trim(key, " \t"))
		if section == "" || !word(key, "-") {
			return nil, errors.New("key")
		}
		keys[section+"."+key] = append(keys[section+"."+key], strings.Trim(value, " \t"))
	}
	return keys, nil
}

// cutSection reads [name "sub"] or [name.sub].
func cutSection(line string) (section, rest string, ok bool) {
	var name, sub string
	quoted := false
	end := strings.IndexByte(line, ']')
	if q := strings.IndexByte(line, '"'); q >= 0 && (end < 0 || q < end) {
		name, quoted = line[1:q], true
		i := q + 1
		for ; i < len(line) && line[i] != '"'; i++ {
			if line[i] == '\\' {
				i++
			}
			if i < len(line) {
				sub += string(line[i])
			}
		}
		if i+1 >= len(line) || line[i+1] != ']' {
			return "", "", false
		}
		rest = line[i+2:]
	} else {
		if end < 0 {
			return "", "", false
		}
		name, rest = line[1:end], line[end+1:]
	}
	if quoted {
		name = strings.TrimRight(name, " \t")
	}
	if name = strings.ToLower(name); !word(name, "-.") {
		return "", "", false
	}
	if quoted {
		name += "." + sub
	}
	return name, rest, true
}

// word reports whether s is made of ASCII letters, digits and the marks. More than one
// section may stand on a line, and then a key would begin with a bracket.
func word(s, marks string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(marks, r)
	})
}

// inertChange reports whether all that changed from old to new is settings that make
// git run nothing and read nothing from elsewhere.
func inertChange(old, new string) bool {
	before, err := gitKeys(old)
	if err != nil {
		before = nil
	}
	after, err := gitKeys(new)
	if err != nil {
		return false
	}
	for key, values := range after {
		if slices.Equal(values, before[key]) {
			continue
		}
		for _, v := range values {
			if !inert(key, v) {
				return false
			}
		}
	}
	// A key that is gone can matter too: a removed protection falls back to a default.
	for key := range before {
		if _, ok := after[key]; !ok && !inert(key, "") {
			return false
		}
	}
	return true
}

// inert reports whether a key is one that git neither executes nor follows.
func inert(key, value string) bool {
	first := strings.IndexByte(key, '.')
	if first < 0 {
		return false
	}
	section, last := key[:first], key[strings.LastIndexByte(key, '.')+1:]
	direct := strings.Count(key, ".") == 1
	switch section {
	case "user", "extensions", "pull", "color":
		return section != "extensions" || last != "worktreeconfig" || value != "true"
	case "core":
		return direct && among(last, "repositoryformatversion", "bare", "filemode", "ignorecase", "precomposeunicode",
			"symlinks", "logallrefupdates", "autocrlf", "eol")
	case "branch":
		// What no remote is called git takes for a URL.
		return !direct && (last == "remote" && inertURL(value) || among(last, "merge", "rebase", "description"))
	case "remote":
		if !direct && among(last, "url", "pushurl") {
			return inertURL(value)
		}
		return !direct && among(last, "fetch", "prune", "tagopt")
	case "submodule":
		return !direct && (last == "active" || last == "url" && inertURL(value))
	case "push":
		return direct && among(last, "default", "autosetupremote")
	case "fetch":
		return direct && last == "prune"
	case "merge":
		return direct && last == "ff"
	}
	return false
}

// inertURL refuses remote helpers, which are programs, and what a transport would
// take for an option.
func inertURL(v string) bool {
	// Quotes may stand anywhere in a value.
	v = strings.NewReplacer(`"`, "", `\`, "").Replace(v)
	return !strings.HasPrefix(v, "-") && !strings.Contains(v, "::")
}

func among(v string, names ...string) bool {
	for _, n := range names {
		if v == n {
			return true
		}
	}
	return false
}
