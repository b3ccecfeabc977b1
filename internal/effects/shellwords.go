package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// lookup finds the curated metadata of a builtin of the shell.
func (c *collector) lookup(name string) (shims.Found, error) {
	return c.site.Memo.Lookup(shims.Query{Effective: name, Invoked: name, Believed: true}, c.site.Shims)
}

// settle completes a call with what its words leave open: options that a word may
// turn out to be, paths that are not known, variables in front of the command.
func (c *collector) settle(s *step.Step) {
	c.filesFrom(s)
	if c.ctx == nil {
		return
	}
	c.matches(s)
	c.wroteAll(s)
	if step.HasHole(s.Call.Argv) {
		s.Confidence = min(s.Confidence, policy.Bounded)
		c.hideHoles(s)
	}
	if c.ctx.cwdUnknown && len(s.Call.CodeFiles) > 0 {
		s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "directory", Rank: atip.Vendor}
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
	}
	for _, a := range c.ctx.env {
		c.steered(s, a)
	}
}

// filesFrom adds the files that a command reads because a list names them, as far as that is known: `tar -T LIST`,
// `wc --files0-from=LIST`.
func (c *collector) filesFrom(s *step.Step) {
	for _, o := range s.Call.Options {
		if o.Name != "files-from" && o.Name != "files0-from" || o.Value == "" || strings.IndexByte(o.Value, 0) >= 0 {
			continue
		}
		path := c.absolutePath(o.Value, subpath.Join(s.Cwd, s.Call.Chdir))
		var list string
		if o.Value == "-" && c.ctx != nil && c.ctx.stdin != nil {
			list = *c.ctx.stdin
		} else if text, ok := constantText(c.writers[path]); ok && len(c.writers[path]) > 0 {
			list = text
		} else if raw, err := c.site.readText(path); err == nil {
			list = string(raw)
		}
		for i, name := range strings.FieldsFunc(list, func(r rune) bool { return r == '\n' || r == 0 }) {
			if i == MaxMatches {
				break
			}
			r := atip.Resource{Kind: "path", Value: name, Access: atip.AccessRead, Recursive: step.Recursive(s), Why: o.Flag + " " + o.Value}
			if c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class == atip.ClassSecret {
				s.Raise(r)
			}
			s.Call.Resources = append(s.Call.Resources, r)
		}
	}
}

// upper is the call at its upper bound if a word may be an option, or may not be
// there at all.
func (c *collector) upper(found shims.Found, s *step.Step) {
	if c.ctx == nil {
		return
	}
	variant, changed := append([]string(nil), s.Argv...), false
	for i := 1; i < len(variant); i++ {
		w := variant[i]
		if w == "--" {
			break
		}
		if c.mayBeOption(w, s.Cwd) {
			variant[i], changed = "--"+shell.Hole, true
		}
	}
	if !changed {
		return
	}
	call := found.Resolve(variant, c.environment())
	s.Call.Effects = atip.JoinEffects(s.Call.Effects, call.Effects)
	s.Call.Exactness = min(s.Call.Exactness, call.Exactness)
	s.Call.AltPaths = append(s.Call.AltPaths, call.AltPaths...)
	s.Confidence = min(s.Confidence, policy.Bounded)
}

// mayBeOption reports whether a word could begin with a dash when it is known.
func (c *collector) mayBeOption(w, cwd string) bool {
	if strings.HasPrefix(w, shell.Hole) || strings.Contains(w, shell.HoleSplit) {
		return true
	}
	return slices.Contains(c.ctx.globs, w) && strings.IndexByte(w, '/') < 0 && c.dashes(cwd)
}

