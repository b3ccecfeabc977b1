package step

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/prints"
	"github.com/atip-dev/atip-exec/policy"
)

// ListsOnly reports tools that show what exists, not what is in it.
func ListsOnly(tool string) bool {
	switch tool {
	case "ls", "stat", "tree", "du", "test", "[", "realpath", "readlink", "dirname", "basename", "find", "fd", "eza", "exa", "lsd", "df", "chmod", "chown", "chgrp", "rm", "mv",
		"git", "cd", "locate", "file", "mount", "findmnt", "lsof", "fuser", "getfacl", "lsattr", "chattr", "setfacl", "bash", "sh", "dash", ":":
		return true
	}
	return false
}

// AsksOnly reports those of them that tell no more of a file than its directory does.
func AsksOnly(tool string) bool {
	switch tool {
	case "ls", "stat", "tree", "du", "test", "[", "realpath", "readlink", "dirname", "basename", "eza", "exa", "lsd":
		return true
	}
	return false
}

// Descends reports tools that read directories without being told to.
func Descends(s *Step) bool {
	switch s.Call.Tool {
	case "rg", "tar", "zip", "rsync", "rclone", "grep", "cp", "scp":
		return Recursive(s) || s.Call.Tool != "grep" && s.Call.Tool != "cp" && s.Call.Tool != "scp"
	}
	return false
}

// OutputOption names options that by custom say where something is written.
func OutputOption(name string) bool {
	switch name {
	case "-o", "--output", "--out", "--output-file", "--outfile", "--outdir", "--outDir", "--out-dir", "--output-dir", "--output-path", "--data-file", "--dest", "--destination", "--target-dir",
		"--directory", "--report", "--report-file", "--junitxml", "--junit-xml", "--log-file", "--logfile", "--write-to", "-coverprofile", "-outputdir":
		return true
	}
	return false
}

// NamesOption reports an option that a call surely has; where there is none, a clause
// about one fires because of a word that is not known.
func NamesOption(s *Step) bool {
	return slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return !o.Maybe })
}

// Recursive reports whether a call says that it goes into directories.
func Recursive(s *Step) bool {
	for _, o := range s.Call.Options {
		switch o.Name {
		case "recursive", "R", "r", "archive":
			return true
		}
	}
	return false
}

// Reads reports whether a step gives out the content of a secret.
func Reads(s *Step) bool {
	if s.Call.Effects[atip.SecretRead].Value == atip.Yes {
		return true
	}
	return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
		return r.Class == atip.ClassSecret && r.Access&(atip.AccessRead|atip.AccessSecret) != 0
	})
}

// Decodes reports tools whose output is their input in another form.
func Decodes(s *Step) bool {
	name := s.Call.Tool
	switch name {
	case "base64", "base32", "basenc":
		return slices.ContainsFunc(s.Argv[1:], func(w string) bool {
			return w == "--decode" || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, "dD")
		})
	case "xxd", "openssl", "gzip", "gunzip", "zcat", "bzip2", "bunzip2", "bzcat", "xz", "unxz", "xzcat", "zstd", "uudecode", "tr", "rev", "base58", "lz4", "ascii2uni":
		return true
	}
	return false
}

// EditsPlain reports a sed that brings in no other file.
func EditsPlain(s *Step) bool {
	return s.Call.Tool == "sed" && s.Confidence == policy.Exact && s.Call.Exactness == atip.Exact && s.RunsCode == policy.CodeNone &&
		s.Call.Effects[atip.ExecOpaque].Value == atip.No && !slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
		return r.Class != atip.ClassWorkspace && r.Class != atip.ClassWorkspaceTracked
	})
}

// OptionValues are the values that a call gives an option.
func OptionValues(s *Step, names ...string) []string {
	var out []string
	for _, o := range s.Call.Options {
		if slices.Contains(names, o.Name) && o.Value != "" && strings.IndexByte(o.Value, 0) < 0 {
			out = append(out, o.Value)
		}
	}
	return out
}

// UsesOption reports whether one of these options is there, in any reading of the words.
func UsesOption(s *Step, names ...string) bool {
	return slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return slices.Contains(names, o.Name) })
}

// HasOption reports whether one of these options is there for sure.
func HasOption(s *Step, names ...string) bool {
	return slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return slices.Contains(names, o.Name) && !o.Maybe })
}

