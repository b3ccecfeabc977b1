package effects

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/prints"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// fedBy reports that something flows into a command, and all of it whole from earlier steps that each accepts: through
// pipes, or through a file that one of them has just written.
func (l *links) fedBy(i int, each func(s *step.Step, from int) bool) bool {
	sources := l.throughFile(i)
	if sources == nil {
		for _, f := range l.script.Flows {
			if f.To == i && f.Kind == shell.FlowStdin {
				sources = append(sources, f.From)
			}
		}
	}
	for _, from := range sources {
		steps := l.steps(from)
		if from >= i || len(steps) != 1 && !(len(steps) == 2 && steps[0].Call.Tool == "xargs") || !each(steps[0], from) {
			return false
		}
	}
	return len(sources) > 0 && !l.script.Commands[i].Mixed
}

// throughFile is the command whose whole output another one reads, by way of a file that nothing else in the text writes.
func (l *links) throughFile(i int) []int {
	cmd, path := &l.script.Commands[i], ""
	if len(cmd.Argv) == 2 && cmd.Argv[0] == "cat" {
		path = cmd.Argv[1]
	}
	for _, r := range cmd.Redirects {
		if r.Read && r.Whole {
			path = r.Path
		}
	}
	if path == "" || strings.IndexByte(path, 0) >= 0 || len(cmd.Cwds) != 1 {
		return nil
	}
	list := l.c.writers[l.c.absolutePath(path, cmd.Cwds[0])]
	for k := range min(i, len(l.ranges)) {
		if len(list) == 1 && slices.Contains(l.steps(k), list[0].by) && (list[0].by.Call.Tool == "tee" && !step.UsesOption(list[0].by, "append") ||
			slices.ContainsFunc(l.script.Commands[k].Redirects, func(r shell.Redirect) bool { return r.Write && r.Whole && r.Path == path })) {
			return []int{k}
		}
	}
	return nil
}

// listed are the words that a command reads from others that only print names of files:
// `grep -rl x src | sort | xargs sed -i …`. It is nil if anything else may flow in.
func (l *links) listed(i int) (out []string) {
	if !l.fedBy(i, func(s *step.Step, from int) bool {
		names := l.namesOf(s, from)
		out = append(out, names...)
		return names != nil && !l.script.Commands[from].CwdUnknown
	}) {
		return nil
	}
	return out
}

// namesOf are the names that a step prints, or passes on.
func (l *links) namesOf(s *step.Step, from int) []string {
	if names := l.c.printsNames(s); names != nil {
		return names
	}
	end, ran := prints.OnlyFirst(s.Argv), l.steps(from)
	switch {
	case step.KeepsLines(s), s.Call.Tool == "tee", s.Argv[0] == ":" && len(s.Argv) == 1, s.Call.Tool == "cat" && l.throughFile(from) != nil: // a redirection alone, a file of the text
		return l.listed(from)
	case s.Call.Tool == "xargs" && len(ran) == 2 && step.PrintsMatched(ran[1]): // those of its files that match
		names := l.listed(from)
		if !slices.ContainsFunc(ran[1].Call.Resources, func(r atip.Resource) bool { return !slices.Contains(step.Shown(names), r.Value) }) {
			return names
		}
	case end != "" && l.begins(from, end):
		return []string{"0"}
	case slices.Equal(s.Argv, []string{"awk", "{print $2}"}) && l.fedBy(from, l.c.printsStatus):
		return []string{step.SomeName}
	}
	return nil
}

// printsStatus reports a git status of which the second word of a line is the name of a file.
func (c *collector) printsStatus(s *step.Step, _ int) bool {
	return s.Call.Tool == "git" && len(s.Argv) == 3 && s.Argv[1] == "status" && slices.Contains([]string{"-s", "--short", "--porcelain"}, s.Argv[2]) && !c.dashes(c.site.Workspace) && !c.dashes(s.Cwd) && !c.spaced(s.Cwd)
}

// begins reports that the lines which a command reads begin with numbers or hashes, up to end.
func (l *links) begins(i int, end string) bool {
	return l.fedBy(i, func(s *step.Step, from int) bool {
		return prints.First(s.Argv, end) || step.KeepsLines(s) && l.begins(from, end)
	})
}

