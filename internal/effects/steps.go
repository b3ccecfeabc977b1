package effects

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/memo"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// maxDepth is how many wrappers inside each other are looked into; what lies
// deeper is opaque.
const maxDepth = 8

// collector turns commands into steps: identify, look up, resolve, recurse.
type collector struct {
	site   *Site
	out    *Reading
	path   []string // PATH of the child
	serves bool     // something of the text's own runs in the background by now
	moved  string   // the PATH that the text itself set, "" for the one of the child
	steps  []*step.Step
	edges  []policy.Edge // flows between steps that are dangerous as a whole

	ctx       *surroundings // of the command at hand, if a shell string has it
	offline   [][2]string   // variables of a command for which was fetched what it needs, while it is resolved
	found     map[string]*memo.Program
	sinks     map[*step.Step]sink
	writers   map[string][]written
	fileEdges [][2]*step.Step
	dashed    map[string]bool
	made      []madeLink // by ln, in the text
	tracked   bool       // what reads names at hand reads those of files that git tracks
	peeking   bool       // inside a script of the workspace
	depth     int        // how many of them
	pins      bool       // the text keeps the files that its shell was told of
	sourced   bool       // the shell took in a file of the workspace that cannot be read yet

	unsetUnknown bool // a variable that is not set may hold anything
}

// add appends the step of argv and the steps of the commands inside it.
func (c *collector) add(argv, via []string, cwd string, confidence policy.Confidence) error {
	if len(c.steps) > step.MaxSteps {
		return step.ErrTooMany
	}
	if dir, name := filepath.Split(argv[0]); strings.IndexByte(dir, 0) >= 0 && name != "" && strings.IndexByte(name, 0) < 0 {
		// `$(go env GOPATH)/bin/x` is what x would be with that directory in front of PATH.
		at := len(c.steps)
		list := append([]string{dir}, c.path...)
		err := c.lookedUpIn([]string{strings.Join(list, string(filepath.ListSeparator))}, func() error {
			return c.add(append([]string{name}, argv[1:]...), via, cwd, policy.Bounded)
		})
		if err == nil {
			c.note(c.steps[at], sinkWord)
		}
		return err
	}
	if strings.IndexByte(argv[0], 0) >= 0 {
		s := c.opaqueStep(c.steps[0], argv, via, cwd, "the command word is not known")
		c.note(s, sinkWord|sinkStdin)
		var err error
		if s.Known, err = c.knownPart(s, argv); err != nil {
			return err
		}
		if len(argv) > 2 && (strings.HasPrefix(argv[1], "-rf") || strings.HasPrefix(argv[1], "-fr") || strings.HasPrefix(argv[1], "-Rf")) {
			// Whatever the word is: nothing else takes these options.
			for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive} {
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "word " + argv[1], Rank: atip.Inferred}
			}
		}
		c.steps = append(c.steps, s)
		return nil
	}
	s := &step.Step{Argv: argv}
	s.Via, s.Cwd, s.Confidence = via, cwd, confidence
	if err := c.identify(s); err != nil {
		return err
	}
	if err := c.resolve(s); err != nil {
		return err
	}
	c.steps = append(c.steps, s)
	c.given(s)
	c.linked(s)
	if err := c.runsWritten(s); err != nil {
		return err
	}
	if err := c.nested(s); err != nil {
		return err
	}
	c.targets(s)
	if s.RunsCode == policy.CodeProject || s.RunsCode == policy.CodeInline {
		for e, f := range s.Call.Effects {
			if f.Upper {
				s.Call.Effects[e] = step.Harmless(atip.Effect(e), f.Source) // what an option may be that is not known is for the kernel, as that code is
			}
		}
		if e := s.Call.Effects[atip.ExecOpaque]; e.Value == atip.Yes && (s.Certainty() == "exact" || step.NamesOption(s)) && e.Clause != "" && e.Clause != "base" && !strings.HasPrefix(e.Clause, "env:") {
			// Besides code of the workspace it runs what its words name. Variables are weighed
			// by themselves; those of the caller are configuration.
			s.RunsCode = policy.CodeOpaque
		}
	}
	c.writtenCode(s)
	c.tails(s)
	if err := c.split(s); err != nil {
		return err
	}
	if step.HasHole(argv) || s.RunsCode == policy.CodeOpaque && step.IsShell(s.ID.Effective) {
		// Words that are not known, or a shell whose commands are not.
		var err error
		if s.Known, err = c.knownPart(s, argv); err != nil {
			return err
		}
	}
	return nil
}

