// Package prints tells what commands print by their words, as far as it hangs on nothing else: the numbers, hashes
// and names of substitutions such as "$(git rev-parse HEAD)".
package prints

import (
	"cmp"
	"slices"
	"strings"
)

// Shape is what a command prints by its words, where that is known, or something like it: "0" stands for numbers,
// hashes, dates and plain names. A command that fails may print nothing.
func Shape(argv []string) (string, bool) {
	args := argv[1:]
	has := func(list ...string) bool {
		return len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(list, a) })
	}
	switch argv[0] {
	case "nproc":
		return "0", len(args) == 0 || has("--all")
	case "seq":
		if slices.ContainsFunc(args, func(a string) bool { return !IsNumber(a) }) {
			return "", false
		}
		return "0", true
	case "id":
		return "0", has("-u", "-g", "-un", "-gn")
	case "wc":
		if len(args) == 1 && has("-l", "-c", "-w", "-m") {
			return "0", true
		}
	case "grep", "rg":
		if matchesPlain(args) {
			return "0", true
		}
		if len(args) > 1 && len(args) < 4 && args[0] == "-c" && !strings.HasPrefix(args[1], "-") && !strings.HasPrefix(args[len(args)-1], "-") {
			return "0", true
		}
	case "stat":
		if len(args) > 2 && args[0] == "-c" || len(args) == 2 && strings.HasPrefix(args[0], "-c") || len(args) == 2 && strings.HasPrefix(args[0], "--format=") {
			format, _ := strings.CutPrefix(strings.TrimPrefix(args[0], "-c"), "--format=")
			if format == "" {
				format = args[1]
			}
			return "0", strings.Trim(format, "%sYXZWaihugbd0123456789") == ""
		}
	case "jq":
		// A query that ends in length prints numbers.
		rest := args
		if len(rest) > 0 && rest[0] == "-r" {
			rest = rest[1:]
		}
		return "0", len(rest) > 0 && len(rest) < 3 && (rest[0] == "length" || strings.HasSuffix(rest[0], "| length")) && !strings.ContainsAny(rest[0], ",;")
	case "date":
		for _, a := range args {
			if strings.HasPrefix(a, "+") && strings.Trim(a[1:], "%YmdHMSsFTjuV0123456789:_-.") != "" {
				return "", false
			}
		}
		return "0", len(args) == 1 && args[0][0] == '+' || len(args) == 2 && args[0] == "-u" && args[1] != "" && args[1][0] == '+'
	case "mktemp":
		return temporary(args)
	case "gh":
		return "0", identifiers(argv)
	case "go":
		// The paths of packages below the directory at hand, none of which begins with a dash.
		return "0", len(args) > 0 && args[0] == "list" && each(args[1:], func(a string) bool {
			return strings.HasPrefix(a, "./") || strings.HasPrefix(a, "-tags=")
		})
	case "docker", "podman":
		return "0", listsObjects(args)
	case "tr":
		// No other characters are left.
		return "0", len(args) == 2 && slices.Contains([]string{"-dc", "-cd", "-Cd", "-dC"}, args[0]) && args[1] != "" && strings.Trim(strings.NewReplacer("[:digit:]", "", "0-9", "").Replace(args[1]), "0123456789") == ""
	case "whoami", "arch", "uuidgen":
		return "0", len(args) == 0
	case "uname":
		return "0", len(args) == 0 || has("-m", "-s", "-n", "-r", "-o", "-p")
	case "git":
		if len(args) > 1 && gitShape(args[0], args[1:]) {
			return "0", true
		}
	case "basename":
		if len(args) > 0 && len(args) < 3 && !strings.HasPrefix(args[0], "-") {
			_, s := splitPath(args[0])
			if len(args) == 2 && s != args[1] {
				s = strings.TrimSuffix(s, args[1])
			}
			return s, true
		}
	case "dirname":
		if len(args) == 1 && !strings.HasPrefix(args[0], "-") {
			dir, _ := splitPath(args[0])
			return dir, true
		}
	}
	return "", false
}

