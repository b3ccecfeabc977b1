// Package effects finds out what a command line will do, following every command it starts.
package effects

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/memo"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Site is where commands would run and what is settled before any of them is read.
type Site struct {
	Dirs      place.Dirs
	World     place.World
	Workspace string   // "" for none
	Cwd       string   // of the command line as a whole
	Private   string   // the directory for temporary files and caches of this workspace
	GitDirs   []string // of the workspace
	Environ   []string // of the caller
	UID       int
	Self      string   // this program
	Programs  []string // ours
	Env       policy.EnvPolicy
	Limits    policy.Analysis
	Opener    trust.Opener // without Args
	Shims     shims.Dirs
	Authority Authority
	Memo      *memo.Memo // what plans have looked up together; nil for nothing
	Named     []Named    // what rules name by path

	OwnProxy func(url string) bool // whether a proxy is the one of the run that this program is in
	Starts   bool                  // the plan is made to be run
	Defers   bool                  // words that are not known may be left to the gate
	Splits   bool                  // what a project declares may be fetched beside it
	Apart    bool                  // a run has a loopback and a table of processes of its own
	Fetcher  string                // the program that a run which only fetches was planned with; "" for any other run

	names    []string        // variables of the child, nil until asked for
	steering *[]shell.Assign // of the caller's environment, nil until asked for
}

// Named is an executable that a rule names by its path.
type Named struct {
	Path     string
	Dev, Ino uint64
}

// Authority answers what only a policy and its evidence can.
type Authority interface {
	// Verdict decides about an identified file.
	Verdict(trust.Identity) (trust.Verdict, error)
	// Limited is a verdict on a program whose signature does not cover what it runs, for a reason of trust.
	Limited(v trust.Verdict, why string) trust.Verdict
	// Argument adds what is known against a program text that the file is told to run.
	Argument(v trust.Verdict, id trust.Identity) trust.Verdict
	// Document finds the metadata of a step's tool, and sets what the step says of it.
	Document(*step.Step, shims.Query) (shims.Found, error)
	// Locked asks about a step whose metadata is another than when its tool was locked.
	Locked(*step.Step)
}

// path is the list in which command words are looked up.
func (s *Site) path() []string { return filepath.SplitList(s.Opener.Getenv("PATH")) }

// Expand makes a path of a policy or a document absolute.
func Expand(path, home, cwd string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(home, path[1:])
	}
	return filepath.Clean(subpath.Join(cwd, path))
}

// absolute is a path as the shell would find it, with its patterns.
func (s *Site) absolute(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(s.Dirs.Home, rest)
	}
	return subpath.Join(dir, path)
}

// lookupEnv reads a variable that the child will have.
func (s *Site) lookupEnv(name string) (string, bool) {
	if !slices.Contains(s.envNames(), name) {
		return "", false
	}
	for _, entry := range s.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// envNames lists the variables that the child will have: what scrub drops cannot
// make a tool run anything.
func (s *Site) envNames() []string {
	if s.names == nil {
		for _, entry := range s.Environ {
			name, _, ok := strings.Cut(entry, "=")
			if ok && (!step.LoadsCode(name) || step.MatchesName(s.Env.Pass, name)) {
				s.names = append(s.names, name)
			}
		}
	}
	return s.names
}

// passedLoaders lists the variables of loaders and interpreters that policy passes
// on: no digest covers the code they bring.
func (s *Site) passedLoaders() []string {
	if len(s.Env.Pass) == 0 {
		return nil
	}
	var out []string
	for _, entry := range s.Environ {
		if name, _, ok := strings.Cut(entry, "="); ok && step.LoadsCode(name) && step.MatchesName(s.Env.Pass, name) {
			out = append(out, entry)
		}
	}
	return out
}

// Written reports a path that a confined run of this workspace can write, or make.
func (s *Site) Written(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	return slices.ContainsFunc(append([]string{s.Workspace, s.Private}, append(s.World.TmpDirs, s.GitDirs...)...), func(w string) bool {
		return subpath.Within(real, w) || subpath.Within(filepath.Clean(path), w)
	})
}

const maxScript = 256 << 10

// readText reads a regular file of at most 256 KiB that a shell would run. One that no
// command may read is not read here either: a plan shows the words of what it read.
func (s *Site) readText(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxScript:
		return nil, errors.New("not a small regular file")
	case s.Hides(f):
		return nil, errors.New("it is not to be read")
	}
	return io.ReadAll(io.LimitReader(f, maxScript))
}