// dashes reports whether a directory holds a name that an option could be mistaken
// for, or may hold one when the command runs.
func (c *collector) dashes(dir string) bool {
	if c.ctx != nil && c.ctx.cwdUnknown {
		return true
	}
	if have, ok := c.dashed[dir]; ok {
		return have
	}
	entries, err := os.ReadDir(dir)
	found := err != nil && !os.IsNotExist(err)
	for _, e := range entries {
		found = found || strings.HasPrefix(e.Name(), "-")
	}
	for path := range c.writers {
		found = found || strings.HasPrefix(filepath.Base(path), "-")
	}
	if c.dashed == nil {
		c.dashed = map[string]bool{}
	}
	c.dashed[dir] = found
	return found
}

// hideHoles puts a sign in place of what is not known, for people to read.
func (c *collector) hideHoles(s *step.Step) {
	one := func(w *string) {
		if strings.IndexByte(*w, 0) >= 0 {
			*w = step.Shown([]string{*w})[0]
		}
	}
	s.Argv = step.Shown(s.Argv)
	s.Call.Argv = s.Argv
	for i := range s.Call.Resources {
		one(&s.Call.Resources[i].Value)
	}
	for i := range s.Call.Options {
		o := &s.Call.Options[i]
		if strings.IndexByte(o.Value, 0) >= 0 {
			o.Maybe = true
		}
		one(&o.Value)
		one(&o.Flag)
	}
	for i := range s.Call.Positionals {
		one(&s.Call.Positionals[i].Value)
	}
	s.Call.UnknownOptions = step.Shown(s.Call.UnknownOptions)
	if p := s.Call.Path; step.HasHole(p) {
		s.Call.Path = []string{}
		s.Call.Exactness = atip.Unresolved
	}
}

// steered weighs a variable that the text sets for a command: some decide what code
// the command runs.
func (c *collector) steered(s *step.Step, a shell.Assign) {
	if !step.LoadsCode(a.Name) && !step.ProgramVariable(a.Name) && !step.BringsProgram(a) || step.HarmlessProgram(a.Value) {
		return
	}
	if step.EditorText(a.Name, a.Value) && s.Call.Tool == "git" && s.Call.Effects[atip.Network].Value == atip.No {
		s.Call.Nested = append(s.Call.Nested, atip.Nested{Kind: "shell", Text: a.Value + " COMMIT_EDITMSG", From: "variable " + a.Name})
		return
	}
	kind := policy.CodeOpaque
	switch a.Name {
	case "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "LUA_PATH", "CLASSPATH", "PYTHONHOME":
		if c.inWorkspace(a.Value) {
			kind = policy.CodeProject
		}
	case "NODE_OPTIONS", "GOFLAGS", "MAKEFLAGS", "RUSTFLAGS", "PYTHONWARNINGS", "JAVA_TOOL_OPTIONS", "RUBYOPT", "MFLAGS", "GNUMAKEFLAGS", "GRADLE_OPTS", "SBT_OPTS", "ANT_OPTS", "MAVEN_ARGS", "MAVEN_OPTS", "JAVA_OPTS", "PYTEST_ADDOPTS":
		if a.Name == "PYTHONWARNINGS" || !step.HasHole([]string{a.Value}) && !strings.ContainsAny(a.Value, "/$`") && !step.ContainsAny(a.Value, "exec", "eval", "agent", "-p ", "Bootclasspath") {
			kind = policy.CodeProject
		}
	}
	s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "assignment:" + a.Name, Rank: atip.Vendor}
	s.RunsCode = max(s.RunsCode, kind)
}

// inWorkspace reports whether every entry of a path list lies in the workspace.
func (c *collector) inWorkspace(list string) bool {
	for dir := range strings.SplitSeq(list, ":") {
		r := atip.Resource{Kind: "path", Value: dir, Access: atip.AccessRead}
		if dir == "" || strings.IndexByte(dir, 0) >= 0 {
			return false
		}
		c.site.World.Fill(&r, c.site.Cwd)
		if !subpath.Within(r.Abs, c.site.World.Workspace) {
			return false
		}
	}
	return true
}

