#compdef atip-exec atip
# Completion of atip-exec and atip for zsh, written by `atip completion zsh`.

# What can follow is asked of atip, a word on a line with a text beside it; a last line that begins with
# a tab says what zsh adds.
_atip() {
	local -a lines names texts
	local adds
	lines=(${(f)"$(command atip __complete place "begun:${(Q)PREFIX}" -- "${(@Q)words[1,CURRENT-1]}" 2>/dev/null)"})
	if [[ $lines[-1] == $'\t'* ]]; then
		adds=${lines[-1]#$'\t'}
		lines[-1]=()
	fi
	if (($#lines)); then
		names=(${lines%%$'\t'*})
		texts=(${lines/$'\t'/  -- })
		compadd -l -d texts -a names
	fi
	compset -P '-*='
	case $adds in
	files) _files ;;
	dirs) _files -/ ;;
	tools) _alternative 'commands:command:_command_names -e' 'files:file:_files -g "*(-*)"' ;;
	command\ *)
		shift ${adds#command } words
		((CURRENT -= ${adds#command }))
		_normal
		;;
	esac
	(($#names)) || [[ -n $adds ]]
}

# A file of fpath runs as the function itself; sourced, it only announces it.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
	_atip "$@"
else
	compdef _atip atip-exec atip
fi
