package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/tty"
)

// isShellName reports whether the program was started under a name by which callers
// start a shell; a login shell has a dash in front.
func isShellName(argv0 string) (name string, ok bool) {
	name = strings.TrimPrefix(strings.TrimSuffix(filepath.Base(argv0), exeSuffix), "-")
	switch name {
	case "atip-sh", "bash", "sh", "zsh":
		return name, true
	}
	return "", false
}

// asShell runs what a shell of this name would run. Flags of ours cannot stand on such a
// command line; policy and output mode come from files and the environment.
func (c *Console) asShell(name string, args []string) int {
	v, err := Parse(Root(), nil, os.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	c.Apply(v)
	inv, err := invocation(v)
	if err == nil {
		err = shellLine(&inv, name, args, tty.IsTerminal(os.Stdin.Fd()))
	}
	if err != nil {
		run.ReportUsage("", args, fault.From(err))
		return c.Fail(err)
	}
	return c.run(inv)
}

// shellLine reads the command line of a shell into an invocation: bash(1), less what
// would need a prompt or a start-up file.
func shellLine(inv *run.Invocation, name string, args []string, terminal bool) error {
	command, stdin := false, false
	i := 0
options:
	for ; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--" || word == "-":
			i++
			break options
		case len(word) < 2 || word[0] != '-' && word[0] != '+':
			break options
		case strings.HasPrefix(word, "--"):
			switch word {
			case "--login", "--noprofile", "--norc", "--noediting":
				// There are no start-up files here and there is no line to edit.
			case "--rcfile", "--init-file":
				i++
			case "--posix":
				inv.ShellSet = append(inv.ShellSet, "-o", "posix")
			case "--version", "--help":
				inv.IsShell, inv.Shell = true, "command /bin/bash "+word
				return nil
			default:
				return badShellOption(name, word)
			}
		default:
			for _, o := range word[1:] {
				switch {
				case o == 'c' && word[0] == '-':
					command = true
				case o == 's' && word[0] == '-':
					stdin = true
				case o == 'l' || o == 'i':
				case o == 'o':
					if i++; i >= len(args) {
						return badShellOption(name, word)
					}
					if !shellOptionName(args[i]) {
						return badShellOption(name, word[:1]+"o "+args[i])
					}
					inv.ShellSet = append(inv.ShellSet, word[:1]+"o", args[i])
				case strings.ContainsRune("euxfvnabhmC", o):
					inv.ShellSet = append(inv.ShellSet, word[:1]+string(o))
				default:
					return badShellOption(name, word[:1]+string(o))
				}
			}
		}
	}
	rest := args[min(i, len(args)):]
	inv.IsShell = true
	switch {
	case command && len(rest) == 0:
		return fault.New("E1003", name+": -c needs a command").WithFix("write the command after -c", name+" -c 'git status'")
	case command:
		inv.Shell, inv.ShellArgs = rest[0], rest[1:]
	case name == "atip-sh" && !stdin && len(rest) == 1:
		inv.Shell = rest[0]
	case name == "atip-sh" && !stdin && len(rest) > 1:
		inv.IsShell, inv.Argv = false, rest
	case stdin || len(rest) == 0:
		if terminal {
			return fault.New("E1003", name+": there is no interactive shell here").WithFix("give a command or a script", name+" -c 'git status'")
		}
		inv.Script, inv.ShellArgs = "-", append([]string{name}, rest...)
	default:
		inv.Script, inv.ShellArgs = rest[0], rest
	}
	if !inv.IsShell && inv.Argv[0] == "" {
		return fault.New("E1003", "the command word is empty").WithFix("write a command", name+" git status")
	}
	return nil
}

// shellOptionName lists what -o may switch: options under which words keep the meaning
// that they are judged by.
func shellOptionName(name string) bool {
	switch name {
	case "errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber", "noexec", "allexport", "notify", "hashall", "monitor", "posix":
		return true
	}
	return false
}

func badShellOption(name, word string) error {
	return fault.New("E1001", name+": option "+word+" is not supported").With("flag", word).WithFix("use -c, -l, -s, -e, -u, -x, -f, -o pipefail and their like", name+" -lc 'git status'")
}

// script runs a file of shell commands that was read and judged as a whole.
func (c *Console) script(v *Values) int {
	inv, err := invocation(v)
	if err == nil {
		err = scriptLine(&inv, v)
	}
	if err != nil {
		run.ReportUsage(v.Get("status-file"), append([]string{"script"}, v.Rest...), fault.From(err))
		return c.Fail(err)
	}
	if v.Has("dry-run") {
		return c.dryRun(inv)
	}
	return c.run(inv)
}

func scriptLine(inv *run.Invocation, v *Values) error {
	if len(v.Rest) == 0 || v.Rest[0] == "" {
		return fault.New("E1003", "script needs a file, or - for standard input").WithFix("name the script", "atip-exec script build.sh")
	}
	inv.IsShell, inv.Argv, inv.Script, inv.ShellArgs = true, nil, v.Rest[0], v.Rest
	if inv.Script == "-" {
		if tty.IsTerminal(os.Stdin.Fd()) {
			return fault.New("E1003", "standard input is a terminal, not a script").WithFix("name a file, or pipe the script in", "atip-exec script - <build.sh")
		}
		inv.ShellArgs = append([]string{"bash"}, v.Rest[1:]...)
	}
	for _, o := range [...]string{"errexit", "nounset", "pipefail", "xtrace", "noglob"} {
		if v.Has(o) {
			inv.ShellSet = append(inv.ShellSet, "-o", o)
		}
	}
	return nil
}
