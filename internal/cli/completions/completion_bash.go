package completions

import (
	"fmt"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
)

// BashCompletion writes the script for bash: tables out of the specs, and the walk along
// the line, which is the same for every verb.
func BashCompletion(specs []cli.Spec) string {
	var b strings.Builder
	b.WriteString("# Completion of atip-exec and atip for bash, written by `atip completion bash`.\n\n")

	b.WriteString("# The flags of a verb, and those of them that take the next word.\n__atip_flags() {\n\tcase $1 in\n")
	for _, s := range specs {
		var flags, taking []string
		for _, f := range s.Flags {
			flags = append(flags, spellings(f)...)
			if Valued(f) {
				taking = append(taking, spellings(f)...)
			}
		}
		fmt.Fprintf(&b, "\t'%s') flags='%s' taking=' %s ' ;;\n", s.Verb, strings.Join(flags, " "), strings.Join(taking, " "))
	}
	b.WriteString("\t*) flags= taking=' ' ;;\n\tesac\n}\n\n")

	b.WriteString("# What completes the value of a flag: verb:flag.\n__atip_value() {\n\tcase $1 in\n")
	for _, s := range specs {
		for _, f := range s.Flags {
			if kind := bashOffer(offerOf(f)); Valued(f) && kind != "none" {
				var patterns []string
				for _, name := range spellings(f) {
					patterns = append(patterns, "'"+s.Verb+":"+name+"'")
				}
				fmt.Fprintf(&b, "\t%s) offer='%s' ;;\n", strings.Join(patterns, "|"), kind)
			}
		}
	}
	b.WriteString("\t*) offer=none ;;\n\tesac\n}\n\n")

	b.WriteString("# What completes a word of a verb: verb:number.\n__atip_word() {\n\tcase $1 in\n")
	for _, s := range specs {
		for n, a := range s.Args {
			if kind := bashOffer(offerAt(s, n)); kind != "none" {
				more := ""
				if a.Variadic {
					more = "*"
				}
				fmt.Fprintf(&b, "\t'%s:%s'%s) offer='%s' ;;\n", s.Verb, strings.Repeat("+", n), more, kind)
			}
		}
	}
	b.WriteString("\t*) offer=none ;;\n\tesac\n}\n\n")

	var behind []string
	for _, s := range specs {
		if takesCommand(s) {
			behind = append(behind, "'"+s.Verb+"'")
		}
	}
	b.WriteString(strings.NewReplacer(
		"@BEHIND@", strings.Join(behind, "|"),
		"@ALL@", strings.Join(verbNames(specs, "atip-exec"), " "),
		"@TOOLS@", strings.Join(verbNames(specs, "atip"), " "),
	).Replace(bashWalk))
	return b.String()
}

func bashOffer(o offer) string {
	switch o.kind {
	case offerWords:
		return "words " + strings.Join(o.words, " ")
	case offerFiles:
		return "files"
	case offerDirs:
		return "dirs"
	case offerAsked:
		return "ask " + string(o.what)
	case offerTools:
		return "tools"
	case offerCommand:
		return "command"
	case offerVerb:
		return "verbs"
	case offerVerbOrIt:
		return "verb-or-command"
	}
	return "none"
}