// writtenCode reads what the text itself has put into files of the workspace before it runs
// their code: pytest loads a conftest.py that nobody names.
func (c *collector) writtenCode(s *step.Step) {
	if s.RunsCode != policy.CodeProject || c.peeking {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(c.writers)) {
		if !c.ofWorkspace(path) || filepath.Ext(path) == ".md" || filepath.Ext(path) == ".txt" {
			continue
		}
		text, ok := constantText(c.writers[path])
		if at := c.index(s); at > 0 && (!ok || filepath.Ext(path) == ".json") {
			c.target(s, s.Cwd, path+"\x00"+strconv.Itoa(len(c.writers[path])), append(commandsIn(c.steps[1:at]), step.Literals(text)...))
		}
		if ok {
			c.peekCode(s, text)
			if step.Raises(text) {
				s.RunsCode = max(s.RunsCode, c.raised(s, text))
			}
		}
	}
}

// commandsIn are the texts of several words in a text that wrote a file of code: a script of package.json that jq or
// sed puts there is one of them.
func commandsIn(steps []*step.Step) (out []string) {
	for _, s := range steps {
		for _, w := range s.Argv[1:] {
			for _, text := range step.CommandTexts(w) {
				if strings.Contains(text, " ") && s.Call.Tool != "git" { // whose messages are no code
					out = append(out, text)
				}
			}
		}
	}
	return out
}

func (c *collector) identify(s *step.Step) error {
	if c.recall(s) {
		return nil
	}
	p := c.site
	opener := p.Opener
	opener.Args = s.Argv[1:]
	file, err := opener.Open(s.Argv[0], c.path, s.Cwd)
	if err == nil && p.shellOfOurs(file.Identity()) {
		// Its command line is judged here; the shell behind it can run it at once.
		file.Close()
		var path string
		if path, _, err = p.realShell(); err != nil {
			return err
		}
		file, err = opener.Open(path, c.path, s.Cwd)
	}
	var notFound *trust.NotFoundError
	if errors.As(err, &notFound) {
		// Judged by metadata alone; the run ends before anything is started.
		s.Missing = err
		base := filepath.Base(s.Argv[0])
		s.ID = trust.Identity{Word: s.Argv[0], Argv0: s.Argv[0], Effective: base, Invoked: base}
		s.Verdict = trust.Verdict{Level: trust.Unsigned, Reason: "not_found", Action: trust.Allow}
	} else if err != nil {
		return err
	} else {
		s.Executable, s.ID = file, file.Identity().WithEnvironment(p.passedLoaders())
		if s.Verdict, err = p.Authority.Verdict(s.ID); err != nil {
			file.Close()
			s.Executable = nil
			return err
		}
	}
	s.File = policy.FileFacts{Canonical: s.ID.Canonical, Place: s.ID.Place, Digest: s.ID.Digest, InWorkspace: subpath.Within(s.ID.Canonical, p.Workspace),
		Believed: step.Believed(s.Verdict), SystemPath: s.ID.SystemPath, Names: []string{s.ID.Effective, s.ID.Invoked}}
	for _, n := range p.Named {
		if n.Ino != 0 && n.Ino == s.ID.Ino && n.Dev == s.ID.Dev {
			s.File.Names = append(s.File.Names, n.Path)
		}
	}
	if s.Missing != nil && c.ctx != nil && strings.IndexByte(s.Argv[0], '/') >= 0 {
		// A part of the text may build it first; judged by its place.
		s.File.InWorkspace = subpath.Within(filepath.Clean(subpath.Join(s.Cwd, s.Argv[0])), p.Workspace)
	}
	if c.foundByMovedPath(s) {
		// By the time it runs, the name may lead to a file of the workspace.
		s.File.InWorkspace, s.File.Believed = true, false
	}
	s.Trust = step.TrustFacts(s.Verdict)
	c.remember(s)
	return nil
}

