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
		if slices.ContainsFunc(values, func(v string) bool { return !Inert(key, v) }) {
			return false
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

// InertOnce is Inert for a setting of one call, which no later one meets: it may also say how
// something looks, or switch a program off.
func InertOnce(key, value string) bool {
	section, sub, name := Split(key)
	section, name = strings.ToLower(section), strings.ToLower(name)
	if strings.IndexByte(value, 0) >= 0 || name == "" {
		return false
	}
	in := func(names ...string) bool { return sub == "" && slices.Contains(names, name) }
	off := func() bool {
		return slices.Contains([]string{"", "cat", "true", "false", ":", "/bin/cat", "/usr/bin/cat", "/bin/true", "/usr/bin/true"}, value)
	}
	switch section {
	case "advice", "column":
		return true
	case "core":
		switch {
		case in("pager", "editor", "askpass"):
			return off()
		case in("fsmonitor"):
			return value == "" || value == "false"
		case in("hookspath"):
			return value == "/dev/null"
		}
		if in("quotepath", "abbrev", "whitespace", "safecrlf", "longpaths", "commentchar", "preloadindex", "untrackedcache", "trustctime", "checkstat") {
			return true
		}
	case "sequence":
		return in("editor") && off()
	case "pager":
		return off()
	case "diff":
		return in("algorithm", "renames", "renamelimit", "context", "interhunkcontext", "noprefix", "mnemonicprefix", "colormoved", "colormovedws", "wserrorhighlight",
			"statgraphwidth", "statnamewidth", "relative", "indentheuristic", "wordregex", "dirstat", "suppressblankempty") || in("external") && value == ""
	case "log":
		return in("date", "decorate", "follow", "abbrevcommit", "graphcolors", "showroot")
	case "status":
		return in("short", "branch", "aheadbehind", "relativepaths", "showstash", "showuntrackedfiles", "renames", "renamelimit")
	case "grep":
		return in("linenumber", "column", "patterntype", "extendedregexp", "threads", "fullname")
	case "init":
		return in("defaultbranch")
	case "commit", "tag":
		return in("gpgsign") && (value == "false" || value == "0" || value == "no") || in("cleanup", "verbose", "sort")
	case "merge":
		if in("conflictstyle", "stat", "renames", "renamelimit") {
			return true
		}
	case "rebase":
		return in("autosquash", "autostash", "stat", "updaterefs")
	case "rerere":
		return in("enabled", "autoupdate")
	case "gc", "maintenance":
		return in("auto", "autodetach") && (value == "0" || value == "false")
	case "i18n", "versionsort":
		return true
	}
	switch section {
	case "user", "pull", "color", "core", "merge": // the others say where it reads from and what it sends
		return sub == "" && Inert(section+"."+name, value)
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

// WithoutInert are the words of a call of git without the settings in front of its command (-c) by
// which git runs nothing and reads nothing from elsewhere; nil if there are none.
func WithoutInert(words []string) []string {
	out, i := words[:1:1], 1
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		n := 1
		switch w := words[i]; w {
		case "-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source":
			if n = 2; i+1 == len(words) {
				return nil
			}
			if key, value, given := strings.Cut(words[i+1], "="); w == "-c" && given && InertOnce(key, value) {
				i += 2
				continue
			}
		case "--no-pager", "-P", "-p", "--paginate", "--bare", "--literal-pathspecs", "--no-optional-locks", "--no-replace-objects":
		default:
			if !strings.Contains(w, "=") {
				return nil // it may take the next word
			}
		}
		out = append(out, words[i:i+n]...)
		i += n
	}
	if len(out) == i {
		return nil
	}
	return append(out, words[i:]...)
}