// PrintsTracked reports a listing of what git tracks: not of what it does not, among which may be
// a directory with a repository of its own.
func PrintsTracked(s *Step) bool {
	return s.Call.Tool == "git" && PrintsFound(s) || s.Call.Tool == "git" && len(s.Call.Path) == 1 && (s.Call.Path[0] == "diff" || s.Call.Path[0] == "ls-files") &&
		UsesOnlyFlags(s, "-z", "-c", "--cached", "-m", "--modified", "-d", "--deleted", "--deduplicate", "--name-only", "--staged", "--diff-filter")
}

// PrintsFound reports a search of git in the work tree that prints names of files and nothing else.
func PrintsFound(s *Step) bool {
	names := []string{"-l", "--files-with-matches", "--name-only", "-L", "--files-without-match"}
	return len(s.Call.Path) == 1 && s.Call.Path[0] == "grep" &&
		slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return slices.Contains(names, o.Flag) && !o.Maybe }) &&
		UsesOnlyFlags(s, append(names, "-i", "--ignore-case", "-w", "--word-regexp", "-E", "--extended-regexp", "-G", "--basic-regexp",
			"-F", "--fixed-strings", "-P", "--perl-regexp", "-I", "-e", "--and", "--or", "--not", "--all-match", "-v", "--invert-match", "-z", "--null")...)
}

// PrintsBranches reports a listing of branches. Their names begin with no dash, and are no way out of a directory; what
// stands beside them are "*", "+" and "(HEAD detached at …)", but for remote ones, of which one is shown with "->".
func PrintsBranches(s *Step) bool {
	return len(s.Call.Path) == 1 && s.Call.Path[0] == "branch" && (len(s.Call.Positionals) == 0 || HasOption(s, "list", "no-merged", "no-contains", "points-at")) &&
		UsesOnlyFlags(s, "--merged", "--no-merged", "--contains", "--no-contains", "-l", "--list", "--points-at", "--sort")
}

// KeepsLines reports a filter whose lines are lines of its input.
func KeepsLines(s *Step) bool {
	if len(s.Call.UnknownOptions) > 0 || HasHole(s.Argv) {
		return false
	}
	for _, r := range s.Call.Resources {
		if r.Why != "redirection" {
			return false // it reads a file, not its input
		}
	}
	options, ok := lineOptions(s.Call.Tool)
	return ok && UsesOnly(s, options) && (s.Call.Tool != "grep" || len(s.Call.Positionals) <= 1)
}

// lineOptions are the options with which a filter still prints lines of its input, and no more:
// `tac -s /` takes them apart, `head -v` adds a line.
func lineOptions(tool string) (names []string, ok bool) {
	switch tool {
	case "sort":
		return []string{"ignore-leading-blanks", "dictionary-order", "ignore-case", "general-numeric-sort", "ignore-nonprinting", "month-sort", "human-numeric-sort",
			"numeric-sort", "random-sort", "reverse", "sort", "version-sort", "key", "stable", "buffer-size", "field-separator", "parallel", "unique", "zero-terminated"}, true
	case "head", "tail":
		return []string{"lines", "number", "silent", "zero-terminated"}, true
	case "uniq":
		return []string{"repeated", "skip-fields", "ignore-case", "skip-chars", "unique", "zero-terminated", "check-chars"}, true
	case "tac":
		return nil, true
	case "grep":
		return []string{"extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "regexp", "ignore-case", "no-ignore-case", "word-regexp", "line-regexp", "null-data",
			"no-messages", "invert-match", "max-count", "line-buffered", "no-filename", "text", "y"}, true
	}
	return nil, false
}

// PrintsMatched reports a search that prints names of files and nothing else.
func PrintsMatched(s *Step) bool {
	return (s.Call.Tool == "grep" || s.Call.Tool == "rg") && UsesOnly(s, matchOptions) && UsesOption(s, "files-with-matches", "files-without-match", "files")
}

// matchOptions are the options with which grep -l and rg -l still print names and nothing else.
var matchOptions = []string{"files-with-matches", "files-without-match", "files", "recursive", "dereference-recursive", "include", "exclude", "exclude-dir", "directories",
	"extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "pcre2", "regexp", "ignore-case", "no-ignore-case", "smart-case", "case-sensitive", "word-regexp",
	"line-regexp", "invert-match", "max-count", "no-messages", "text", "I", "y", "null", "glob", "iglob", "type", "type-not", "hidden", "no-hidden", "no-ignore", "no-ignore-vcs",
	"unrestricted", "uu", "uuu", "max-depth", "max-filesize", "multiline", "multiline-dotall", "sort", "sortr", "threads", "no-config", "follow", "line-buffered", "no-line-number",
	"no-heading", "with-filename"}