// tracked reports that all that flows into a command are names of files that git tracks.
func (l *links) tracked(i int) bool { return l.fedBy(i, l.tracks) }

func (l *links) tracks(s *step.Step, from int) bool {
	return step.PrintsTracked(s) || step.KeepsLines(s) && l.tracked(from)
}

// namedWords appends a command one word of which is what a search prints, and nothing
// else: `sed -i … $(grep -rl x src)`. The names stand for that word, unless the command
// would take a name for a program or a text.
func (l *links) namedWords(sh *step.Step, i int, via []string) (done bool, err error) {
	cmd := l.script.Commands[i]
	at := cmd.Printed
	if cmd.Kind != shell.External || at < 1 || unknownBeside(cmd.Argv, at) {
		return false, nil
	}
	switch filepath.Base(cmd.Argv[0]) {
	case "sed", "awk", "gawk", "mawk", "jq", "yq", "perl":
		// The first word of theirs that is no option is a program.
		if !slices.ContainsFunc(cmd.Argv[1:at], func(w string) bool { return w != "" && w[0] != '-' }) {
			return false, nil
		}
	}
	if len(cmd.PrintedBy) != 1 || cmd.PrintedBy[0] < 0 || cmd.PrintedBy[0] >= i || l.script.Commands[cmd.PrintedBy[0]].CwdUnknown {
		return false, nil
	}
	from := cmd.PrintedBy[0]
	steps := l.steps(from)
	if len(steps) != 1 {
		return false, nil
	}
	names := l.namesOf(steps[0], from)
	if names == nil || slices.Contains(names, step.SomeBranch) {
		return false, nil // the shell takes the "*" beside a branch for a pattern
	}
	cmd.Argv = slices.Concat(cmd.Argv[:at], names, cmd.Argv[at+1:])
	c := l.c
	n, edges, files, tracked := len(c.steps), len(c.edges), len(c.fileEdges), c.tracked
	c.tracked = l.tracks(steps[0], from)
	err = c.command(sh, &cmd, via, l.fed(i), nil)
	if c.tracked = tracked; err != nil {
		return false, err
	}
	dir := subpath.Join(steps[0].Cwd, steps[0].Call.Chdir)
	inside := c.namesInside(names, dir) && !c.newUnder(names, dir, n)
	for _, s := range c.steps[n:] {
		switch {
		case !slices.ContainsFunc(s.Call.Nested, step.TakesName):
		case inside && c.runsNamed(s):
			// As `for f in tests/*.sh; do sh "$f"; done`: whichever it is, it is code of the workspace.
			s.RunsCode = max(s.RunsCode, policy.CodeProject)
		default:
			c.steps, c.edges, c.fileEdges = c.steps[:n], c.edges[:edges], c.fileEdges[:files]
			return false, nil
		}
	}
	return true, nil
}

// runsNamed reports a step that takes a name only as that of the file that it runs.
func (c *collector) runsNamed(s *step.Step) bool {
	return !slices.ContainsFunc(s.Call.Nested, func(n atip.Nested) bool {
		return step.TakesName(n) && !(step.RunsNamed(n) && c.namesInside([]string{n.File}, s.Cwd))
	})
}

// newUnder reports that an earlier part of the text, before the step at, may have written a file with one of these
// names, so that running it is not running what the workspace had.
func (c *collector) newUnder(names []string, dir string, at int) bool {
	for _, s := range c.steps[:at] {
		if e := s.Call.Effects; e[atip.Network].Value != atip.No && e[atip.Write].Value != atip.No {
			return true
		}
	}
	for _, name := range names {
		abs := c.absolutePath(name, dir)
		means := step.Means(abs)
		for path := range c.writers {
			if means(path) || isDir(path) && subpath.Within(step.KnownDir(abs), path) {
				return true
			}
		}
	}
	return false
}

// unknownBeside reports words other than one that are not known, but for names in a known directory.
func unknownBeside(argv []string, at int) bool {
	for i, w := range argv {
		if _, ok := shell.Within(w); i != at && !ok && strings.IndexByte(w, 0) >= 0 {
			return true
		}
	}
	return false
}