// Hides reports an open file whose text must not get into a plan, an error or a record.
func (s *Site) Hides(f *os.File) bool {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		path, err = filepath.EvalSymlinks(f.Name())
	}
	if err != nil {
		return true
	}
	return s.World.Classify(path, atip.AccessRead, false) == atip.ClassSecret || subpath.Within(path, s.World.State) || subpath.Within(path, s.World.Runtime)
}

// realShell is the shell that runs -c, and its dialect.
//
// Where our own program was put in the place of a shell, it is not taken for one.
func (s *Site) realShell() (string, shelltext.Dialect, error) {
	self, _ := os.Stat(s.Self)
	for _, path := range [...]string{"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"} {
		info, err := os.Stat(path)
		if err != nil || self != nil && os.SameFile(info, self) {
			continue
		}
		if filepath.Base(path) == "sh" {
			return path, shelltext.POSIX, nil
		}
		return path, shelltext.Bash, nil
	}
	return "", 0, fault.New(errcode.NotExecutable, "there is no shell: neither /bin/bash nor /bin/sh is one").WithFix("install bash", "")
}

// ownFile reports whether a path is one of our own programs.
func (s *Site) ownFile(canonical string) bool {
	return canonical != "" && slices.Contains(s.Programs, canonical)
}

// shellOfOurs reports a shell name that leads to our own program, as in a directory
// that puts us in front of the shells of an agent.
func (s *Site) shellOfOurs(id trust.Identity) bool {
	switch strings.TrimPrefix(id.Invoked, "-") {
	case "bash", "sh", "zsh":
		return s.ownFile(id.Canonical)
	}
	return false
}

// Reading is what was found out about a command line.
type Reading struct {
	Argv     []string      // the words that start it: of the command, or of a shell with the text
	Steps    []*step.Step  // the command itself first; for a text the shell
	Edges    []policy.Edge // flows between steps that are dangerous as a whole
	Hidden   hiddenSteps   // what scripts of the workspace would run
	Patterns []string      // directories outside the workspace in which a shell looks up words
	PathDirs []string      // directories of installed programs outside the workspace that a text puts into PATH
	Unset    bool          // a text uses a variable that is not set
	Nestable bool          // a command of ours is part of it
	Warnings []string

	Text    string        // what the shell of Argv is to run, "" if there is no shell
	Pinned  int           // how much of it stands before what was read: it names the files of commands
	Pins    bool          // nothing in the text changes which files those are
	Script  *shell.Script // what was read, nil for words
	Dialect shelltext.Dialect

	site    *Site
	source  Text
	targets map[string]bool          // scripts and recipes that were read because a command names them
	found   map[string]*memo.Program // what command words lead to
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
	return &Reading{site: site, found: site.Memo.Known()}
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
	c.pins = c.site.Starts && dialect == shelltext.Bash && keepsPins(script)
	if err := c.script(s, script, nil); err != nil {
		return t.named(err)
	}
	pins := c.pinned(script, dialect)
	c.out.Text, c.out.Pinned, c.out.Pins = pins+script.Text, len(pins), dialect == shelltext.Bash && keepsPins(script)
	c.out.Argv = append(step.ShellArgv(path, dialect, c.out.Text), t.Args...)
	s.Argv = c.out.Argv
	return nil
}

// named says in which file a text is wrong.
func (t Text) named(err error) error {
	if se, ok := err.(*shelltext.SyntaxError); ok && t.File != "" {
		named := *se
		named.File = t.File
		return &named
	}
	return err
}

// mainOptions is what the reader is told about the text that a run was asked for.
func (c *collector) mainOptions(path string, d shelltext.Dialect, t Text) shell.Options {
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
	s.Takes(r)
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
	s.Call = step.HarmlessCall("atip-exec", words, atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "digest", Source: step.OwnSource})
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

