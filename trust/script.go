package trust

import (
	"bytes"
	"path/filepath"
	"slices"
)

// Scripts says how a script is started that somebody could swap between its
// identification and the moment at which its interpreter opens it.
type Scripts uint8

// The values of Scripts. By descriptor the interpreter opens what was identified,
// whatever the path leads to by then; but the script then finds /proc/self/fd/N in $0.
const (
	ScriptsAuto       Scripts = iota // by descriptor where the script cannot tell
	ScriptsPath                      // by path, compared before and after the start
	ScriptsDescriptor                // by descriptor
)

// ScriptsByName reads "trust.scripts"; any other name is ScriptsAuto.
func ScriptsByName(name string) Scripts {
	switch name {
	case "path":
		return ScriptsPath
	case "descriptor":
		return ScriptsDescriptor
	}
	return ScriptsAuto
}

// maxScriptLook bounds the text that is searched for a name of the script itself.
const maxScriptLook = 64 << 10

// ownNames lists, for each interpreter that reads its script by the name it is handed, how a
// script asks what it is called or where it lies. An interpreter that is missing here
// either resolves the name first, as node does, or is not known well enough.
func ownNames() map[string][]string {
	shell := []string{"$0", "${0", "BASH_SOURCE", "BASH_ARGV", "$_", "${_", "caller", "(%", "FUNCNAME", "funcfiletrace", "/proc/", "eval"}
	python := []string{"__file__", "argv", "__spec__", "__main__", "inspect", "multiprocessing", "concurrent", "argparse", "optparse", "click", "traceback", "/proc/", "exec(", "eval("}
	return map[string][]string{
		"sh": shell, "bash": shell, "dash": shell, "ash": shell, "ksh": shell, "mksh": shell,
		"python": python, "python3": python,
		"perl": {"$0", "__FILE__", "FindBin", "PROGRAM_NAME", "caller", "/proc/", "eval"},
		"ruby": {"$0", "__FILE__", "__dir__", "PROGRAM_NAME", "require_relative", "caller", "/proc/", "eval"},
	}
}

// scriptByDescriptor decides how script starts: by default by descriptor if nothing in its
// text asks for its own name. The text is that of the held file.
func (b *builder) scriptByDescriptor(script *held) bool {
	switch b.o.Scripts {
	case ScriptsPath:
		return false
	case ScriptsDescriptor:
		return true
	}
	// What a version manager's shim will start has read nothing of the shim.
	reader := slices.IndexFunc(b.parts, func(h *held) bool { return h.role == RoleTarget })
	if reader < 0 {
		reader = len(b.parts)
	}
	names, known := ownNames()[interpreterName(filepath.Base(b.parts[reader-1].path))]
	if !known || script.st.size > maxScriptLook {
		return false
	}
	text := make([]byte, script.st.size)
	if script.readAt(text) != len(text) {
		return false
	}
	for _, name := range names {
		if bytes.Contains(text, []byte(name)) {
			return false
		}
	}
	return true
}

// interpreterName leaves out a version: python3.13 is python3.
func interpreterName(base string) string {
	for i := len(base); i > 0; i-- {
		if c := base[i-1]; c != '.' && (c < '0' || c > '9') {
			if base[:i] == "python" && i < len(base) && base[i] == '3' {
				return "python3"
			}
			return base[:i]
		}
	}
	return base
}
