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

// lasting are the keys of two parts that a repository may keep, besides those of shows.
var lasting = map[string][]string{
	"core": {"repositoryformatversion", "bare", "filemode", "ignorecase", "precomposeunicode", "symlinks", "logallrefupdates", "autocrlf", "eol"},
	// The others name merge strategies, which are programs.
	"pull":   {"rebase", "ff"},
	"push":   {"default", "autosetupremote"},
	"fetch":  {"prune", "prunetags", "parallel"},
	"branch": {"autosetupmerge", "autosetuprebase", "sort"},
	"merge":  {"ff"},
}

// shown are the keys by which git says how something looks, and how it finds out what it shows.
var shown = map[string][]string{
	"core": {"quotepath", "abbrev", "whitespace", "safecrlf", "longpaths", "commentchar", "preloadindex", "untrackedcache", "trustctime", "checkstat"},
	"diff": {"algorithm", "renames", "renamelimit", "context", "interhunkcontext", "noprefix", "mnemonicprefix", "colormoved", "colormovedws", "wserrorhighlight",
		"statgraphwidth", "statnamewidth", "relative", "indentheuristic", "wordregex", "dirstat", "suppressblankempty"},
	"log":    {"date", "decorate", "follow", "abbrevcommit", "graphcolors", "showroot"},
	"status": {"short", "branch", "aheadbehind", "relativepaths", "showstash", "showuntrackedfiles", "renames", "renamelimit"},
	"grep":   {"linenumber", "column", "patterntype", "extendedregexp", "threads", "fullname"},
	"init":   {"defaultbranch"},
	"commit": {"cleanup", "verbose"},
	"tag":    {"sort"},
	"merge":  {"conflictstyle", "stat", "renames", "renamelimit"},
	"rebase": {"autosquash", "autostash", "stat", "updaterefs"},
	"rerere": {"enabled", "autoupdate"},
}

// shows reports a setting that says how something looks, or switches off a program without which
// git does the same.
func shows(section, sub, name, value string) bool {
	switch section {
	case "advice", "blame", "color", "column", "i18n", "versionsort":
		return true
	case "pager":
		return off(value)
	}
	if sub != "" {
		return false
	}
	switch section + "." + name {
	case "core.pager":
		return off(value)
	case "commit.gpgsign", "tag.gpgsign", "gc.auto", "gc.autodetach", "maintenance.auto", "maintenance.autodetach":
		return value == "false" || value == "0" || value == "no"
	}
	return slices.Contains(shown[section], name)
}

// off reports a program that does nothing.
func off(program string) bool {
	return slices.Contains([]string{"", "cat", "true", "false", ":", "/bin/cat", "/usr/bin/cat", "/bin/true", "/usr/bin/true"}, program)
}

// folded is Split without regard to case where git has none.
func folded(key string) (section, sub, name string) {
	section, sub, name = Split(key)
	return strings.ToLower(section), sub, strings.ToLower(name)
}

// Inert reports whether a setting is one that git neither executes nor follows. What `git config` may
// set is what the check after a run leaves.
func Inert(key, value string) bool {
	section, sub, name := folded(key)
	switch {
	case name == "" || strings.IndexByte(value, 0) >= 0:
		return false
	case section == "user" || section == "extensions" && name != "worktreeconfig" || shows(section, sub, name, value):
		return true
	case sub == "":
		return slices.Contains(lasting[section], name)
	}
	switch section + "." + name {
	case "branch.remote", "branch.pushremote", "remote.url", "remote.pushurl", "submodule.url":
		return inertURL(value) // what no remote is called git takes for a URL
	case "branch.merge", "branch.rebase", "branch.description", "remote.fetch", "remote.prune", "remote.tagopt", "submodule.active":
		return true
	}
	return false
}

// InertSection reports a section that may go, or get another name, whatever it holds.
func InertSection(name string) bool {
	return slices.ContainsFunc([]string{".merge", ".rebase", ".fetch"}, func(key string) bool { return Inert(name+key, "") })
}

// InertOnce is Inert for a setting of one call, which no later one meets: it may also switch a
// program off that later calls need, but not say where git reads from and what it sends.
func InertOnce(key, value string) bool {
	section, sub, name := folded(key)
	if sub == "" {
		switch section + "." + name {
		case "core.editor", "core.askpass", "sequence.editor":
			return off(value)
		case "core.fsmonitor":
			return value == "" || value == "false"
		case "core.hookspath":
			return value == "/dev/null"
		case "diff.external":
			return value == ""
		}
	}
	switch section {
	case "extensions", "branch", "remote", "submodule", "push", "fetch":
		return false
	}
	return (sub == "" || shows(section, sub, name, value)) && Inert(key, value)
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