// query says what is known of the program of a step when a document is looked up for it.
func query(s *step.Step) shims.Query {
	q := shims.Query{Digest: s.ID.Digest, Effective: s.ID.Effective, Invoked: s.ID.Invoked, Believed: step.Believed(s.Verdict),
		Verified: s.Verdict.Level == trust.Verified, NameOnly: s.ID.Manager != ""}
	if q.NameOnly {
		// All shims of a manager are one program; the name says which tool is meant.
		q.Effective = s.ID.Invoked
	}
	if s.Missing != nil && !strings.ContainsRune(s.Argv[0], '/') {
		// No bytes to doubt: the curated document of that name is the best answer. A
		// path may name something else by the time it runs.
		q.Believed = true
	}
	if s.ID.SystemPath && s.ID.Place != "" {
		q.Borrow = filepath.Base(s.ID.Place)
	}
	if target, ok := s.ID.Target(); ok {
		q.Believed = target.SystemPath || target.OwnPath && q.Believed
	}
	return q
}

func (c *collector) resolve(s *step.Step) error {
	p := c.site
	if c.ownCall(s) {
		return nil
	}
	found, err := p.Authority.Document(s, query(s))
	if err != nil {
		return err
	}
	words := s.Argv
	switch {
	case step.IsShell(s.ID.Effective) || step.IsShell(s.ID.Invoked):
		words = step.ShellWords(words)
	case s.ID.Effective == "env":
		words = c.withoutSame(step.EnvWords(words), s.Cwd)
	case s.ID.Effective == "git":
		words = gitrepo.Unalias(words, p.Dirs.Home, func(name string) bool { return len(found.Resolve([]string{"git", name}, c.environment()).Path) > 0 })
	case s.ID.Effective == "zip":
		words = step.ZipWords(words)
	case s.ID.Effective == "sqlite3" && c.ctx != nil && c.ctx.stdin != nil:
		words = step.SQLiteWords(words, *c.ctx.stdin)
	case len(words) > 1 && strings.HasPrefix(words[1], "+") && step.Rustup(s.ID.Effective):
		words = append(words[:1:1], words[2:]...)
	case strings.HasPrefix(s.ID.Effective, "perl"):
		words = step.PerlWords(words)
	}
	s.Call, s.OneTool = found.Resolve(words, c.environment()), found.OneTool()
	if s.Call.Tool == "git" && s.Call.Effects[atip.ExecOpaque].Value == atip.Yes {
		if rest := gitrepo.WithoutInert(words); rest != nil {
			s.Call.Effects[atip.ExecOpaque] = found.Resolve(rest, c.environment()).Effects[atip.ExecOpaque]
		}
	}
	judgeSetting(&s.Call)
	if local := c.installed(s, words); local != nil {
		s.Call = found.Resolve(local, c.environment())
		s.Call.Options = []atip.OptionUse{} // --no was not typed
	}
	if d := found.Document; d != nil && d.Primes() {
		s.Primes = &step.Primes{Metadata: d.PrimesMetadata()}
	}
	p.Authority.Locked(s)
	if s.Verdict.Reason == "own_path" && s.Call.Effects[atip.Network].Value != atip.No && (p.Fetcher == "" || p.Fetcher != s.ID.Canonical) {
		// The kernel holds it to this machine, or a person is asked. A run that fetches has nothing
		// that a toolchain of the user could give away, which no run can have changed.
		s.Verdict.Action, s.File.Believed = trust.Confirm, false
		s.Trust = step.TrustFacts(s.Verdict)
	}
	if step.OnlyHelp(s) {
		step.HarmlessHelp(&s.Call)
	}
	c.upper(found, s)
	if name := s.Call.Tool; name != "" && !slices.Contains(s.File.Names, name) {
		s.File.Names = append(s.File.Names, name)
	}
	s.RunsCode = policy.CodeNone
	if s.File.InWorkspace || len(s.Via) > 0 && c.searchesWorkspace() && !strings.ContainsRune(s.Argv[0], '/') {
		s.RunsCode = policy.CodeProject
	}
	c.siftedDeletes(s)
	world := p.World
	// What can be built again and what git tracks matters only to who destroys it.
	world.Detail = s.Call.Effects[atip.Delete].Value != atip.No || s.Call.Effects[atip.Destructive].Value != atip.No
	for i := range s.Call.Resources {
		c.place(world, &s.Call.Resources[i], subpath.Join(s.Cwd, s.Call.Chdir))
		c.asked(s, &s.Call.Resources[i])
		c.ownFile(s, &s.Call.Resources[i], nil)
		s.Raise(s.Call.Resources[i])
	}
	c.meant(s)
	c.into(s)
	c.prefixed(s)
	c.below(s)
	step.Manages(s)
	c.worksOutside(s)
	c.settle(s)
	for _, f := range s.Call.CodeFiles {
		p.checkCodeFile(s, f)
	}
	c.manifests(s)
	step.LocalURLs(s)
	remotes, configured := c.remotes(s)
	step.ReadURLs(s)
	s.Hosts = append(remotes, step.Hosts(s, configured)...)
	s.ServiceHosts = c.serviceHosts(s)
	c.redirected(s)
	c.environed(s)
	c.led(s)
	if s.Call.Provenance.Rank >= atip.Org {
		for _, path := range s.Call.Paths {
			if abs := Expand(path, p.Dirs.Home, p.Cwd); p.World.Classify(abs, atip.AccessRead, false) == atip.ClassSecret {
				s.Entitled = append(s.Entitled, abs)
			}
		}
	}
	return nil
}