// bashWalk reads the line up to the cursor as the programs do. Words that readline split
// at "=" are three.
const bashWalk = `__atip_verbs() {
	case ${COMP_WORDS[0]##*/} in
	atip) verbs='@TOOLS@' ;;
	*) verbs='@ALL@' ;;
	esac
}

# __atip_takes VERB WORD: the word is a flag whose value is the next word; sets flag.
__atip_takes() {
	local flags taking letters=${2#-} letter
	__atip_flags "$1"
	flag=
	case $2 in
	--*=*) return 1 ;;
	--*) flag=$2 ;;
	*)
		while [[ -n $letters ]]; do
			letter=${letters:0:1} letters=${letters:1}
			if [[ $taking == *" -$letter "* ]]; then
				[[ -z $letters ]] && flag=-$letter
				break
			fi
		done
		;;
	esac
	[[ -n $flag && $taking == *" $flag "* ]]
}

# __atip_offer OFFER CUR [PREFIX]
__atip_offer() {
	local line
	COMPREPLY=()
	case $1 in
	words\ *) mapfile -t COMPREPLY < <(compgen -W "${1#words }" -- "$2") ;;
	files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	dirs) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	ask\ *)
		[[ $2 == : ]] && set -- "$1" ''
		mapfile -t COMPREPLY < <(command atip __complete "${1#ask }" "$2" -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null | cut -f1)
		if ((${#COMPREPLY[@]} == 0)); then
			case $1 in
			'ask tools' | 'ask parameters') compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
			esac
		fi
		;;
	tools) mapfile -t COMPREPLY < <(compgen -c -- "$2" | sort -u) ;;
	esac
	if [[ -n ${3-} ]]; then
		for line in "${!COMPREPLY[@]}"; do COMPREPLY[line]=$3${COMPREPLY[line]}; done
	fi
}

# __atip_wrapped INDEX: the line from there on is a command of its own. Its metadata
# completes it, or else what the shell would complete it by: bash-completion where it is
# loaded, else the function that is registered for the command.
__atip_wrapped() {
	local spec function command=${COMP_WORDS[$1]-}
	if ((COMP_CWORD == $1)); then
		if [[ $command == */* ]]; then __atip_offer files "$command"; else __atip_offer tools "$command"; fi
		return
	fi
	mapfile -t COMPREPLY < <(command atip __complete command "${COMP_WORDS[COMP_CWORD]}" -- "${COMP_WORDS[@]:$1:COMP_CWORD-$1}" 2>/dev/null | cut -f1)
	((${#COMPREPLY[@]} == 0)) || return
	if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$1"; return; fi
	if declare -F _command_offset >/dev/null; then _command_offset "$1"; return; fi
	COMP_WORDS=("${COMP_WORDS[@]:$1}")
	COMP_CWORD=$((COMP_CWORD - $1))
	COMP_LINE="${COMP_WORDS[*]}"
	COMP_POINT=${#COMP_LINE}
	spec=$(complete -p -- "${command##*/}" 2>/dev/null) || spec=
	if [[ $spec =~ \ -F\ ([A-Za-z_][A-Za-z0-9_:.-]*)\  ]]; then
		function=${BASH_REMATCH[1]}
		if declare -F "$function" >/dev/null; then
			"$function" "${command##*/}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
			return
		fi
	fi
	__atip_offer files "${COMP_WORDS[COMP_CWORD]}"
}

__atip_complete() {
	local cur=${COMP_WORDS[COMP_CWORD]} verb= verbs flag offer flags taking place= word
	local -i i=1 at
	COMPREPLY=()
	__atip_verbs
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--)
			case $verb in
			@BEHIND@) [[ -z $verb && ${COMP_WORDS[0]##*/} == atip ]] || __atip_wrapped $((i + 1)) ;;
			*) __atip_offer files "$cur" ;;
			esac
			return
			;;
		-?*)
			if __atip_takes "$verb" "$word"; then
				at=i+1
				[[ ${COMP_WORDS[at]-} == = ]] && at+=1
				if ((at >= COMP_CWORD)); then
					[[ $cur == = ]] && cur=
					__atip_value "$verb:$flag"
					__atip_offer "$offer" "$cur"
					return
				fi
				i=at
				if [[ $flag == -c || $flag == --command ]]; then
					__atip_offer files "$cur"
					return
				fi
			fi
			;;
		*)
			if [[ -z $verb ]] && [[ " $verbs " == *" $word "* ]]; then
				verb=$word
				continue
			fi
			__atip_word "$verb:$place"
			case $offer in
			verb-or-command)
				[[ ${COMP_WORDS[0]##*/} == atip ]] || __atip_wrapped "$i"
				return
				;;
			command)
				__atip_wrapped "$i"
				return
				;;
			esac
			place+=+
			;;
		esac
	done
	case $cur in
	-*=*)
		flag=${cur%%=*}
		__atip_value "$verb:$flag"
		__atip_offer "$offer" "${cur#*=}" "$flag="
		return
		;;
	-*)
		if [[ -z $verb && ${COMP_WORDS[0]##*/} == atip ]]; then
			__atip_offer 'words --help --version' "$cur"
			return
		fi
		__atip_flags "$verb"
		__atip_offer "words $flags" "$cur"
		return
		;;
	esac
	__atip_word "$verb:$place"
	case $offer in
	verb-or-command)
		if [[ ${COMP_WORDS[0]##*/} == atip ]]; then
			__atip_offer "words $verbs" "$cur"
		elif [[ $cur == */* ]]; then
			__atip_offer files "$cur"
		else
			mapfile -t COMPREPLY < <({ compgen -W "$verbs" -- "$cur"; compgen -c -- "$cur"; } | sort -u)
		fi
		;;
	verbs) __atip_offer "words $verbs" "$cur" ;;
	command) __atip_wrapped "$COMP_CWORD" ;;
	*) __atip_offer "$offer" "$cur" ;;
	esac
}

complete -F __atip_complete atip-exec atip
`