// namesFor is what listed says of a command that takes its words from its input; for
// others nobody has to look.
func (l *links) namesFor(i int) []string {
	argv := l.script.Commands[i].Argv
	if len(argv) == 0 || !slices.ContainsFunc(argv, func(w string) bool { return step.Reader(filepath.Base(w)) }) {
		return nil
	}
	return l.listed(i)
}

// printsNames are words that stand for the names a step prints, nil if it may print
// anything else, or names that a word-splitting reader could take for an option.
func (c *collector) printsNames(s *step.Step) []string {
	if s.Confidence != policy.Exact || s.Call.Exactness != atip.Exact || len(s.Call.UnknownOptions) > 0 || step.HasHole(s.Argv) {
		return nil
	}
	var roots, names []string
	switch s.Call.Tool {
	case "grep", "rg":
		if !step.PrintsMatched(s) {
			return nil
		}
		roots = step.Positionals(s, s.Call.Tool == "rg" && step.UsesOption(s, "files") || step.UsesOption(s, "regexp", "file"))
	case "git":
		switch {
		case len(s.Call.Path) == 1 && s.Call.Path[0] == "ls-files" && !slices.ContainsFunc(s.Argv, func(w string) bool {
			return w == "-s" || w == "--stage" || w == "-t" || w == "-v" || w == "-f" || w == "-u" || strings.HasPrefix(w, "--format") || w == "--debug" || w == "--eol" || w == "--unmerged"
		}):
		case len(s.Call.Path) == 1 && s.Call.Path[0] == "diff" && slices.Contains(s.Argv, "--name-only"):
		case step.PrintsFound(s):
		case step.PrintsBranches(s):
			return []string{step.SomeBranch}
		case step.PrintsHashes(s):
			return []string{"0"}
		default:
			return nil
		}
	case "ls":
		return c.listsNames(s)
	case "gofmt", "goimports":
		if !step.UsesOnlyFlags(s, "-l", "-s") || !slices.Contains(s.Argv, "-l") {
			return nil
		}
		roots = step.Positionals(s, true)
	case "fd":
		if !step.UsesOnlyFlags(s, "-e", "--extension", "-t", "--type", "-H", "--hidden", "-I", "--no-ignore", "-0", "--print0", "-d", "--max-depth", "-E", "--exclude", "-g", "--glob") {
			return nil
		}
		roots = step.Positionals(s, false)
	case "find":
		var ok bool
		if roots, names, ok = step.Sieve(s.Argv); !ok || names == nil {
			names = []string{step.SomeName}
		}
		if !ok || slices.ContainsFunc(s.Argv, func(w string) bool {
			return strings.HasPrefix(w, "-printf") || strings.HasPrefix(w, "-fp") || strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || w == "-ls" || w == "-fls" || w == "-files0-from"
		}) {
			return nil
		}
	default:
		if s.Call.Tool != "" && prints.Numbers(s.Argv) {
			return []string{"0"}
		}
		return nil
	}
	if names == nil {
		names = []string{step.SomeName}
	}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	if len(roots) == 0 {
		// Names without a directory in front.
		if c.dashes(cwd) || c.spaced(cwd) {
			return nil
		}
		return names
	}
	var out []string
	for _, root := range roots {
		if root == "" || root[0] == '-' || c.spaced(subpath.Join(cwd, root)) {
			return nil
		}
		if info, err := os.Lstat(subpath.Join(cwd, root)); err == nil && info.Mode().IsRegular() {
			root = filepath.Dir(root)
		}
		for _, name := range names {
			out = append(out, step.FoundAs(root, name))
		}
	}
	return append(out, c.foundCredentials(s)...)
}

