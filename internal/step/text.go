package step

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/trust"
)

// JoinedText is a program text with the parts of its literals put together: '.e'+'nv'.
func JoinedText(text string) string {
	return strings.NewReplacer(`'+'`, "", `' + '`, "", `"+"`, "", `" + "`, "", `'.'`, "", `' . '`, "", `"."`, "", `" . "`, "", `' '`, "", `" "`, "").Replace(text)
}

// WritesHere reports a text that seems to write the file of a literal: the mode stands behind
// it, or the function in front of it.
func WritesHere(text, lit string) bool {
	i := strings.Index(text, lit)
	if i < 0 {
		return false
	}
	behind := text[min(i+len(lit)+1, len(text)):]
	behind = strings.ReplaceAll(behind[:min(20, len(behind))], " ", "")
	return ContainsAny(behind, ",\"w", ",'w", ",\"a", ",'a", ",\"x", ",'x", ".write") ||
		ContainsAny(text[max(0, i-24):i], "write", "append", "put_contents", "chmod", "chown", "symlink", "rename", "move", "copy", "truncate", "mkdir", "touch", ">")
}

// NamesHome reports a program text that puts a path together with the home directory.
func NamesHome(text string) bool {
	return ContainsAny(text, "HOME", "home", "expanduser", "getpw", "\"~\"", "'~'")
}

// StartsPrograms reports whether a program text seems to start other programs.
func StartsPrograms(text string) bool {
	text = strings.NewReplacer("os.execute", "os.execute", ".execute", "").Replace(text) // statements for a database
	for _, sign := range [...]string{"system", "exec", "popen", "spawn", "subprocess", "child_process", "os.execute", "passthru", "proc_open", "Open3", "capture2", "capture3", "\"|", "'|", "|\"", "|'", "\"-|", "'-|", "run-program", "Deno.Command", "Bun.$", "os:cmd", "open_port", "System.cmd", "Command::new", "ProcessBuilder", "qx", "%x", "`"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// Literals are the texts between quotes of a program.
func Literals(text string) []string {
	var out []string
	for i := 0; i < len(text) && len(out) < 32; i++ {
		if strings.HasPrefix(text[i:], "qx") || strings.HasPrefix(text[i:], "%x") || strings.HasPrefix(text[i:], "qq") || strings.HasPrefix(text[i:], "%q") || strings.HasPrefix(text[i:], "%Q") {
			// Perl's and Ruby's quotes with a bracket of their own.
			if end := bracketed(text[i+2:]); end > 0 {
				out = append(out, text[i+3:i+2+end])
				i += end + 2
				continue
			}
		}
		if q := text[i]; q == '"' || q == '\'' || q == '`' {
			end := strings.IndexByte(text[i+1:], q)
			if end < 0 {
				break
			}
			if end > 0 {
				out = append(out, text[i+1:i+1+end])
			}
			i += end + 1
		}
	}
	return out
}

// bracketed is where a text that begins with a bracket, or a sign that stands for one,
// closes it; 0 if it does not begin so.
func bracketed(s string) int {
	if s == "" {
		return 0
	}
	closing, ok := map[byte]byte{'(': ')', '{': '}', '[': ']', '<': '>', '/': '/', '|': '|', '!': '!'}[s[0]]
	if !ok {
		return 0
	}
	return strings.IndexByte(s[1:], closing) + 1
}

// ShellScript reports whether a shell would read a text: its "#!" names one, or nothing.
func ShellScript(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	return !strings.HasPrefix(line, "#!") || len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return IsShell(filepath.Base(w)) })
}

// Raises reports whether a program text that an interpreter is handed names what a
// person should see first: it removes files, or connects a program to somebody. The
// text is not read as a program, so this can only make a decision stricter. A
// connection alone is left to the kernel, which refuses it.
func Raises(text string) bool {
	if removesFiles(text) || decodesCode(text) || runsInput(text) || forks(text) || changesOutside(text) || connects(text) {
		return true
	}
	if joined := JoinedText(text); joined != text {
		// A name that is put together is one that somebody hides.
		if removesFiles(joined) && !removesFiles(text) || StartsPrograms(joined) && !StartsPrograms(text) || evaluates(joined) && !evaluates(text) {
			return true
		}
	}
	starts := StartsPrograms(text)
	return starts && ContainsAny(text, "rm -r", "rm -f") || (starts || ContainsAny(text, wholeEnvironment...)) && ContainsAny(text, "connect", "Socket", "fsockopen", "sendto") || ContainsAny(text, wholeEnvironment...) && ContainsAny(text, "http.", "net.Dial", "TcpStream", "reqwest", "ureq", "HttpClient", "HttpRequest")
}

