package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// Reading is what was found out about a command line.
type Reading struct {
	Argv     []string      // the words that start it: of the command, or of a shell with the text
	Steps    []*step.Step  // the command itself first; for a text the shell
	Edges    []policy.Edge // flows between steps that are dangerous as a whole
	Hidden   hiddenSteps   // what scripts of the workspace would run
	Patterns []string      // directories outside the workspace in which a shell looks up words
	Unset    bool          // a text uses a variable that is not set
	Nestable bool          // a command of ours is part of it
	Warnings []string

	Text    string        // what the shell of Argv is to run, "" if there is no shell
	Script  *shell.Script // what was read, nil for words
	Dialect shell.Dialect

	site    *Site
	source  Text
	targets map[string]bool        // scripts and recipes that were read because a command names them
	found   map[string]*identified // what command words lead to
}

// Text is a shell text to read.
type Text struct {
	Source string
	File   string   // that it was read from, "-" for standard input, "" for -c
	Hidden bool     // the file is not to be read, and Source is empty
	Set    []string // options of the shell, as words of `set`
	Args   []string // what the text finds as $0, $1 and so on
}

// Words reads one command. The reading holds what was found out before an error, too; the
// caller closes the files of its steps.
func (site *Site) Words(argv []string) (*Reading, error) {
	r := site.reading()
	r.Argv = argv
	c := r.collector()
	err := c.add(argv, nil, site.Cwd, policy.Exact)
	c.meet()
	r.Steps, r.Edges = c.steps, c.edges
	return r, err
}

// Text reads a text whole before anything is decided. A text that is one plain command needs
// no shell. As for Words, the reading counts beside an error, too.
func (site *Site) Text(t Text) (*Reading, error) {
	r := site.reading()
	r.source = t
	c := r.collector()
	err := c.text(t)
	c.meet()
	r.Steps, r.Edges = c.steps, c.edges
	return r, err
}

func (site *Site) reading() *Reading {
	return &Reading{site: site, found: site.Memo.known()}
}

func (r *Reading) collector() *collector {
	return &collector{site: r.site, out: r, path: r.site.path(), found: r.found}
}

// Doubted reads the same once more, with every variable that is not set standing for
// anything. Its steps hold no files.
func (r *Reading) Doubted() (steps []*step.Step, edges []policy.Edge, err error) {
	c := r.collector()
	c.steps, c.unsetUnknown = []*step.Step{r.Steps[0]}, true
	err = c.again(r)
	c.meet()
	for _, s := range c.steps[1:] {
		if s.Executable != nil {
			s.Executable.Close()
			s.Executable = nil
		}
	}
	return c.steps, c.edges, err
}

// again appends the steps of a reading's own words or text.
func (c *collector) again(r *Reading) error {
	if r.Script == nil {
		return c.add(r.Argv, nil, c.site.Cwd, policy.Exact)
	}
	path, dialect, err := c.site.realShell()
	if err != nil {
		return err
	}
	script, err := shell.Read(r.source.Source, c.mainOptions(path, dialect, r.source))
	if err != nil {
		return err
	}
	return c.script(r.Steps[0], script, nil)
}