// listsNames are words that stand for the names that ls prints, nil if it may print anything else.
func (c *collector) listsNames(s *step.Step) []string {
	if !step.UsesOnlyFlags(s, "-1", "-A", "-t", "-r", "-S", "-d", "-X", "-v", "-U", "--almost-all", "--reverse") {
		return nil
	}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	if slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool { return !subpath.Within(r.Abs, c.site.Workspace) }) || !subpath.Within(cwd, c.site.Workspace) {
		return nil
	}
	if len(s.Call.Positionals) == 0 {
		if c.dashes(cwd) || c.spaced(cwd) {
			return nil
		}
		return []string{step.SomeName}
	}
	var out []string
	for _, p := range s.Call.Positionals {
		root, last := p.Value, filepath.Base(p.Value)
		if root == "" || root[0] == '-' || strings.Contains(root, "[") {
			return nil
		}
		if at := strings.IndexAny(root, "*?"); at >= 0 {
			if dir := subpath.Join(cwd, filepath.Dir(root[:at]+"x")); c.dashes(dir) || c.spaced(dir) {
				return nil
			}
			out = append(out, strings.NewReplacer("*", step.SomeName, "?", step.SomeName).Replace(root))
			if filepath.Ext(last) != "" {
				continue
			}
		} else if info, err := os.Lstat(subpath.Join(cwd, root)); err == nil && info.Mode().IsRegular() {
			out = append(out, root)
			continue
		} else if dir := subpath.Join(cwd, root); c.dashes(dir) || c.spaced(dir) {
			return nil
		}
		out = append(out, step.SomeName)
	}
	return out
}

// spaced reports a tree with a name that a reader which splits at white space could
// take for an option, or too large to tell.
func (c *collector) spaced(root string) bool {
	for path := range c.writers {
		if step.Splits(filepath.Base(path)) {
			return true
		}
	}
	seen := 0
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil
		case seen > step.MaxSpaced, step.Splits(d.Name()):
			return fs.ErrInvalid
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		}
		return nil
	})
	return err != nil
}

// siftedDeletes lets find -delete take what is called as its tests say, and not the starting
// point with all that lies below.
func (c *collector) siftedDeletes(s *step.Step) {
	if s.Call.Tool != "find" || step.HasHole(s.Argv) || !step.UsesOption(s, "delete") {
		return
	}
	starts, names, ok := step.Sieve(s.Argv)
	if !ok || names == nil {
		return
	}
	var found []atip.Resource
	for i := range s.Call.Resources {
		r := &s.Call.Resources[i]
		if r.Kind != "path" || r.Access&atip.AccessDelete == 0 || !slices.Contains(starts, r.Value) {
			continue
		}
		for _, name := range names {
			found = append(found, atip.Resource{Kind: "path", Value: step.FoundAs(r.Value, name), Access: atip.AccessDelete, Why: r.Why})
		}
		r.Access = r.Access&^atip.AccessDelete | atip.AccessRead
	}
	s.Call.Resources = append(s.Call.Resources, found...)
}

// sifted puts what find hands over by name into the command that it starts: neither
// the starting point, for which the metadata takes it, nor anything called otherwise.
func (c *collector) sifted(s *step.Step, argv []string) []string {
	if s.Call.Tool != "find" || s.Confidence != policy.Exact || step.HasHole(s.Argv) {
		return argv
	}
	starts, names, ok := step.Sieve(s.Argv)
	if !ok || names == nil {
		return argv
	}
	for i, w := range s.Argv {
		if !strings.HasPrefix(w, "-exec") && !strings.HasPrefix(w, "-ok") || len(s.Argv) < i+1+len(argv) {
			continue
		}
		raw, out, same := s.Argv[i+1:i+1+len(argv)], []string(nil), true
		for k, word := range raw {
			switch {
			case word == "{}" && k > 0:
				for _, start := range starts {
					for _, name := range names {
						out = append(out, step.FoundAs(start, name))
					}
				}
			case strings.Contains(word, "{}"):
				return argv
			default:
				same = same && word == argv[k]
				out = append(out, word)
			}
		}
		if same {
			return out
		}
	}
	return argv
}