// fed gives the commands inside a step the words or the program text that it reads
// on its input. handled is false if the metadata's own reading stands.
func (c *collector) fed(s *step.Step, n atip.Nested, via []string) (handled bool, err error) {
	first, _, _ := strings.Cut(strings.Join(n.Argv, " ")+n.Text, " ")
	if step.OpensSockets(s.Call.Tool) && step.IsShell(filepath.Base(first)) {
		c.edge(c.index(s), c.index(s), policy.SocketShell)
	}
	if s.Call.Tool == "parallel" && n.Kind == "shell" {
		var names []string
		if c.ctx != nil {
			names = c.ctx.listed
		}
		if texts := step.ParallelTexts(s, names); texts != nil {
			joined := slices.ContainsFunc(strings.Fields(strings.Join(s.Argv, " ")), func(w string) bool { return w != "{}" && strings.Contains(w, "{}") })
			opaque := s.Call.Effects[atip.ExecOpaque]
			s.Call.Effects[atip.ExecOpaque] = step.Harmless(atip.ExecOpaque, "shell:text")
			mark := c.mark()
			for _, text := range texts {
				if err := c.shell(s, text, "", via); err != nil {
					return true, err
				}
			}
			if !step.HasName(texts) || c.keepsNames(mark, c.listedInside(s), false, joined) {
				return true, nil
			}
			c.back(mark)
			s.Call.Effects[atip.ExecOpaque] = opaque
		}
	}
	if step.Reader(s.Call.Tool) && n.Placeholder == "" {
		n.Placeholder = step.Placeholder(s)
	}
	if n.Kind == "argv" && len(n.Argv) > 0 && step.Reader(s.Call.Tool) && c.ctx != nil && len(c.ctx.listed) > 0 {
		if done, err := c.namesFile(s, n, via); done || err != nil {
			return done, err
		}
	}
	switch {
	case n.Kind == "argv" && n.Placeholder == "" && step.Reader(s.Call.Tool) && len(n.Argv) > 0:
		argv, ok := append([]string(nil), n.Argv...), c.ctx != nil && c.ctx.stdin != nil && step.PlainReader(s)
		if ok {
			argv = append(argv, step.Words(*c.ctx.stdin)...)
		} else {
			argv = append(argv, shell.HoleSplit)
		}
		return true, c.inner(argv, via, s, ok)
	case n.Kind == "argv" && n.Placeholder != "" && step.Reader(s.Call.Tool) && len(n.Argv) > 0:
		lines := []string{shell.HoleSplit}
		known := c.ctx != nil && c.ctx.stdin != nil && step.PlainReader(s) && strings.Count(*c.ctx.stdin, "\n") <= 16
		if known {
			lines = lines[:0]
			for line := range strings.SplitSeq(strings.TrimRight(*c.ctx.stdin, "\n"), "\n") {
				// A whole line stands for the placeholder, its quotes removed.
				lines = append(lines, strings.Join(step.Words(strings.ReplaceAll(line, " ", "\\ ")), ""))
			}
		}
		for _, line := range lines {
			argv := make([]string, len(n.Argv))
			for i, w := range n.Argv {
				argv[i] = strings.ReplaceAll(w, n.Placeholder, line)
			}
			if err := c.inner(argv, via, s, known); err != nil {
				return true, err
			}
		}
		return true, nil
	case n.Kind == "shell" && n.File == "-":
		if c.ctx != nil && c.ctx.stdin != nil {
			script := c.ctx.stdin
			// Its commands read what the shell has left: nothing of one line.
			if c.ctx.stdin = new(string); strings.Contains(strings.TrimRight(*script, "\n"), "\n") {
				c.ctx.stdin = nil
			}
			err := c.shell(s, *script, "", via)
			c.ctx.stdin = script
			return true, err
		}
		s.RunsCode = max(s.RunsCode, policy.CodeOpaque)
		c.note(s, sinkStdin)
		return true, nil
	case n.File == "-" && n.Language == "ed" && (c.ctx == nil || c.ctx.stdin == nil):
		// An editor that somebody types into, or something unknown does.
		c.note(s, sinkStdin)
		s.RunsCode = max(s.RunsCode, policy.CodeOpaque)
		return true, nil
	case n.File == "-":
		c.note(s, sinkStdin)
		if c.ctx != nil && c.ctx.stdin != nil {
			c.peekCode(s, *c.ctx.stdin)
		}
		if c.ctx != nil && c.ctx.stdin == nil && c.ctx.flows {
			s.RunsCode = max(s.RunsCode, policy.CodeOpaque)
			return true, nil
		}
		if c.ctx != nil && c.ctx.stdin != nil {
			c.peekCode(s, *c.ctx.stdin)
			return false, c.shellLines(s, n, *c.ctx.stdin, via)
		}
	case strings.HasPrefix(n.File, "/dev/fd/") && n.Kind == "shell" && len(c.writers[n.File]) > 0:
		return c.runsFile(s, n.File, true, via)
	case strings.IndexByte(n.Text, 0) >= 0, strings.IndexByte(n.File, 0) >= 0, strings.HasPrefix(n.File, "/dev/fd/"):
		s.RunsCode = policy.CodeOpaque
		c.note(s, sinkWord)
		return true, nil
	case n.Kind == "code" && n.Text != "":
		c.peekCode(s, n.Text)
		return false, c.shellLines(s, n, n.Text, via)
	case n.File != "":
		return c.runsFile(s, n.File, n.Kind == "shell", via)
	}
	return false, nil
}