// UsesOnly reports that every option of a step is one of these.
func UsesOnly(s *Step, names []string) bool {
	return !slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return !slices.Contains(names, o.Name) })
}

// PrintsHashes reports a call of git that prints hashes of commits, or dates, and nothing else. The
// other plain words that git prints are names of branches, which may be those of files.
func PrintsHashes(s *Step) bool {
	if len(s.Call.Path) != 1 || !prints.Numbers(s.Argv) {
		return false
	}
	switch s.Call.Path[0] {
	case "log", "rev-list", "merge-base":
		return true
	case "rev-parse":
		return !slices.Contains(s.Argv, "--abbrev-ref")
	}
	return false
}

func UsesOnlyFlags(s *Step, flags ...string) bool {
	return !slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return !slices.Contains(flags, o.Flag) })
}

// Positionals are the words of a search that name where it looks.
func Positionals(s *Step, all bool) []string {
	var out []string
	for i, p := range s.Call.Positionals {
		if all || i > 0 {
			out = append(out, p.Value)
		}
	}
	return out
}

// ShellWords puts the command line of a shell into the form that its metadata reads:
// one letter an option, its value behind it, none that begins with a plus. Shells take
// the value of a letter from the words behind the whole word (`bash -oc errexit CMD`), go
// on reading options behind -c, and know each letter with a plus as well, +c like -c.
func ShellWords(argv []string) []string {
	out, only := argv[:1:1], false
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
				case value == "noexec":
					only = false
				case !offByDefault(value):
					out = append(out, "-T")
				}
			case letter == 'n':
				only = w[0] == '-' // nothing is run; +n takes it back
			case w[0] == '-', strings.ContainsRune("csil", letter):
				out = append(out, option)
			case strings.ContainsRune("abefhmnuvxCEH", letter):
				// Off is how a shell begins that runs a text, or changes what is printed.
			default:
				out = append(out, "-T") // words mean something else
			}
		}
	}
	if only {
		out = append(out, "-n")
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

// EnvWords writes out what env takes a single dash for, -i, and the words that -S takes apart where more
// words follow, which belong to the same command. A text that is not taken apart here is a command
// that is not known.
func EnvWords(argv []string) []string {
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; {
		case w == "-":
			out := append([]string(nil), argv...)
			out[i] = "-i"
			return out
		case valued(argv[i-1]):
		case splitString(w) >= 0:
			value, rest := w[splitString(w):], argv[i+1:]
			if value == "" {
				if len(rest) == 0 {
					return argv
				}
				value, rest = rest[0], rest[1:]
			}
			if len(rest) == 0 {
				return argv // the text is all there is
			}
			words, ok := splitWords(value)
			if !ok {
				words = []string{"\x00"}
			}
			before := slices.Clone(argv[:i])
			if n := strings.IndexByte(w, 'S'); w[1] != '-' && n > 1 {
				before = append(before, w[:n])
			}
			return EnvWords(append(append(before, words...), rest...))
		case strings.HasPrefix(w, "-") || strings.Contains(w, "="):
		default:
			return argv
		}
	}
	return argv
}

// EnvAssigns says which words of env are assignments, as EnvWords has written them out.
func EnvAssigns(words []string) (from, to int) {
	for from = 1; from < len(words) && (strings.HasPrefix(words[from], "-") || valued(words[from-1])); from++ {
	}
	for to = from; to < len(words) && strings.Contains(words[to], "="); to++ {
	}
	return min(from, len(words)), min(to, len(words))
}

// valued reports options of env that take the next word.
func valued(w string) bool {
	return w == "-u" || w == "-C" || w == "--unset" || w == "--chdir" || w == "-a" || w == "--argv0"
}

// splitString is where the value begins in a word that is the option -S of env, len(w) if it is the next
// word, -1 if it is another word.
func splitString(w string) int {
	if name, _, ok := strings.Cut(w, "="); strings.HasPrefix("--split-string", name) && len(name) > 2 {
		if ok {
			return len(name) + 1
		}
		return len(w)
	}
	if len(w) < 2 || w[0] != '-' {
		return -1
	}
	n := 1
	for n < len(w) && strings.IndexByte("i0v", w[n]) >= 0 {
		n++
	}
	if n < len(w) && w[n] == 'S' {
		return n + 1
	}
	return -1
}

