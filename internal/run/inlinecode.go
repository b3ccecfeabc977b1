package run

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// raises reports whether a program text that an interpreter is handed names what a
// person should see first: it removes files, or connects a program to somebody. The
// text is not read as a program, so this can only make a decision stricter. A
// connection alone is left to the kernel, which refuses it.
func raises(text string) bool {
	if removesFiles(text) {
		return true
	}
	if decodesCode(text) || forks(text) {
		return true
	}
	return startsPrograms(text) && (containsAny(text, "rm -r", "rm -f") || strings.Contains(text, "connect") || strings.Contains(text, "Socket") || strings.Contains(text, "fsockopen"))
}

// showRemoval lets a step that asks because of its text have the effect that is in it.
func (s *step) showRemoval(text string) {
	if removesFiles(text) || containsAny(text, "rm -r", "rm -f") {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive} {
			s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
		}
	}
}

// removesFiles reports a text that calls what removes files.
func removesFiles(text string) bool {
	for _, sign := range [...]string{"rmtree", "os.remove", "os.unlink", "removedirs", ".unlink(", "rmdir", "rmSync", "rm_rf", "rm_r", "unlinkSync", "unlink ", "unlink(", "unlink;", "unlink}", "remove_tree", "File.delete",
		"FileUtils.rm", "fs.rm", "Deno.remove", "os.truncate", "delete-directory", "delete-file", "file delete"} {
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
		"hex2bin", "[::-1]", ".reverse", "strrev", "chr(", "pack(", "codecs.") &&
		containsAny(text, "exec(", "exec ", "eval(", "eval ", "eval{", "compile(", "system", "popen", "spawn", "execSync", "Function(", "__import__", "getattr(", "instance_eval", "assert(", "passthru", "shell_exec", "subprocess", "os.execute", "loadstring")
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
func builds(s *step) bool {
	switch s.Call.Tool {
	case "go", "gcc", "g++", "cc", "clang", "rustc", "cargo", "javac", "ld", "make", "cmake", "ninja", "tsc", "bun", "deno", "esbuild",
		"zig", "ghc", "nim", "swift", "crystal", "dart", "dotnet", "stack", "cabal", "dune", "meson", "mvn", "gradle", "webpack", "rollup":
		return true
	}
	return false
}

// keepsContent reports tools that change a file but not what is in it.
func keepsContent(s *step) bool {
	switch s.Call.Tool {
	case "chmod", "chown", "chgrp", "touch", "setfacl", "chattr", "chcon", "setfattr":
		return true
	}
	return false
}