// maxListed bounds the names that are put into a word one by one.
const maxListed = 8

// namesFile adds the command that gets names of files, unless it would read a name as
// a text or a program.
func (c *collector) namesFile(s *step.Step, n atip.Nested, via []string) (done bool, err error) {
	if s.Call.Tool != "xargs" || step.UsesOption(s, "delimiter", "E", "eof", "arg-file") {
		return false, nil
	}
	inside := c.listedInside(s)
	if !inside && step.IsShell(filepath.Base(n.Argv[0])) {
		return false, nil
	}
	argv, made := n.Argv[:1:1], step.IsShell(filepath.Base(n.Argv[0])) || slices.Contains(c.ctx.listed, step.SomeBranch)
	for _, w := range n.Argv[1:] {
		switch {
		case n.Placeholder != "" && w == n.Placeholder:
			argv = append(argv, c.ctx.listed...)
		case n.Placeholder != "" && strings.Contains(w, n.Placeholder):
			if !inside || len(c.ctx.listed) > maxListed {
				return false, nil
			}
			for _, name := range c.ctx.listed {
				argv = append(argv, strings.ReplaceAll(w, n.Placeholder, name))
			}
			made = true
		default:
			argv = append(argv, w)
		}
	}
	if n.Placeholder == "" {
		argv = append(argv, c.ctx.listed...)
	} else if strings.Contains(argv[0], n.Placeholder) {
		return false, nil
	}
	mark := c.mark()
	runs := inside && !c.newUnder(c.ctx.listed, subpath.Join(s.Cwd, s.Call.Chdir), mark.steps)
	if err := c.inner(argv, via, s, false); err != nil {
		return false, err
	}
	if !c.keepsNames(mark, inside, runs, made) {
		c.back(mark)
		return false, nil
	}
	return true, nil
}

// mark is how far a collector was.
type mark struct{ steps, edges, files int }

func (c *collector) mark() mark { return mark{len(c.steps), len(c.edges), len(c.fileEdges)} }

func (c *collector) back(m mark) {
	c.steps, c.edges, c.fileEdges = c.steps[:m.steps], c.edges[:m.edges], c.fileEdges[:m.files]
}