// matchesPlain reports arguments of grep with which it prints what matches in its input, or in one file: letters, digits and dots.
func matchesPlain(args []string) bool {
	if len(args) < 2 || len(args) > 3 || len(args[0]) < 2 || args[0][0] != '-' || strings.Trim(args[0][1:], "oEhiPa") != "" || !strings.Contains(args[0], "o") {
		return false
	}
	pattern := strings.NewReplacer("[0-9]", "", "[[:digit:]]", "", `\d`, "", "[0-9.]", "", "[0-9a-f]", "", "[a-f0-9]", "", `\.`, "").Replace(args[1])
	return pattern != args[1] && strings.Trim(pattern, "+*{},0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" && !strings.HasPrefix(args[len(args)-1], "-")
}

// Numbers reports a command that prints numbers or plain names and nothing else.
func Numbers(argv []string) bool {
	shape, ok := Shape(argv)
	return ok && shape == "0"
}

// listsObjects reports arguments with which docker prints identifiers of containers, images or networks alone: names of
// volumes are chosen by others.
func listsObjects(args []string) bool {
	if len(args) > 1 && slices.Contains([]string{"container", "image", "network"}, args[0]) && slices.Contains([]string{"ls", "list", "ps"}, args[1]) {
		args = args[1:]
	} else if len(args) == 0 || args[0] != "ps" && args[0] != "images" {
		return false
	}
	quiet := false
	for args = args[1:]; len(args) > 0; args = args[1:] {
		name, _, attached := strings.Cut(args[0], "=")
		short := strings.TrimPrefix(name, "-")
		switch {
		case name == "--quiet" || name == "--all" || name == "--latest" || name == "--no-trunc":
			quiet = quiet || name == "--quiet"
		case name == "--filter" || name == "--last":
			if !attached && len(args) > 1 {
				args = args[1:]
			}
		case short == name || short == "" || strings.Trim(short, "aqlfn") != "":
			return false // --format, a name
		default:
			quiet = quiet || strings.Contains(short, "q")
			if strings.HasSuffix(short, "f") || strings.HasSuffix(short, "n") {
				args = args[min(1, len(args)-1):]
			} else if strings.ContainsAny(short, "fn") {
				return false // its value is attached
			}
		}
	}
	return quiet
}

// Passes reports a command that prints some of the lines that it reads, as they are or without blanks.
func Passes(argv []string) bool {
	keeps := func(a string) bool { return a != "" && a[0] == '-' && strings.Trim(a[1:], "nru0123456789") == "" }
	args := argv[1:]
	switch argv[0] {
	case "sort", "head", "tail", "tac", "shuf", "uniq":
	case "tr":
		// Without blanks, commas or quotes a number or a plain name is one as before, and so are several in a line.
		return len(args) == 2 && strings.Trim(args[0], `\n`+"\n") == "" && args[1] == " " || len(args) == 2 && args[0] == "-d" && (args[1] == "[:space:]" || args[1] != "" && strings.Trim(strings.ReplaceAll(args[1], `\n`, ""), " ,\"'%^\n") == "")
	case "grep":
		// Some of the lines: one pattern, and options that choose among lines.
		if len(args) == 0 {
			return false
		}
		last := args[len(args)-1]
		if args = args[:len(args)-1]; last == "" || last[0] == '-' {
			return false
		}
		keeps = func(a string) bool { return len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "vEFiwx") == "" }
	default:
		return false
	}
	return each(args, keeps)
}

// OnlyFirst is what ends the first word of a line for a command that prints no more of each line that it reads, "" for
// any other command.
func OnlyFirst(argv []string) string {
	switch strings.Join(argv, " ") {
	case "awk {print $1}", "awk { print $1 }", "cut -d   -f1", "cut -d  -f1", "cut -f1 -d  ":
		return " "
	case "cut -d: -f1", "cut -d : -f1", "cut -f1 -d:", "cut -f1 -d :", "awk -F: {print $1}":
		return ":"
	}
	return ""
}

// inLine takes out what git puts into a format and ends no line: the text of a commit (%b) would begin others.
var inLine = strings.NewReplacer("%s", "", "%an", "", "%ae", "", "%ad", "", "%ar", "", "%as", "", "%cd", "", "%cr", "", "%cs", "", "%d", "", "%D", "", "%h", "", "%H", "")

