package step

import "strings"

// ShellWords puts the command line of a shell into the form that its metadata reads:
// one letter an option, its value behind it, none that begins with a plus. Shells take
// the value of a letter from the words behind the whole word (`bash -oc errexit CMD`), go
// on reading options behind -c, and know each letter with a plus as well, +c like -c.
func ShellWords(argv []string) []string {
	out := argv[:1:1]
	i := 1
	// Long options, with one dash or two, stand before all others.
	for ; i < len(argv) && (strings.HasPrefix(argv[i], "--") && argv[i] != "--" || LongOption(argv[i])); i++ {
		out = append(out, argv[i])
		if name := strings.TrimLeft(argv[i], "-"); (name == "rcfile" || name == "init-file") && i+1 < len(argv) {
			i++
			out = append(out, argv[i])
		}
	}
	for i < len(argv) {
		w := argv[i]
		if len(w) < 2 || w[0] != '-' && w[0] != '+' || strings.HasPrefix(w, "--") || strings.IndexByte(w, 0) >= 0 {
			break
		}
		i++
		for _, letter := range w[1:] {
			option := "-" + string(letter)
			switch {
			case letter == 'o' || letter == 'O':
				if i == len(argv) {
					return argv // it lists them
				}
				value := argv[i]
				i++
				switch {
				case w[0] == '-':
					out = append(out, option, value)
				case !offByDefault(value):
					out = append(out, "-T")
				}
			case w[0] == '-', strings.ContainsRune("csil", letter):
				out = append(out, option)
			case strings.ContainsRune("abefhmnuvxCEH", letter):
				// Off is how a shell begins that runs a text, or changes what is printed.
			default:
				out = append(out, "-T") // words mean something else
			}
		}
	}
	return append(out, argv[i:]...)
}

// offByDefault names options that a shell which runs a text begins without.
func offByDefault(name string) bool {
	switch name {
	case "errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber", "noexec", "allexport", "extglob", "globstar", "nullglob", "failglob", "dotglob", "nocaseglob",
		"inherit_errexit", "expand_aliases", "history", "histexpand", "posix":
		return true
	}
	return false
}

// LongOption reports a word that bash takes for a long option although it has one dash.
func LongOption(w string) bool {
	switch w {
	case "-login", "-noprofile", "-norc", "-posix", "-restricted", "-verbose", "-version", "-help", "-init-file", "-rcfile", "-noediting", "-debugger", "-debug", "-wordexp",
		"-dump-strings", "-dump-po-strings", "-pretty-print", "-protected":
		return true
	}
	return false
}

// EnvWords writes out what env takes a single dash for: -i.
func EnvWords(argv []string) []string {
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; {
		case w == "-":
			out := append([]string(nil), argv...)
			out[i] = "-i"
			return out
		case strings.HasPrefix(w, "-") || strings.Contains(w, "="):
		case argv[i-1] == "-u" || argv[i-1] == "-C" || argv[i-1] == "--unset" || argv[i-1] == "--chdir" || argv[i-1] == "-a" || argv[i-1] == "--argv0":
		default:
			return argv
		}
	}
	return argv
}

// ZipWords leaves out the lists of patterns that say what zip passes over or takes of its
// files: they name no files, and what they end at is no fixed number of words.
func ZipWords(argv []string) []string {
	var out []string
	for i := 0; i < len(argv); i++ {
		switch argv[i] {
		case "-x", "--exclude", "-i", "--include":
			for ; i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-") && argv[i+1] != "@" && strings.IndexByte(argv[i+1], 0) < 0; i++ {
			}
			if i+1 < len(argv) && argv[i+1] == "@" {
				i++
			}
		default:
			out = append(out, argv[i])
		}
	}
	return out
}

// PerlWords takes options of perl apart that stand in one word: of `-lne CODE` only the last
// takes the next one, as -l has a value only if digits follow.
func PerlWords(argv []string) []string {
	out := argv[:1:1]
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if len(w) < 2 || w[0] != '-' || w[1] == '-' || strings.IndexByte(w, 0) >= 0 {
			return append(out, argv[i:]...)
		}
		rest := w[1:]
		for len(rest) > 1 && strings.IndexByte("lanpswWXuUtTcfS0", rest[0]) >= 0 {
			n := 1
			if rest[0] == 'l' || rest[0] == '0' {
				for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[0] == '0' && strings.IndexByte("xXaAbBcCdDfF", rest[n]) >= 0 && n > 1) {
					n++
				}
			}
			if n == len(rest) {
				break
			}
			out, rest = append(out, "-"+rest[:n]), rest[n:]
		}
		out = append(out, "-"+rest)
		if (rest == "e" || rest == "E" || rest == "I" || rest == "M" || rest == "m") && i+1 < len(argv) {
			i++
			out = append(out, argv[i])
		}
	}
	return out
}

// MaxArg is the longest text that is handed to a shell as one word: the kernel
// takes 128 KiB, MAX_ARG_STRLEN.
const MaxArg = 120000
