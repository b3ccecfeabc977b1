// Package shell reads a shell string: it lists every command the string can run,
// with its words folded as far as they are constant, and the flows of data between
// them. It starts nothing and guesses nothing: what it cannot read it says so.
package shell

import (
	"strings"

	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// Hole stands in a word for text that is not known before the run. No argument of
// a process can contain it. HoleSplit after it says that the unknown text was not
// quoted: it may be no word, or several. HoleName instead is quoted text without a slash, such as what
// basename prints: beside other letters it stays in the directory in front of it.
const (
	Hole      = "\x00"
	HoleSplit = "\x00\x01"
	HoleName  = "\x00\x02"
)

// Within is the pattern of a path in which all that is not known is a part of its last name, as in
// "build/$(basename "$f").o". ok is false for any other.
func Within(path string) (pattern string, ok bool) {
	at := strings.LastIndexByte(path, '/') + 1
	dir, last := path[:at], path[at:]
	pattern = strings.ReplaceAll(last, HoleName, "*")
	// A name of dots and what is not known may be that of the directory above.
	if strings.ContainsAny(dir, "*?[\x00") || pattern == last || strings.IndexByte(pattern, 0) >= 0 || strings.Trim(pattern, "*.?[]") == "" {
		return "", false
	}
	return dir + pattern, true
}

// Options is what must be known besides the text.
type Options struct {
	Dialect shelltext.Dialect
	Cwd     string // absolute; "" if it is not known
	Home    string
	Name    string   // $0
	Args    []string // $1, $2, ...
	// ArgsUnknown: Args says nothing about the positional parameters.
	ArgsUnknown bool
	// Getenv looks up a variable as the shell will see it. known is false for one
	// whose value, or whose absence, cannot be told. nil: nothing is known.
	Getenv func(name string) (value string, set, known bool)
	// Absent reports a variable that the shell surely does not find in its environment and
	// does not set itself. It is asked about those for which the text says what holds without
	// them: ${X:-y}. nil: none.
	Absent func(name string) bool
	// IsDir reports whether an absolute path is a directory; nil: never.
	IsDir func(string) bool
	// Match lists the directories that an absolute pattern matches now; nil: nothing is known.
	Match func(pattern string) []string
	// ReadFile reads what `source` runs; nil: nothing can be read.
	ReadFile func(path string) ([]byte, error)
	// KnownPath reports whether an assignment of PATH leaves it known what runs: it names
	// directories that the caller can look names up in. Relative ones are those below cwd,
	// which is "" if it is not known. nil: never.
	KnownPath func(value, cwd string) bool
	// Trusted reports files that source may run unread; nil: none.
	Trusted func(path string) bool
	// Stdin is the whole standard input, if it is known.
	Stdin *string
	// Set are options of the shell itself, as the words of `set` that give them, such
	// as "-e" or "-o", "pipefail". They become the first command of the text.
	Set []string
	// Script: the text is that of the file Name, so BASH_SOURCE is $0 in it.
	Script bool
	// Limits are those of policy.
	Limits Limits
}

// Script is a text as read.
type Script struct {
	// Text is the printed form of the text. It is what was judged, so it is what
	// must run.
	Text     string
	Commands []Command
	Flows    []Flow
	// Simple: one external command of constant words without a redirection or an
	// assignment, so that no shell is needed to start it.
	Simple bool
	// Pipes are the constant texts behind process substitutions, by their names.
	Pipes map[string]string
}

// Kind says what a command is.
type Kind uint8

// Kinds of command. The zero value is the one nothing is known of.
const (
	Opaque   Kind = iota // it cannot be known what runs
	External             // a program
	Builtin              // of the shell, without effects but those of its redirections
)

// Command is one command that may run. A command whose words have several values
// is listed once for each.
type Command struct {
	Kind Kind
	Why  string   // why it is opaque
	Argv []string // may be empty for a redirection alone; words may hold Holes
	// Globs lists words of Argv that are unquoted patterns and begin as one: a file
	// named like an option would become one.
	Globs []string
	// Printed is the word of Argv that is all that another command prints, or a line or a word
	// of it, unchanged; 0 if there is none, or more than one. PrintedBy are the commands that do.
	Printed   int
	PrintedBy []int
	// Bounded: the words are one of several values, or their number may differ.
	Bounded    bool
	Expression bool     // of an opaque command: it is text that is evaluated as an expression
	Numbered   bool     // of an opaque command: its name is known but for digits, which stand as 0
	Cwds       []string // the directories it may run in, at most four
	CwdUnknown bool
	Background bool     // the shell goes on while it runs
	Path       []string // the values that PATH may have, if the text changed it
	CodeFile   string   // of an opaque command: it runs this file, which could not be read
	Redirects  []Redirect
	Stdin      *string  // what it reads on descriptor 0, if that is constant
	Mixed      bool     // it reads more than whole outputs of commands there
	Env        []Assign // variables that differ from the shell's own environment
	Line, Col  int
}

// Assign is a variable a command gets. Value may hold Holes.
type Assign struct{ Name, Value string }

// Redirect is a file that a command's descriptor is connected to.
type Redirect struct {
	Path  string // may hold Holes
	Read  bool
	Write bool
	Whole bool // it is all that descriptor 0 reads, or descriptor 1 writes anew
	// Content is what is written, if it is constant: the output of echo, printf or
	// a here-document.
	Content *string
}

// FlowKind says how data gets from one command to another.
type FlowKind uint8

// Kinds of flow.
const (
	FlowStdin    FlowKind = iota // through a pipe
	FlowWord                     // into an argument or a file name of its own
	FlowCode                     // into what is run: a command word, eval, source
	FlowSocket                   // a socket of the shell: /dev/tcp; From is To
	FlowForkBomb                 // the command starts itself again; From is To
)

// Flow is a flow of data; the indices are into Commands.
type Flow struct {
	From, To int
	Kind     FlowKind
}