// recall takes over what an earlier step found out about the same word in the same
// directory. It is the same file, which that step holds.
func (c *collector) recall(s *step.Step) bool {
	have := c.found[s.Argv[0]+"\x00"+s.Cwd+"\x00"+c.moved]
	if have == nil {
		have = c.site.Memo.Lasting(s.Argv[0])
	}
	if have == nil || len(s.Argv) > 1 && strings.HasPrefix(s.Argv[1], "+") || have.Missing != nil && strings.ContainsRune(s.Argv[0], '/') {
		return false // whether a part of the text may make the file is another question each time
	}
	s.ID, s.Verdict, s.Missing, s.File, s.Trust = have.ID, have.Verdict, have.Missing, have.File, have.Trust
	s.File.Names = s.File.Names[:len(s.File.Names):len(s.File.Names)]
	return true
}

func (c *collector) remember(s *step.Step) {
	if c.found == nil {
		c.found = map[string]*memo.Program{}
	}
	know := &memo.Program{ID: s.ID, Verdict: s.Verdict, Missing: s.Missing, File: s.File, Trust: s.Trust}
	c.found[s.Argv[0]+"\x00"+s.Cwd+"\x00"+c.moved] = know
	if c.moved == "" && c.found[s.Argv[0]] == nil {
		c.found[s.Argv[0]] = know
	}
	if m := c.site.Memo; m.OfRun() && s.Executable != nil && len(c.site.Env.Pass) == 0 {
		if file, ok := c.site.Opener.Lasting(s.Executable); ok {
			m.Keep(s.Argv[0], file, know)
		}
	}
}

// serviceHosts are the hosts that the metadata of a tool lists as its own. They can only
// narrow what it reaches, so an entry that cannot be read is left out.
func (c *collector) serviceHosts(s *step.Step) []string {
	var out []string
	for _, h := range s.Call.Hosts {
		if _, err := proxy.Compile(proxy.Config{Allow: []string{h}}); err != nil {
			c.out.Warnings = append(c.out.Warnings, "metadata of "+s.Call.Tool+": x-atip-hosts: "+strconv.Quote(h)+" is not a host")
			continue
		}
		out = append(out, h)
	}
	if len(out) == 0 && len(s.Call.Hosts) > 0 {
		out = []string{"none.invalid"} // a list was meant; RFC 2606 keeps this name without an address
	}
	return out
}

// knownPart is the step of a command without the words that are not known, for a plan that
// leaves them to the gate: nil if the program would not be started by an execve of its own.
func (c *collector) knownPart(s *step.Step, argv []string) (*step.Step, error) {
	if !c.site.Defers || c.peeking {
		return nil, nil
	}
	t := &step.Step{Executable: s.Executable, ID: s.ID, Verdict: s.Verdict, Missing: s.Missing}
	t.Step = s.Step
	t.Call, t.Hosts, t.ServiceHosts, t.Entitled, t.RunsCode = atip.Call{}, nil, nil, nil, policy.CodeNone
	t.Confidence = policy.Exact
	t.Argv = slices.DeleteFunc(slices.Clone(argv), func(w string) bool { return strings.IndexByte(w, 0) >= 0 })
	if strings.IndexByte(argv[0], 0) >= 0 {
		// As a builtin of the shell: it starts nothing that is not asked about.
		t.Argv = step.Shown(argv)
		t.Call = c.nothingYet(t.Argv)
		t.File = policy.FileFacts{Believed: true, SystemPath: true, Names: t.Argv[:1]}
		return t, nil
	}
	if err := c.resolve(t); err != nil {
		return nil, err
	}
	if s.RunsCode == policy.CodeOpaque {
		// The code is among the words: what it does is decided when it starts.
		t.RunsCode = policy.CodeNone
		for e := range t.Call.Effects {
			if t.Call.Effects[e].Value == atip.Unknown || atip.Effect(e) == atip.ExecOpaque {
				t.Call.Effects[e] = step.Harmless(atip.Effect(e), "decided at exec")
			}
		}
	}
	t.Argv = step.Shown(argv)
	return t, nil
}

// nothingYet is the call of a program that is not known before it starts.
func (c *collector) nothingYet(argv []string) atip.Call {
	return step.HarmlessCall(argv[0], argv, atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "none", Source: "decided at exec"})
}
