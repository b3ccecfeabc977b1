package step

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
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
	for _, o := range s.Call.Options {
		if !o.Maybe {
			return true
		}
	}
	return false
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
	for _, r := range s.Call.Resources {
		if r.Class == atip.ClassSecret && r.Access&(atip.AccessRead|atip.AccessSecret) != 0 {
			return true
		}
	}
	return false
}

// Decodes reports tools whose output is their input in another form.
func Decodes(s *Step) bool {
	name := s.Call.Tool
	switch name {
	case "base64", "base32", "basenc":
		for _, w := range s.Argv[1:] {
			if w == "--decode" || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, "dD") {
				return true
			}
		}
		return false
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
	for _, o := range s.Call.Options {
		if slices.Contains(names, o.Name) && !o.Maybe {
			return true
		}
	}
	return false
}

// PrintsTracked reports a listing of what git tracks: not of what it does not, among which may be
// a directory with a repository of its own.
func PrintsTracked(s *Step) bool {
	return s.Call.Tool == "git" && len(s.Call.Path) == 1 && (s.Call.Path[0] == "diff" || s.Call.Path[0] == "ls-files") &&
		UsesOnlyFlags(s, "-z", "-c", "--cached", "-m", "--modified", "-d", "--deleted", "--deduplicate", "--name-only", "--staged", "--diff-filter")
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

// MatchOptions are the options with which grep -l and rg -l still print names and nothing else.
var MatchOptions = []string{"files-with-matches", "files-without-match", "files", "recursive", "dereference-recursive", "include", "exclude", "exclude-dir", "directories",
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
	if len(s.Call.Path) != 1 || !shell.PrintsNumber(s.Argv) {
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