// splitWords takes a text apart as env -S does, false if it holds an escape, a variable or a comment.
func splitWords(text string) (words []string, ok bool) {
	if strings.ContainsAny(text, "\\$#\x00") {
		return nil, false
	}
	var quote byte
	word, open := "", false
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if open {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word, open = word+string(c), true
		}
	}
	if open {
		words = append(words, word)
	}
	return words, quote == 0
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

// Escape returns the command of a line, "" if it has none; ok is false if one cannot be told
// from text.
func Escape(language, line string) (command string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	if language == "gdb" {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "!"):
			return line[1:], true
		case word != "" && strings.HasPrefix("shell", word) && len(word) > 1:
			return rest, true
		case strings.HasPrefix(word, "mak"), word == "pipe", word == "|", strings.HasPrefix(word, "att"), strings.HasPrefix(word, "tar"), word == "source", word == "so":
			return "", false
		}
		return "", true
	}
	if language == "sqlite" {
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimLeft(rest, " ")
		switch piped := strings.TrimPrefix(rest, "|"); {
		case !strings.HasPrefix(line, "."), atip.ShowsOnly(line):
			return "", true
		case len(word) > 2 && (strings.HasPrefix(".shell", word) || strings.HasPrefix(".system", word)):
			return rest, true
		case piped != rest:
			return piped, true
		case strings.ContainsRune(rest, '|'):
		case word == ".import":
			return "cat " + rest, true
		case (word == ".output" || word == ".once") && !strings.HasPrefix(rest, "-"):
			return "cat > " + rest, true
		}
		return "", false
	}
	if language == "tcl" {
		_, after, _ := strings.Cut(line, "exec ")
		return strings.TrimRight(after, "]}; "), true
	}
	before, after, found := strings.Cut(line, "!")
	if !found || after == "" {
		return "", true // or q!
	}
	before = strings.TrimLeft(before, "0123456789,.$;+- \t")
	if before == "" || before == "r " || before == "w " || before == "e " || before == "r" || before == "w" || before == "e" {
		return after, true
	}
	// An exclamation mark in a text or a pattern.
	return "", false
}

