package run

import (
	"path"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/filter"
)

// environment is what the child gets and what it does not; names only leave this
// package, values never do.
type environment struct {
	entries     []string
	passed      []string
	dropped     []string
	credentials []string
	withheld    []string // of those dropped, the credentials that nothing declared
}

// environRules is what the plan knows when the environment is built.
type environRules struct {
	declared []string          // credential variables that the call may ask for
	pass     []string          // policy env.pass: names or PREFIX_*
	drop     []string          // policy env.drop
	set      map[string]string // policy env.set, then additions of the sandbox
}

// scrub drops what would load code into the child or hand it a credential it did
// not declare. Of two entries with one name the first counts, as for getenv(3).
func scrub(environ []string, r environRules) environment {
	room := len(environ) + len(r.set)
	out := environment{entries: make([]string, 0, room), passed: make([]string, 0, room)}
	for i, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || named(environ[:i], name) {
			continue
		}
		if _, replaced := r.set[name]; replaced {
			continue
		}
		credential := filter.CredentialName(name) || name == "SSH_AUTH_SOCK" || hasUserinfo(value)
		switch {
		case matchesName(r.drop, name):
			out.dropped = append(out.dropped, name)
			continue
		case matchesName(r.pass, name):
		case loadsCode(name), strings.HasPrefix(name, "ATIP_EXEC_"), name == "ATIP_DELEGATION":
			out.dropped = append(out.dropped, name)
			continue
		case credential && !contains(r.declared, name):
			out.dropped, out.withheld = append(out.dropped, name), append(out.withheld, name)
			continue
		}
		if credential {
			out.credentials = append(out.credentials, name)
		}
		out.entries = append(out.entries, entry)
		out.passed = append(out.passed, name)
	}
	added := make([]string, 0, len(r.set))
	for name := range r.set {
		added = append(added, name)
	}
	sort.Strings(added)
	for _, name := range added {
		out.entries = append(out.entries, name+"="+r.set[name])
		out.passed = append(out.passed, name)
	}
	sort.Strings(out.dropped)
	sort.Strings(out.passed)
	return out
}

// passedLoaders lists the variables of loaders and interpreters that policy passes
// on: no digest covers the code they bring.
func (p *Plan) passedLoaders() []string {
	pass := p.policies.Env().Pass
	if len(pass) == 0 {
		return nil
	}
	var out []string
	for _, entry := range p.machine.Environ {
		if name, _, ok := strings.Cut(entry, "="); ok && loadsCode(name) && matchesName(pass, name) {
			out = append(out, entry)
		}
	}
	return out
}

// named reports whether an entry has this name.
func named(entries []string, name string) bool {
	for _, e := range entries {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return true
		}
	}
	return false
}

// loadsCode names the variables by which a loader, an interpreter or a tool
// starts or reads code of the caller's choice.
func loadsCode(name string) bool {
	for _, prefix := range [...]string{"LD_", "DYLD_", "MALLOC_", "BASH_FUNC_", "GIT_CONFIG", "GIT_SSH", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
		"R_PROFILE", "R_ENVIRON", "CORECLR_", "COR_", "CARGO_BUILD_", "NODE_REPL_", "npm_config_node_options"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if strings.HasPrefix(name, "ERL_") && strings.HasSuffix(name, "FLAGS") {
		return true
	}
	switch name {
	case "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
		"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONWARNINGS",
		"NODE_PATH", "NODE_OPTIONS", "NPM_CONFIG_NODE_OPTIONS", "PERL5LIB", "PERLLIB", "PERL5OPT", "PERL5DB", "RUBYLIB", "RUBYOPT",
		"CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "PHPRC", "PHP_INI_SCAN_DIR", "JULIA_LOAD_PATH", "ZDOTDIR", "FPATH",
		"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "IFS", "CDPATH",
		"GIT_SEQUENCE_EDITOR", "GIT_EDITOR", "GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_ASKPASS",
		"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ATTR_SOURCE",
		"SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN", "LESSCLOSE", "BROWSER", "RIPGREP_CONFIG_PATH", "FZF_DEFAULT_COMMAND",
		"MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "GOFLAGS", "GOENV", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "STY":
		return true
	}
	return false
}

// hasUserinfo reports whether a value is a URL with a password in it.
func hasUserinfo(value string) bool {
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	userinfo, _, ok := strings.Cut(authority, "@")
	return ok && strings.Contains(userinfo, ":")
}

func matchesName(patterns []string, name string) bool {
	for _, p := range patterns {
		if p == name {
			return true
		}
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}
