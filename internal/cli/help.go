package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/fault"
)

// Help renders the help of one verb from its spec.
func Help(s Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s\n", upperFirst(s.Summary), usageLine(s))
	if s.Verb == "" {
		b.WriteString("       atip-exec -c STRING [NAME ARGS…]\n       atip-exec VERB …\n")
	}
	if s.Long != "" {
		b.WriteString("\n" + wrap(s.Long, 0) + "\n")
	}
	if s.Verb == "" {
		b.WriteString(VerbList(""))
	}
	b.WriteString("\nFlags:\n")
	for _, f := range s.Flags {
		b.WriteString(flagLine(f))
	}
	if len(s.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range s.Examples {
			if e.Help == "" {
				fmt.Fprintf(&b, "  %s\n", e.Line)
			} else {
				fmt.Fprintf(&b, "  %-42s # %s\n", e.Line, e.Help)
			}
		}
	}
	if s.Verb == "" {
		b.WriteString("\nThe exit status is the command's own. Statuses of atip-exec itself: `atip-exec help exit-codes`.\n")
	}
	return b.String()
}

func usageLine(s Spec) string {
	words := []string{s.Program}
	if s.Verb != "" {
		words = append(words, s.Verb)
	}
	words = append(words, "[flags]")
	if s.Stops {
		words = append(words, "[--]")
	}
	for _, a := range s.Args {
		w := a.Name
		if a.Variadic {
			w += "…"
		}
		if a.Optional {
			w = "[" + w + "]"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func flagLine(f Flag) string {
	head := "    "
	if f.Short != 0 {
		head = "-" + string(f.Short) + ", "
	}
	head += "--" + f.Name
	if f.takesValue() {
		value := f.Value
		if f.Kind == Enum {
			value = strings.Join(f.Enum, "|")
		}
		head += " " + value
	}
	help := f.Help
	if f.Env != "" {
		help += " [$" + f.Env + "]"
	}
	const indent = 29
	help = wrap(help, indent)
	if len(head) > 26 {
		return fmt.Sprintf("  %s\n%*s%s\n", head, indent, "", help)
	}
	return fmt.Sprintf("  %-26s %s\n", head, help)
}

// VerbList lists the verbs of a program, or of both, below their headings.
func VerbList(program string) string {
	var b strings.Builder
	specs := Specs()
	for group := groupRun; group < groupEnd; group++ {
		fmt.Fprintf(&b, "\n%s:\n", groupTitles[group])
		for _, s := range specs {
			if s.Group == group && (program == "" || s.Program == program) {
				fmt.Fprintf(&b, "  %-13s %s\n", s.Verb, s.Summary)
			}
		}
	}
	return b.String()
}

// columns is the widest line of a help text.
const columns = 100

// wrap breaks text, which begins at column indent, before the last column.
func wrap(text string, indent int) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			fmt.Fprintf(&b, "\n%*s", indent, "")
		}
		at := indent
		for j, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case j == 0:
			case at+1+n > columns:
				fmt.Fprintf(&b, "\n%*s", indent, "")
				at = indent
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
	}
	return b.String()
}

// Topic renders `help TOPIC`.
func Topic(name string) (string, bool) {
	switch name {
	case "exit-codes":
		return exitCodes(), true
	case "environment":
		return environmentTopic(), true
	case "output":
		return outputTopic, true
	case "agents":
		return agentsTopic, true
	case "files":
		return filesTopic, true
	}
	return "", false
}

func exitCodes() string {
	var b strings.Builder
	b.WriteString("The exit status of a command passes through untouched; 128+n if signal n ended it.\n" +
		"A failure of atip-exec itself writes a code on stderr and in the status file:\n\n")
	for _, r := range fault.Rows() {
		fmt.Fprintf(&b, "  %s  %3d  %s\n", r.Code, r.Exit, r.Title)
	}
	return b.String()
}

