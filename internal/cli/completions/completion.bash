# Completion of atip-exec and atip for bash, written by `atip completion bash`.

# __atip_wrapped INDEX: the line from there on is a command of its own. It is completed as without us:
# by bash-completion where it is loaded, else by the function that is registered for the command.
__atip_wrapped() {
	local spec function command=${COMP_WORDS[$1]-}
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
	__atip_files -f "${COMP_WORDS[COMP_CWORD]}"
}

# __atip_files -f|-d CUR: files or directories, also behind a flag in the same word.
__atip_files() {
	local flag=
	[[ $2 == -*=* ]] && flag=${2%%=*}=
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -P "$flag" -- "${2#"$flag"}")
}

# What can follow is asked of atip, a word on a line; a last line that begins with a tab says what bash adds.
__atip_complete() {
	local cur=${COMP_WORDS[COMP_CWORD]} line adds=
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		$'\t'*) adds=${line:1} ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <(command atip __complete place "begun:$cur" -- "${COMP_WORDS[@]:0:COMP_CWORD}" 2>/dev/null)
	[[ $cur == [=:] ]] && cur=
	[[ $adds == tools && $cur == */* ]] && adds=files
	case $adds in
	files) __atip_files -f "$cur" ;;
	dirs) __atip_files -d "$cur" ;;
	tools) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$cur") ;;
	'command '*) __atip_wrapped "${adds#command }" ;;
	esac
}

complete -F __atip_complete atip-exec atip
