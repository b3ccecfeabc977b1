package run

import "strings"

// raises reports whether a program text that an interpreter is handed names what a
// person should see first: it removes files, or connects a program to somebody. The
// text is not read as a program, so this can only make a decision stricter. A
// connection alone is left to the kernel, which refuses it.
func raises(text string) bool {
	for _, sign := range [...]string{"rmtree", "os.remove", "os.unlink", "removedirs", ".unlink(", "rmdir", "rmSync", "rm_rf", "rm_r", "unlinkSync", "unlink ", "unlink(", "unlink;", "unlink}", "remove_tree", "File.delete",
		"FileUtils.rm", "fs.rm", "Deno.remove", "os.truncate"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return startsPrograms(text) && (strings.Contains(text, "connect") || strings.Contains(text, "Socket") || strings.Contains(text, "fsockopen"))
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
