package wiring

import (
	"fmt"
	"path/filepath"
	"strings"
)

// ShellFile is the file that stands for our shell, below our data directory.
func ShellFile(data string) string { return filepath.Join(data, "bin", "bash") }

// HookFile is the file that agents start before a command.
func HookFile(data string) string { return filepath.Join(data, "libexec", "hook") }

// File is one file or link that an installation needs.
type File struct {
	Path string
	Text string
	Link string // where a link leads; "" for a file
}

// shells are the names under which agents look for a shell.
var shells = [...]string{"bash", "sh", "zsh"}

// Files are what all agents share. Shell names are files and not links: a link to a program
// that was moved makes agents fall back to another shell, a file fails. timeout and head are
// absolute paths.
func Files(data, program, timeout, head string) []File {
	out := []File{{Path: HookFile(data), Text: hookText(program, timeout, head)}}
	for _, name := range shells {
		link := filepath.Join(data, "as", name)
		out = append(out, File{Path: link, Link: program},
			File{Path: filepath.Join(data, "bin", name), Text: "#!/bin/sh\n# Written by atip init: " + name + " of coding agents.\nexec " + Word(link) + " \"$@\"\n"})
	}
	return out
}

// hookText is the file that stands between an agent and our program. An answer is whole if its
// last line is the word that this call of the file made up, so that no other program's output
// and no end in the middle of one counts.
func hookText(program, timeout, head string) string {
	return fmt.Sprintf(`#!/bin/sh
# Written by atip init: a coding agent calls this before each command. It passes an answer on
# if it is whole; else it ends with 2, by which agents block.
seal=atip-$$
answer=$(%s -k 1 %d %s hook "$@" --seal "$seal" | %s -c %d)
line=${answer##*
}
body=${answer%%"$line"}
case $line in
"$seal 0") printf '%%s' "$body" && exit 0 ;;
"$seal 2") exit 2 ;;
esac
echo "atip-exec: no whole answer from %s; the command is blocked. Ask the user to run: atip init --status" >&2
exit 2
`, Word(timeout), Limit, Word(program), Word(head), 4*MaxEvent, program)
}

// Word quotes one word for a POSIX shell.
func Word(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// HookCommand is what a host is told to start.
func HookCommand(data, name string, mode Mode) string {
	return Word(HookFile(data)) + " " + strings.Join(HookWords(name, mode), " ")
}

// HookWords are the arguments of the hook file.
func HookWords(name string, mode Mode) []string {
	if mode == Shell {
		return []string{name, "--mode", "shell"}
	}
	return []string{name}
}

// Fill is the value of an edit in the settings of a host.
func (e Edit) Fill(data, name string, mode Mode) string {
	return strings.NewReplacer("$HOOK", Quoted(HookCommand(data, name, mode)), "$SHELL", Quoted(ShellFile(data))).Replace(e.Value)
}

// Ours reports whether a value of a settings file leads to the files of an installation.
func Ours(data, compact string) bool {
	hook, shell := Quoted(HookFile(data)), Quoted(ShellFile(data))
	return strings.Contains(compact, hook[1:len(hook)-1]) || strings.Contains(compact, shell)
}