// environed notes what variables of the command line change of a call besides its words:
// which files it writes, whose answers it believes, and where its configuration lies,
// which names programs and hosts. The caller's own environment counts as well: an agent
// chooses it with the command.
func (c *collector) environed(s *step.Step) {
	// Without network the kernel holds what the step runs, and no variable can lead it to another host.
	led := s.Call.Effects[atip.Network].Value == atip.Yes
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if have, set := c.site.lookupEnv(a.Name); a.Value == "" || set && have == a.Value {
				continue
			}
			if step.WritesTo(s, a) {
				c.writesAt(s, a)
			}
			if led {
				c.steers(s, a, step.CertaintyVariable(a.Name))
			}
		}
	}
	for _, a := range c.site.callerVariables() {
		if step.WritesTo(s, a) {
			c.writesAt(s, a)
		}
		if led {
			c.steers(s, a, step.CertaintyVariable(a.Name) && c.doubtful(s, a))
		}
	}
}

// steers notes what a variable makes of a step with network: whom it believes, through whom
// it talks, and which configuration it obeys.
func (c *collector) steers(s *step.Step, a shell.Assign, uncertain bool) {
	switch {
	case step.ProxyVariable(a.Name):
		if host, ok := step.Endpoint([]string{a.Name}, a); ok {
			s.Hosts = append(s.Hosts, host)
		}
	case uncertain:
		s.Hosts = append(s.Hosts, policy.HostUse{})
	case step.CertaintyVariable(a.Name):
	case c.configures(s, a):
		s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "variable " + a.Name, Rank: atip.Vendor}
	}
}

// callerVariables are the variables of the caller that a child would have and that say
// something else than this account and its policy do.
func (p *Site) callerVariables() []shell.Assign {
	if p.steering != nil {
		return *p.steering
	}
	out := []shell.Assign{}
	env := p.Env
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || step.LoadsCode(name) || step.MatchesName(env.Pass, name) || step.MatchesName(env.Drop, name) || p.usual(name, value) {
			continue
		}
		if _, set := env.Set[name]; !set {
			out = append(out, shell.Assign{Name: name, Value: value})
		}
	}
	p.steering = &out
	return out
}

// usual reports a variable that says what is so without it.
func (p *Site) usual(name, value string) bool {
	usual := ""
	switch name {
	case "HOME":
		usual = p.Dirs.Home
	case "XDG_CONFIG_HOME":
		usual = filepath.Dir(p.Dirs.Config)
	case "XDG_DATA_HOME":
		usual = filepath.Dir(p.Dirs.Data)
	case "XDG_CONFIG_DIRS":
		usual = "/etc/xdg"
	default:
		return step.ProxyVariable(name) && p.OwnProxy(value) // set by the run around this one, which has no other way out
	}
	return filepath.Clean(value) == usual
}

// doubtful reports a variable of the caller about certificates that names what a run can have
// written, or that turns the check off.
func (c *collector) doubtful(s *step.Step, a shell.Assign) bool {
	if !filepath.IsAbs(a.Value) && strings.IndexByte(a.Value, '/') < 0 {
		if step.NamesPath(strings.ToUpper(a.Name)) {
			return true // in the directory of the command
		}
		switch a.Name {
		case "GIT_SSL_NO_VERIFY":
			return a.Value != "0" && !strings.EqualFold(a.Value, "false")
		}
		return a.Value != "1" && !strings.EqualFold(a.Value, "true")
	}
	return slices.ContainsFunc(filepath.SplitList(a.Value), func(value string) bool {
		return value != "" && c.writableByRuns(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), value))
	})
}

// writableByRuns reports a path that a run may write without a question, or may have.
func (c *collector) writableByRuns(path string) bool {
	path = place.Resolve(filepath.Clean(path))
	if c.site.Written(path) {
		return true // also under a name of secrets, as that of a certificate is
	}
	switch c.site.World.Classify(path, atip.AccessWrite, false) {
	case atip.ClassOutside, atip.ClassSystem, atip.ClassSecret, atip.ClassStartup, atip.ClassDevice:
		return false
	}
	return true
}

