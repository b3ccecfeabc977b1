// Package completions holds the completion scripts of the shells, and what they ask: the words
// that can follow, of our own verbs and of wrapped tools.
package completions

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// The scripts. They know no verb and no flag: what can follow is asked of `atip __complete`.
//
//go:embed completion.bash completion.zsh completion.fish completion.ps1
var scripts embed.FS

// Verb prints what a shell reads to complete our command lines. The wrapped command is
// completed by its metadata, or by what the shell knows of it; no tool is started.
func Verb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "completion needs the name of one shell").WithFix("name bash, zsh, fish or powershell", "atip completion bash")
	}
	shell := v.Rest[0]
	ending := map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"}[shell]
	if ending == "" {
		return 0, fault.New(errcode.Arguments, fmt.Sprintf("completion: there is none for %q", shell)).WithFix("name bash, zsh, fish or powershell", "atip completion bash")
	}
	script, err := scripts.ReadFile("completion." + ending)
	if err != nil {
		return 0, err
	}
	return 0, c.Text(string(script))
}

// offer is what completes one word.
type offer struct {
	kind  offerKind
	words []string  // of offerWords
	what  cli.Offer // of offerAsked
}

type offerKind uint8

const (
	offerNothing offerKind = iota
	offerWords
	offerFiles
	offerDirs
	offerTools    // names of programs
	offerCommand  // a command with its arguments, to the end of the line
	offerAsked    // what `atip __complete` prints
	offerVerb     // a verb
	offerVerbOrIt // a verb, or a command to the end of the line
)

// Valued reports a flag that takes a value.
func Valued(f cli.Flag) bool { return f.Kind != cli.Bool && f.Kind != cli.Count }

// offerOf is what completes the value of a flag.
func offerOf(f cli.Flag) offer {
	switch {
	case f.Offer != "":
		return offer{kind: offerAsked, what: f.Offer}
	case f.Kind == cli.Enum:
		return offer{kind: offerWords, words: f.Enum}
	case f.Value == "DIR":
		return offer{kind: offerDirs}
	case f.Kind == cli.Path, f.Value == "FILE":
		return offer{kind: offerFiles}
	}
	return offer{}
}

// offerAt is what completes the n-th word of a verb.
func offerAt(s cli.Spec, n int) offer {
	if s.Verb == "" {
		return offer{kind: offerVerbOrIt}
	}
	if len(s.Args) == 0 {
		return offer{}
	}
	if n >= len(s.Args) {
		if n = len(s.Args) - 1; !s.Args[n].Variadic {
			return offer{}
		}
	}
	if what := s.Args[n].Offer; what != "" {
		return offer{kind: offerAsked, what: what}
	}
	name := s.Args[n].Name
	switch parts := strings.Split(name, "|"); {
	case name == strings.ToLower(name):
		return offer{kind: offerWords, words: parts}
	case s.Stops && n == 0 && parts[0] == "CMD":
		return offer{kind: offerCommand}
	case parts[0] == "TOOL" || parts[0] == "CMD" && n == 0:
		return offer{kind: offerTools}
	case name == "DIR":
		return offer{kind: offerDirs}
	case slices.ContainsFunc(parts, func(p string) bool { return slices.Contains([]string{"FILE", "DIR", "PATH", "OLD", "NEW"}, p) }),
		s.Stops: // what follows a script
		return offer{kind: offerFiles}
	case s.Verb == "help":
		return offer{kind: offerVerb}
	}
	return offer{}
}

// takesCommand reports a verb that has a command behind "--".
func takesCommand(s cli.Spec) bool {
	return slices.ContainsFunc(s.Args, func(a cli.Arg) bool { return strings.HasPrefix(a.Name, "CMD") })
}

// spellings are the ways to write a flag.
func spellings(f cli.Flag) []string {
	if f.Short != 0 {
		return []string{"--" + f.Name, "-" + string(f.Short)}
	}
	return []string{"--" + f.Name}
}

// verbNames lists the verbs that a program takes; atip-exec takes all.
func verbNames(specs []cli.Spec, program string) []string {
	var names []string
	for _, s := range specs {
		if s.Verb != "" && (program == "atip-exec" || s.Program == program) {
			names = append(names, s.Verb)
		}
	}
	slices.Sort(names)
	return names
}

// summaryOf is a text that fits beside a word.
func summaryOf(text string) string {
	text, _, _ = strings.Cut(text, ";")
	text = strings.ReplaceAll(text, "`", "")
	if runes := []rune(text); len(runes) > 70 {
		text = string(runes[:69]) + "…"
	}
	return text
}
