package step

import (
	"path/filepath"
	"slices"
	"strings"
)

// OtherLanguage reports a text whose "#!" names another interpreter than a shell.
func OtherLanguage(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	program, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(program)
	return ok && len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return IsShell(filepath.Base(w)) })
}

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
	return ContainsAny(text, "HOME", "home", "expanduser", "\"~\"", "'~'")
}

// StartsPrograms reports whether a program text seems to start other programs.
func StartsPrograms(text string) bool {
	text = strings.NewReplacer("os.execute", "os.execute", ".execute", "").Replace(text) // statements for a database
	for _, sign := range [...]string{"system", "exec", "popen", "spawn", "subprocess", "child_process", "os.execute", "passthru", "proc_open", "Open3", "capture2", "capture3", "\"|", "'|", "|\"", "|'", "\"-|", "'-|", "Deno.Command", "Bun.$", "os:cmd", "open_port", "System.cmd", "Command::new", "ProcessBuilder", "qx", "%x", "`"} {
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

// ShellScript reports whether a shell would read a text: by its first line.
func ShellScript(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return !strings.HasPrefix(line, "#!")
	}
	last := words[0]
	if filepath.Base(last) == "env" {
		last = words[len(words)-1]
	}
	return IsShell(filepath.Base(last))
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
	return StartsPrograms(text) && (ContainsAny(text, "rm -r", "rm -f") || strings.Contains(text, "connect") || strings.Contains(text, "Socket") || strings.Contains(text, "fsockopen"))
}

// OnlyRemoves reports a text that raises by removing files alone, and takes their names from
// nowhere but itself.
func OnlyRemoves(text string) bool {
	return removesFiles(text) && !decodesCode(text) && !evaluates(text) && !forks(text) && !changesOutside(text) && !connects(text) && !StartsPrograms(text) && JoinedText(text) == text &&
		!NamesHome(text) && !ContainsAny(text, "environ", "getenv", "ENV", ".env", "argv", "ARGV", "argc", "@_", "stdin", "STDIN", "input(", "readline", "gets", "chdir", "__file__", "__dirname", "tmpdir", "gettempdir", "root", "chr(", "CharCode", "[::", "join", "reverse", "replace", "format", "+", "%")
}

// removesFiles reports a text that calls what removes files.
func removesFiles(text string) bool {
	for _, sign := range [...]string{"rmtree", "os.remove", "os.unlink", "removedirs", ".unlink(", "rmdir", "rmSync", "rm_rf", "rm_r", "unlinkSync", "unlink ", "unlink(", "unlink;", "unlink}", "remove_tree", "File.delete",
		"FileUtils.rm", "fs.rm", "Deno.remove", "os.truncate", "remove_dir", "remove_entry", "remove_file", "rm_f", "Dir.delete", "delete-directory", "delete-file", "file delete"} {
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
	return ContainsAny(text, "b64decode", "b32decode", "base64", "fromhex", "unhexlify", "a2b_", "rot13", "rot_13", "decompress", "gzinflate", "gzuncompress", "atob(", "unpack", "marshal", "fromCharCode",
		"hex2bin", "[::-1]", ".reverse", "strrev", "chr(", "(chr", "reverse(", "pack(", "codecs.") &&
		(evaluates(text) || ContainsAny(text, "exec(", "exec ", "eval(", "eval ", "eval{", "compile(", "system", "popen", "spawn", "execSync", "Function(", "__import__", "getattr(", "instance_eval", "assert(", "passthru", "shell_exec", "subprocess", "os.execute", "loadstring"))
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
		"Net::HTTP", "URI.open", "LWP::", "HTTP::Tiny", "curl_init", "file_get_contents(\"http", "file_get_contents('http", "smtplib", "ftplib", "paramiko")
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
		return ContainsAny(lower, "execute", "query", "connect", "redis", "mongo", ".run(", ".exec(", "client")
	}
	return ContainsAny(lower, "boto3", "google.cloud", "azure.", "kubernetes", "requests.", "httpx.", "axios", "aws-sdk", "octokit") &&
		ContainsAny(lower, ".delete", "delete_", "terminate_", ".post(", ".put(", ".patch(", "put_object", "upload_", "create_", "purge_")
}

// forks reports a text that starts processes without an end.
func forks(text string) bool {
	return strings.Contains(text, "fork") && ContainsAny(text, "while", "for(;;)", "for (;;)", "loop", "until")
}

func ContainsAny(text string, signs ...string) bool {
	for _, sign := range signs {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
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
