// Package step holds one command of a run with everything known about it, and reads what its own
// words, options, variables and texts say. It looks at no file.
package step

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// Step is one command of the run with everything that was found out about it.
type Step struct {
	policy.Step
	Argv       []string
	Executable *trust.File // nil for a command that is not installed
	ID         trust.Identity
	Verdict    trust.Verdict
	Missing    error
	// DocumentVerdict is the verdict on the document about it; without a reason there is none, or
	// it is one of our own.
	DocumentVerdict trust.Verdict

	Known  *Step // without the words that are not known, nil if all are
	AtExec bool  // its unknown words are decided when it starts

	Split *atip.Fetch // how it is split into fetching and running without network, nil if it is not
	Apart *Step       // the second part, nil without the first
	// Before is what it needs no network for but builds: fetched once before it. nil for nothing.
	Before *atip.Fetch
	// Fetcher is the program that fetches; "" for the step's own. One of the workspace does not.
	Fetcher string

	// OneTool says that no words of the tool name another one, as those of an interpreter or of a
	// multi-call program do.
	OneTool bool
	Typed   bool // the text's own shell starts it by a name, with these very words and its own variables
	Command int  // of the text, counted from 1, that it is or that starts it; 0 for none
	Own     bool // a run of its own does it, and the shell finds a stand-in in its place

	Quieted     string   // a setting of its repository that runs a program, unless the run turns it off
	TargetFiles []string // files that name what it runs, such as a Makefile
	Primes      *Primes  // what its tool says of prime, nil if it says nothing
}

// Primes is what a document says of the prime of its tool.
type Primes struct {
	Metadata bool // it takes --metadata
}

// TrustFacts are the parts of a verdict that policies may name.
func TrustFacts(v trust.Verdict) policy.TrustFacts {
	return policy.TrustFacts{Level: v.Level.String(), Reason: v.Reason, Action: policy.Action(v.Action)}
}

// Rustup reports the names under which the programs of a Rust toolchain take another
// toolchain in front: "cargo +nightly fmt". One that is missing is not fetched without a network.
func Rustup(name string) bool {
	switch name {
	case "cargo", "rustc", "rustfmt", "rustdoc", "rustup", "clippy-driver":
		return true
	}
	return false
}

// Raise adds the effects that follow from what a path is: metadata knows the
// option, not where the file lies.
func (s *Step) Raise(r atip.Resource) {
	fact := atip.Fact{Value: atip.Yes, Source: "path " + r.Abs, Rank: atip.Vendor}
	if r.Class == atip.ClassSecret && r.Access&(atip.AccessRead|atip.AccessSecret|atip.AccessExec) != 0 {
		s.Call.Effects[atip.SecretRead] = fact
	}
	if (r.Class == atip.ClassStartup || strings.HasPrefix(filepath.Base(r.Abs), "authorized_keys")) && r.Access&atip.AccessWrite != 0 {
		s.Call.Effects[atip.Persistence] = fact
	}
	if r.Class == atip.ClassDevice && r.Access&atip.AccessWrite != 0 {
		s.Call.Effects[atip.Destructive] = fact
	}
}

// Believed reports whether the bytes of a tool are vouched for by something else
// than a signature: trust.Decide names these reasons.
func Believed(v trust.Verdict) bool {
	if v.Level == trust.Verified {
		return true
	}
	switch v.Reason {
	case "pinned", "known_digest", "distro_db_match", "system_path", "own_path":
		return v.Action == trust.Allow
	}
	return false
}

// Value is an effect under its danger name: irreversible is the opposite of
// reversible.
func (s *Step) Value(e atip.Effect) atip.Value {
	v := s.Call.Effects[e].Value
	if e == atip.Reversible {
		switch v {
		case atip.Yes:
			return atip.No
		case atip.No:
			return atip.Yes
		}
		return v
	}
	if v == atip.No && (s.RunsCode != policy.CodeNone || s.Call.Effects[atip.ExecOpaque].Value == atip.Yes) {
		switch e {
		case atip.Write, atip.Delete, atip.Network, atip.Destructive, atip.Billable, atip.SecretRead, atip.Persistence, atip.RemoteMutation:
			// The tool's "no" speaks for the tool, not for the code it is handed.
			return atip.Unknown
		}
	}
	return v
}

// Certainty joins how well the words of a step are known with how exactly they
// resolved.
func (s *Step) Certainty() string {
	switch {
	case s.Confidence == policy.Opaque || s.Call.Exactness == atip.Unresolved:
		return "opaque"
	case s.Confidence == policy.Bounded || s.Call.Exactness == atip.Bounded:
		return "bounded"
	}
	return "exact"
}