// keepsNames reports that what was added since is known although names of files stand in it. runs: a name may be
// that of the file that is run; made: a name is a part of a word.
func (c *collector) keepsNames(since mark, inside, runs, made bool) bool {
	for _, in := range c.steps[since.steps:] {
		taken := slices.ContainsFunc(in.Call.Nested, step.TakesName)
		if taken && runs && !strings.Contains(in.Argv[0], step.SomeName) && c.runsNamed(in) {
			in.RunsCode = max(in.RunsCode, policy.CodeProject)
			continue
		}
		made = made || taken
		e := &in.Call.Effects
		switch {
		case strings.Contains(in.Argv[0], step.SomeName), made && in.Missing != nil, taken && (!inside || slices.ContainsFunc(in.Call.Nested, step.StartsName)),
			made && (e[atip.Delete].Value == atip.Yes || e[atip.Destructive].Value == atip.Yes && in.Call.Tool != "cp"): // a name in a name, or in a text, may lead elsewhere
			return false
		case taken:
			// What a file of the workspace is called may be a part of the program then, as what is in it.
			in.RunsCode = max(in.RunsCode, policy.CodeProject)
		}
	}
	return true
}

// listedInside reports that all names that are piped in are those of files of the workspace.
func (c *collector) listedInside(s *step.Step) bool {
	return !c.ctx.cwdUnknown && c.namesInside(c.ctx.listed, subpath.Join(s.Cwd, s.Call.Chdir))
}

// namesInside reports that names, seen from a directory, are those of files of the workspace.
func (c *collector) namesInside(names []string, dir string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(name, "..") || !subpath.Within(c.absolutePath(name, dir), c.site.Workspace)
	})
}

func (c *collector) index(s *step.Step) int { return slices.Index(c.steps, s) }

// inner appends a command that gets words from elsewhere. Its own input is empty.
func (c *collector) inner(argv, via []string, s *step.Step, known bool) error {
	outer := c.ctx
	c.ctx = &surroundings{outer: outer}
	if outer != nil {
		c.ctx.globs, c.ctx.cwdUnknown, c.ctx.flows = outer.globs, outer.cwdUnknown, outer.flows
	}
	defer func() { c.ctx = outer }()
	confidence := policy.Bounded
	if known {
		confidence = s.Confidence
	}
	return c.add(argv, via, subpath.Join(s.Cwd, s.Call.Chdir), confidence)
}

// searchesWorkspace reports whether a wrapper that looks for its command by itself
// could find one that the workspace provides.
func (c *collector) searchesWorkspace() bool { return c.mayLeadInside(c.path) }

// mayLeadInside reports whether one of the directories is the workspace's, or is not known.
func (c *collector) mayLeadInside(path []string) bool {
	return slices.ContainsFunc(path, func(dir string) bool {
		return strings.IndexByte(dir, 0) >= 0 || !filepath.IsAbs(dir) || subpath.Within(filepath.Clean(dir), c.site.Workspace)
	})
}

// MaxMatches bounds how many files of a pattern are looked at one by one.
const MaxMatches = 64

// matches replaces the directory that a pattern stands for by what the pattern
// matches now and one name like it: "rm *.o" does not remove the directory.
func (c *collector) matches(s *step.Step) {
	for i := range s.Call.Resources {
		c.match(s, i)
	}
}

