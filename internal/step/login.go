package step

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/quote"
)

// LoginArgv puts the PATH of the run in front of the text of a login shell. Its start-up files set
// another: the system's those of a bare system, and the user's, which add to it, may hold
// credentials and are not read. So `bash -lc` would find other programs than were judged, or none.
// starts are the commands of the call, among them those that a wrapper (timeout, env, nice) starts.
func LoginArgv(argv, env []string, starts ...[]string) []string {
	at := loginText(argv)
	for i := 1; i < len(argv) && at < 0; i++ {
		known := func(start []string) bool {
			return len(start) > 0 && slices.Equal(start, argv[i:min(i+len(start), len(argv))])
		}
		if slices.ContainsFunc(starts, known) {
			if in := loginText(argv[i:]); in >= 0 {
				at = i + in
			}
		}
	}
	if at < 0 {
		return argv
	}
	for _, entry := range env {
		path, ok := strings.CutPrefix(entry, "PATH=")
		if prefix := "PATH=" + quote.Literal(path) + "; "; ok && len(prefix)+len(argv[at]) < MaxArg {
			out := append([]string(nil), argv...)
			out[at] = prefix + argv[at]
			return out
		}
	}
	return argv
}

// loginText is the place of the text that a login shell is given, -1 for any other command.
func loginText(argv []string) int {
	if len(argv) == 0 {
		return -1
	}
	switch filepath.Base(argv[0]) {
	case "bash", "sh", "dash", "ash", "zsh", "ksh", "mksh":
	default:
		return -1
	}
	login, text, i := false, false, 1
	for ; i < len(argv); i++ {
		w := argv[i]
		if strings.HasPrefix(w, "--") && w != "--" || LongOption(w) {
			name := strings.TrimLeft(w, "-")
			login = login || name == "login"
			if name == "rcfile" || name == "init-file" {
				i++
			}
			continue
		}
		if len(w) < 2 || w[0] != '-' && w[0] != '+' || w == "--" {
			break
		}
		login, text = login || w[0] == '-' && strings.Contains(w, "l"), text || strings.Contains(w, "c")
		i += strings.Count(w, "o") + strings.Count(w, "O")
	}
	if i < len(argv) && argv[i] == "--" {
		i++
	}
	if !login || !text || i >= len(argv) {
		return -1
	}
	return i
}