// wholeEnvironment is how program texts take all variables at once.
var wholeEnvironment = []string{"environ)", "environ.items", "process.env)", "%ENV", "ENV.to_", "ENV.inspect", "getenv()", "$_ENV)", "os.Environ()", "env::vars"}

// OnlyRemoves reports a text that raises by removing files alone, and takes their names from
// nowhere but itself.
func OnlyRemoves(text string) bool {
	return removesFiles(text) && !decodesCode(text) && !evaluates(text) && !forks(text) && !changesOutside(text) && !connects(text) && !StartsPrograms(text) && JoinedText(text) == text &&
		!NamesHome(text) && !ContainsAny(text, "environ", "getenv", "ENV", ".env", "argv", "ARGV", "argc", "@_", "stdin", "STDIN", "input(", "readline", "gets", "chdir", "__file__", "__dirname", "tmpdir", "gettempdir", "chr(", "CharCode", "[::", "reverse")
}

// removesFiles reports a text that calls what removes files.
func removesFiles(text string) bool {
	for _, sign := range [...]string{"rmtree", "os.remove", "os.unlink", "removedirs", ".unlink(", "rmdir", "rmSync", "rm_rf", "rm_r", "unlinkSync", "unlink ", "unlink(", "unlink;", "unlink}", "remove_tree", "File.delete",
		"FileUtils.rm", "fs.rm", "Deno.remove", "os.truncate", "remove_dir", "remove_entry", "remove_file", "rm_f", "Dir.delete", "delete-directory", "delete-file", "call delete", "file delete"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	// The plain names of such functions, where they are not the end of another name.
	for _, name := range [...]string{"rm(", "rimraf", "remove(", "removeSync(", "emptyDir", "'unlink'", "\"unlink\"", "del("} {
		for rest := text; ; {
			i := strings.Index(rest, name)
			if i < 0 {
				break
			}
			if before := text[:len(text)-len(rest)+i]; name[0] == '\'' || name[0] == '"' || !endsInWord(before) && (name != "remove(" && name != "del(" || strings.Contains(text, "fs")) {
				return true
			}
			rest = rest[i+len(name):]
		}
	}
	return false
}

func endsInWord(s string) bool {
	if s == "" {
		return false
	}
	c := s[len(s)-1]
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// decodesCode reports a text that makes code out of something unreadable and runs it.
func decodesCode(text string) bool {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "re.compile(", ""), ".exec(", "") // patterns
	return (spelled(text) || ContainsAny(text, "b64decode", "b32decode", "base64", "fromhex", "unhexlify", "a2b_", "rot13", "rot_13", "decompress", "gzinflate", "gzuncompress", "atob(", "unpack", "marshal", "fromCharCode",
		"hex2bin", "[::-1]", ".reverse", "strrev", "chr(", "(chr", "reverse(", "pack(", "codecs.", "fromCodePoint", "charCodeAt")) &&
		(evaluates(text) || ContainsAny(text, "exec(", "exec ", "eval(", "eval ", "eval{", "compile(", "system", "popen", "spawn", "execSync", "Function(", "__import__", "getattr(", "instance_eval", "assert(", "passthru", "shell_exec", "subprocess", "child_process", "os.execute", "loadstring"))
}

// spelled reports numbers that spell a word, as in bytes([114, 109, 32]): three or more in a row, letters for the
// most part.
func spelled(text string) bool {
	row, letters, n, digits := 0, 0, 0, 0
	for i := 0; i <= len(text); i++ {
		c := byte(';')
		if i < len(text) {
			c = text[i]
		}
		switch {
		case c >= '0' && c <= '9' && digits < 4:
			n, digits = n*10+int(c-'0'), digits+1
			continue
		case digits > 0 && n >= ' ' && n < 127:
			row++
			if n >= 'a' && n <= 'z' || n >= 'A' && n <= 'Z' {
				letters++
			}
		case digits > 0:
			row, letters = 0, 0
		}
		if row >= 3 && letters*2 >= row {
			return true
		}
		if digits = 0; strings.IndexByte(", \t\n", c) < 0 {
			row, letters = 0, 0
		}
		n = 0
	}
	return false
}