// text plans a shell text.
func (c *collector) text(t Text) error {
	path, dialect, err := c.site.realShell()
	if err != nil {
		return err
	}
	script, err := shell.Read(t.Source, c.mainOptions(path, dialect, t))
	if err != nil {
		return t.named(err)
	}
	c.out.Script, c.out.Dialect = script, dialect
	if script.Simple {
		c.out.Argv = script.Commands[0].Argv
		return c.add(c.out.Argv, nil, c.site.Cwd, policy.Exact)
	}
	c.out.Argv = append(step.ShellArgv(path, dialect, script.Text), t.Args...)
	s := &step.Step{Argv: c.out.Argv}
	s.Cwd, s.Confidence = c.site.Cwd, policy.Exact
	if err := c.identify(s); err != nil {
		return err
	}
	if err := c.resolve(s); err != nil {
		return err
	}
	c.readable(s)
	s.RunsCode = policy.CodeNone
	// What the shell does is in the steps. A list of permitted tools is about those.
	s.Call.Tool = ":"
	c.steps = append(c.steps, s)
	if t.File != "" && t.File != "-" {
		c.readsScript(s, t)
	}
	c.pins = c.site.Starts && dialect == shell.Bash && keepsPins(script)
	if err := c.script(s, script, nil); err != nil {
		return t.named(err)
	}
	c.out.Text = c.pinned(script, dialect) + script.Text
	c.out.Argv = append(step.ShellArgv(path, dialect, c.out.Text), t.Args...)
	s.Argv = c.out.Argv
	return nil
}

// named says in which file a text is wrong.
func (t Text) named(err error) error {
	if se, ok := err.(*shell.SyntaxError); ok && t.File != "" {
		named := *se
		named.File = t.File
		return &named
	}
	return err
}

// mainOptions is what the reader is told about the text that a run was asked for.
func (c *collector) mainOptions(path string, d shell.Dialect, t Text) shell.Options {
	o := c.options(c.site.Cwd)
	o.Dialect, o.Name, o.Set, o.Script = d, path, t.Set, t.File != ""
	if len(t.Args) > 0 {
		o.Name, o.Args = t.Args[0], t.Args[1:]
	}
	return o
}

// readsScript adds to the shell's step that it reads a file. One that must not be read
// stands for anything.
func (c *collector) readsScript(s *step.Step, t Text) {
	r := atip.Resource{Kind: "path", Value: t.File, Access: atip.AccessRead, Why: "script"}
	c.site.World.Fill(&r, c.site.Cwd)
	s.Raise(r)
	s.Call.Resources = append(s.Call.Resources, r)
	if t.Hidden {
		c.steps = append(c.steps, c.opaqueStep(s, []string{t.File}, nil, s.Cwd, "the script is not a file to be read"))
	}
}

// KnownTool is the call of a tool with no words, if it is there and known by metadata
// of at least this rank; ok is false otherwise.
func (site *Site) KnownTool(tool string, rank atip.Rank) (call atip.Call, ok bool) {
	c := site.reading().collector()
	s := &step.Step{Argv: []string{tool}}
	s.Cwd, s.Confidence = site.Cwd, policy.Exact
	if tool == "" || strings.ContainsAny(tool, "/\x00") || c.identify(s) != nil {
		return call, false
	}
	if s.Executable != nil {
		defer s.Executable.Close()
	}
	if c.resolve(s) != nil || s.Missing != nil || s.Call.Provenance.Rank < rank {
		return call, false
	}
	return s.Call, true
}

// OwnStep is what a program of ours itself does for a call: it reads and writes paths.
func (site *Site) OwnStep(words []string, paths []atip.Resource) *step.Step {
	s := &step.Step{Argv: words}
	s.Cwd, s.Confidence, s.RunsCode = site.Cwd, policy.Exact, policy.CodeNone
	s.Trust = policy.TrustFacts{Level: "verified", Reason: "own_program", Action: policy.Allow}
	s.File.Believed = true
	s.Call = atip.Call{Tool: "atip-exec", InvokedAs: "atip-exec", Argv: words, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Secrets: []string{}, Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "digest", Source: step.OwnSource}}
	for e := range s.Call.Effects {
		s.Call.Effects[e] = step.Harmless(atip.Effect(e), step.OwnSource)
	}
	c := site.reading().collector()
	for _, r := range paths {
		c.place(site.World, &r, site.Cwd)
		s.Raise(r)
		if r.Access&atip.AccessWrite != 0 {
			s.Call.Effects[atip.Write].Value = atip.Yes
		}
		s.Call.Resources = append(s.Call.Resources, r)
	}
	return s
}
