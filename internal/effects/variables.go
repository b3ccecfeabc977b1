package effects

import (
	"path"
	"strings"
)

// LoadsCode names the variables by which a loader, an interpreter or a tool
// starts or reads code of the caller's choice.
func LoadsCode(name string) bool {
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

// HasUserinfo reports whether a value is a URL with a password in it.
func HasUserinfo(value string) bool {
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	userinfo, _, ok := strings.Cut(authority, "@")
	return ok && strings.Contains(userinfo, ":")
}

func MatchesName(patterns []string, name string) bool {
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
