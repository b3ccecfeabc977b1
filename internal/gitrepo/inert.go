package gitrepo

import (
	"path/filepath"
	"slices"
	"strings"
)

// Active returns the key of the first setting, in the order of names, by which a
// configuration can make git run a program or read from elsewhere, "" if there is none.
// Settings of the account are its own and do not count.
func Active(settings []Setting) string {
	first := ""
	for _, s := range settings {
		if s.Scope == ScopeRepository && !Inert(s.Key, s.Value) && (first == "" || s.Key < first) {
			first = s.Key
		}
	}
	return first
}

// InertChange reports whether all that changed from one text to another is settings that
// make git run nothing and read nothing from elsewhere. What cannot be read counts as a
// change that does.
func InertChange(old, new string) bool {
	return InertChangeOf(old, new, func(Setting) bool { return false })
}

// InertChangeOf is InertChange that leaves out the settings for which except says so.
func InertChangeOf(old, new string, except func(Setting) bool) bool {
	was, err := Parse(old)
	if err != nil {
		was = nil
	}
	now, err := Parse(new)
	if err != nil {
		return false
	}
	was, now = slices.DeleteFunc(was, except), slices.DeleteFunc(now, except)
	before, after := byKey(was), byKey(now)
	for key, values := range after {
		if slices.Equal(values, before[key]) {
			continue
		}
		for _, v := range values {
			if !Inert(key, v) {
				return false
			}
		}
	}
	// A key that is gone can matter too: a removed protection falls back to a default.
	for key := range before {
		if _, ok := after[key]; !ok && !Inert(key, "") {
			return false
		}
	}
	return true
}

func byKey(settings []Setting) map[string][]string {
	out := map[string][]string{}
	for _, s := range settings {
		out[s.Key] = append(out[s.Key], s.Value)
	}
	return out
}

// Inert reports whether a key is one that git neither executes nor follows.
func Inert(key, value string) bool {
	section, sub, name := Split(key)
	direct := sub == ""
	switch section {
	case "user", "pull", "color":
		return true
	case "extensions":
		return name != "worktreeconfig"
	case "core":
		return direct && slices.Contains([]string{"repositoryformatversion", "bare", "filemode", "ignorecase", "precomposeunicode",
			"symlinks", "logallrefupdates", "autocrlf", "eol"}, name)
	case "branch":
		// What no remote is called git takes for a URL.
		return !direct && (name == "remote" && inertURL(value) || name == "merge" || name == "rebase" || name == "description")
	case "remote":
		if !direct && (name == "url" || name == "pushurl") {
			return inertURL(value)
		}
		return !direct && (name == "fetch" || name == "prune" || name == "tagopt")
	case "submodule":
		return !direct && (name == "active" || name == "url" && inertURL(value))
	case "push":
		return direct && (name == "default" || name == "autosetupremote")
	case "fetch":
		return direct && name == "prune"
	case "merge":
		return direct && name == "ff"
	}
	return false
}

// inertURL refuses remote helpers, which are programs, and what a transport would
// take for an option.
func inertURL(v string) bool {
	return !strings.HasPrefix(v, "-") && !strings.Contains(v, "::")
}

// Active is that of the repository's whole configuration, in which it may say where its own
// work tree is, as every submodule does.
func (r Repository) Active(c *Config) string {
	return Active(slices.DeleteFunc(slices.Clone(c.Settings), func(s Setting) bool {
		return s.Key == "core.worktree" && s.Scope == ScopeRepository && r.WorkTree != "" && same(absolute(s.Value, filepath.Clean(r.Dir)), r.WorkTree) ||
			s.Key == "extensions.worktreeconfig" && s.Scope == ScopeRepository // that file is read
	}))
}
