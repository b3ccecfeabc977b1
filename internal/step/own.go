package step

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// OwnLine is what a command line of ours asks for.
type OwnLine struct {
	Verb      []string
	Dir       string
	Nested    []atip.Nested
	Resources []atip.Resource
	Unknown   bool // it cannot be told
}

// OwnFlag says how the flags in front of a wrapped command are read: whether a flag of
// atip-exec takes a value. The command line's own table is held against it by a test.
func OwnFlag(name string) (value, known bool) {
	switch name {
	case "--output", "-o", "--policy", "--profile", "--directory", "-C", "--command", "-c", "--timeout", "--kill-after", "--wait", "--stdin", "--max-output", "--status-file", "--status-fd",
		"--interpreter", "--label", "--ceiling", "--code-fd", "--prime", "--idempotency-key", "--serve-mcp", "--port", "--commands", "--depth":
		return true, true
	case "--quiet", "-q", "--verbose", "-v", "--no-color", "--help", "-h", "--dry-run", "--tty", "-t", "--agent", "--version", "-V", "--ci", "--explain-denials", "--refresh",
		"--errexit", "-e", "--nounset", "-u", "--xtrace", "-x", "--noglob", "-f", "--pipefail":
		return false, true
	}
	return false, false
}

// ReadOwnLine reads the words after our own name.
func ReadOwnLine(name string, words []string) OwnLine {
	var l OwnLine
	if name == "atip-sh" {
		switch {
		case len(words) == 1 && !strings.HasPrefix(words[0], "-"):
			l.shell(words[0])
		case len(words) > 1 && !strings.HasPrefix(words[0], "-"):
			l.Nested = []atip.Nested{{Kind: "argv", Argv: words, From: "rest"}}
		default:
			l.Unknown = true
		}
		return l
	}
	rest, stopped := l.flags(words, name == "atip-exec")
	switch {
	case l.Unknown || len(rest) == 0 || len(l.Nested) > 0:
	case stopped, name == "atip-exec" && !OwnVerb(rest[0]):
		l.Nested = []atip.Nested{{Kind: "argv", Argv: rest, From: "rest"}}
	case rest[0] == "script":
		if file, _ := l.flags(rest[1:], false); len(file) > 0 && file[0] != "-" {
			l.Nested = []atip.Nested{{Kind: "shell", File: file[0], From: "file"}}
			l.Resources = append(l.Resources, atip.Resource{Kind: "path", Value: file[0], Access: atip.AccessRead, Why: "script"})
		} else {
			l.Unknown = true
		}
	default:
		l.verbWords(rest)
	}
	return l
}

func (l *OwnLine) shell(text string) {
	l.Nested = append(l.Nested, atip.Nested{Kind: "shell", Text: text, From: "-c"})
}

// flags reads flags up to the first other word; stopped says that "--" ended them.
func (l *OwnLine) flags(words []string, command bool) (rest []string, stopped bool) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.IndexByte(w, 0) >= 0:
			l.Unknown = true
			return nil, false
		case w == "--":
			return words[i+1:], true
		case len(w) < 2 || w[0] != '-':
			return words[i:], false
		}
		name, value, attached := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") && len(w) > 2 {
			// Letters in one word, or a value behind one: none of our callers writes that.
			l.Unknown = true
			return nil, false
		}
		takes, known := OwnFlag(name)
		if !known || attached && !takes {
			l.Unknown = true
			return nil, false
		}
		if takes && !attached {
			if i++; i >= len(words) {
				return nil, false // a usage error, which starts nothing
			}
			value = words[i]
		}
		if strings.IndexByte(value, 0) >= 0 {
			l.Unknown = true
			return nil, false
		}
		switch name {
		case "--interpreter", "--code-fd":
			l.Unknown = true
			return nil, false
		case "--command", "-c":
			if command {
				l.shell(value)
			} else {
				l.Unknown = true
			}
			return nil, false
		case "--directory", "-C":
			l.Dir = value
		case "--policy":
			l.Resources = append(l.Resources, atip.Resource{Kind: "path", Value: value, Access: atip.AccessRead, Why: name})
		case "--stdin":
			if value != "auto" && value != "inherit" && value != "null" {
				l.Resources = append(l.Resources, atip.Resource{Kind: "path", Value: value, Access: atip.AccessRead, Why: name})
			}
		case "--status-file":
			l.Resources = append(l.Resources, atip.Resource{Kind: "path", Value: value, Access: atip.AccessWrite, Why: name})
		}
	}
	return nil, false
}

// verbWords reads a verb. Those that only read are harmless; of the rest nothing is
// known here, which asks, unless the policy denies the verb.
func (l *OwnLine) verbWords(words []string) {
	for _, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			l.Unknown = true
		}
		if !strings.HasPrefix(w, "-") {
			l.Verb = append(l.Verb, w)
		}
	}
	if len(l.Verb) == 0 {
		return
	}
	switch l.Verb[0] {
	case "version", "help", "completion", "explain", "validate", "verify", "lint", "diff", "resolve", "show", "list", "compile", "safety-prompt", "redact", "doctor", "requests":
	case "pattern":
		l.Unknown = l.Unknown || len(l.Verb) < 2 || l.Verb[1] != "list" && l.Verb[1] != "show"
	case "policy":
		if len(l.Verb) > 1 && !slices.Contains([]string{"show", "check", "test", "lint", "diff"}, l.Verb[1]) {
			l.Unknown = true
		}
	default:
		l.Unknown = true
	}
	if l.Unknown {
		return
	}
	for _, w := range l.Verb[1:] {
		if strings.ContainsAny(w, "/.") {
			l.Resources = append(l.Resources, atip.Resource{Kind: "path", Value: w, Access: atip.AccessRead, Why: l.Verb[0]})
		}
	}
}

// OwnVerb reports whether a word is a verb of ours, which it is in front of a command of
// the same name. It is the table of the command line, too, and held against its
// descriptions by a test.
func OwnVerb(word string) bool {
	for i := 0; i < len(word); i++ {
		if (word[i] < 'a' || word[i] > 'z') && word[i] != '-' {
			return false
		}
	}
	switch word {
	case "approve", "attest", "audit", "checkpoint", "compile", "completion", "crawl", "delegate", "deny", "diff", "doctor", "explain", "fetch-shim", "forget", "generate", "help", "hook", "init", "lint", "list", "lock", "pattern", "policy", "publish", "redact", "requests", "resolve",
		"call", "man", "mcp", "prime", "run", "safety-prompt", "sandbox", "scan", "self-check", "shim", "skill", "script", "show", "sign", "sync", "trust", "undo", "validate", "verify", "version", "workspace":
		return true
	}
	return false
}

// OwnSource is what stands for metadata of our own programs in a plan.
const OwnSource = "own program"
