package trust

import (
	"strings"
	"testing"
)

// A "#!" line must be read as the kernel reads it or not at all.
func FuzzShebang(f *testing.F) {
	for _, s := range []string{"#!/bin/sh\n", "#! /usr/bin/env -S A=b python3 -u\n", "#!\n", "#!/bin/sh", "#!\t/a b  c \nrest", "#!/usr/bin/env -i\n", "#!/x\x00y\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		line, ok := parseShebang(head)
		if !ok {
			return
		}
		if line.interpreter == "" || strings.ContainsAny(line.interpreter, " \t\n\x00") || strings.Contains(line.arg, "\n") {
			t.Fatalf("%q: %+v", head, line)
		}
		if !strings.Contains(string(head), line.interpreter) || !strings.Contains(string(head), line.arg) {
			t.Fatalf("%q: invented %+v", head, line)
		}
		if name, ok := envProgram(line.arg); ok && (name == "" || name[0] == '-' || !strings.Contains(line.arg, name)) {
			t.Fatalf("%q: env program %q", head, name)
		}
	})
}

// Files of version managers come from work trees: whatever they hold, a version
// never leaves the directory of versions.
func FuzzVersions(f *testing.F) {
	f.Add("3.11\n# x\n", "[toolchain]\nchannel = \"a\"\n")
	f.Add("../..", "a='b'\n[x")
	f.Fuzz(func(t *testing.T, words, toml string) {
		for _, v := range append(versionWords(words), toolVersions(words, "nodejs")...) {
			if plainVersion(v) && (strings.Contains(v, "/") || v == "." || v == "..") {
				t.Fatalf("version %q", v)
			}
		}
		tomlString(toml, "toolchain", "channel")
		toolchainFile(toml)
		asdfShim(words)
		xenvShim(words)
	})
}