// ExitCodesMarkdown is docs/exit-codes.md, generated from the table.
func ExitCodesMarkdown() string {
	var b strings.Builder
	b.WriteString("# Exit statuses and error codes\n\n" +
		"Generated from the table in `internal/fault`; do not edit.\n\n" +
		"The exit status of a command passes through untouched; 128+n if signal n ended it. A failure of atip-exec itself\n" +
		"is told apart by `error.origin`, by the status file and by these codes. A status of 0 is the child's: the code is a note.\n\n" +
		"| code | exit | category | retry | meaning | next step |\n|---|---|---|---|---|---|\n")
	for _, r := range fault.Rows() {
		retry := "no"
		if r.Retryable {
			retry = "yes"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |\n", r.Code, r.Exit, r.Category(), retry, r.Title, strings.ReplaceAll(r.Fix, "|", "\\|"))
	}
	return b.String()
}

func environmentTopic() string {
	var b strings.Builder
	b.WriteString("Variables that atip-exec reads:\n\n")
	seen := map[string]bool{}
	for _, s := range Specs() {
		for _, f := range s.Flags {
			if f.Env != "" && !seen[f.Env] {
				seen[f.Env] = true
				fmt.Fprintf(&b, "  %-22s as --%s\n", f.Env, f.Name)
			}
		}
	}
	for _, row := range [][2]string{
		{"NO_COLOR, CLICOLOR_FORCE", "colour"},
		{"XDG_CONFIG_HOME", "policy.json and overrides, below agent-tools/"},
		{"XDG_DATA_HOME", "shims and tools, below agent-tools/"},
		{"XDG_STATE_HOME", "audit records and caches, below atip-exec/"},
		{"XDG_CACHE_HOME", "private temporary and cache directories, below atip-exec/"},
		{"ATIP_SESSION_ID", "label of the session in audit records; no authority"},
		{"ATIP_AGENT_ID", "label of the agent in audit records; no authority"},
	} {
		fmt.Fprintf(&b, "  %-22s %s\n", row[0], row[1])
	}
	b.WriteString("\nNo variable turns confinement, redaction or policy off.\n")
	return b.String()
}

const outputTopic = `Running a command:
  auto, text   its bytes pass through; atip-exec writes on stderr only
  json         one envelope at the end: {"ok","result":{"exit_code","stdout","stderr",…},"meta"}
  jsonl        one event a line: start, stdout, stderr, note, exit or error
Verbs of atip-exec and atip:
  auto         text on a terminal, one JSON document elsewhere
Errors go to stderr: one line for people on a terminal, one JSON line elsewhere.
`

const agentsTopic = `For an agent that runs commands through atip-exec:

  Write atip-exec -- before a command. Pass a shell string to atip-exec -c and a script to
  atip-exec script FILE. Under the name bash, sh, zsh or atip-sh the program takes the command line
  of a shell.
  Exit status, output and signals are those of the command. A failure of atip-exec is one JSON line
  on stderr with "origin":"atip-exec", a code and a next step.
  Exit status 77 means that nothing ran. E2001: policy denies the command. E2010: approval is
  required, and the user has been asked. Choose another way, or tell the user what you need and go
  on with another task. Do not run the same command again.
  atip-exec explain -- CMD prints the decision and its reasons. --dry-run returns the exit status
  that a refused run would have.
  A run can write only the workspace and $TMPDIR. It has no network unless the tool was granted it.
`

const filesTopic = `  $XDG_CONFIG_HOME/agent-tools/policy.json       your policy
  .agent-tools/policy.json                       policy of a project; it can only tighten
  /etc/agent-tools/policy.json                   policy of the machine
  $XDG_CONFIG_HOME/agent-tools/overrides/sha256/ metadata you wrote for one binary
  $XDG_DATA_HOME/agent-tools/shims/              metadata: sha256/HEX.json, NAME.json
  $XDG_STATE_HOME/atip-exec/audit/               audit records, one file a day
  $XDG_STATE_HOME/atip-exec/digest/              digests of executables
  $XDG_STATE_HOME/atip-exec/index/               where the commands of large documents stand
  $XDG_CONFIG_HOME/agent-tools/patterns/         command sequences that "atip pattern run" may run
  $XDG_CACHE_HOME/atip-exec/ws/                  private TMPDIR and caches of workspaces
No command run through atip-exec can write to any of these but the last.
`

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