// Foreign reports a step whose code is the project's, the caller's or unknown.
func (s *Step) Foreign() bool {
	return s.RunsCode != policy.CodeNone || s.Call.Effects[atip.ExecOpaque].Value == atip.Yes
}

func Harmless(e atip.Effect, source string) atip.Fact {
	v := atip.No
	if e.Dangerous() == atip.No {
		v = atip.Yes
	}
	return atip.Fact{Value: v, Source: source, Rank: atip.Vendor}
}

// Takes adds a resource with what it means.
func (s *Step) Takes(r atip.Resource) {
	s.Raise(r)
	s.Call.Resources = append(s.Call.Resources, r)
}

// Forgive takes effects away that stay in the run.
func (s *Step) Forgive(source string, effects ...atip.Effect) {
	for _, e := range effects {
		s.Call.Effects[e] = Harmless(e, source)
	}
}

// HarmlessCall is the call of a tool that does nothing by itself.
func HarmlessCall(tool string, argv []string, from atip.Provenance) atip.Call {
	call := atip.Call{Tool: tool, InvokedAs: tool, Argv: argv, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Resources: []atip.Resource{}, Nested: []atip.Nested{}, Secrets: []string{}, Provenance: from}
	for e := range call.Effects {
		call.Effects[e] = Harmless(atip.Effect(e), from.Source)
	}
	return call
}

// MaxSteps bounds the commands of one run, whatever runs inside what.
const MaxSteps = 600

var ErrTooMany = &shelltext.SyntaxError{Msg: "it holds more commands than are judged", Fix: "split it into several commands"}

// Relative reports whether a directory matters to any of these steps.
func Relative(steps []*Step) bool {
	for _, s := range steps {
		if len(s.Call.CodeFiles) > 0 || strings.IndexByte(s.Argv[0], '/') > 0 || len(s.Call.Nested) > 0 {
			return true
		}
		for _, r := range s.Call.Resources {
			if r.Kind == "path" && !filepath.IsAbs(r.Value) {
				return true
			}
		}
	}
	return false
}

var shown = strings.NewReplacer(shell.HoleSplit, "…", shell.HoleName, "…", shell.Hole, "…")

// Shown replaces what is not known in words by a sign for it.
func Shown(argv []string) []string {
	out := make([]string, len(argv))
	for i, w := range argv {
		out[i] = shown.Replace(w)
	}
	return out
}

// ShowEffects lets a step have the effects that commands in its text certainly have. It
// is for steps that ask or are denied because of them: one more never loosens that.
func (s *Step) ShowEffects(inner []*Step) {
	for _, in := range inner {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive, atip.SecretRead, atip.Network, atip.RemoteMutation, atip.Persistence, atip.Billable} {
			if in.Call.Effects[e].Value == atip.Yes && s.Call.Effects[e].Value != atip.Yes {
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
			}
		}
	}
}

// Removes reports a command that deletes or destroys something.
func Removes(steps []*Step) bool {
	return slices.ContainsFunc(steps, func(s *Step) bool {
		e := s.Call.Effects
		return s.RunsCode == policy.CodeNone && s.Call.Tool != "" && (e[atip.Delete].Value == atip.Yes || e[atip.Destructive].Value == atip.Yes)
	})
}

// Strange reports a step that policy grants a loopback of the run's own at most.
func (s *Step) Strange() bool {
	return s.RunsCode != policy.CodeNone || s.Call.Provenance.Channel == "none"
}

// RedirectedAs gives the known part of a step what the shell itself opens for it, which no
// start is asked about.
func (s *Step) RedirectedAs(t *Step) {
	for _, r := range s.Call.Resources {
		if r.Why == "redirection" {
			t.Call.Resources = append(t.Call.Resources, r)
			t.Raise(r)
		}
	}
	for e, fact := range s.Call.Effects {
		if fact.Source == "redirection" {
			t.Call.Effects[e] = fact
			t.Hosts = s.Hosts
		}
	}
}

// DecidedAt says when the words of a step are decided: "plan", "exec", or "own" for those that a run of
// its own is planned for once more.
func (s *Step) DecidedAt() string {
	switch {
	case s.AtExec:
		return "exec"
	case s.Own:
		return "own"
	}
	return "plan"
}

