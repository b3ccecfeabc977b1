package completions

import (
	"fmt"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
)

// ZshCompletion writes the script for zsh: one function for each verb, in the words of
// _arguments.
func ZshCompletion(specs []cli.Spec) string {
	var b strings.Builder
	b.WriteString("#compdef atip-exec atip\n# Completion of atip-exec and atip for zsh, written by `atip completion zsh`.\n\n")
	for _, program := range []string{"atip-exec", "atip"} {
		fmt.Fprintf(&b, "__atip_verbs_of_%s() {\n\tlocal -a verbs=(\n", zshName(program))
		for _, name := range verbNames(specs, program) {
			s, _ := cli.SpecOf(name)
			fmt.Fprintf(&b, "\t\t%s\n", zshQuote(name+":"+summaryOf(s.Summary)))
		}
		b.WriteString("\t)\n\t_describe -t verbs verb verbs\n}\n\n")
	}
	for _, s := range specs {
		fmt.Fprintf(&b, "__atip_verb_%s() {\n\t_arguments -S", zshName(s.Verb))
		if s.Stops {
			b.WriteString(" -A '-*'")
		}
		for _, f := range s.Flags {
			fmt.Fprintf(&b, " \\\n\t\t%s", zshFlag(f))
		}
		if s.Verb == "" {
			b.WriteString(" \\\n\t\t'(-)1: :__atip_first' \\\n\t\t'(-)*:: :__atip_rest'\n}\n\n")
			continue
		}
		switch o := offerAt(s, 0); {
		case len(s.Args) == 0:
		case o.kind == offerCommand:
			b.WriteString(" \\\n\t\t'(-)1:command:_command_names -e' \\\n\t\t'(-)*::arguments:__atip_wrapped'")
		case s.Stops && o.kind == offerAsked:
			fmt.Fprintf(&b, " \\\n\t\t'(-)1:%s:%s' \\\n\t\t'(-)*:argument:%s'", strings.ToLower(s.Args[0].Name), zshOffer(o), zshOffer(offerAt(s, 1)))
		case s.Stops:
			b.WriteString(" \\\n\t\t'(-)1:file:_files' \\\n\t\t'(-)*:file:_files'")
		case takesCommand(s) && o.kind == offerTools && !s.Stops && s.Args[0].Optional:
			b.WriteString(" \\\n\t\t'1:command:_command_names -e' \\\n\t\t'*::arguments:__atip_wrapped'")
		default:
			for n, a := range s.Args {
				place := fmt.Sprint(n + 1)
				if a.Variadic {
					place = "*"
				}
				fmt.Fprintf(&b, " \\\n\t\t%s", zshQuote(place+":"+strings.ToLower(strings.ReplaceAll(a.Name, "|", " "))+":"+zshOffer(offerAt(s, n))))
			}
		}
		b.WriteString("\n}\n\n")
	}
	b.WriteString(strings.NewReplacer(
		"@ALL@", strings.Join(verbNames(specs, "atip-exec"), "|"),
		"@TOOLS@", strings.Join(verbNames(specs, "atip"), "|"),
	).Replace(zshWalk))
	return b.String()
}

// zshName is a verb as a part of the name of a function.
func zshName(verb string) string {
	if verb == "" {
		return "first"
	}
	return strings.ReplaceAll(verb, "-", "_")
}

func zshQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// zshFlag is one flag in the words of _arguments.
func zshFlag(f cli.Flag) string {
	help := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(summaryOf(f.Help))
	tail := "[" + help + "]"
	long := "--" + f.Name
	if Valued(f) {
		long += "="
		tail += ":" + strings.ToLower(f.Value) + ":" + zshOffer(offerOf(f))
	}
	repeat := f.Kind == cli.Strings || f.Kind == cli.Count
	if f.Short == 0 {
		if repeat {
			long = "*" + long
		}
		return zshQuote(long + tail)
	}
	short := "-" + string(f.Short)
	if Valued(f) {
		short += "+"
	}
	exclude := fmt.Sprintf("(-%c --%s)", f.Short, f.Name)
	if repeat {
		exclude = "*"
	}
	return zshQuote(exclude) + "{" + short + "," + long + "}" + zshQuote(tail)
}

func zshOffer(o offer) string {
	switch o.kind {
	case offerWords:
		return "(" + strings.Join(o.words, " ") + ")"
	case offerFiles:
		return "_files"
	case offerDirs:
		return "_files -/"
	case offerTools, offerCommand:
		return "_command_names -e"
	case offerAsked:
		return " __atip_ask " + string(o.what)
	case offerVerb:
		return "__atip_verbs_of_atip_exec"
	}
	return " "
}

// zshWalk tells a verb from a command. A word behind "--" is never a verb.
const zshWalk = `# Offers what this machine has for a word, with a text beside it.
__atip_ask() {
	local -a lines names texts
	lines=(${(f)"$(command atip __complete $1 "${(Q)PREFIX}" -- "${(@Q)words[1,CURRENT-1]}" 2>/dev/null)"})
	names=(${lines%%$'\t'*})
	texts=(${lines/$'\t'/  -- })
	if (($#names)); then
		compadd -l -d texts -a names
	elif [[ $1 == (tools|parameters) ]]; then
		_files
	else
		return 1
	fi
}

# Completes a command of its own: by its metadata, or else as zsh would.
__atip_wrapped() {
	__atip_ask command || _normal
}

__atip_first() {
	if [[ $service == atip ]]; then
		__atip_verbs_of_atip
		return
	fi
	((atip_dashed)) || __atip_verbs_of_atip_exec
	_alternative 'commands:command:_command_names -e' 'files:file:_files -g "*(-*)"'
}

__atip_rest() {
	local program=$service
	if ((! atip_dashed)); then
		case $program:$words[1] in
		atip:(@TOOLS@)|*:(@ALL@))
			local verb=${words[1]//-/_}
			__atip_verb_$verb
			return
			;;
		esac
	fi
	[[ $program == atip ]] || __atip_wrapped
}

_atip() {
	local curcontext=$curcontext
	# A "--" among the words in front of the first plain one.
	integer atip_dashed=0
	local word
	for word in ${words[2,CURRENT-1]}; do
		case $word in
		--) atip_dashed=1; break ;;
		-*) ;;
		*) break ;;
		esac
	done
	__atip_verb_first
}

# A file of fpath runs as the function itself; sourced, it only announces it.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
	_atip "$@"
else
	compdef _atip atip-exec atip
fi
`