// CommandTexts are the parts of a word that its tool may hand to a shell: all of it, what
// follows a sign for that, and texts between quotes or slashes.
func CommandTexts(w string) []string {
	if len(w) > MaxArg {
		return nil
	}
	out := append([]string{w}, Literals(w)...)
	for _, sign := range [...]string{"!", "shell ", "system ", "exec ", "spawn ", "e ", "|", "=", "/", ";", ","} {
		if _, rest, ok := strings.Cut(w, sign); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	if i := strings.LastIndexByte(w, '='); i >= 0 {
		out = append(out, w[i+1:])
	}
	if parts := strings.Split(w, "/"); len(parts) > 3 {
		out = append(out, strings.Join(parts[2:len(parts)-1], "/"))
	}
	return out
}

// HandKind is how a call names local files.
type HandKind uint8

const (
	HandsNothing HandKind = iota
	HandsLocally          // any word may be a file it reads
	HandsWords            // any positional word may be a local file
	handsMarked           // a file is marked: @FILE
)

// Handing says how a call names local files.
func Handing(s *Step) HandKind {
	switch s.Call.Tool {
	case "openssl", "ar":
		return HandsLocally
	case "git":
		if len(s.Call.Path) > 0 && s.Call.Path[0] == "hash-object" || slices.Contains(s.Argv, "--no-index") {
			return HandsLocally
		}
	case "aws", "gsutil", "gcloud", "rclone", "az", "scp", "sftp", "rsync", "docker", "podman", "kubectl", "helm":
		return HandsWords
	case "curl", "httpie", "http", "xh", "stripe", "nm", "readelf", "objdump", "objcopy", "strip", "size", "ranlib", "java", "javac":
		return handsMarked
	}
	if s.Call.Provenance.Channel == "none" {
		return HandsLocally // nobody knows what it does with its words
	}
	return HandsNothing
}

// Handed is the path in a word, "" if it cannot be one.
func Handed(kind HandKind, w, before string) (string, bool) {
	switch kind {
	case handsMarked:
		if (before == "-b" || before == "--cookie") && !strings.Contains(w, "=") {
			return w, true // a file of cookies
		}
		at := strings.IndexByte(w, '@')
		if form := strings.Index(w, "=<"); form >= 0 && (before == "-F" || before == "--form" || strings.HasPrefix(w, "-F") || strings.HasPrefix(w, "--form")) {
			path, _, _ := strings.Cut(w[form+2:], ";")
			return path, true
		}
		if encoded, value := encodedFile(w, before); encoded {
			return value, value != ""
		}
		if at < 0 || at > 0 && w[at-1] != '=' || at == 0 && before == "-u" {
			return "", false
		}
		path, _, _ := strings.Cut(w[at+1:], ";")
		return path, true
	case HandsWords:
		if name, rest, ok := strings.Cut(w, "="); ok && (strings.HasSuffix(name, "-file") || before == "--set-file") {
			return rest, true // kubectl get -o custom-columns-file=FILE
		}
		if strings.HasPrefix(before, "-") && len(before) == 2 {
			return "", false // an identity, a configuration: the metadata knows options
		}
	}
	if rest, ok := strings.CutPrefix(w, "fileb://"); ok {
		return rest, true
	}
	w = strings.TrimPrefix(w, "file://")
	return w, !strings.HasPrefix(w, "-") && !strings.Contains(w, "://")
}

// encodedFile is the file of curl's NAME@FILE, which stands for its encoded content.
func encodedFile(w, before string) (bool, string) {
	for _, option := range [...]string{"--data-urlencode", "--url-query"} {
		value, attached := strings.CutPrefix(w, option+"=")
		if before != option && !attached {
			continue
		}
		name, path, ok := strings.Cut(value, "@")
		return ok && !strings.Contains(name, "="), path
	}
	return false, ""
}

// Bridges reports a socat that puts a shell on a connection.
func Bridges(argv []string) bool {
	program, connection := false, false
	for _, w := range argv[1:] {
		kind, rest, _ := strings.Cut(strings.ToLower(w), ":")
		switch {
		case kind == "exec" || kind == "system" || kind == "shell":
			command, _, _ := strings.Cut(strings.Trim(rest, "'\""), ",")
			first, _, _ := strings.Cut(command, " ")
			program = program || IsShell(filepath.Base(first))
		case strings.HasPrefix(kind, "tcp"), strings.HasPrefix(kind, "udp"), strings.HasPrefix(kind, "openssl"), strings.HasPrefix(kind, "ssl"), strings.HasPrefix(kind, "sctp"), strings.HasPrefix(kind, "socks"), kind == "proxy":
			connection = true
		}
	}
	return program && connection
}

// Manages adds what the scripts do that a framework puts into each project, as far as
// their words are the same everywhere: they run as code of the workspace, but they are
// also the short way to an empty database.
func Manages(s *Step) {
	for i := 0; i+1 < len(s.Argv); i++ {
		if i > 0 && s.Call.Tool != "python" && s.Call.Tool != "php" {
			return
		}
		if resets(filepath.Base(s.Argv[i]), s.Argv[i+1]) || shells(filepath.Base(s.Argv[i]), s.Argv[i+1]) && slices.ContainsFunc(s.Argv[i+2:], empties) {
			s.Call.Effects[atip.Destructive] = atip.Fact{Value: atip.Yes, Source: "script " + s.Argv[i], Rank: atip.Vendor}
		}
	}
}

func resets(script, word string) bool {
	switch script {
	case "manage.py": // Django
		return word == "flush" || word == "reset_db" || word == "reset_schema"
	case "artisan": // Laravel
		return word == "migrate:fresh" || word == "migrate:refresh" || word == "migrate:reset" || word == "db:wipe"
	case "console": // Symfony
		return word == "doctrine:database:drop" || word == "doctrine:schema:drop"
	}
	return false
}

// shells reports the verb that runs program text with the models of a project.
func shells(script, word string) bool {
	return script == "artisan" && word == "tinker" || script == "manage.py" && (word == "shell" || word == "shell_plus")
}

// empties reports program text with a call that removes rows or tables. Text that does
// so in another way is what any code of the workspace may do.
func empties(text string) bool {
	for _, sign := range [...]string{"truncate(", "::destroy(", "->delete(", ".delete(", "forceDelete(", "deleteAll(", "delete_all", "drop_all", "dropAllTables", "dropIfExists", "DROP ", "drop table", "TRUNCATE "} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
