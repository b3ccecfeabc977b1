package step

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
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

// BringsProgram reports a variable that may hold many things, and here names a program.
func BringsProgram(a shell.Assign) bool {
	switch {
	case a.Name == "LESS":
		return strings.ContainsAny(a.Value, "+!|\x00")
	case strings.HasSuffix(a.Name, "FLAGS"):
		return ContainsAny(a.Value, "-fplugin", "-wrapper", "-specs", "-load", "-B/", "-fuse-ld=/", "linker=/", "$(", "`")
	}
	return false
}

// ProgramVariable names variables that tools start as a program.
func ProgramVariable(name string) bool {
	switch name {
	case "EDITOR", "VISUAL", "PAGER", "MANPAGER", "SHELL", "CC", "CXX", "TAR_OPTIONS", "RSYNC_RSH", "GIT_DIR", "GIT_WORK_TREE",
		"CPP", "LD", "AR", "FC", "F77", "YACC", "LEX", "RUSTC", "RUSTDOC", "CMAKE_TOOLCHAIN_FILE", "GOTOOLDIR", "GOPACKAGESDRIVER", "MAKEFILES", "MAVEN_ARGS", "MAVEN_OPTS", "JAVA_OPTS", "GRADLE_OPTS", "SBT_OPTS", "ANT_OPTS", "PYTEST_ADDOPTS", "PYTEST_PLUGINS",
		"OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "HGRCPATH", "HG", "HGMERGE", "VIMINIT", "EXINIT", "GVIMINIT", "MYVIMRC", "VIMRUNTIME", "EMACSLOADPATH", "LESSKEY", "LESSKEYIN", "LESSKEY_CONTENT",
		"PSQLRC", "SVN_SSH", "SVN_EDITOR", "CVS_RSH", "RSYNC_CONNECT_PROG", "GS_OPTIONS", "MAILER", "ZIPOPT", "UNZIP", "ZIP", "GZIP_OPT", "XZ_OPT", "QUILT_PC", "TERRAFORM_CONFIG", "TF_CLI_ARGS",
		"npm_config_script_shell", "npm_config_shell", "npm_config_git", "npm_config_editor", "npm_config_viewer", "npm_config_userconfig", "npm_config_globalconfig", "npm_config_init_module", "npm_config_prefix":
		return true
	}
	for _, suffix := range [...]string{"PAGER", "EDITOR", "ASKPASS", "_WRAPPER", "_LINKER", "_LAUNCHER"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return strings.HasPrefix(name, "GIT_CONFIG") || strings.HasPrefix(name, "TF_CLI_ARGS_") || strings.HasPrefix(name, "CARGO_TARGET_") && strings.HasSuffix(name, "_RUNNER") ||
		strings.HasPrefix(name, "NPM_CONFIG_") && ProgramVariable(strings.ToLower(name))
}

// HarmlessProgram is the value people set to switch a helper off.
func HarmlessProgram(v string) bool {
	switch v {
	case "", "cat", "true", ":", "false", "less", "more", "gcc", "clang", "g++", "clang++", "cc", "/bin/true", "/bin/cat":
		return true
	}
	return false
}

// OffProgram reports a pager or an editor that is switched off by a variable.
func OffProgram(name, value string) bool {
	return HarmlessProgram(value) && (strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "EDITOR"))
}

// SandboxVariable names what the sandbox sets or moves for a child.
func SandboxVariable(name string) bool {
	switch name {
	case "TMPDIR", "CARGO_HOME", "GRADLE_USER_HOME", "GOPATH", "GOFLAGS", "HISTFILE", "PYTHONUSERBASE":
		return true
	}
	return strings.Contains(strings.ToUpper(name), "CACHE") || strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "XDG_")
}