// configures reports a variable that makes a tool read its configuration where the run
// itself, or one before it, may have written it: a credential program, a plugin and
// another server are named there.
func (c *collector) configures(s *step.Step, a shell.Assign) bool {
	named, wild := false, false
	switch a.Name {
	case "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS":
		named = true
	}
	for _, n := range s.Call.Configs {
		prefix, star := strings.CutSuffix(n, "*")
		if n == a.Name || star && strings.HasPrefix(a.Name, prefix) {
			named, wild = true, wild || star
		}
	}
	upper := strings.ToUpper(a.Name)
	if !named || strings.HasSuffix(upper, "PROFILE") || strings.HasSuffix(upper, "CONTEXT") {
		return false // a name in the configuration
	}
	if strings.IndexByte(a.Value, 0) >= 0 {
		return true
	}
	for _, value := range filepath.SplitList(a.Value) {
		if value == "~" || strings.HasPrefix(value, "~/") {
			value = Expand(value, c.site.Dirs.Home, c.site.Cwd)
		}
		abs := filepath.Clean(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), value))
		if strings.IndexByte(value, '/') < 0 && !step.NamesPath(upper) {
			if _, err := os.Lstat(abs); err != nil {
				continue // a switch, not a file
			}
		}
		if c.writableByRuns(abs) {
			return true
		}
	}
	return false
}

func (c *collector) writesAt(s *step.Step, a shell.Assign) {
	r := atip.Resource{Kind: "path", Value: a.Value, Access: atip.AccessWrite, Why: a.Name}
	c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
	r.Value = step.Shown([]string{r.Value})[0]
	s.Call.Effects[atip.Write] = atip.Fact{Value: atip.Yes, Source: "variable " + a.Name, Rank: atip.Vendor}
	s.Takes(r)
}

// led notes what leads a tool that reads from its own service to somebody else: an
// option that names another host or believes any, a package that is a URL, and files of
// the workspace that the tool takes its servers from.
func (c *collector) led(s *step.Step) {
	if s.Call.Effects[atip.Network].Value != atip.Yes || s.Call.Provenance.Rank < atip.Org {
		return
	}
	for i, w := range s.Argv[1:] {
		name, value, attached := strings.Cut(w, "=")
		if !attached && i+2 < len(s.Argv) {
			value = s.Argv[i+2]
		}
		if step.Leads(s.Call.Tool, name, value) {
			s.Hosts = append(s.Hosts, policy.HostUse{})
		}
	}
	verb := ""
	if len(s.Call.Path) > 0 {
		verb = s.Call.Path[0]
	}
	switch s.Call.Tool {
	case "npm", "pnpm", "yarn":
		for _, p := range s.Call.Positionals {
			if step.FromElsewhere(p.Value) {
				s.Hosts = append(s.Hosts, policy.HostUse{})
			}
		}
	case "docker", "podman":
		if verb == "pull" || verb == "manifest" || verb == "buildx" {
			for _, p := range s.Call.Positionals {
				if host, _, ok := strings.Cut(p.Value, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") && host != "docker.io" {
					name, port := step.SplitPort(host)
					s.Hosts = append(s.Hosts, policy.HostUseOf(name, port))
				}
			}
		}
	case "terraform":
		if verb == "get" {
			s.Hosts = append(s.Hosts, policy.HostUse{}) // the sources of its modules
		}
	}
	if c.serversOfWorkspace(s) {
		s.Hosts = append(s.Hosts, policy.HostUse{})
	}
}

// serversOfWorkspace reports a file between the directory at hand and the workspace that
// names the servers, or a program, of a tool. Whoever writes code may write it.
func (c *collector) serversOfWorkspace(s *step.Step) bool {
	var names, signs []string
	switch s.Call.Tool {
	case "npm", "pnpm":
		names, signs = []string{".npmrc"}, []string{"registry", "proxy", "git=", "git =", "cafile", "strict-ssl", "userconfig", "script-shell", "node-options"}
	case "yarn":
		names, signs = []string{".npmrc", ".yarnrc", ".yarnrc.yml"}, []string{"registry", "proxy", "yarnpath", "yarn-path", "plugin", "cafile", "strict"}
	case "cargo":
		names, signs = []string{".cargo/config.toml", ".cargo/config"}, []string{"registr", "source", "proxy", "credential", "cainfo", "debug"}
	case "git":
		if len(s.Call.Path) == 0 || s.Call.Path[0] != "lfs" {
			return false
		}
		names, signs = []string{".lfsconfig"}, []string{"url"}
	default:
		return false
	}
	for dir := subpath.Join(s.Cwd, s.Call.Chdir); subpath.Within(dir, c.site.Workspace); dir = filepath.Dir(dir) {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if len(c.writers[path]) > 0 {
				return true
			}
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			raw, err := c.site.readText(path)
			if err != nil {
				return true // it cannot be looked into
			}
			text := strings.ToLower(string(raw))
			if slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) }) {
				return true
			}
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	return false
}

