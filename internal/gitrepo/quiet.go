package gitrepo

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Quiet are settings under which git runs none of the programs that a repository can name
// and goes into no other repository. They belong into the environment of every child that
// holds a host or a credential: what starts git there, whatever tool it is, inherits them,
// and they win over each file. account is the configuration of the account alone; what it
// names for the same purpose stays.
func Quiet(account *Config) [][2]string {
	ssh, ok := account.Get("core.sshcommand")
	if !ok || ssh == "" {
		ssh = "ssh"
	}
	out := [][2]string{{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"core.sshCommand", ssh}, {"core.pager", "cat"}, {"protocol.ext.allow", "never"},
		{"safe.bareRepository", "explicit"}, {"submodule.recurse", "false"}, {"fetch.recurseSubmodules", "false"}, {"push.recurseSubmodules", "no"},
		// An empty helper forgets those before it (gitcredentials(7)).
		{"credential.helper", ""}}
	for _, s := range account.Settings {
		if helper(s) && s.Scope != ScopeRepository {
			out = append(out, [2]string{s.Key, s.Value})
		}
	}
	return out
}

// Careful are settings under which git reads no file system monitor and no bare repository by chance, and, where it
// only reads, runs no hook and no program that shows what it prints. An empty diff.external would make `git diff` fail,
// so named drivers are left to the check of the configuration.
func Careful(reads bool) [][2]string {
	out := [][2]string{{"core.fsmonitor", "false"}, {"safe.bareRepository", "explicit"}, {"protocol.ext.allow", "never"}}
	if reads {
		out = append(out, [2]string{"core.hooksPath", "/dev/null"}, [2]string{"log.showSignature", "false"}, [2]string{"core.pager", "cat"})
	}
	return out
}

func helper(s Setting) bool {
	section, _, name := Split(s.Key)
	return section == "credential" && name == "helper"
}

// Quieted reports a key that Quiet overrides, whatever a repository says.
func Quieted(key string) bool {
	switch key {
	case "core.hookspath", "core.fsmonitor", "core.sshcommand", "core.pager", "submodule.recurse", "fetch.recursesubmodules", "push.recursesubmodules":
		return true
	}
	return helper(Setting{Key: key})
}

// Starts are the programs that the account's own configuration makes git start through a
// shell: helpers for credentials. They are names to be looked up, or absolute paths. known is
// false where it names others, of which only the account knows what they start. A helper for
// one host counts if that occurs in urls, the addresses that are used; nil counts all.
func Starts(account *Config, urls []string) (programs []string, known bool) {
	known = true
	for _, s := range account.Settings {
		section, sub, name := Split(s.Key)
		switch {
		case helper(s):
			if words := strings.Fields(s.Value); len(words) > 0 && (sub == "" || urls == nil || occurs(sub, urls)) {
				programs = append(programs, helperProgram(words[0]))
			}
		case s.Key == "core.sshcommand" && strings.ContainsAny(s.Value, "|&;<>()$`\\\"' \t\n*?[#~=%/"),
			section == "filter" && sub != "" && (name == "clean" || name == "smudge" || name == "process"),
			s.Key == "core.askpass", s.Key == "core.gitproxy", section == "gpg" && name == "program":
			known = false
		}
	}
	return programs, known
}

// StartsLocally reports an account whose own configuration makes a command of git start a program that
// is not git's while it works on a repository of this machine. Helpers for credentials, signatures and
// other machines are for others: no run without rights reaches them.
func StartsLocally(account *Config) bool {
	return slices.ContainsFunc(account.Settings, func(s Setting) bool {
		section, sub, name := Split(s.Key)
		switch section {
		case "alias":
			return strings.HasPrefix(strings.TrimSpace(s.Value), "!")
		case "core":
			return name == "editor" || name == "hookspath" || name == "alternaterefscommand" || name == "fsmonitor" && !slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "1", "0"}, strings.ToLower(s.Value))
		case "filter", "trailer":
			return sub != ""
		case "diff":
			return name == "external" || name == "command" || name == "textconv"
		case "sequence", "merge", "interactive", "uploadpack":
			return name == "editor" || name == "driver" || name == "difffilter" || name == "packobjectshook"
		}
		return false
	})
}

// occurs reports whether the host of a url pattern occurs in one of the addresses. A pattern
// with a wildcard always does.
func occurs(pattern string, urls []string) bool {
	if _, rest, ok := strings.Cut(pattern, "://"); ok {
		pattern = rest
	}
	host, _, _ := strings.Cut(pattern, "/")
	if _, rest, ok := strings.Cut(host, "@"); ok {
		host = rest
	}
	return strings.Contains(host, "*") || slices.ContainsFunc(urls, func(u string) bool { return strings.Contains(strings.ToLower(u), strings.ToLower(host)) })
}

// helperProgram is what the first word of a helper stands for (gitcredentials(7)).
func helperProgram(word string) string {
	if rest, ok := strings.CutPrefix(word, "!"); ok {
		return strings.Trim(rest, `"'`)
	}
	if filepath.IsAbs(word) {
		return word
	}
	return "git-credential-" + word
}

// Hooks is the directory of the hooks.
func (r Repository) Hooks(c *Config) string {
	path, ok := c.Get("core.hookspath")
	if !ok || path == "" {
		return filepath.Join(r.Common, "hooks")
	}
	base := r.WorkTree
	base = cmp.Or(base, r.Dir)
	return c.expand(path, base)
}

// LiveHooks are the names of the hooks that git would run in this repository.
func (r Repository) LiveHooks(c *Config) []string {
	dir := r.Hooks(c)
	list, _ := names(dir)
	return slices.DeleteFunc(list, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || filepath.Ext(name) != "" || !strings.Contains(hookNames, " "+name+" ")
	})
}

// HookOf says which hook a command of git runs in this repository, "" for none. The account may say where the
// hooks of all its repositories are; home and xdg are its directories.
func (r Repository) HookOf(command, home, xdg string) string {
	c, err := r.Config(home, UserSources(home, xdg)...)
	if err != nil {
		return err.Error()
	}
	for _, name := range r.LiveHooks(c) {
		if runsHook(command, name) {
			return filepath.Join(r.Hooks(c), name) + " runs"
		}
	}
	return ""
}

// runsHook reports a command of git that runs a hook of that name (githooks(5)). A reference is changed by most.
func runsHook(command, hook string) bool {
	const (
		commits = " pre-commit prepare-commit-msg commit-msg post-commit post-rewrite pre-auto-gc "
		merges  = commits + "pre-merge-commit post-merge "
		leaves  = " post-checkout "
	)
	hooks := ""
	switch command {
	case "commit", "cherry-pick", "revert", "citool", "gui":
		hooks = commits
	case "merge":
		hooks = merges + leaves
	case "pull", "rebase":
		hooks = merges + leaves + " pre-rebase "
	case "checkout", "switch", "worktree", "clone", "bisect", "submodule":
		hooks = leaves
	case "am":
		hooks = commits + " applypatch-msg pre-applypatch post-applypatch "
	case "push", "send-pack":
		hooks = " pre-push "
	case "receive-pack":
		hooks = " pre-receive update post-receive post-update proc-receive push-to-checkout "
	case "gc", "maintenance":
		hooks = " pre-auto-gc "
	case "send-email":
		hooks = " sendemail-validate "
	case "p4":
		return true
	}
	return hook == "reference-transaction" || hook == "post-index-change" || strings.Contains(hooks, " "+hook+" ")
}

const hookNames = " applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg proc-receive push-to-checkout reference-transaction sendemail-validate update "
