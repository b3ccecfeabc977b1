package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// raises reports whether a program text that an interpreter is handed names what a
// person should see first: it removes files, or connects a program to somebody. The
// text is not read as a program, so this can only make a decision stricter. A
// connection alone is left to the kernel, which refuses it.
func raises(text string) bool {
	if removesFiles(text) || decodesCode(text) || runsInput(text) || forks(text) || changesOutside(text) || connects(text) {
		return true
	}
	if joined := joinedText(text); joined != text {
		// A name that is put together is one that somebody hides.
		if removesFiles(joined) && !removesFiles(text) || startsPrograms(joined) && !startsPrograms(text) || evaluates(joined) && !evaluates(text) {
			return true
		}
	}
	return startsPrograms(text) && (containsAny(text, "rm -r", "rm -f") || strings.Contains(text, "connect") || strings.Contains(text, "Socket") || strings.Contains(text, "fsockopen"))
}

// showRemoval lets a step that asks because of its text have the effect that is in it.
func (s *Step) showRemoval(text string) {
	if connects(text) {
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
	}
	if removesFiles(text) || containsAny(text, "rm -r", "rm -f") {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive} {
			s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
		}
	}
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
	return containsAny(text, "b64decode", "b32decode", "base64", "fromhex", "unhexlify", "a2b_", "rot13", "rot_13", "decompress", "gzinflate", "gzuncompress", "atob(", "unpack", "marshal", "fromCharCode",
		"hex2bin", "[::-1]", ".reverse", "strrev", "chr(", "(chr", "reverse(", "pack(", "codecs.") &&
		(evaluates(text) || containsAny(text, "exec(", "exec ", "eval(", "eval ", "eval{", "compile(", "system", "popen", "spawn", "execSync", "Function(", "__import__", "getattr(", "instance_eval", "assert(", "passthru", "shell_exec", "subprocess", "os.execute", "loadstring"))
}

// evaluates reports a text that runs a text.
func evaluates(text string) bool {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "re.compile(", ""), ".exec(", "") // patterns
	for _, name := range [...]string{"exec(", "eval(", "execfile(", "compile(", "load(", "loadstring(", "dofile("} {
		if i := strings.Index(text, name); i >= 0 && !endsInWord(text[:i]) && !strings.HasSuffix(text[:i], ".") {
			return true
		}
	}
	return containsAny(text, "eval ", "eval{", "Function(", "runpy", "instance_eval", "class_eval", "\"eval\"", "'eval'", "vm.run", "process.binding", "_linkedBinding")
}

// connects reports a text that speaks to a server by a library that is there for it.
func connects(text string) bool {
	return containsAny(text, "urlopen(", "urlretrieve(", "requests.get(", "requests.post(", "requests.put(", "requests.request(", "httpx.", "aiohttp", "http.client", "fetch(", "http.get(", "https.get(", "http.request(", "https.request(", "axios",
		"Net::HTTP", "URI.open", "LWP::", "HTTP::Tiny", "curl_init", "file_get_contents(\"http", "file_get_contents('http", "smtplib", "ftplib", "paramiko")
}

// runsInput reports a text that runs what it is handed, reads or fetches.
func runsInput(text string) bool {
	if containsAny(text, "process.binding", "_linkedBinding", "run_path", "run_module") {
		return true
	}
	if containsAny(text, "include", "require") && containsAny(text, "include \"http", "include 'http", "include(\"http", "include('http", "require \"http", "require('http:", "require(\"http:") {
		return true
	}
	return evaluates(text) && containsAny(text, "argv", "ARGV", "stdin", "STDIN", "http", "urlopen", "read", "<STDIN>", "input(")
}

// changesOutside reports a text that ends processes, or changes something in a database or
// at a service.
func changesOutside(text string) bool {
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(text, "kill") && containsAny(text, "kill(-1", "kill(9,-1", "kill(9, -1", "KILL, -1", "KILL,-1", "KILL\", -1", "KILL', -1", "KILL',-1"), strings.Contains(text, "keyring."), strings.Contains(text, "netrc.netrc"), strings.Contains(text, "get_credentials"):
		return true
	case containsAny(lower, "drop table", "drop database", "drop schema", "truncate table", "delete from", "flushall", "flushdb", "dropdatabase", "deletemany"):
		return containsAny(lower, "execute", "query", "connect", "redis", "mongo", ".run(", ".exec(", "client")
	}
	return containsAny(lower, "boto3", "google.cloud", "azure.", "kubernetes", "requests.", "httpx.", "axios", "aws-sdk", "octokit") &&
		containsAny(lower, ".delete", "delete_", "terminate_", ".post(", ".put(", ".patch(", "put_object", "upload_", "create_", "purge_")
}

// forks reports a text that starts processes without an end.
func forks(text string) bool {
	return strings.Contains(text, "fork") && containsAny(text, "while", "for(;;)", "for (;;)", "loop", "until")
}

func containsAny(text string, signs ...string) bool {
	for _, sign := range signs {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// builds reports tools that make a program out of files of the workspace: what they
// write is code of the workspace, as what they read is.
func builds(s *Step) bool {
	switch s.Call.Tool {
	case "go", "gcc", "g++", "cc", "clang", "rustc", "cargo", "javac", "ld", "make", "cmake", "ninja", "tsc", "bun", "deno", "esbuild",
		"zig", "ghc", "nim", "swift", "crystal", "dart", "dotnet", "stack", "cabal", "dune", "meson", "mvn", "gradle", "webpack", "rollup":
		return true
	}
	return false
}

// keepsContent reports tools that change a file but not what is in it.
func keepsContent(s *Step) bool {
	switch s.Call.Tool {
	case "chmod", "chown", "chgrp", "touch", "setfacl", "chattr", "chcon", "setfattr":
		return true
	}
	return false
}
