package shell

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// MaxText is the longest text that is read.
const MaxText = 128 << 10

// Limits lower what is read of a text; zero leaves the built-in limit, and more than that
// is as much.
type Limits struct {
	Bytes    int // of the text
	Nodes    int // of its syntax tree
	Commands int // in it
	Nesting  int // of texts that are run inside each other
	Unrolled int // words of a loop that are followed one by one
}

func (l Limits) complete() Limits {
	lower := func(n, most int) int {
		if n <= 0 {
			return most
		}
		return min(n, most)
	}
	return Limits{lower(l.Bytes, maxText), lower(l.Nodes, maxNodes), lower(l.Commands, maxCommands), lower(l.Nesting, maxNesting), lower(l.Unrolled, maxUnrolled)}
}

// Limits. What lies beyond is one opaque command; every command found stays.
const (
	maxText     = MaxText
	maxNodes    = 20000
	maxCommands = 256
	maxNesting  = 8
	maxCwds     = 4
	maxFile     = 256 << 10
	maxPasses   = 3   // of a loop, before what it changes counts as unknown
	maxDeep     = 500 // brackets inside each other, before the parser sees them
	maxWords    = 64  // of one brace expansion
	maxUnrolled = 64  // words of a loop, before one stands for the rest
)

// Read reads a text. A *SyntaxError says that it is no shell text.
func Read(s string, o Options) (*Script, error) {
	o.Limits = o.Limits.complete()
	file, printed, err := parse(s, o)
	if err != nil {
		return nil, err
	}
	first, set, err := options(o)
	if err != nil {
		return nil, err
	}
	w := &walker{o: o, env: map[string]*variable{}, active: map[any]int{}}
	st := w.start()
	if why := suspicious(s); why != "" {
		w.emit(st, Command{Why: why})
	}
	w.guard(st, func() {
		w.stmts(append(first, file.Stmts...), st)
		w.runTraps(st)
	})
	script := &Script{Text: set + printed, Commands: w.cmds, Flows: w.flows, Pipes: w.pipes}
	script.Simple = len(first) == 0 && len(w.cmds) == 1 && simple(file, &w.cmds[0])
	return script, nil
}

// parse reads s and prints it. The tree it returns is that of the printed form,
// so that a bug of the printer cannot part what is judged from what runs.
func parse(s string, o Options) (*syntax.File, string, error) {
	switch {
	case len(s) > o.Limits.Bytes:
		return nil, "", &SyntaxError{Msg: "it is longer than " + size(o.Limits.Bytes), Fix: "split it into several commands"}
	case strings.IndexByte(s, 0) >= 0:
		// The parser would drop it.
		return nil, "", &SyntaxError{Msg: "it holds a NUL byte", Fix: "remove the byte"}
	case !utf8.ValidString(s):
		return nil, "", &SyntaxError{Msg: "it is not UTF-8", Fix: "write it in UTF-8"}
	case deep(s):
		return nil, "", &SyntaxError{Msg: "its brackets are nested too deeply", Fix: "split it into several commands"}
	}
	p := syntax.NewParser(syntax.Variant(variant(o.Dialect)))
	first, err := p.Parse(strings.NewReader(s), "")
	if err != nil {
		return nil, "", syntaxError(err)
	}
	if o.Script {
		ownSource(first)
	}
	var once, twice strings.Builder
	if err := syntax.NewPrinter().Print(&once, first); err != nil {
		return nil, "", &PrintError{Msg: err.Error()}
	}
	file, err := p.Parse(strings.NewReader(once.String()), "")
	if err != nil {
		return nil, "", &PrintError{Msg: "its printed form cannot be read: " + err.Error()}
	}
	if err := syntax.NewPrinter().Print(&twice, file); err != nil {
		return nil, "", &PrintError{Msg: err.Error()}
	}
	if once.String() != twice.String() {
		return nil, "", &PrintError{Msg: "its printed form is not stable"}
	}
	return file, strings.TrimSuffix(once.String(), "\n"), nil
}

func size(n int) string {
	if n%1024 == 0 {
		return strconv.Itoa(n/1024) + " KiB"
	}
	return strconv.Itoa(n) + " bytes"
}

func variant(d Dialect) syntax.LangVariant {
	switch d {
	case POSIX:
		return syntax.LangPOSIX
	case Mksh:
		return syntax.LangMirBSDKorn
	}
	return syntax.LangBash
}

func syntaxError(err error) error {
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		return &SyntaxError{Line: int(pe.Pos.Line()), Col: int(pe.Pos.Col()), Msg: pe.Text}
	}
	var le syntax.LangError
	if errors.As(err, &le) {
		return &SyntaxError{Line: int(le.Pos.Line()), Col: int(le.Pos.Col()), Msg: le.Error()}
	}
	return &SyntaxError{Msg: err.Error()}
}

// deep bounds how far the parser has to descend, counting every bracket that is not
// closed as if none were quoted.
func deep(s string) bool {
	depth, most := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '{', '[':
			if depth++; depth > most {
				most = depth
			}
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return most > maxDeep || strings.Count(s, "`") > 2*maxDeep
}

// suspicious finds characters outside quotes that show a person something else than
// what the shell reads.
func suspicious(s string) string {
	single, double, escaped := false, false, false
	for _, r := range s {
		quoted := single || double
		switch {
		case escaped:
			escaped = false
		case r == '\\' && !single:
			escaped = true
			continue
		case r == '\'' && !double:
			single = !single
		case r == '"' && !single:
			double = !double
		}
		if quoted {
			continue
		}
		switch {
		case r == '\t' || r == '\n':
		case r == '\r':
			return "a carriage return stands outside quotes"
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return "a control character stands outside quotes"
		case r >= 0x80 && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)):
			return "an invisible character stands outside quotes"
		}
	}
	return ""
}

// simple reports whether a file is one command that needs no shell.
func simple(f *syntax.File, c *Command) bool {
	if len(f.Stmts) != 1 || c.Kind != External || c.Bounded || len(c.Globs) > 0 || len(c.Env) > 0 || len(c.Redirects) > 0 || len(c.Cwds) != 1 || c.CwdUnknown {
		return false
	}
	s := f.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || len(call.Assigns) > 0 {
		return false
	}
	if len(call.Args) != len(c.Argv) || call.Args[0].Lit() != c.Argv[0] {
		// eval, command and exec stand in front of what they run.
		return false
	}
	for _, word := range call.Args {
		if slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool { return !literal(part) }) {
			return false
		}
	}
	return !slices.ContainsFunc(c.Argv, func(a string) bool { return strings.ContainsAny(a, Hole) })
}

// literal reports whether a part of a word is the same whatever the shell knows.
func literal(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return !strings.ContainsAny(p.Value, "*?[~")
	case *syntax.SglQuoted:
		return true
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			if l, ok := q.(*syntax.Lit); !ok || l == nil {
				return false
			}
		}
		return !p.Dollar
	}
	return false
}