// ownFile lets a file of the workspace, or a temporary one, that is called like a secret be one like
// others where the text itself makes it of what is none: it holds no secret from elsewhere. content is
// what a redirection writes, if that is constant.
func (c *collector) ownFile(s *step.Step, r *atip.Resource, content *string) {
	if r.Kind != "path" || r.Class != atip.ClassSecret || r.Recursive || c.peeking {
		return
	}
	class := atip.ClassWorkspace
	if !subpath.Within(r.Abs, c.site.Workspace) {
		// What the directory is tells what a file without that name would be.
		if subpath.Within(r.Abs, c.site.Dirs.Home) {
			return
		}
		if class = c.site.World.Classify(filepath.Join(filepath.Dir(r.Abs), "file"), atip.AccessRead, false); class != atip.ClassTmp {
			return
		}
	}
	if _, err := os.Lstat(r.Abs); !os.IsNotExist(err) {
		return
	}
	makes := r.Access == atip.AccessWrite && len(c.writers[r.Abs]) == 0 && (content != nil || c.copiesPlain(s, r.Abs) || r.Why != "redirection" && makesPlain(s, r.Abs))
	if makes || c.madeOwn(r.Abs) {
		r.Class = class
	}
}

// makesPlain reports a step that makes what it writes into a file that its words name, as a new key: all
// that it does is known, it reaches no host, starts nothing, and reads neither a file nor a repository.
// A redirection is none: what the environment of the shell holds can go through it.
func makesPlain(s *step.Step, to string) bool {
	e := &s.Call.Effects
	for _, effect := range [...]atip.Effect{atip.Network, atip.ExecOpaque, atip.SecretRead, atip.Subprocess, atip.Delete} {
		if e[effect].Value != atip.No {
			return false
		}
	}
	return s.Confidence == policy.Exact && s.Call.Exactness == atip.Exact && s.RunsCode == policy.CodeNone && len(s.Call.UnknownOptions) == 0 && s.Call.Tool != "git" &&
		!slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			switch {
			case r.Kind != "path":
				return false
			case r.Abs == to:
				return r.Why == "redirection" || r.Recursive
			}
			return r.Access&atip.AccessWrite == 0 || r.Recursive
		})
}

// madeOwn reports that all that was written to a file so far is the text's own, and that nothing
// between could have put another in its place.
func (c *collector) madeOwn(abs string) bool {
	list := c.writers[abs]
	if len(list) == 0 {
		return false
	}
	for _, w := range list {
		if w.content == nil && !c.copiesPlain(w.by, abs) && !step.EditsPlain(w.by) && !makesPlain(w.by, abs) {
			return false
		}
	}
	first := slices.Index(c.steps, list[0].by)
	if first < 0 {
		return false
	}
	for _, s := range c.steps[first+1:] {
		if s.RunsCode != policy.CodeNone || s.Confidence == policy.Opaque {
			return false
		}
		switch s.Call.Tool {
		case "cp", "mv", "tee", "touch", "mkdir", "rm", "sed", "chmod", "echo", "printf", "cat":
		default:
			if s.Call.Effects[atip.Write].Value != atip.No && s.Call.Tool != "openssl" && !makesPlain(s, abs) {
				return false
			}
		}
	}
	return true
}

// copiesPlain reports a cp or touch of files of the workspace that are no secrets.
func (c *collector) copiesPlain(s *step.Step, to string) bool {
	if s.Call.Tool != "cp" && s.Call.Tool != "touch" || s.Confidence != policy.Exact || s.Call.Exactness != atip.Exact {
		return false
	}
	others := 0
	for _, r := range s.Call.Resources {
		if r.Abs == to {
			continue
		}
		others++
		switch r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
		default:
			return false
		}
		if len(c.writers[r.Abs]) > 0 {
			return false
		}
	}
	return others > 0 == (s.Call.Tool == "cp")
}
