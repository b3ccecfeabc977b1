package gitrepo

import "strings"

// maxAliases bounds aliases of aliases.
const maxAliases = 8

// Unalias are the words of a call of git with the account's own alias written out: no run can change it, and
// the call has it run. own reports a command of git, which no alias replaces. One that is a command of the shell or is
// quoted stays as it is, and so is not known.
func Unalias(words []string, home string, own func(name string) bool) []string {
	var account *Config
	for range maxAliases {
		at := commandWord(words)
		if at < 0 || own(words[at]) {
			return words
		}
		if account == nil {
			c, err := Account(home, "")
			if err != nil {
				return words
			}
			account = c
		}
		value, ok := account.Get("alias." + strings.ToLower(words[at]))
		if !ok || value == "" || strings.ContainsAny(value, "!'\"\\") {
			return words
		}
		words = append(append(words[:at:at], strings.Fields(value)...), words[at+1:]...)
	}
	return words
}

// commandWord is the index of the command in a call of git, behind the options of git itself; -1 if that is not known.
func commandWord(words []string) int {
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case strings.IndexByte(w, 0) >= 0:
			return -1
		case !strings.HasPrefix(w, "-"):
			return i
		case w == "-C" || w == "-c":
			i++
		case w != "--no-pager" && w != "-P" && !strings.Contains(w, "="):
			return -1
		}
	}
	return -1
}