// withoutSame takes from the words of env what leaves the command as it would be: variables that have this value
// already, and a PATH that still tells what runs.
func (c *collector) withoutSame(words []string, cwd string) []string {
	from, to := step.EnvAssigns(words)
	paths := 0
	for _, w := range words[from:to] {
		if strings.HasPrefix(w, "PATH=") {
			paths++
		}
	}
	out := slices.Clone(words[:from])
	for _, w := range words[from:to] {
		name, value, _ := strings.Cut(w, "=")
		if have, set := c.lookupEnv(name); set && have == value && paths < 2 || name == "PATH" && paths == 1 && c.knownPath(value, cwd) {
			continue
		}
		out = append(out, w)
	}
	return append(out, words[to:]...)
}

// nested looks into the commands inside a step.
func (c *collector) nested(s *step.Step) error {
	if why := step.LimitOf(s); why != "" {
		c.limit(s, why)
	}
	for _, n := range s.Call.Nested {
		switch n.File {
		case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
			n.File = "-"
		}
		if err := c.holdCode(s, n.File); err != nil {
			return err
		}
		if handled, err := c.fed(s, n, append(append([]string{}, s.Via...), s.ID.Invoked)); err != nil {
			return err
		} else if handled {
			continue
		}
		switch {
		case n.Kind == "argv" && len(n.Argv) > 0 && len(s.Via) < maxDepth:
			via := append(append([]string{}, s.Via...), s.ID.Invoked)
			first := len(c.steps)
			add := func() error {
				return c.add(c.searched(s, n.Argv), via, subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact)
			}
			env := step.Assigned(s, n.Argv)
			if at := slices.IndexFunc(env, func(a shell.Assign) bool { return a.Name == "PATH" }); at >= 0 && s.Call.Tool == "env" && c.knownPath(env[at].Value, s.Cwd) {
				inner := add
				add = func() error { return c.lookedUpIn([]string{env[at].Value}, inner) }
			}
			if err := c.setting(env, add); err != nil {
				return err
			}
			if len(c.steps) > first {
				c.limit(c.steps[first], trust.CapIndirectStart)
			}
			c.throughout(s, c.steps[first:])
			if argv := c.onCredentials(s, n.Argv); argv != nil {
				if err := c.add(argv, via, subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact); err != nil {
					return err
				}
			}
		case n.Kind == "shell" && n.Text != "" && len(s.Via) < maxDepth:
			via := append(append([]string{}, s.Via...), s.ID.Invoked)
			if err := c.shell(s, n.Text, "", via); err != nil {
				return err
			}
		default:
			s.RunsCode = max(s.RunsCode, c.codeKind(s, n))
			if argv := step.PythonModule(s, n); argv != nil && len(s.Via) < maxDepth {
				if err := c.add(argv, append(append([]string{}, s.Via...), s.ID.Invoked), subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// limit keeps a step from counting as verified: its signature covers the program and not what the
// program runs.
func (c *collector) limit(s *step.Step, why string) {
	if s.Missing != nil || s.ID.HasCap(why) {
		return
	}
	s.ID = s.ID.WithCaps(why)
	s.Verdict = c.site.Authority.Limited(s.Verdict, why)
	s.Trust, s.File.Believed = step.TrustFacts(s.Verdict), s.File.Believed && step.Believed(s.Verdict)
}

// holdCode holds the program text that the command itself is told to run, as the command is held:
// the start compares it with what was read here. What a text starts is not held, since an earlier
// part may write it first, and neither is a name that leads to no file yet.
func (c *collector) holdCode(s *step.Step, file string) error {
	if file == "" || file == "-" || step.HarmlessFile(file) || len(s.Via) > 0 { // a descriptor of the command is none of ours
		return nil
	}
	if s.Executable == nil {
		if !c.site.Memo.OfRun() || s.Missing != nil {
			return nil
		}
		f, err := c.site.Opener.Open(s.Argv[0], c.path, s.Cwd)
		if err != nil {
			return err
		}
		if s.Executable = f; f.Identity().Digest != s.ID.Digest {
			return &trust.ChangedError{Path: s.ID.Canonical, Why: "it was replaced while it was judged"}
		}
	}
	err := c.site.Opener.HoldArgument(s.Executable, file, subpath.Join(s.Cwd, s.Call.Chdir))
	var none *trust.NotFoundError
	var no *trust.NotExecutableError
	if errors.As(err, &none) || errors.As(err, &no) {
		return nil // the program itself says why it cannot read it
	}
	if err != nil {
		return err
	}
	s.ID.Chain = s.Executable.Identity().Chain
	s.Verdict = c.site.Authority.Argument(s.Verdict, s.ID)
	s.Trust, s.File.Believed = step.TrustFacts(s.Verdict), s.File.Believed && step.Believed(s.Verdict)
	return nil
}

// raised shows the effect that a program text raises by, and says what code it is then.
func (c *collector) raised(s *step.Step, text string) policy.CodeKind {
	s.ShowRemoval(text)
	if c.removesInside(s, text) {
		return policy.CodeInline
	}
	return policy.CodeOpaque
}

// codeKind says whose code a nested program text is.
func (c *collector) codeKind(s *step.Step, n atip.Nested) policy.CodeKind {
	switch {
	case n.Kind == "argv" && len(n.Argv) == 0:
		return policy.CodeNone
	case n.Kind == "argv", n.Language == "project" && step.RunsModule(s), step.FetchedCode(s, n):
		return policy.CodeOpaque
	case n.Language == "python-module" && slices.ContainsFunc(s.Argv, step.Raises): // timeit
		return policy.CodeOpaque
	case n.Language == "project":
		return policy.CodeProject
	case n.Text != "" && step.Raises(n.Text):
		return c.raised(s, n.Text)
	case n.Text != "" && c.ctx != nil && c.ctx.stdin != nil && step.Raises(*c.ctx.stdin):
		s.ShowRemoval(*c.ctx.stdin) // python3 -ic …, code.interact()
		return policy.CodeOpaque
	case n.File == "-" && c.ctx != nil && c.ctx.stdin != nil && step.Raises(*c.ctx.stdin):
		return c.raised(s, *c.ctx.stdin)
	case n.Text != "" || n.File == "-":
		return policy.CodeInline
	case n.Kind == "shell" && c.searchedScript(s, n.File):
		return policy.CodeOpaque
	case n.File != "":
		r := atip.Resource{Kind: "path", Value: n.File, Access: atip.AccessRead}
		c.site.World.Fill(&r, subpath.Join(s.Cwd, s.Call.Chdir))
		switch r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable, atip.ClassTmp:
			return policy.CodeProject
		case atip.ClassSystem:
			return policy.CodeInline
		}
	}
	return policy.CodeOpaque
}

// ownCall reads the words of our own programs: what they wrap is judged as if it stood
// alone, and what only a person may do is denied by its verb. It returns false for any
// other program.
func (c *collector) ownCall(s *step.Step) bool {
	if !c.site.ownFile(s.ID.Canonical) || s.Missing != nil {
		return false
	}
	s.Verdict = trust.Verdict{Level: s.Verdict.Level, Reason: "own_program", Action: trust.Allow}
	s.Trust = policy.TrustFacts{Level: s.Verdict.Level.String(), Reason: s.Verdict.Reason, Action: policy.Allow}
	s.File.Believed = true
	c.out.Nestable = true
	line := step.ReadOwnLine(s.ID.Invoked, s.Argv[1:])
	if line.Unknown {
		s.Call = atip.UnknownCall(step.Shown(s.Argv), s.ID.Invoked)
		s.Call.Path = line.Verb
		s.RunsCode = policy.CodeOpaque
		return true
	}
	s.Call = step.HarmlessCall("atip-exec", s.Argv, atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "digest", Source: step.OwnSource})
	s.Call.InvokedAs, s.Call.Resources, s.Call.Nested, s.Call.Chdir = s.ID.Invoked, line.Resources, line.Nested, line.Dir
	s.Call.Effects[atip.Subprocess].Value = atip.Yes
	if len(line.Verb) > 0 {
		s.Call.Path = line.Verb
	} else {
		// As of a shell, what counts is what it runs.
		s.Call.Tool = ":"
	}
	for i := range s.Call.Resources {
		c.place(c.site.World, &s.Call.Resources[i], subpath.Join(s.Cwd, s.Call.Chdir))
		s.Raise(s.Call.Resources[i])
		if s.Call.Resources[i].Access&atip.AccessWrite != 0 {
			s.Call.Effects[atip.Write].Value = atip.Yes
		}
	}
	return true
}

// installed are the words of an npx or npm exec whose command is installed in the project: it runs
// that and fetches nothing (libnpmexec, localFileExists), as --no says in so many words. Where the
// file goes meanwhile, the run has no network to fetch another.
func (c *collector) installed(s *step.Step, words []string) []string {
	at := 1
	switch call := &s.Call; {
	case call.Tool == "npx":
	case call.Tool == "npm" && slices.Equal(call.Path, []string{"exec"}) && len(words) > 1 && (words[1] == "exec" || words[1] == "x"):
		if at = 2; len(words) > 2 && words[2] == "--" {
			at = 3
		}
	default:
		return nil
	}
	if len(words) <= at || len(s.Call.Options) > 0 || len(s.Call.Positionals) == 0 || s.Call.Positionals[0].Value != words[at] || !step.BinName(words[at]) || c.ctx != nil && c.ctx.cwdUnknown {
		return nil
	}
	for dir := subpath.Join(c.site.Cwd, s.Cwd); subpath.Within(dir, c.site.Workspace); dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "node_modules", ".bin", words[at])); err == nil && info.Mode().IsRegular() {
			if words[at-1] == "--" {
				at--
			}
			return slices.Insert(slices.Clone(words), at, "--no")
		}
	}
	return nil
}

// derived reports a step that makes a file out of files of the workspace alone, none of which came
// from elsewhere in this text: what it makes is code of the workspace, as they are.
func (c *collector) derived(s *step.Step, depth int) bool {
	switch s.Call.Tool {
	case "strip", "ranlib", "cp", "mv", "install":
	default:
		return false
	}
	if depth > maxPeekDepth || s.Confidence != policy.Exact || s.Call.Exactness != atip.Exact || s.RunsCode != policy.CodeNone || s.Call.Effects[atip.Network].Value != atip.No {
		return false
	}
	for _, r := range s.Call.Resources {
		switch r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
		case atip.ClassTmp:
			if r.Access&atip.AccessRead != 0 {
				return false
			}
		default:
			return false
		}
		if slices.ContainsFunc(c.writers[r.Abs], func(w written) bool { return w.by != s && !c.codeOfWorkspace(w, depth+1) }) {
			return false
		}
	}
	return len(s.Call.Resources) > 0
}

// codeOfWorkspace reports a file that a step of the text made out of the workspace's own.
func (c *collector) codeOfWorkspace(w written, depth int) bool {
	return step.Builds(w.by) && w.by.Call.Effects[atip.Network].Value != atip.Yes || c.derived(w.by, depth)
}