// First reports a command that prints lines of which the first word, up to end, is a number or a plain name.
func First(argv []string, end string) bool {
	switch {
	case len(argv) < 2:
	case argv[0] == "git" && argv[1] == "blame" && end == " ":
		return each(argv[2:], func(a string) bool {
			return revision(a) || strings.HasPrefix(a, "-L") || slices.Contains([]string{"--", "-w", "-s", "-l", "-M", "-C", "-e"}, a)
		})
	case argv[0] == "git" && argv[1] == "log" && end == " ":
		short := slices.Clone(argv)
		for i, a := range short {
			if a == "--oneline" {
				short[i] = "--format=%h"
			} else if format, rest, ok := strings.Cut(a, " "); ok && (strings.HasPrefix(a, "--format=") || strings.HasPrefix(a, "--pretty=")) && !strings.ContainsAny(inLine.Replace(rest), "%\n") {
				short[i] = format
			}
		}
		return Numbers(short)
	case argv[0] == "grep" && end == ":" && len(argv) == 4:
		// One file, whose name is there if it is taken for a binary one.
		odd := func(r rune) bool {
			return !strings.ContainsRune("_./-", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}
		return strings.ContainsRune(argv[1], 'n') && strings.HasPrefix(argv[1], "-") && strings.Trim(argv[1][1:], "nEFiwxv") == "" && !strings.HasPrefix(argv[2], "-") &&
			!strings.HasPrefix(argv[3], "-") && argv[3] != "" && strings.IndexFunc(argv[3], odd) < 0
	}
	return false
}

// Name reports a command that prints no slash.
func Name(argv []string) bool {
	args := argv[1:]
	switch argv[0] {
	case "basename":
		return true
	case "tr":
		return len(args) == 2 && strings.IndexByte(args[0], '/') >= 0 && args[1] != "" && !strings.ContainsAny(args[0]+args[1], "-[\\\x00") && strings.IndexByte(args[1], '/') < 0
	case "sed":
		// s|/|_|g and its like.
		if len(args) != 1 || len(args[0]) < 5 || args[0][0] != 's' || strings.IndexByte(args[0], 0) >= 0 {
			return false
		}
		parts := strings.Split(strings.ReplaceAll(args[0][2:], `\/`, "\x01"), args[0][1:2])
		return len(parts) == 3 && parts[2] == "g" && (parts[0] == "/" || parts[0] == "\x01") && !strings.ContainsAny(parts[1], "/&\\\x01")
	}
	return false
}

// splitPath is what dirname and basename print of a path (POSIX). They resolve nothing, as a directory may be a
// link, and an empty path has an empty name.
func splitPath(p string) (dir, name string) {
	trimmed := strings.TrimRight(p, "/")
	if trimmed == "" && p != "" {
		return "/", "/"
	}
	cut := strings.LastIndexByte(trimmed, '/')
	if cut < 0 {
		return ".", trimmed
	}
	dir = strings.TrimRight(trimmed[:cut], "/")
	return cmp.Or(dir, "/"), trimmed[cut+1:]
}

// temporary is the name that mktemp gives to what it makes.
func temporary(args []string) (string, bool) {
	dir, template, suffix := "", "", ""
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-d", a == "-u", a == "-q", a == "-dq", a == "-qd", a == "--directory", a == "--dry-run", a == "--quiet":
		case a == "-t", a == "-dt", a == "--tmpdir":
			dir = "/tmp"
		case (a == "-p" || a == "-dp") && i+1 < len(args):
			i++
			dir = args[i]
		case strings.HasPrefix(a, "--tmpdir="):
			dir = a[len("--tmpdir="):]
		case strings.HasPrefix(a, "--suffix="):
			suffix = a[len("--suffix="):]
		case strings.HasPrefix(a, "-"), template != "":
			return "", false
		default:
			template = a
		}
	}
	last := template[strings.LastIndexByte(template, '/')+1:]
	switch {
	case strings.IndexByte(suffix, '/') >= 0, template != "" && !strings.Contains(last, "XXX"), dir != "" && last != template:
		return "", false
	case template == "":
		template = "tmp.0000000000"
		if dir == "" {
			dir = "/tmp"
		}
	}
	if dir != "" {
		template = strings.TrimSuffix(dir, "/") + "/" + template
	}
	return template + suffix, true
}

// IsNumber reports a decimal number as a shell reads it, without a leading zero.
func IsNumber(s string) bool {
	s = strings.TrimSpace(s)
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	return s != "" && strings.Trim(s, "0123456789") == "" && (len(s) == 1 || s[0] != '0')
}
