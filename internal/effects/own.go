package effects

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// ownSource is what stands for metadata of our own programs in a plan.
const ownSource = "own program"

// ownCall reads the words of our own programs: what they wrap is judged as if it stood
// alone, and what only a person may do is denied by its verb. It returns false for any
// other program.
func (c *collector) ownCall(s *Step) bool {
	if !c.site.ownFile(s.ID.Canonical) || s.Missing != nil {
		return false
	}
	s.Verdict = trust.Verdict{Level: s.Verdict.Level, Reason: "own_program", Action: trust.Allow}
	s.Trust = policy.TrustFacts{Level: s.Verdict.Level.String(), Reason: s.Verdict.Reason, Action: policy.Allow}
	s.File.Believed = true
	c.out.Nestable = true
	line := readOwnLine(s.ID.Invoked, s.Argv[1:])
	if line.unknown {
		s.Call = atip.UnknownCall(shown(s.Argv), s.ID.Invoked)
		s.Call.Path = line.verb
		s.RunsCode = policy.CodeOpaque
		return true
	}
	s.Call = atip.Call{Tool: "atip-exec", InvokedAs: s.ID.Invoked, Argv: s.Argv, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Resources: line.resources, Nested: line.nested, Secrets: []string{}, Chdir: line.dir,
		Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "digest", Source: ownSource}}
	for e := range s.Call.Effects {
		s.Call.Effects[e] = harmless(atip.Effect(e), ownSource)
	}
	s.Call.Effects[atip.Subprocess].Value = atip.Yes
	if len(line.verb) > 0 {
		s.Call.Path = line.verb
	} else {
		// As of a shell, what counts is what it runs.
		s.Call.Tool = ":"
	}
	for i := range s.Call.Resources {
		c.place(c.site.World, &s.Call.Resources[i], subpath.Join(s.Cwd, s.Call.Chdir))
		s.raise(s.Call.Resources[i])
		if s.Call.Resources[i].Access&atip.AccessWrite != 0 {
			s.Call.Effects[atip.Write].Value = atip.Yes
		}
	}
	return true
}

// ownLine is what a command line of ours asks for.
type ownLine struct {
	verb      []string
	dir       string
	nested    []atip.Nested
	resources []atip.Resource
	unknown   bool // it cannot be told
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

// readOwnLine reads the words after our own name.
func readOwnLine(name string, words []string) ownLine {
	var l ownLine
	if name == "atip-sh" {
		switch {
		case len(words) == 1 && !strings.HasPrefix(words[0], "-"):
			l.shell(words[0])
		case len(words) > 1 && !strings.HasPrefix(words[0], "-"):
			l.nested = []atip.Nested{{Kind: "argv", Argv: words, From: "rest"}}
		default:
			l.unknown = true
		}
		return l
	}
	rest, stopped := l.flags(words, name == "atip-exec")
	switch {
	case l.unknown || len(rest) == 0 || len(l.nested) > 0:
	case stopped, name == "atip-exec" && !OwnVerb(rest[0]):
		l.nested = []atip.Nested{{Kind: "argv", Argv: rest, From: "rest"}}
	case rest[0] == "script":
		if file, _ := l.flags(rest[1:], false); len(file) > 0 && file[0] != "-" {
			l.nested = []atip.Nested{{Kind: "shell", File: file[0], From: "file"}}
			l.resources = append(l.resources, atip.Resource{Kind: "path", Value: file[0], Access: atip.AccessRead, Why: "script"})
		} else {
			l.unknown = true
		}
	default:
		l.verbWords(rest)
	}
	return l
}

func (l *ownLine) shell(text string) {
	l.nested = append(l.nested, atip.Nested{Kind: "shell", Text: text, From: "-c"})
}

// flags reads flags up to the first other word; stopped says that "--" ended them.
func (l *ownLine) flags(words []string, command bool) (rest []string, stopped bool) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.IndexByte(w, 0) >= 0:
			l.unknown = true
			return nil, false
		case w == "--":
			return words[i+1:], true
		case len(w) < 2 || w[0] != '-':
			return words[i:], false
		}
		name, value, attached := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") && len(w) > 2 {
			// Letters in one word, or a value behind one: none of our callers writes that.
			l.unknown = true
			return nil, false
		}
		takes, known := OwnFlag(name)
		if !known || attached && !takes {
			l.unknown = true
			return nil, false
		}
		if takes && !attached {
			if i++; i >= len(words) {
				return nil, false // a usage error, which starts nothing
			}
			value = words[i]
		}
		if strings.IndexByte(value, 0) >= 0 {
			l.unknown = true
			return nil, false
		}
		switch name {
		case "--interpreter", "--code-fd":
			l.unknown = true
			return nil, false
		case "--command", "-c":
			if command {
				l.shell(value)
			} else {
				l.unknown = true
			}
			return nil, false
		case "--directory", "-C":
			l.dir = value
		case "--policy":
			l.resources = append(l.resources, atip.Resource{Kind: "path", Value: value, Access: atip.AccessRead, Why: name})
		case "--stdin":
			if value != "auto" && value != "inherit" && value != "null" {
				l.resources = append(l.resources, atip.Resource{Kind: "path", Value: value, Access: atip.AccessRead, Why: name})
			}
		case "--status-file":
			l.resources = append(l.resources, atip.Resource{Kind: "path", Value: value, Access: atip.AccessWrite, Why: name})
		}
	}
	return nil, false
}

// verbWords reads a verb. Those that only read are harmless; of the rest nothing is
// known here, which asks, unless the policy denies the verb.
func (l *ownLine) verbWords(words []string) {
	for _, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			l.unknown = true
		}
		if !strings.HasPrefix(w, "-") {
			l.verb = append(l.verb, w)
		}
	}
	if len(l.verb) == 0 {
		return
	}
	switch l.verb[0] {
	case "version", "help", "completion", "explain", "validate", "verify", "lint", "diff", "resolve", "show", "list", "compile", "safety-prompt", "redact", "doctor", "requests":
	case "pattern":
		l.unknown = l.unknown || len(l.verb) < 2 || l.verb[1] != "list" && l.verb[1] != "show"
	case "policy":
		if len(l.verb) > 1 && !slices.Contains([]string{"show", "check", "test", "lint", "diff"}, l.verb[1]) {
			l.unknown = true
		}
	default:
		l.unknown = true
	}
	if l.unknown {
		return
	}
	for _, w := range l.verb[1:] {
		if strings.ContainsAny(w, "/.") {
			l.resources = append(l.resources, atip.Resource{Kind: "path", Value: w, Access: atip.AccessRead, Why: l.verb[0]})
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
		"call", "man", "mcp", "prime", "run", "safety-prompt", "sandbox", "scan", "skill", "script", "show", "sign", "sync", "trust", "undo", "validate", "verify", "version", "workspace":
		return true
	}
	return false
}
