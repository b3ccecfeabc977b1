package completions

import (
	"fmt"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
)

// FishCompletion writes the script for fish: a function that says where in the line the
// cursor is, and one line for each flag and word.
func FishCompletion(specs []cli.Spec) string {
	var b strings.Builder
	b.WriteString("# Completion of atip-exec and atip for fish, written by `atip completion fish`.\n\n")
	b.WriteString("# Flags whose value is the next word.\nfunction __atip_taking\n    switch $argv[1]\n")
	var stops, behind []string
	for _, s := range specs {
		var taking []string
		for _, f := range s.Flags {
			if Valued(f) {
				taking = append(taking, spellings(f)...)
			}
		}
		if len(taking) > 0 {
			fmt.Fprintf(&b, "        case %s\n            string match -q -- \"* $argv[2] *\" %s\n", fishQuote(s.Verb), fishQuote(" "+strings.Join(taking, " ")+" "))
		}
		if s.Verb != "" && offerAt(s, 0).kind == offerCommand {
			stops = append(stops, s.Verb)
		}
		if s.Verb != "" && takesCommand(s) {
			behind = append(behind, s.Verb)
		}
	}
	b.WriteString("        case '*'\n            false\n    end\nend\n\n")
	b.WriteString(strings.NewReplacer(
		"@ALL@", strings.Join(verbNames(specs, "atip-exec"), " "),
		"@TOOLS@", strings.Join(verbNames(specs, "atip"), " "),
		"@STOPS@", strings.Join(stops, " "),
		"@BEHIND@", strings.Join(behind, " "),
	).Replace(fishWalk))
	for _, program := range []string{"atip-exec", "atip"} {
		fmt.Fprintf(&b, "\ncomplete -c %s -f\ncomplete -c %s -n '__atip_at command' -a '(__atip_command)'\n", program, program)
		for _, name := range verbNames(specs, program) {
			s, _ := cli.SpecOf(name)
			fmt.Fprintf(&b, "complete -c %s -n '__atip_at first' -a %s -d %s\n", program, name, fishQuote(summaryOf(s.Summary)))
		}
		for _, s := range specs {
			if s.Verb == "" && program == "atip" {
				b.WriteString("complete -c atip -n '__atip_at first' -s h -l help -d 'print the help'\ncomplete -c atip -n '__atip_at first' -s V -l version -d 'print the version'\n")
				continue
			}
			if program == "atip" && s.Program != "atip" {
				continue
			}
			at := "verb " + s.Verb
			if s.Verb == "" {
				at = "first"
				b.WriteString("complete -c atip-exec -n '__atip_at first' -a '(__fish_complete_command)'\n")
			}
			for _, f := range s.Flags {
				fmt.Fprintf(&b, "complete -c %s -n '__atip_at %s'%s\n", program, at, fishFlag(f))
			}
			for n, a := range s.Args {
				condition := fmt.Sprintf("__atip_at %s; and __atip_word %s %d", at, fishCompare(a), n)
				if words := fishOffer(offerAt(s, n)); words != "" && s.Verb != "" {
					fmt.Fprintf(&b, "complete -c %s -n '%s' %s\n", program, condition, words)
				}
			}
		}
	}
	return b.String()
}

func fishCompare(a cli.Arg) string {
	if a.Variadic {
		return "-ge"
	}
	return "-eq"
}

func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

func fishFlag(f cli.Flag) string {
	out := " -l " + f.Name
	if f.Short != 0 {
		out += " -s " + string(f.Short)
	}
	if Valued(f) {
		out += " -r"
		if words := fishOffer(offerOf(f)); words != "" {
			out += " " + words
		} else {
			out += " -f"
		}
	}
	return out + " -d " + fishQuote(summaryOf(f.Help))
}

func fishOffer(o offer) string {
	switch o.kind {
	case offerWords:
		return "-f -a " + fishQuote(strings.Join(o.words, " "))
	case offerFiles:
		return "-F"
	case offerDirs:
		return "-f -a '(__fish_complete_directories)'"
	case offerTools, offerCommand:
		return "-f -a '(__fish_complete_command)'"
	case offerAsked:
		files := "-f"
		if o.what == cli.OfferTools || o.what == cli.OfferParameters {
			files = "-F"
		}
		return files + " -a '(__atip_ask " + string(o.what) + ")'"
	case offerVerb:
		return "-f -a '(__atip_verbs atip-exec)'"
	}
	return ""
}

// fishWalk reads the line up to the cursor as the programs do.
const fishWalk = `function __atip_verbs
    switch $argv[1]
        case atip
            string split ' ' '@TOOLS@'
        case '*'
            string split ' ' '@ALL@'
    end
end

# Prints where the cursor is: "first", "verb NAME WORDS", or "command INDEX", where the
# command begins in the line.
function __atip_where
    set -l words (commandline -opc)
    set -l program (string replace -r '.*/' '' -- $words[1])
    set -l verb ''
    set -l seen 0
    set -l i 2
    while test $i -le (count $words)
        set -l word $words[$i]
        if test "$word" = --
            if test -z "$verb" -a $program != atip; or contains -- "$verb" (string split ' ' '@BEHIND@')
                echo command (math $i + 1)
                return
            end
        else if string match -q -- '-?*' $word
            if __atip_taking "$verb" $word
                set i (math $i + 1)
            end
        else if test -z "$verb"; and contains -- $word (__atip_verbs $program)
            set verb $word
        else if test -z "$verb" -a $program != atip; or contains -- "$verb" (string split ' ' '@STOPS@')
            echo command $i
            return
        else
            set seen (math $seen + 1)
        end
        set i (math $i + 1)
    end
    if test -z "$verb"
        echo first
    else
        echo verb $verb $seen
    end
end

# Prints what this machine has for a word, with a text beside it.
function __atip_ask
    set -l words (commandline -opc)
    command atip __complete $argv[1] (commandline -ct) -- $words[2..-1] 2>/dev/null
end

function __atip_at
    set -l where (__atip_where | string split ' ')
    test "$where[1]" = $argv[1]; or return
    test $argv[1] != verb; or test "$where[2]" = $argv[2]
end

function __atip_word
    set -l where (__atip_where | string split ' ')
    test "$where[3]" $argv[1] $argv[2]
end

# Completes the rest of the line as a command of its own.
function __atip_command
    set -l where (__atip_where | string split ' ')
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -l before
    if test $where[2] -le (count $words)
        set before (string escape -- $words[$where[2]..-1])
    end
    set -l known (command atip __complete command "$token" -- $words[$where[2]..-1] 2>/dev/null)
    if test (count $known) -gt 0
        printf '%s\n' $known
    else
        complete -C (string join ' ' -- $before "$token")
    end
end
`
