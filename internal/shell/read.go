package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/atip-dev/atip-exec/internal/shell/braces"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

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
	maxText     = shelltext.Max
	maxNodes    = 20000
	maxCommands = 256
	maxNesting  = 8
	maxCwds     = 4
	maxFile     = 256 << 10
	maxPasses   = 3 // of a loop, before what it changes counts as unknown
	maxWords    = braces.Most
	maxUnrolled = 64 // words of a loop, before one stands for the rest
)

// Read reads a text. A *shelltext.SyntaxError says that it is no shell text.
func Read(s string, o Options) (*Script, error) {
	o.Limits = o.Limits.complete()
	file, printed, err := shelltext.Parse(s, o.Dialect, o.Limits.Bytes, o.Script)
	if err != nil {
		return nil, err
	}
	first, set, err := shelltext.Set(o.Set, o.Dialect, o.Limits.Bytes)
	if err != nil {
		return nil, err
	}
	w := &walker{o: o, env: map[string]*variable{}, active: map[any]int{}}
	st := w.start()
	if why := shelltext.Suspicious(s); why != "" {
		w.emit(st, Command{Why: why})
	}
	w.guard(st, func() {
		w.stmts(append(first, file.Stmts...), st)
		w.runTraps(st)
	})
	script := &Script{Text: set + printed, Commands: w.cmds, Flows: w.flows, Pipes: map[string]string{}}
	for path, in := range w.pipes {
		if in.known {
			script.Pipes[path] = in.s
		}
	}
	script.Simple = len(first) == 0 && len(w.cmds) == 1 && simple(file, &w.cmds[0])
	return script, nil
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