// evaluates reports a text that runs a text.
func evaluates(text string) bool {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "re.compile(", ""), ".exec(", "") // patterns
	for _, name := range [...]string{"exec(", "eval(", "execfile(", "compile(", "load(", "loadstring(", "dofile("} {
		if i := strings.Index(text, name); i >= 0 && !endsInWord(text[:i]) && !strings.HasSuffix(text[:i], ".") {
			return true
		}
	}
	return ContainsAny(text, "eval ", "eval{", "Function(", "runpy", "instance_eval", "class_eval", "\"eval\"", "'eval'", "vm.run", "process.binding", "_linkedBinding")
}

// connects reports a text that speaks to a server by a library that is there for it.
func connects(text string) bool {
	return ContainsAny(text, "urlopen(", "urlretrieve(", "requests.get(", "requests.post(", "requests.put(", "requests.request(", "httpx.", "aiohttp", "http.client", "fetch(", "http.get(", "https.get(", "http.request(", "https.request(", "axios",
		"Net::HTTP", "URI.open", "LWP::", "HTTP::Tiny", "curl_init", "file_get_contents(\"http", "file_get_contents('http", "smtplib", "ftplib", "paramiko") ||
		ContainsAny(text, "request(", ").get(", ".connect(", "onnection(", "createSocket(") && slices.ContainsFunc(Literals(text), func(lit string) bool {
			return slices.Contains([]string{"http", "https", "http2", "net", "tls", "dgram", "undici"}, strings.TrimPrefix(lit, "node:"))
		})
}

// runsInput reports a text that runs what it is handed, reads or fetches.
func runsInput(text string) bool {
	if ContainsAny(text, "process.binding", "_linkedBinding", "run_path", "run_module") {
		return true
	}
	if ContainsAny(text, "include", "require") && ContainsAny(text, "include \"http", "include 'http", "include(\"http", "include('http", "require \"http", "require('http:", "require(\"http:") {
		return true
	}
	return evaluates(text) && ContainsAny(text, "argv", "ARGV", "stdin", "STDIN", "http", "urlopen", "read", "<STDIN>", "input(")
}

// changesOutside reports a text that ends processes, or changes something in a database or
// at a service.
func changesOutside(text string) bool {
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(text, "kill") && ContainsAny(text, "kill(-1", "kill(9,-1", "kill(9, -1", "KILL, -1", "KILL,-1", "KILL\", -1", "KILL', -1", "KILL',-1"), strings.Contains(text, "keyring."), strings.Contains(text, "netrc.netrc"), strings.Contains(text, "get_credentials"):
		return true
	case ContainsAny(lower, "drop table", "drop database", "drop schema", "truncate table", "delete from", "flushall", "flushdb", "dropdatabase", "deletemany"):
		return ContainsAny(lower, "execute", "query", "connect", "redis", "mongo", ".run(", "exec(", "client")
	}
	return ContainsAny(lower, "boto3", "google.cloud", "azure.", "kubernetes", "requests.", "httpx.", "axios", "aws-sdk", "octokit") &&
		ContainsAny(lower, ".delete", "delete_", "terminate_", ".post(", ".put(", ".patch(", "put_object", "upload_", "create_", "purge_")
}

// forks reports a text that starts processes without an end.
func forks(text string) bool {
	return strings.Contains(text, "fork") && ContainsAny(text, "while", "for(;;)", "for (;;)", "loop", "until")
}

func ContainsAny(text string, signs ...string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}

// Builds reports tools that make a program out of files of the workspace: what they
// write is code of the workspace, as what they read is.
func Builds(s *Step) bool {
	switch s.Call.Tool {
	case "go", "gcc", "g++", "cc", "clang", "rustc", "cargo", "javac", "ld", "make", "cmake", "ninja", "tsc", "bun", "deno", "esbuild",
		"zig", "ghc", "nim", "swift", "crystal", "dart", "dotnet", "stack", "cabal", "dune", "meson", "mvn", "gradle", "webpack", "rollup":
		return true
	}
	return false
}

// KeepsContent reports tools that change a file but not what is in it.
func KeepsContent(s *Step) bool {
	switch s.Call.Tool {
	case "chmod", "chown", "chgrp", "touch", "setfacl", "chattr", "chcon", "setfattr":
		return true
	}
	return false
}

// ShellArgv starts a shell that reads no start-up file and ignores what the
// environment would have it do (-p: ENV, BASH_ENV, SHELLOPTS, exported functions).
func ShellArgv(path string, d shelltext.Dialect, text string) []string {
	if d == shelltext.Bash {
		return []string{path, "--noprofile", "--norc", "-p", "-c", text}
	}
	return []string{path, "-c", text}
}

// OnlyLogin reports that of the start-up files a shell reads only those of a login,
// which no child can write.
func OnlyLogin(s *Step) bool {
	for _, o := range s.Call.Options {
		switch o.Name {
		case "i", "rcfile", "init-file":
			return false
		}
	}
	return true
}