// match does so for one of them, and for a name of which a part is not known: each file
// that may have it counts.
func (c *collector) match(s *step.Step, i int) {
	world := c.site.World
	world.Detail = s.Call.Effects[atip.Delete].Value != atip.No || s.Call.Effects[atip.Destructive].Value != atip.No
	c.secretTail(s, &s.Call.Resources[i])
	r := s.Call.Resources[i]
	value := r.Value
	inside, hidden := shell.Within(value)
	if hidden {
		r.Value = inside // it may begin with a dot, too
	}
	dir, last := filepath.Split(r.Value)
	if r.Kind != "path" || !strings.ContainsAny(r.Value, "*?[") || strings.IndexByte(r.Value, 0) >= 0 || c.ctx.cwdUnknown && r.Access != atip.AccessRead {
		return
	}
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	found, err := filepath.Glob(c.site.absolute(base, r.Value))
	named := !strings.ContainsAny(dir, "*?[") && strings.Trim(last, "*?[].!^-") != ""
	if err != nil || len(found) > MaxMatches && !named {
		return
	}
	if named {
		if dir := filepath.Dir(c.site.absolute(base, r.Value)); len(found) > MaxMatches && r.Access == atip.AccessRead {
			// More than are named one by one are read through the directory.
			all := atip.Resource{Kind: "path", Value: dir, Access: r.Access, Recursive: step.Recursive(s), Why: r.Why}
			c.place(world, &all, base)
			s.Call.Resources = append(s.Call.Resources, all)
		}
		found = found[:min(len(found), MaxMatches)]
		one := strings.NewReplacer("*", "x", "?", "x", "[", "", "]", "").Replace(last)
		s.Call.Resources[i] = atip.Resource{Kind: "path", Value: dir + one, Access: r.Access, Recursive: step.Recursive(s), Why: r.Why}
		c.place(world, &s.Call.Resources[i], base)
		s.Call.Resources[i].Value = value
	}
	for _, name := range found {
		if strings.HasPrefix(filepath.Base(name), ".") && !strings.HasPrefix(last, ".") && !hidden {
			continue
		}
		m := atip.Resource{Kind: "path", Value: name, Access: r.Access, Recursive: step.Recursive(s), Why: r.Why}
		c.place(world, &m, base)
		if m.Class == atip.ClassSecret && m.Access == atip.AccessRead && step.AsksOnly(s.Call.Tool) && subpath.Within(m.Abs, c.site.Workspace) {
			continue // that it is there is what listing the directory says
		}
		s.Takes(m)
	}
}

// maxPatterns bounds the directories that are granted because a pattern leads to them.
const maxPatterns = 16

// lookedUp notes the directories outside the workspace in which the shell itself looks up the
// words of a command. It takes a pattern that it finds nothing for as it is, so that a command
// which may read the files would be told a name that nothing has.
func (c *collector) lookedUp(cmd *shell.Command, cwd string) {
	p, out := c.site, c.out
	for _, w := range cmd.Argv {
		at := strings.IndexAny(w, "*?[\x00")
		if at < 0 || w[at] == 0 || c.ctx.cwdUnknown && !filepath.IsAbs(w) && !strings.HasPrefix(w, "~/") {
			continue
		}
		// What stands before the pattern may be the beginning of a name.
		dir := filepath.Dir(p.absolute(cwd, w[:at]+"x"))
		if !filepath.IsAbs(dir) || subpath.Within(dir, p.Workspace) || slices.Contains(out.Patterns, dir) || len(out.Patterns) == maxPatterns {
			continue
		}
		switch p.World.Classify(dir, atip.AccessRead, false) {
		case atip.ClassSecret, atip.ClassPolicySelf, atip.ClassDevice:
		default:
			out.Patterns = append(out.Patterns, dir)
		}
	}
}

// secretTail makes a path that is read a secret if what is known of it says so, whatever
// stands in place of the rest: `$(…)/.env`, `/proc/*/environ`.
func (c *collector) secretTail(s *step.Step, r *atip.Resource) {
	if r.Kind != "path" || r.Access&atip.AccessRead == 0 || r.Class == atip.ClassSecret || step.AsksOnly(s.Call.Tool) {
		return
	}
	var paths []string
	if hole := strings.LastIndexByte(r.Value, 0); hole >= 0 {
		slash := strings.IndexByte(r.Value[hole:], '/')
		if slash < 0 {
			return
		}
		tail := r.Value[hole+slash:]
		paths = append(paths, c.site.Dirs.Home+tail)
		if up := strings.LastIndex(tail, "/../"); up >= 0 {
			paths = append(paths, tail[up+3:])
		}
		if filepath.IsAbs(r.Value) {
			first := strings.IndexByte(r.Value, 0)
			paths = append(paths, r.Value[:first]+"x"+tail)
		}
	} else if strings.ContainsAny(r.Value, "*?[") && filepath.IsAbs(r.Value) {
		paths = append(paths, r.Value)
	}
	for _, path := range paths {
		sample := filepath.Clean(strings.NewReplacer("*", "x", "?", "x", "[", "", "]", "").Replace(path))
		if c.site.World.Classify(sample, atip.AccessRead, false) == atip.ClassSecret {
			r.Abs, r.Class = sample, atip.ClassSecret
			s.Raise(*r)
			return
		}
	}
}