// Leads reports an option that makes the other end somebody else, or anybody.
func Leads(tool, name, value string) bool {
	switch tool {
	case "curl", "wget", "httpie", "git":
		return false // they name their hosts, and their metadata knows these options
	}
	switch name {
	case "--no-verify-ssl", "--insecure-skip-tls-verify", "--insecure-skip-verify", "--no-check-certificate", "--tls-skip-verify", "-tls-skip-verify":
		return value != "false"
	case "--ca-bundle", "--cafile", "--certificate-authority", "--ca-cert", "-ca-cert", "--proxy", "--https-proxy", "--http-proxy", "--noproxy", "--trusted-host":
		return true
	case "--strict-ssl":
		return value == "false"
	case "--no-strict-ssl":
		return true
	case "--hostname":
		return tool == "gh" || tool == "glab"
	}
	return false
}

// FromElsewhere reports a package that is named by where it lies: a URL, a repository.
func FromElsewhere(spec string) bool {
	for _, prefix := range [...]string{"git+", "git:", "github:", "gitlab:", "bitbucket:", "gist:"} {
		if strings.HasPrefix(spec, prefix) {
			return true
		}
	}
	return strings.Contains(spec, "://") || strings.IndexByte(spec, '/') > 0 && spec[0] != '@' && spec[0] != '.'
}

// ProxyVariable names the variables by which nearly every program finds a proxy.
func ProxyVariable(name string) bool {
	switch strings.ToLower(name) {
	case "http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "socks_proxy", "npm_config_proxy", "npm_config_https_proxy":
		return true
	}
	return false
}

// CertaintyVariable names those that decide whether the other end of a connection is
// the host that was asked for.
func CertaintyVariable(name string) bool {
	switch name {
	case "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY",
		"NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "PYTHONHTTPSVERIFY", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN":
		return true
	}
	return false
}

// NamesPath reports a name that stands for a file or a directory by custom.
func NamesPath(name string) bool {
	for _, suffix := range [...]string{"FILE", "CONFIG", "DIR", "HOME", "RC", "PATH"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// WritesTo reports a variable that names a file which the call writes.
func WritesTo(s *Step, a shell.Assign) bool {
	unknown := strings.IndexByte(a.Value, 0) >= 0
	switch {
	case a.Name == "SSLKEYLOGFILE":
		return s.Call.Effects[atip.Network].Value != atip.No
	case s.Call.Tool != "git":
		return false
	case a.Name == "GIT_INDEX_FILE":
		return true
	}
	return strings.HasPrefix(a.Name, "GIT_TRACE") && (unknown || filepath.IsAbs(a.Value))
}

func Endpoint(names []string, a shell.Assign) (policy.HostUse, bool) {
	named := false
	for _, n := range names {
		prefix, wild := strings.CutSuffix(n, "*")
		named = named || n == a.Name || wild && strings.HasPrefix(a.Name, prefix)
	}
	// GH_REPO is [HOST/]OWNER/NAME.
	if !named || a.Value == "" || strings.HasSuffix(a.Name, "_REPO") && strings.Count(a.Value, "/") < 2 {
		return policy.HostUse{}, false
	}
	if strings.IndexByte(a.Value, 0) >= 0 {
		return policy.HostUse{}, true
	}
	host := a.Value
	if _, rest, ok := strings.Cut(host, "://"); ok {
		host = rest
	}
	host, _, _ = strings.Cut(host, "/")
	if _, rest, ok := strings.Cut(host, "@"); ok {
		host = rest
	}
	name, port := SplitPort(host)
	return policy.HostUseOf(name, port), true
}

// Assigned lists the variables that `env` sets for the command it runs.
func Assigned(s *Step, inner []string) []shell.Assign {
	if s.Call.Tool != "env" && s.Call.Tool != "sudo" && s.Call.Tool != "doas" {
		return nil
	}
	var out []shell.Assign
	for _, w := range s.Argv[1:max(1, len(s.Argv)-len(inner))] {
		name, value, ok := strings.Cut(w, "=")
		if ok && name != "" && !strings.HasPrefix(w, "-") {
			out = append(out, shell.Assign{Name: name, Value: value})
		}
	}
	return out
}