// ChangesReading reports options of a shell under which words mean something else.
func ChangesReading(s *Step) bool {
	for _, o := range s.Call.Options {
		switch o.Name {
		case "O":
			switch o.Value {
			case "extglob", "globstar", "nullglob", "failglob", "dotglob", "nocaseglob", "inherit_errexit":
			default:
				return true
			}
		case "o":
			switch o.Value {
			case "errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber":
			default:
				return true
			}
		case "k", "T", "P", "a", "D", "debugger", "posix":
			return true
		}
	}
	return false
}

func IsShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "rbash":
		return true
	}
	return false
}

// DialectOf is the language of the shell that a step starts. One that reads other
// languages is opaque.
func DialectOf(s *Step) (shelltext.Dialect, bool) {
	name := filepath.Base(s.ID.Canonical)
	if s.Call.Provenance.Source == OwnSource {
		return shelltext.Bash, true
	}
	if s.Missing != nil || s.ID.Canonical == "" || !IsShell(name) {
		name = s.ID.Effective
	}
	switch name {
	case "bash", "rbash":
		return shelltext.Bash, true
	case "sh", "dash", "ash", "busybox":
		return shelltext.POSIX, true
	case "ksh", "mksh":
		return shelltext.Mksh, true
	case "zsh", "fish", "csh", "tcsh", "pwsh", "nu", "xonsh", "elvish":
		return 0, false
	}
	// A program that hands a text to the system's shell.
	if real, err := filepath.EvalSymlinks("/bin/sh"); err == nil && filepath.Base(real) == "bash" {
		return shelltext.Bash, true
	}
	return shelltext.POSIX, true
}

// Ordinary reports whether a variable is one that people set. What the shell itself
// keeps is not in doubt.
func Ordinary(name string) bool {
	switch name {
	case "IFS", "OLDPWD", "OPTARG", "OPTIND", "REPLY", "LINENO", "SECONDS", "COLUMNS", "LINES", "GLOBIGNORE", "CDPATH", "HISTFILE", "FUNCNAME", "PIPESTATUS",
		"MAPFILE", "COPROC", "DIRSTACK", "GROUPS", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "PPID", "UID", "EUID", "SHLVL", "TERM", "LANG", "USER", "LOGNAME", "SHELL", "PWD", "HOME":
		return false
	}
	return len(name) < 5 || name[:5] != "BASH_"
}

// OwnProcesses reports whether kill names jobs and processes of its own shell only. An empty word, of a
// variable that holds none, is an error of kill.
func OwnProcesses(argv []string) bool {
	words := argv[1:]
	if len(words) > 0 && (words[0] == "-s" || words[0] == "-n") {
		words = words[min(2, len(words)):]
	} else if len(words) > 1 && strings.HasPrefix(words[0], "-") && words[0] != "--" {
		words = words[1:] // the signal; what follows with a dash is a group, or everybody
		if strings.HasPrefix(argv[1], "-l") || strings.HasPrefix(argv[1], "-L") {
			return true
		}
	}
	for i, w := range words {
		if w != "" && !strings.HasPrefix(w, "%") && !(i == 0 && (w == "--" || len(argv) == 2 && strings.HasPrefix(w, "-"))) {
			return false
		}
	}
	return true
}

func HarmlessFile(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero":
		return true
	}
	return strings.HasPrefix(path, "/dev/fd/")
}

// PackageNames lists the scripts a call runs, the one it names first, and the words
// that are appended to that one.
func PackageNames(s *Step) (names, args []string) {
	var words []string
	for _, p := range s.Call.Positionals {
		words = append(words, p.Value)
	}
	verb := ""
	if len(s.Call.Path) > 0 {
		verb = s.Call.Path[0]
	}
	switch verb {
	case "run":
	case "test", "start", "stop", "restart":
		words = append([]string{verb}, words...)
	case "install", "ci", "add":
		return []string{"install", "preinstall", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"}, nil
	case "publish", "pack":
		return []string{"prepack", "prepare", "prepublishOnly", "postpack", "publish", "postpublish"}, nil
	case "":
		if s.Call.Tool == "npm" {
			return nil, nil // of the others `yarn build` is `yarn run build`
		}
	default:
		return nil, nil
	}
	if len(words) == 0 || strings.IndexByte(words[0], 0) >= 0 {
		return nil, nil
	}
	for _, w := range words[1:] {
		if strings.IndexByte(w, 0) < 0 {
			args = append(args, w)
		}
	}
	return []string{words[0], "pre" + words[0], "post" + words[0]}, args
}

// RunsModule reports "go run MODULE@VERSION": what is run is not in the workspace.
func RunsModule(s *Step) bool {
	return s.Call.Tool == "go" && len(s.Call.Path) == 1 && s.Call.Path[0] == "run" && len(s.Call.Positionals) > 0 && strings.Contains(s.Call.Positionals[0].Value, "@")
}

// ScriptArgs are the words that a script gets: those behind its name.
func ScriptArgs(s *Step, path string) (args []string, unknown bool) {
	at := -1
	for i, w := range s.Argv {
		if i == 0 && s.ID.Canonical == path || filepath.Clean(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), w)) == path {
			at = i
			break
		}
	}
	if at < 0 || HasHole(s.Argv[at+1:]) {
		return nil, true
	}
	return s.Argv[at+1:], false
}