// split finds out what a command does that fetches what the project declares, once that was
// fetched for it.
func (c *collector) split(s *step.Step) error {
	if !c.site.Splits || c.peeking || s.Confidence != policy.Exact || !subpath.Within(s.Cwd, c.site.Workspace) {
		return nil
	}
	if f := s.Call.Before(); f != nil && !s.File.InWorkspace && len(s.Via) == 0 && s.Missing == nil && (c.ctx == nil || !c.ctx.cwdUnknown) {
		s.Before = f
	}
	if s.Call.Effects[atip.Network].Value == atip.No {
		return nil
	}
	f, by, fetcher := s.Call.Splits(), s, ""
	python := c.moduleOf(s)
	switch {
	case len(s.Via) > 0 && python == nil:
		return nil
	case s.File.InWorkspace:
		var err error
		if f, by, err = c.namesake(s); err != nil || f == nil {
			return err
		}
		fetcher = by.ID.Found
	case python != nil && s.ID.SystemPath && sameInterpreter(append(s.ID.Chain[:1:1], python.ID.Chain...), s.ID.Chain):
		fetcher = s.ID.Found
	}
	if f == nil || fetcher == "" && (f.Local || s.Call.Provenance.Rank < atip.Org) {
		return nil
	}
	for x := c.ctx; x != nil; x = x.outer {
		if x.cwdUnknown || slices.ContainsFunc(x.env, func(a shell.Assign) bool {
			have, set := c.site.lookupEnv(a.Name)
			return (!set || have != a.Value) && (fetcher == "" || !findsProgram(a.Name))
		}) {
			return nil // the call that fetches has the caller's variables
		}
	}
	for path := range c.writers {
		if slices.Contains(f.Inputs, filepath.Base(path)) {
			return nil // by then another project may be declared
		}
	}
	for _, before := range c.steps {
		switch {
		case before == s, before == python, before.Split != nil, environmentOf(before) != "":
		case before.Call.Effects[atip.Network].Value == atip.Yes, before.RunsCode != policy.CodeNone, before.Call.Tool == "git" && before.Call.Effects[atip.Write].Value == atip.Yes:
			return nil // so may a pull, a checkout or code that runs before it
		}
	}
	// Its words mean what they mean to the program whose document says how to split them.
	t := &step.Step{Argv: append(slices.Clone(s.Argv), f.OfflineWords...), Executable: s.Executable, ID: by.ID, Verdict: by.Verdict, Missing: s.Missing}
	t.Step = s.Step
	verdict := s.Verdict
	if verdict.Reason == "own_path" {
		// It was doubted for its network, which it has no more.
		var err error
		if verdict, err = c.site.Authority.Verdict(s.ID); err != nil {
			return err
		}
		t.Trust, t.File.Believed = step.TrustFacts(verdict), step.Believed(verdict)
		if by == s {
			t.Verdict = verdict
		}
	}
	t.Call, t.Hosts, t.ServiceHosts, t.Entitled, t.RunsCode = atip.Call{}, nil, nil, nil, policy.CodeNone
	c.offline = f.OfflineEnv
	err := c.resolve(t)
	c.offline = nil
	if err != nil {
		return err
	}
	if err := c.nested(t); err != nil {
		return err
	}
	t.Call.Effects[atip.Network] = atip.Fact{Value: atip.No, Source: "fetched beforehand", Rank: atip.Vendor}
	t.Hosts, t.ServiceHosts = nil, nil
	t.Argv, t.ID, t.Verdict = s.Argv, s.ID, verdict
	s.Split, s.Apart, s.Fetcher = f, t, fetcher
	return nil
}