// StandIn is what the sandbox of a text does for a step that a run of its own does: it opens what the
// shell redirects, and hands the words on.
func (s *Step) StandIn() *Step {
	t := *s
	t.Own, t.Apart, t.Before, t.Known, t.Split, t.Quieted, t.TargetFiles, t.Primes = true, nil, nil, nil, nil, "", nil, nil
	t.Hosts, t.ServiceHosts, t.Entitled, t.RunsCode = nil, nil, nil, policy.CodeNone
	t.Call = HarmlessCall(s.Call.Tool, s.Call.Argv, s.Call.Provenance)
	t.Call.InvokedAs, t.Call.Path = s.Call.InvokedAs, s.Call.Path
	s.RedirectedAs(&t)
	return &t
}

// ShowRemoval lets a step that asks because of its text have the effect that is in it.
func (s *Step) ShowRemoval(text string) {
	if connects(text) {
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
	}
	if removesFiles(text) || ContainsAny(text, "rm -r", "rm -f") {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive} {
			s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
		}
	}
}

// RunsFile marks a step that runs code which a file of the workspace names or holds.
func (s *Step) RunsFile(path, why string) {
	s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "file", Pointer: path, Rank: atip.Vendor}
	s.RunsCode = max(s.RunsCode, policy.CodeProject)
	s.Call.Warnings = append(s.Call.Warnings, why)
}

// RunsHook makes a step of git one that runs code of the workspace beside: a hook, a program that the repository
// names. What git itself does stays known.
func (s *Step) RunsHook(why string) {
	s.Call.Effects[atip.Subprocess] = atip.Fact{Value: atip.Yes, Source: "file", Pointer: ".git", Rank: atip.Vendor}
	s.RunsCode = max(s.RunsCode, policy.CodeProject)
	s.Call.Warnings = append(s.Call.Warnings, why)
}

// ShowVerbs takes a tool of which nobody knows what it does by its word: one that is told
// to delete destroys something.
func (s *Step) ShowVerbs() {
	for i, w := range s.Argv {
		if i == 0 {
			w = filepath.Base(w)
			if strings.HasPrefix(w, "drop") {
				w = "drop" // dropdb, dropuser
			}
		}
		first, _, _ := strings.Cut(strings.TrimLeft(w, "-/:"), " ")
		for part := range strings.FieldsFuncSeq(strings.ToLower(first), func(r rune) bool { return strings.ContainsRune(":=-_.", r) }) {
			var effects []atip.Effect
			switch part {
			case "delete", "destroy", "drop", "purge", "wipe", "remove", "rm", "del", "erase", "terminate", "truncate", "flush", "flushall", "prune", "clean", "uninstall", "unpublish", "reset", "nuke", "obliterate", "downgrade":
				effects = []atip.Effect{atip.Destructive}
			case "publish", "push", "deploy", "upload", "release":
				effects = []atip.Effect{atip.RemoteMutation, atip.Network}
			}
			for _, e := range effects {
				if s.Call.Effects[e].Value != atip.Unknown {
					continue
				}
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "word " + w, Rank: atip.Inferred}
			}
		}
	}
}

// TellTale names programs that a word, where a command may stand, can hardly mean anything
// else by. The verbs of other tools (`install`, `halt`, `start`) are not among them.
func TellTale(word string) bool {
	switch filepath.Base(word) {
	case "rm", "rmdir", "unlink", "shred", "dd", "truncate", "mv", "cp", "tee", "chmod", "chown", "find", "cat", "head", "tail", "base64", "xxd", "tar", "curl", "wget",
		"sh", "bash", "dash", "zsh", "ksh", "env", "sudo", "nohup", "xargs", "git", "gh", "kubectl", "aws", "gcloud", "terraform", "docker", "psql", "mysql":
		return true
	}
	return false
}

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

// EditorText reports a variable whose value git hands to a shell, with the name of a file behind it.
func EditorText(name, value string) bool {
	return (name == "GIT_EDITOR" || name == "GIT_SEQUENCE_EDITOR") && strings.IndexByte(value, 0) < 0
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
	return slices.ContainsFunc([]string{"FILE", "CONFIG", "DIR", "HOME", "RC", "PATH"}, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
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

// OpensFile reports a command that writes a name by opening it as a file. One that makes a
// directory or a link, or renames something to it, finds a file in its way.
func OpensFile(s *Step) bool {
	switch s.Call.Tool {
	case "mkdir", "ln", "link", "mkfifo", "mknod", "mktemp", "mv", "install", "rsync", "unzip", "git":
		return false
	case "cp":
		return !slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			info, err := os.Stat(r.Abs)
			return r.Access&atip.AccessRead != 0 && err == nil && info.IsDir()
		})
	}
	return true
}
