package step

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/shell"
)

// ShellArgv starts a shell that reads no start-up file and ignores what the
// environment would have it do (-p: ENV, BASH_ENV, SHELLOPTS, exported functions).
func ShellArgv(path string, d shell.Dialect, text string) []string {
	if d == shell.Bash {
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
func DialectOf(s *Step) (shell.Dialect, bool) {
	name := filepath.Base(s.ID.Canonical)
	if s.Call.Provenance.Source == OwnSource {
		return shell.Bash, true
	}
	if s.Missing != nil || s.ID.Canonical == "" || !IsShell(name) {
		name = s.ID.Effective
	}
	switch name {
	case "bash", "rbash":
		return shell.Bash, true
	case "sh", "dash", "ash", "busybox":
		return shell.POSIX, true
	case "ksh", "mksh":
		return shell.Mksh, true
	case "zsh", "fish", "csh", "tcsh", "pwsh", "nu", "xonsh", "elvish":
		return 0, false
	}
	// A program that hands a text to the system's shell.
	if real, err := filepath.EvalSymlinks("/bin/sh"); err == nil && filepath.Base(real) == "bash" {
		return shell.Bash, true
	}
	return shell.POSIX, true
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

// OwnProcesses reports whether kill names jobs and processes of its own shell only.
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
		if !strings.HasPrefix(w, "%") && !(i == 0 && (w == "--" || len(argv) == 2 && strings.HasPrefix(w, "-"))) {
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