// PythonModule is the command that `python -m NAME …` runs, where the module is a package
// manager with metadata of its own; nil for any other. What it may do is said there
// better than by "some code".
func PythonModule(s *Step, n atip.Nested) []string {
	if n.Language != "python-module" {
		return nil
	}
	switch n.Text {
	case "pip", "pip3", "pipx", "poetry", "uv", "twine", "ansible", "alembic", "awscli", "flit":
	default:
		return nil
	}
	for i, w := range s.Argv {
		if w == n.Text && i > 0 || w == "-m"+n.Text {
			return append([]string{n.Text}, s.Argv[i+1:]...)
		}
	}
	return nil
}

// FetchedCode reports a program that is named by where it is fetched from.
func FetchedCode(s *Step, n atip.Nested) bool {
	name := n.File
	if name == "" && len(s.Call.Positionals) > 0 {
		switch s.Call.Tool {
		case "deno", "bun", "tsx", "node":
			name = s.Call.Positionals[0].Value
		}
	}
	for _, scheme := range [...]string{"http:", "https:", "npm:", "jsr:", "data:", "git:", "github:"} {
		if strings.HasPrefix(name, scheme) {
			if scheme != "data:" {
				s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
			}
			return true
		}
	}
	return false
}

// LimitOf says why a signature of the step's program says nothing of what it runs, "" if its words
// name no code: that of a project is weighed by itself.
func LimitOf(s *Step) string {
	for _, n := range s.Call.Nested {
		switch {
		case FetchedCode(s, n):
			return trust.CapFetchesCode
		case n.Kind == "code" && n.Language != "project" && (n.Text != "" || n.File != ""):
			return trust.CapCodeArgument
		}
	}
	switch s.Call.Tool {
	case "npx", "bunx", "uvx", "pipx":
		if s.Call.Effects[atip.ExecOpaque].Value == atip.Yes {
			return trust.CapFetchesCode
		}
	}
	return ""
}

// OnlyHelp reports a curated tool that is asked for its help or version, or for the help
// of one of its commands, and nothing else: that much is common to all of them, whatever
// else they do. Of a tool of the system that nothing is known of, the kernel holds it to that.
func OnlyHelp(s *Step) bool {
	last := len(s.Argv) - 1
	unknown := s.Call.Provenance.Channel == "none" && s.ID.SystemPath && last == 1
	if last < 1 || !unknown && (s.Call.Provenance.Channel != "builtin" || s.Call.Provenance.Rank < atip.Org) {
		return false
	}
	switch s.Call.Tool {
	case "echo", "printf", "xargs", "parallel":
		return false // to these it is a word like others
	}
	if last > 1 {
		// Only the words of the command stand before it, and it is none that starts another.
		return s.Argv[last] == "--help" && len(s.Call.Path) == last-1 && len(s.Call.Positionals) == 0 && len(s.Call.Nested) == 0 && len(s.Call.AltPaths) == 0 &&
			!slices.ContainsFunc(s.Argv[1:last], func(w string) bool { return w == "" || w[0] == '-' })
	}
	return s.Argv[1] == "--help" || s.Argv[1] == "--version"
}

// HarmlessHelp is the call of a tool that prints its help. It may start a program for that if it
// starts any: git has man show it.
func HarmlessHelp(call *atip.Call) {
	starts := call.Effects[atip.Subprocess]
	for e := range call.Effects {
		call.Effects[e] = Harmless(atip.Effect(e), "help")
	}
	call.Effects[atip.Subprocess] = starts
	call.Effects[atip.Read].Value = atip.Yes
	call.Nested, call.CodeFiles, call.Resources = nil, nil, []atip.Resource{}
	call.Exactness = atip.Exact
}
