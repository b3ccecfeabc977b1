# Completion of atip-exec and atip for fish, written by `atip completion fish`.

# What can follow is asked of atip, a word on a line with a text beside it; a last line that begins with
# a tab says what fish adds.
function __atip_complete
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -l lines (command atip __complete place "begun:$token" -- $words 2>/dev/null)
    set -l adds ''
    if string match -q -- \t'*' "$lines[-1]"
        set adds (string sub -s 2 -- $lines[-1])
        set -e lines[-1]
    end
    if set -q lines[1]
        printf '%s\n' $lines
    end
    set -l flag ''
    if string match -q -- '-*=*' $token
        set flag (string replace -r -- '=.*' '=' $token)
        set token (string replace -r -- '^[^=]*=' '' $token)
    end
    switch $adds
        case files
            printf '%s\n' "$flag"(__fish_complete_path $token)
        case dirs
            printf '%s\n' "$flag"(__fish_complete_directories $token)
        case tools
            __fish_complete_command
        case 'command *'
            set -l from (math (string replace 'command ' '' $adds) + 1)
            complete -C (string join ' ' -- (string escape -- $words[$from..-1]) "$token")
    end
end

complete -c atip-exec -f -a '(__atip_complete)'
complete -c atip -f -a '(__atip_complete)'