// namesake finds the machine's program with the name of one of the workspace, such as that of a virtual
// environment, which may not reach a host. The machine's fetches for it, if what runs both is the same.
func (c *collector) namesake(s *step.Step) (*atip.Fetch, *step.Step, error) {
	chain := s.ID.Chain
	if s.Missing != nil {
		// This text may make the environment first, with the Python that will run there.
		at := slices.IndexFunc(c.steps, func(x *step.Step) bool {
			dir := environmentOf(x)
			return dir != "" && x.Typed && subpath.Join(x.Cwd, dir) == filepath.Dir(filepath.Dir(subpath.Join(s.Cwd, s.Argv[0])))
		})
		if at < 0 || filepath.Base(filepath.Dir(s.Argv[0])) != "bin" {
			return nil, nil, nil
		}
		chain = slices.Concat([]trust.Part{{}}, c.steps[at].ID.Chain)
	}
	path, _ := c.site.lookupEnv("PATH")
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		return !filepath.IsAbs(dir) || subpath.Within(dir, c.site.Workspace)
	})
	opener := c.site.Opener
	opener.Args = s.Argv[1:]
	file, err := opener.Open(s.ID.Invoked, dirs, s.Cwd)
	if err != nil {
		return nil, nil, nil // there is none
	}
	defer file.Close()
	t := &step.Step{Argv: append([]string{file.Identity().Found}, s.Argv[1:]...), ID: file.Identity()}
	if !t.ID.SystemPath || !sameInterpreter(chain, t.ID.Chain) {
		return nil, nil, nil
	}
	if t.Verdict, err = c.site.Authority.Verdict(t.ID); err != nil {
		return nil, nil, err
	}
	found, err := c.site.Authority.Document(t, query(t))
	if err != nil {
		return nil, nil, err
	}
	call := found.Resolve(t.Argv, c.environment())
	if call.Provenance.Rank < atip.Org {
		return nil, nil, nil
	}
	return call.Splits(), t, nil
}

// environmentOf is the directory of the virtual environment that a step makes: `python3 -m venv DIR` of the
// machine's Python. "" for any other step.
func environmentOf(s *step.Step) string {
	if len(s.Argv) != 4 || s.Argv[1] != "-m" || s.Argv[2] != "venv" || strings.HasPrefix(s.Argv[3], "-") || s.Confidence != policy.Exact || !s.ID.SystemPath || len(s.ID.Chain) != 1 || s.Call.Tool != "python" {
		return ""
	}
	return s.Argv[3]
}

// moduleOf is the Python of a virtual environment in the workspace whose `-m NAME` the step stands for,
// nil if it does not. The step itself is that of the program with the module's name.
func (c *collector) moduleOf(s *step.Step) *step.Step {
	at := slices.IndexFunc(c.steps, func(x *step.Step) bool {
		return slices.Equal(s.Via, []string{x.ID.Invoked}) && subpath.Within(x.ID.Found, c.site.Workspace) &&
			slices.ContainsFunc(x.Call.Nested, func(n atip.Nested) bool { return slices.Equal(step.PythonModule(x, n), s.Argv) })
	})
	if at < 0 {
		return nil
	}
	return c.steps[at]
}

// sameInterpreter reports two scripts that the same files run.
func sameInterpreter(a, b []trust.Part) bool {
	return len(a) > 1 && slices.EqualFunc(a[1:], b[min(1, len(b)):], func(x, y trust.Part) bool { return x.Path == y.Path && x.Digest == y.Digest })
}

// findsProgram reports a variable of an environment of Python that says where programs are, which
// changes nothing for one that is named by its path.
func findsProgram(name string) bool {
	switch name {
	case "PATH", "PS1", "PYTHONHOME", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "VIRTUAL_ENV_DISABLE_PROMPT":
		return true
	}
	return strings.HasPrefix(name, "_OLD_VIRTUAL_")
}
