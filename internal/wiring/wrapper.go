package wiring

import (
	"path/filepath"
	"slices"
	"strings"
)

// wrapperHead begins each wrapper, and tells it from a file of somebody else.
const wrapperHead = "#!/bin/sh\n# Written by atip shim: "

// Wrapper is the file that stands for a tool in PATH. It names the tool and not a path: the
// program leaves the directory of wrappers out when it looks for the tool.
func Wrapper(dir, program, tool string) File {
	return File{Path: filepath.Join(dir, tool), Text: wrapperHead + tool + " goes through atip-exec.\nexec " + Word(program) + " -- " + Word(tool) + " \"$@\"\n"}
}

// IsWrapper reports whether a file is one that atip shim wrote, for whichever program.
func IsWrapper(text string) bool { return strings.HasPrefix(text, wrapperHead) }

// Wrappable says why a name cannot stand for a tool, "" if it can. A shell is set for an
// agent (atip init): before everything else in PATH it would run each script.
func Wrappable(tool string) string {
	switch {
	case tool == "" || tool[0] == '-' || tool[0] == '.' || strings.Trim(tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+") != "":
		return "is no name of a tool"
	case strings.HasPrefix(tool, "atip"):
		return "is a name of this program"
	case slices.Contains(shells[:], tool) || tool == "dash" || tool == "ksh" || tool == "fish" || tool == "env":
		return "starts scripts; `atip init` sets the shell of an agent"
	}
	return ""
}
