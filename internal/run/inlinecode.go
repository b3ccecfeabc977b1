package run

import "strings"

// raises reports whether a program text that an interpreter is handed names what a
// person should see first: it removes files, or talks to others. The text is not read
// as a program, so this can only make a decision stricter; what holds the code is the
// kernel.
func raises(text string) bool {
	for _, sign := range [...]string{
		"rmtree", "os.remove", "os.unlink", "removedirs", ".unlink(", "rmdir", "rmSync", "rm_rf", "rm_r", "unlinkSync", "unlink ", "unlink(", "File.delete", "FileUtils.rm", "fs.rm", "Deno.remove", "os.truncate",
		"socket", "urllib", "urlopen", "requests.", "http.client", "httpx", "aiohttp", "ftplib", "smtplib", "paramiko", "fetch(", "axios", "http.get", "https.get", "net.connect", "net.Socket",
		"XMLHttpRequest", "Net::HTTP", "LWP::", "TCPSocket", "fsockopen", "curl_exec", "open-uri", "file_get_contents('http", "file_get_contents(\"http",
	} {
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
	case "go", "gcc", "g++", "cc", "clang", "rustc", "cargo", "javac", "ld", "make", "cmake", "ninja", "tsc", "bun", "deno", "esbuild":
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
