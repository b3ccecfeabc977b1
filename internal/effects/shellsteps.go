package effects

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/codefile"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// surroundings is what a shell string says of the command at hand besides its words;
// nil for a plain argv.
type surroundings struct {
	outer      *surroundings
	env        []shell.Assign
	globs      []string
	stdin      *string // constant input of the command
	cwdUnknown bool
	flows      bool     // something is piped in, or written into its words
	listed     []string // stand for the names of files that are piped in, if nothing else is
}

// pinned makes the shell start the identified files, whatever PATH holds by then.
// A command that was not found stays so, and the shell's message says so.
func (c *collector) pinned(script *shell.Script, d shelltext.Dialect) string {
	if d != shelltext.Bash {
		return ""
	}
	var b strings.Builder
	var missing []string
	done := map[string]bool{}
	moves := movesPath(script)
	for i := range script.Commands {
		cmd := &script.Commands[i]
		if cmd.Kind != shell.External || len(cmd.Path) > 0 || len(cmd.Argv) == 0 || strings.IndexByte(cmd.Argv[0], '/') >= 0 || done[cmd.Argv[0]] {
			continue
		}
		done[cmd.Argv[0]] = true
		path := "/command-not-found/" + cmd.Argv[0]
		if s := c.found[cmd.Argv[0]]; s != nil && s.Missing == nil {
			path = s.ID.Place
			if path == "" {
				path = s.ID.Canonical
			}
		} else {
			name := quote.Literal(cmd.Argv[0])
			missing = append(missing, name)
			if name == cmd.Argv[0] && !moves {
				b.WriteString(name + `() { builtin echo "$0: line ${BASH_LINENO[0]}: ` + name + `: command not found" >&2; return 127; }; `)
			}
		}
		b.WriteString("hash -p " + quote.Literal(path) + " " + quote.Literal(cmd.Argv[0]) + "; ")
	}
	// The shell finds a remembered name without looking whether the file is there, and
	// scripts ask it before they use a tool.
	if names := strings.Join(missing, "|"); names != "" && !moves {
		if strings.Contains(script.Text, "command") {
			b.WriteString(`command() { case ${1-} in -v|-V) case ${2-} in ` + names + `) return 1;; esac;; esac; builtin command "$@"; }; `)
		}
		if strings.Contains(script.Text, "type") {
			b.WriteString(`type() { case ${1-} in -*) case ${2-} in ` + names + `) return 1;; esac;; ` + names + `) echo "type: $1: not found" >&2; return 1;; esac; builtin type "$@"; }; `)
		}
	}
	return b.String()
}

// readable takes from a shell's step what its metadata assumes of a text nobody
// read: it does what the steps of the text do.
func (c *collector) readable(s *step.Step) {
	for e := range s.Call.Effects {
		f := &s.Call.Effects[e]
		if f.Clause == "startup" && !step.OnlyLogin(s) || f.Clause == "plus-option" {
			continue
		}
		*f = step.Harmless(atip.Effect(e), "shell:text")
	}
	s.Call.Effects[atip.Subprocess].Value = atip.Yes
	if s.Call.Exactness == atip.Unresolved {
		s.Call.Exactness = atip.Bounded
	}
}

// shell looks into a shell string that a step runs.
func (c *collector) shell(s *step.Step, text, file string, via []string) error {
	if strings.IndexByte(text, 0) >= 0 {
		s.RunsCode = policy.CodeOpaque
		c.note(s, sinkWord)
		return nil
	}
	dialect, ok := step.DialectOf(s)
	if !ok {
		s.RunsCode = policy.CodeOpaque
		return nil
	}
	o := c.options(subpath.Join(s.Cwd, s.Call.Chdir))
	o.Dialect, o.ArgsUnknown = dialect, true
	for i, word := range s.Argv {
		if word == text && i+1 < len(s.Argv) {
			o.Name, o.Args, o.ArgsUnknown = s.Argv[i+1], s.Argv[i+2:], false
		} else if word == text {
			o.ArgsUnknown = false
		}
	}
	if file != "" {
		o.Name, o.Script = file, true
		o.Args, o.ArgsUnknown = step.ScriptArgs(s, file)
	}
	if o.ArgsUnknown && step.IsShell(s.Call.Tool) && step.HasOption(s, "s") && !slices.Contains(s.Argv, text) {
		o.ArgsUnknown = false // bash -s WORDS, with the text as its input
		for _, p := range s.Call.Positionals {
			o.Args = append(o.Args, p.Value)
		}
	}
	for _, a := range o.Args {
		o.ArgsUnknown = o.ArgsUnknown || strings.IndexByte(a, 0) >= 0
	}
	script, err := shell.Read(text, o)
	if err != nil {
		return err
	}
	if step.IsShell(s.ID.Effective) || step.IsShell(s.ID.Invoked) {
		c.readable(s)
		if step.ChangesReading(s) {
			s.RunsCode = policy.CodeOpaque
		}
	}
	return c.script(s, script, via)
}

// options is what the reader may know of this machine.
func (c *collector) options(cwd string) shell.Options {
	o := shell.Options{Cwd: cwd, Home: c.site.Dirs.Home, Getenv: c.shellVariable, Absent: c.absent, KnownPath: c.knownPath, IsDir: isDir, Match: matching, ReadFile: c.site.readText, Trusted: c.hostSnapshot}
	l := c.site.Limits
	o.Limits = shell.Limits{Bytes: l.MaxBytes, Nodes: l.MaxNodes, Commands: l.MaxSteps, Nesting: l.MaxNesting, Unrolled: l.MaxUnroll}
	if c.ctx != nil {
		o.Stdin = c.ctx.stdin
		if c.ctx.cwdUnknown {
			o.Cwd = ""
		}
		if home, _ := c.lookupEnv("HOME"); filepath.IsAbs(home) && strings.IndexByte(home, 0) < 0 {
			o.Home = home
		} else {
			o.Home = ""
		}
	}
	return o
}

// hostSnapshot knows the file with which a host of agents starts each command: what it
// saw of the user's own shell. No child can write it.
func (c *collector) hostSnapshot(path string) bool {
	if filepath.Clean(path) != path || filepath.Dir(path) != place.ShellSnapshots(c.site.Dirs.Home) || !strings.HasSuffix(path, ".sh") {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	uid, _, ok := owner.Of(info)
	return ok && uid == c.site.UID
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// matching lists the directories that a pattern matches, at most MaxMatches.
func matching(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	found = slices.DeleteFunc(found, func(path string) bool { return !isDir(path) })
	return found[:min(len(found), MaxMatches)]
}

// shellVariable looks up a variable as the shell will see it. The values of
// credentials are not folded into words, which a plan shows.
func (c *collector) shellVariable(name string) (value string, set, known bool) {
	for x := c.ctx; x != nil; x = x.outer {
		for i := len(x.env) - 1; i >= 0; i-- {
			if x.env[i].Name == name {
				return x.env[i].Value, true, strings.IndexByte(x.env[i].Value, 0) < 0
			}
		}
	}
	if filter.CredentialName(name) || name == "SSH_AUTH_SOCK" || strings.HasPrefix(name, "ATIP_EXEC_") || strings.HasPrefix(name, "GIT_CONFIG") || step.SandboxVariable(name) {
		return "", false, false
	}
	if _, set := c.site.Env.Set[name]; set {
		return "", false, false
	}
	value, set = c.site.lookupEnv(name)
	if step.LoadsCode(name) || set && step.HasUserinfo(value) {
		return "", false, false
	}
	if !set && !c.peeking && step.Ordinary(name) {
		c.out.Unset = true
		return "", false, !c.unsetUnknown
	}
	return value, set, true
}

// absent reports a variable that a shell of this run does not have when it starts.
func (c *collector) absent(name string) bool {
	for x := c.ctx; x != nil; x = x.outer {
		if slices.ContainsFunc(x.env, func(a shell.Assign) bool { return a.Name == name }) {
			return false
		}
	}
	for _, prefix := range [...]string{"BASH", "EPOCH", "HIST", "COMP", "READLINE", "PS", "OPT", "TERM", "ATIP_"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "SHELLOPTS", "RANDOM", "SRANDOM", "PATH", "_":
		return false
	}
	if _, set := c.site.Env.Set[name]; set || !step.Ordinary(name) || step.SandboxVariable(name) || step.ProxyVariable(name) || filter.CredentialName(name) || name == "SSH_AUTH_SOCK" {
		return false
	}
	_, set := c.site.lookupEnv(name)
	return !set
}

// lookupEnv is the environment of the command at hand, for its metadata.
func (c *collector) lookupEnv(name string) (string, bool) {
	if value, ok := c.textEnv(name); ok {
		return value, true
	}
	return c.site.lookupEnv(name)
}

// textEnv is the value that the text gives a variable of the command at hand.
func (c *collector) textEnv(name string) (string, bool) {
	for x := c.ctx; x != nil; x = x.outer {
		for i := len(x.env) - 1; i >= 0; i-- {
			if x.env[i].Name == name {
				return x.env[i].Value, true
			}
		}
	}
	return "", false
}

// environment is what metadata may ask about the variables of the command at hand. An editor that the text gives is
// read as a command (steered).
func (c *collector) environment() atip.ResolveOptions {
	set := func(name string) (string, bool) {
		value, ok := c.lookupEnv(name)
		_, ours := c.textEnv(name)
		return value, ok && !step.OffProgram(name, value) && !(ours && step.EditorText(name, value))
	}
	o := atip.ResolveOptions{Env: set, EnvNames: c.site.envNames(), Offline: c.offline}
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if !slices.Contains(o.EnvNames, a.Name) && !step.OffProgram(a.Name, a.Value) && !step.EditorText(a.Name, a.Value) {
				o.EnvNames = append(o.EnvNames[:len(o.EnvNames):len(o.EnvNames)], a.Name)
			}
		}
	}
	return o
}

// script appends the steps of a text and finds the flows between them.
func (c *collector) script(sh *step.Step, script *shell.Script, via []string) error {
	for path, text := range script.Pipes {
		c.wrote(sh, path, &text)
	}
	l := links{c: c, script: script, ranges: make([]stepRange, len(script.Commands))}
	for i := range script.Commands {
		l.ranges[i].from = len(c.steps)
		if done, err := l.namedWords(sh, i, via); err != nil {
			return err
		} else if !done {
			tracked := c.tracked
			c.tracked = l.tracked(i)
			err := c.command(sh, &script.Commands[i], via, l.fed(i), l.namesFor(i))
			if c.tracked = tracked; err != nil {
				return err
			}
		}
		l.ranges[i].to = len(c.steps)
		if script == c.out.Script && !c.peeking {
			for _, s := range c.steps[l.ranges[i].from:] {
				s.Command = i + 1
			}
		}
		c.leftBehind(&script.Commands[i], c.steps[l.ranges[i].from:])
	}
	l.connect()
	return nil
}

// command appends the steps of one command of a text: one for every directory it
// may run in.
func (c *collector) command(sh *step.Step, cmd *shell.Command, via []string, fed bool, listed []string) error {
	outer := c.ctx
	c.ctx = &surroundings{outer: outer, env: cmd.Env, globs: cmd.Globs, stdin: cmd.Stdin, cwdUnknown: cmd.CwdUnknown, flows: fed, listed: listed}
	defer func() { c.ctx = outer }()
	cwds := cmd.Cwds
	if len(cwds) == 0 {
		cwds = []string{sh.Cwd}
	}
	if len(cmd.Path) > 0 {
		return c.lookedUpIn(cmd.Path, func() error { return c.commandIn(sh, cmd, via, cwds) })
	}
	return c.commandIn(sh, cmd, via, cwds)
}

func (c *collector) commandIn(sh *step.Step, cmd *shell.Command, via, cwds []string) error {
	for _, cwd := range cwds {
		at := len(c.steps)
		if cwd == cwds[0] {
			c.lookedUp(cmd, cwd)
		}
		switch cmd.Kind {
		case shell.External:
			confidence := policy.Exact
			if cmd.Bounded {
				confidence = policy.Bounded
			}
			if err := c.add(cmd.Argv, via, cwd, confidence); err != nil {
				var notExec *trust.NotExecutableError
				if !errors.As(err, &notExec) {
					return err
				}
				// The shell says so when it comes to it, and goes on.
				c.steps = append(c.steps[:at], c.opaqueStep(sh, cmd.Argv, via, cwd, err.Error()))
			}
			c.staysMissing(c.steps[at])
			c.steps[at].Typed = len(via) == 0 && c.unchanged(cmd)
		case shell.Builtin:
			s, err := c.builtinStep(sh, cmd.Argv, via, cwd)
			if err != nil {
				return err
			}
			c.steps = append(c.steps, s)
		default:
			if c.nothingToSource(sh, cmd) {
				s, err := c.builtinStep(sh, cmd.Argv, via, cwd)
				if err != nil {
					return err
				}
				c.steps = append(c.steps, s)
				break
			}
			s := c.opaqueStep(sh, cmd.Argv, via, cwd, cmd.Why)
			if cmd.CodeFile != "" && !strings.HasPrefix(cmd.CodeFile, "/dev/") && c.ofWorkspace(cmd.CodeFile) {
				// It is not there, or too long: code of the workspace, whatever it is.
				s.RunsCode, s.Confidence = policy.CodeProject, policy.Bounded
				c.sourced = true
			} else if cmd.Numbered && c.builds(filepath.Clean(subpath.Join(cwd, cmd.Argv[0]))) {
				s.RunsCode, s.Confidence = policy.CodeProject, policy.Bounded
			}
			c.note(s, sinkWord|sinkStdin)
			if len(cmd.Argv) > 0 && strings.IndexByte(cmd.Argv[0], 0) >= 0 {
				var err error
				if s.Known, err = c.knownPart(s, cmd.Argv); err != nil {
					return err
				}
			}
			c.steps = append(c.steps, s)
			for _, w := range c.writers[cmd.CodeFile] {
				c.fileEdge(w.by, s)
			}
		}
		c.redirections(c.steps[at], cmd, cwd)
		if len(c.steps) > step.MaxSteps {
			c.steps = append(c.steps, c.opaqueStep(sh, nil, via, cwd, "there are more commands than are judged"))
			return step.ErrTooMany
		}
		if !step.Relative(c.steps[at:]) {
			break
		}
	}
	return nil
}

// nothingToSource reports a file taken in by source that is not there and that no run can make, such as
// ~/.cargo/env: the shell says so when it comes to it.
func (c *collector) nothingToSource(sh *step.Step, cmd *shell.Command) bool {
	path := cmd.CodeFile
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 || strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
		return false
	}
	_, err := os.Lstat(path)
	return os.IsNotExist(err) && !c.writableByRuns(path) && len(c.writersOf(sh, path, "")) == 0
}

// unchanged reports a command that the shell of the run's own text starts by its name, with words
// that are known to the letter and with the variables of the shell.
func (c *collector) unchanged(cmd *shell.Command) bool {
	if c.peeking || c.depth > 0 || c.out.Script == nil || cmd.CwdUnknown || len(cmd.Path) > 0 || len(cmd.Globs) > 0 || len(cmd.Argv) == 0 || strings.IndexByte(cmd.Argv[0], '/') >= 0 ||
		slices.ContainsFunc(cmd.Argv, func(w string) bool { return strings.IndexByte(w, 0) >= 0 }) {
		return false
	}
	return !slices.ContainsFunc(cmd.Env, func(a shell.Assign) bool {
		have, set := c.site.lookupEnv(a.Name)
		return !set || have != a.Value
	})
}

// staysMissing makes the step of a command of the run's own text harmless that no document
// describes and that is not there: pinned keeps the shell from finding one, or no run can put one where it
// is looked up. The shell says so when it comes to it, and goes on.
func (c *collector) staysMissing(s *step.Step) {
	if s.Missing == nil || s.Call.Provenance.Channel != "none" || strings.IndexByte(s.Argv[0], '/') >= 0 {
		return
	}
	if c.sourced {
		// Nothing, or a function of the file that was taken in: `deactivate`.
		s.RunsCode = policy.CodeProject
		return
	}
	if len(s.Via) > 0 || !c.pins && !(c.site.Starts && c.fixedPath()) || quote.Literal(s.Argv[0]) != s.Argv[0] {
		return
	}
	for e := range s.Call.Effects {
		s.Call.Effects[e] = step.Harmless(atip.Effect(e), "not found")
	}
	s.Call.Exactness, s.Call.Nested, s.RunsCode = atip.Exact, []atip.Nested{}, policy.CodeNone
}

// fixedPath reports that no run can write where command words are looked up.
func (c *collector) fixedPath() bool {
	return !slices.ContainsFunc(c.path, func(dir string) bool {
		return strings.IndexByte(dir, 0) >= 0 || !filepath.IsAbs(dir) || c.writableByRuns(dir)
	})
}

// keepsPins reports a text that does not change what its shell remembers of commands.
func keepsPins(script *shell.Script) bool {
	return !movesPath(script) && !slices.ContainsFunc(script.Commands, func(cmd shell.Command) bool {
		return cmd.Kind == shell.Builtin && len(cmd.Argv) > 0 && (cmd.Argv[0] == "hash" || cmd.Argv[0] == "unset")
	})
}

// builtinStep is a builtin of the shell: harmless, but for what its metadata says
// of those that also exist as programs.
func (c *collector) builtinStep(sh *step.Step, argv, via []string, cwd string) (*step.Step, error) {
	name := ":"
	if len(argv) > 0 {
		name = argv[0]
	} else {
		argv = []string{":"}
	}
	s := &step.Step{Argv: step.Shown(argv), Verdict: sh.Verdict}
	s.Via, s.Cwd, s.Confidence, s.Trust = via, cwd, policy.Exact, sh.Trust
	s.File = policy.FileFacts{Believed: true, SystemPath: true, Names: []string{name}}
	switch {
	case name == "test", name == "[", name == "kill" && !step.OwnProcesses(argv):
		found, err := c.lookup(name)
		if err != nil {
			return nil, err
		}
		s.Call = found.Resolve(argv, c.environment())
		s.Call.Resources = append(s.Call.Resources, asked(argv)...)
		for i := range s.Call.Resources {
			c.place(c.site.World, &s.Call.Resources[i], cwd)
			c.asked(s, &s.Call.Resources[i])
		}
		c.settle(s)
		return s, nil
	}
	s.Call = step.HarmlessCall(name, s.Argv, atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "none", Source: "shell:builtin"})
	if (name == "." || name == "source") && len(argv) > 1 && !step.HarmlessFile(argv[1]) {
		r := atip.Resource{Kind: "path", Value: argv[1], Access: atip.AccessRead, Why: "argv[1]"}
		c.place(c.site.World, &r, cwd)
		r.Value = step.Shown(argv[1:2])[0]
		c.ownFile(s, &r, nil)
		s.Call.Resources = append(s.Call.Resources, r)
		s.Raise(r)
	}
	return s, nil
}

// asked lists the files whose existence a test asks for.
func asked(argv []string) []atip.Resource {
	var out []atip.Resource
	for i := 1; i+1 < len(argv); i++ {
		if len(argv[i]) == 2 && argv[i][0] == '-' && strings.IndexByte("bcdefghkprsuwxLNOGS", argv[i][1]) >= 0 {
			out = append(out, atip.Resource{Kind: "path", Value: argv[i+1], Access: atip.AccessRead, Why: argv[i]})
		}
	}
	return out
}

// asked lets a file of secrets in the workspace be one like others for who only asks whether
// it is there: listing its directory says so, too.
func (c *collector) asked(s *step.Step, r *atip.Resource) {
	if r.Class == atip.ClassSecret && r.Access == atip.AccessRead && !r.Recursive && (s.Call.Tool == "test" || s.Call.Tool == "[") && subpath.Within(r.Abs, c.site.Workspace) {
		r.Class = atip.ClassWorkspace
	}
}

// opaqueStep is a part of a text that cannot be read: the worst is assumed.
func (c *collector) opaqueStep(sh *step.Step, argv, via []string, cwd, why string) *step.Step {
	if len(argv) == 0 {
		argv = []string{"…"}
	}
	argv = step.Shown(argv)
	s := &step.Step{Argv: argv, Verdict: sh.Verdict}
	s.Via, s.Cwd, s.Confidence, s.Trust, s.RunsCode = via, cwd, policy.Opaque, sh.Trust, policy.CodeOpaque
	s.Call = atip.UnknownCall(argv, "")
	if why != "" {
		s.Call.Warnings = append(s.Call.Warnings, why)
	}
	return s
}

// redirections adds the files that the shell opens for a command.
func (c *collector) redirections(s *step.Step, cmd *shell.Command, cwd string) {
	for _, r := range cmd.Redirects {
		if host, ok := step.Socket(r.Path); ok {
			s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "redirection", Rank: atip.Vendor}
			s.Hosts = append(s.Hosts, host)
			c.note(s, sinkSocket)
			continue
		}
		if step.HarmlessFile(r.Path) {
			continue
		}
		res := atip.Resource{Kind: "path", Value: r.Path, Why: "redirection"}
		if r.Read {
			res.Access |= atip.AccessRead
		}
		if r.Write {
			res.Access |= atip.AccessWrite
			if w := &s.Call.Effects[atip.Write]; w.Value != atip.Yes {
				*w = atip.Fact{Value: atip.Yes, Source: "redirection", Rank: atip.Vendor}
			}
		}
		c.place(c.site.World, &res, cwd)
		c.ownFile(s, &res, r.Content)
		s.Raise(res)
		c.secretTail(s, &res)
		s.Call.Resources = append(s.Call.Resources, res)
		if strings.IndexByte(r.Path, 0) >= 0 {
			c.match(s, len(s.Call.Resources)-1)
			c.hideHoles(s)
		}
		if at := c.index(s); r.Read && res.Class == atip.ClassSecret && s.Call.Effects[atip.Network].Value == atip.Yes && at >= 0 {
			// What is fed to a tool goes out; that it may use the file itself is another thing.
			c.edge(at, at, policy.SecretToNetwork)
		}
		if r.Write {
			c.wrote(s, res.Abs, r.Content)
		}
	}
}

// place fills a resource as far as it is known where it is.
func (c *collector) place(world place.World, r *atip.Resource, cwd string) {
	if r.Kind != "path" {
		return
	}
	if pattern, ok := shell.Within(r.Value); ok {
		value := r.Value
		r.Value = strings.ReplaceAll(pattern, "*", "x")
		c.place(world, r, cwd)
		r.Value = value
		return
	}
	unknown := strings.IndexByte(r.Value, 0) >= 0 || c.ctx != nil && c.ctx.cwdUnknown && !filepath.IsAbs(r.Value) && !strings.HasPrefix(r.Value, "~")
	if !unknown {
		world.Fill(r, cwd)
		c.follow(world.Fill, r, cwd)
		return
	}
	if r.Access&^atip.AccessRead == 0 {
		// The kernel keeps secrets from being read, whatever the path is. One in a directory where the
		// shell may be counts.
		world.Fill(r, cwd)
		if r.Class != atip.ClassSecret {
			r.Abs, r.Class = "", atip.ClassOutside
		}
		return
	}
	r.Abs, r.Class = "", atip.ClassUnknown
}

// shellLines judges the commands of the shell that stand in the program text of an
// editor, a debugger, Tcl or sqlite3: "!rm x" of ed, "shell rm x" of gdb, "exec rm x", ".once x". Where such a line could
// stand in another form, what runs is not known.
func (c *collector) shellLines(s *step.Step, n atip.Nested, text string, via []string) error {
	if n.Language != "ed" && n.Language != "gdb" && n.Language != "tcl" && n.Language != "sqlite" {
		return nil
	}
	if n.Language == "sqlite" && atip.SQLDestroys(text) {
		s.Call.Effects[atip.Destructive] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
	}
	for line := range strings.SplitSeq(text, "\n") {
		command, ok := step.Escape(n.Language, line)
		switch {
		case ok && command != "":
			if err := c.shell(s, command, "", via); err != nil {
				return err
			}
		case !ok:
			s.RunsCode = policy.CodeOpaque
		}
	}
	return nil
}

// sink says by which ways a step takes code in.
type sink uint8

const (
	sinkStdin  sink = 1 << iota // a program text on standard input
	sinkWord                    // a program text in its words, or a file that is a pipe
	sinkSocket                  // its descriptors are a connection
)

// note marks a step as one that runs what flows into it.
func (c *collector) note(s *step.Step, k sink) {
	if c.sinks == nil {
		c.sinks = map[*step.Step]sink{}
	}
	c.sinks[s] |= k
}

// written is a file that a step writes, with its content if that is constant.
type written struct {
	by      *step.Step
	content *string
}

// wrote remembers who writes a file, for whoever runs it later.
func (c *collector) wrote(s *step.Step, abs string, content *string) {
	if abs == "" {
		return
	}
	if c.writers == nil {
		c.writers = map[string][]written{}
	}
	c.writers[abs] = append(c.writers[abs], written{s, content})
}

// constantText is all that was written to a file, one after the other, if all of it is
// constant.
func constantText(list []written) (string, bool) {
	var b strings.Builder
	for _, w := range list {
		if w.content == nil {
			return "", false
		}
		b.WriteString(*w.content)
		b.WriteByte('\n')
	}
	return b.String(), true
}

// wroteAll remembers the files that a call itself writes.
func (c *collector) wroteAll(s *step.Step) {
	if c.ctx == nil || step.KeepsContent(s) {
		return
	}
	c.wroteFetched(s)
	for _, r := range s.Call.Resources {
		if r.Kind == "path" && r.Access&atip.AccessWrite != 0 && r.Abs != "" {
			content := (*string)(nil)
			if s.Call.Tool == "tee" {
				content = c.ctx.stdin
			}
			c.wrote(s, r.Abs, content)
		}
	}
}

// wroteFetched remembers the files that a download names after what it fetches.
func (c *collector) wroteFetched(s *step.Step) {
	switch s.Call.Tool {
	case "wget":
		if step.UsesOption(s, "output-document", "spider") {
			return
		}
	case "curl":
		if !step.UsesOption(s, "remote-name", "remote-name-all") {
			return
		}
	default:
		return
	}
	dir := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, o := range s.Call.Options {
		if (o.Name == "directory-prefix" || o.Name == "output-dir") && strings.IndexByte(o.Value, 0) < 0 {
			dir = subpath.Join(dir, o.Value)
		}
	}
	for _, p := range s.Call.Positionals {
		url, _, _ := strings.Cut(p.Value, "?")
		_, rest, _ := strings.Cut(url, "://")
		if slash := strings.LastIndexByte(rest, '/'); slash >= 0 && slash+1 < len(rest) && strings.IndexByte(rest, 0) < 0 {
			c.wrote(s, filepath.Join(dir, rest[slash+1:]), nil)
		}
	}
}

// runsFile judges a file that a step runs and that the text itself wrote before.
func (c *collector) runsFile(s *step.Step, file string, isShell bool, via []string) (handled bool, err error) {
	r := atip.Resource{Kind: "path", Value: file, Access: atip.AccessRead}
	c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
	list := c.writersOf(s, r.Abs, file)
	if len(list) == 0 || r.Abs == "" {
		if isShell {
			c.peek(s, r.Abs)
		}
		return false, nil
	}
	if c.ofWorkspace(r.Abs) && !slices.ContainsFunc(list, func(w written) bool { return !c.derived(w.by, 0) }) {
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
		for _, w := range list {
			for _, from := range w.by.Call.Resources {
				if isShell && from.Abs != r.Abs {
					c.peek(s, from.Abs)
				}
			}
		}
		return true, nil
	}
	text, ok := constantText(list)
	if ok && !isShell && strings.IndexByte(text, 0) < 0 && c.ofWorkspace(r.Abs) {
		// As code that lay there before; writtenCode reads the text.
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
		return true, nil
	}
	if ok && isShell {
		if _, err := os.Lstat(r.Abs); err == nil {
			// It may also hold what was there before.
			s.RunsCode = max(s.RunsCode, policy.CodeProject)
		}
		return true, c.shell(s, text, r.Abs, via)
	}
	s.RunsCode = policy.CodeOpaque
	for _, w := range list {
		c.fileEdge(w.by, s)
	}
	return true, nil
}

// builds reports a file that the text makes out of the workspace, in a directory where it writes nothing else.
func (c *collector) builds(abs string) bool {
	ok := len(c.writers[abs]) > 0 && c.ofWorkspace(abs)
	for path, list := range c.writers {
		ok = ok && !(subpath.Within(path, filepath.Dir(abs)) && slices.ContainsFunc(list, func(w written) bool { return !c.codeOfWorkspace(w, 0) }))
	}
	return ok
}

// runsWritten judges a program that the text itself wrote before.
func (c *collector) runsWritten(s *step.Step) error {
	abs := s.ID.Canonical
	if s.Missing != nil && strings.IndexByte(s.Argv[0], '/') >= 0 {
		abs = filepath.Clean(subpath.Join(s.Cwd, s.Argv[0]))
	}
	list := c.writersOf(s, abs, "")
	if len(list) > 0 && c.ofWorkspace(abs) {
		list = slices.DeleteFunc(slices.Clone(list), func(w written) bool { return c.codeOfWorkspace(w, 0) })
		if len(list) == 0 {
			s.RunsCode = max(s.RunsCode, policy.CodeProject)
		}
	}
	if len(list) == 0 || abs == "" {
		if s.File.InWorkspace {
			c.peek(s, abs)
		} else if s.Missing != nil && subpath.Within(abs, c.site.Workspace) {
			s.RunsCode = max(s.RunsCode, policy.CodeProject) // nothing, or what the workspace makes of itself
		}
		return nil
	}
	if text, ok := constantText(list); ok && strings.IndexByte(text, 0) < 0 && c.ofWorkspace(abs) {
		s.RunsCode = max(s.RunsCode, policy.CodeProject)
		c.peek(s, abs) // what lay there may stay a part of it
		if !step.ShellScript(text) {
			return nil // writtenCode reads it
		}
		// A text without "#!" is run by the shell; what it would do counts.
		at := len(c.steps)
		if err := c.shell(s, text, abs, s.Via); err == nil {
			return nil
		}
		c.steps = c.steps[:at]
	}
	s.RunsCode = policy.CodeOpaque
	for _, w := range list {
		c.fileEdge(w.by, s)
	}
	return nil
}

// writersOf are those who wrote a file before the step s runs it: under its name, under a name that the
// pattern in the words matches, or, where it is not there yet, by fetching what only a server names.
func (c *collector) writersOf(s *step.Step, abs, word string) []written {
	list := slices.Clip(c.writers[abs])
	if dir := subpath.Join(s.Cwd, s.Call.Chdir); strings.ContainsAny(word, "*?[") && strings.IndexByte(word, 0) < 0 {
		for path, by := range c.writers {
			if ok, _ := filepath.Match(subpath.Join(dir, word), path); ok {
				list = append(list, by...)
			}
		}
	}
	if len(list) > 0 || abs == "" {
		return list
	}
	for _, x := range c.steps {
		// What installs runs what it fetches itself, and asks for that.
		if e := x.Call.Effects; x != s && e[atip.Network].Value == atip.Yes && e[atip.Write].Value == atip.Yes && x.RunsCode == policy.CodeNone && e[atip.ExecOpaque].Value != atip.Yes && x.Split == nil && x.Call.Tool != "git" &&
			(subpath.Within(abs, subpath.Join(x.Cwd, x.Call.Chdir)) || slices.ContainsFunc(x.Call.Resources, func(r atip.Resource) bool {
				return r.Kind == "path" && r.Access&atip.AccessWrite != 0 && subpath.Within(abs, r.Abs)
			})) {
			list = append(list, written{x, nil})
		}
	}
	if len(list) > 0 {
		if _, err := os.Lstat(abs); !os.IsNotExist(err) {
			return nil
		}
	}
	return list
}

func (c *collector) fileEdge(from, to *step.Step) {
	c.fileEdges = append(c.fileEdges, [2]*step.Step{from, to})
}

// fetchedCode adds flows from what fetches a file that holds a program, by its name, to code of the workspace that
// runs afterwards and may take it in: `gh api … > tests/test_x.py && pytest`. What git brings is the project's own.
func (c *collector) fetchedCode() {
	for path, list := range c.writers {
		if !codefile.IsSource(path) || !c.ofWorkspace(path) {
			continue
		}
		for _, w := range list {
			at := c.index(w.by)
			if e := w.by.Call.Effects; w.content != nil || at < 0 || e[atip.Network].Value != atip.Yes || w.by.Split != nil || w.by.Call.Tool == "git" {
				continue
			}
			for _, s := range c.steps[at+1:] {
				if s.RunsCode == policy.CodeProject {
					s.RunsCode = policy.CodeOpaque
					c.fileEdge(w.by, s)
				}
			}
		}
	}
}

// stepRange is the steps of one command.
type stepRange struct{ from, to int }

// links are the flows of one text.
type links struct {
	c      *collector
	script *shell.Script
	ranges []stepRange
}

// fed reports whether anything flows into a command.
func (l *links) fed(i int) bool {
	return slices.ContainsFunc(l.script.Flows, func(f shell.Flow) bool { return f.To == i && f.Kind <= shell.FlowCode })
}

func (l *links) steps(i int) []*step.Step { return l.c.steps[l.ranges[i].from:l.ranges[i].to] }

// connect turns flows that are dangerous as a whole into edges.
func (l *links) connect() {
	for i := range l.script.Commands {
		l.into(i)
		l.textOfWorkspace(i)
	}
	for _, f := range l.script.Flows {
		switch f.Kind {
		case shell.FlowForkBomb:
			l.c.edge(l.ranges[f.To].from, l.ranges[f.To].from, policy.ForkBomb)
		case shell.FlowSocket:
			l.c.edge(l.ranges[f.To].from, l.ranges[f.To].from, policy.SocketShell)
		}
	}
	l.c.fetchedCode()
	for k := range l.c.fileEdges {
		l.fileEdge(l.c.fileEdges[k][0], l.c.fileEdges[k][1])
	}
	l.c.fileEdges = nil
}

// before lists the commands whose output can reach command i, through the given
// kinds of flow at the end.
func (l *links) before(i int, last ...shell.FlowKind) []int {
	var out []int
	var visit func(i int, kinds []shell.FlowKind)
	visit = func(i int, kinds []shell.FlowKind) {
		for _, f := range l.script.Flows {
			if f.To == i && f.From != i && slices.Contains(kinds, f.Kind) && !slices.Contains(out, f.From) {
				out = append(out, f.From)
				visit(f.From, []shell.FlowKind{shell.FlowStdin, shell.FlowWord, shell.FlowCode})
			}
		}
	}
	visit(i, last)
	return out
}

// textOfWorkspace makes an expression code of the workspace where its numbers come from files of the workspace only
// (`$(cat VERSION)`): what runs in a subscript of theirs is no more than what runs from such a file.
func (l *links) textOfWorkspace(i int) {
	from := l.before(i, shell.FlowCode)
	if !l.script.Commands[i].Expression || len(from) == 0 || slices.ContainsFunc(from, func(k int) bool { return !l.printsWorkspace(k) }) {
		return
	}
	for _, s := range l.steps(i) {
		s.RunsCode, s.Confidence = policy.CodeProject, policy.Bounded
	}
}

// printsWorkspace reports a command that prints nothing but what lies in files of the workspace which the text has not
// written before, or what the commands print that flow into it.
func (l *links) printsWorkspace(i int) bool {
	reads := l.fed(i)
	for _, s := range l.steps(i) {
		e := s.Call.Effects
		if s.Confidence != policy.Exact || s.RunsCode != policy.CodeNone || e[atip.Network].Value != atip.No || e[atip.ExecOpaque].Value != atip.No || step.Decodes(s) || step.HasHole(s.Argv) ||
			slices.ContainsFunc(s.Argv[1:], func(w string) bool { return strings.ContainsAny(w, "`(") && strings.Contains(w, "[") }) {
			return false
		}
		for _, r := range s.Call.Resources {
			switch {
			case r.Class != atip.ClassWorkspace && r.Class != atip.ClassWorkspaceTracked, r.Access != atip.AccessRead,
				slices.ContainsFunc(l.c.writers[r.Abs], func(w written) bool {
					return w.content == nil && l.c.index(w.by) < l.ranges[i].from || w.content != nil && strings.Trim(*w.content, "0123456789.,:; \n") != ""
				}):
				return false
			}
			reads = true
		}
	}
	return reads
}

// into finds what must not flow into command i.
func (l *links) into(i int) {
	c := l.c
	for n, s := range l.steps(i) {
		to := l.ranges[i].from + n
		k := c.sinks[s]
		if k&sinkSocket != 0 && (step.IsShell(s.ID.Effective) || step.IsShell(s.Call.Tool)) {
			c.edge(to, to, policy.SocketShell)
		}
		var kinds []shell.FlowKind
		if k&sinkStdin != 0 {
			kinds = append(kinds, shell.FlowStdin)
		}
		if k&sinkWord != 0 {
			kinds = append(kinds, shell.FlowWord, shell.FlowCode)
		}
		if kinds != nil {
			l.code(l.before(i, kinds...), to)
		}
		if s.Call.Effects[atip.Network].Value == atip.Yes || k&sinkSocket != 0 {
			for _, from := range l.before(i, shell.FlowStdin, shell.FlowWord) {
				l.secret(from, to)
			}
		}
	}
}

func (l *links) code(from []int, to int) {
	for _, i := range from {
		for n, s := range l.steps(i) {
			at := l.ranges[i].from + n
			if s.Call.Effects[atip.Network].Value == atip.Yes {
				l.c.edge(at, to, policy.NetworkToCode)
			}
			if step.Decodes(s) {
				l.c.edge(at, to, policy.DecodedToCode)
			}
		}
	}
}

func (l *links) secret(from, to int) {
	for n, s := range l.steps(from) {
		if step.Reads(s) {
			l.c.edge(l.ranges[from].from+n, to, policy.SecretToNetwork)
		}
	}
}

// fileEdge is a file that one step wrote and another runs.
func (l *links) fileEdge(from, to *step.Step) {
	a, b := slices.Index(l.c.steps, from), slices.Index(l.c.steps, to)
	if a < 0 || b < 0 {
		return
	}
	kind := policy.WrittenToCode
	if from.Call.Effects[atip.Network].Value == atip.Yes {
		kind = policy.NetworkToCode
	} else if step.Decodes(from) {
		kind = policy.DecodedToCode
	}
	l.c.edge(a, b, kind)
	for i := range l.ranges {
		if a < l.ranges[i].from || a >= l.ranges[i].to {
			continue
		}
		l.code(l.before(i, shell.FlowStdin, shell.FlowWord, shell.FlowCode), b)
	}
}

func (c *collector) edge(from, to int, kind policy.EdgeKind) {
	e := policy.Edge{From: from, To: to, Kind: kind}
	if !slices.Contains(c.edges, e) {
		c.edges = append(c.edges, e)
	}
}

// maxTails bounds how many words of one step are tried as the beginning of a command.
const maxTails = 12

// tails looks for commands in the words of a step of which nobody knows what it runs: a
// wrapper without metadata (`newwrapper -n 5 rm -rf ~`), an option with a text that its
// tool runs (`gdb -ex 'shell rm -rf ~'`). Such a step asks whatever they are, so they can
// only make it stricter and say what it would do.
func (c *collector) tails(s *step.Step) {
	unknown := s.Call.Provenance.Channel == "none" && s.RunsCode == policy.CodeNone
	opaque := s.RunsCode == policy.CodeOpaque || s.Call.Effects[atip.ExecOpaque].Value != atip.No && s.RunsCode == policy.CodeNone
	if c.peeking || len(s.Argv) < 2 {
		return
	}
	if unknown || opaque || s.RunsCode != policy.CodeNone {
		c.handedSecrets(s)
		c.handedOutputs(s)
	}
	if !unknown && !opaque && s.RunsCode == policy.CodeInline && !step.HasHole(s.Argv) {
		c.handedCommand(s)
	}
	if !unknown && !opaque || step.HasHole(s.Argv) {
		return
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	for i := 1; i < len(s.Argv) && i <= maxTails; i++ {
		if step.TellTale(s.Argv[i]) && i+1 < len(s.Argv) && !slices.Contains(s.Call.Path, s.Argv[i]) {
			_ = sub.add(s.Argv[i:], s.Via, cwd, policy.Exact)
			break
		}
	}
	if opaque {
		for _, w := range s.Argv[1:] {
			for _, text := range step.CommandTexts(w) {
				word, _, more := strings.Cut(text, " ")
				if !more || !step.TellTale(word) {
					continue
				}
				if script, err := shell.Read(text, sub.options(cwd)); err == nil {
					_ = sub.script(s, script, s.Via)
				}
			}
		}
	}
	s.ShowEffects(sub.steps[1:])
	if s.Call.Effects[atip.Network].Value != atip.Yes || unknown {
		c.hide(sub) // else the paths may be those of another machine
	}
	s.ShowVerbs()
}

// handedSecrets adds the secrets of the home directory, and of the system, that are handed to
// code: what it does with them is not known, and reading them is the least.
func (c *collector) handedSecrets(s *step.Step) {
	if step.IsShell(s.Call.Tool) || s.Call.Tool == "ssh" {
		return
	}
	for _, w := range s.Argv[1:] {
		if name, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(name, "-") {
			w = value
		}
		if w = strings.TrimPrefix(w, "@"); !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "~/") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		r, ok := c.guarded(s, w)
		if !ok || r.Class != atip.ClassSecret || subpath.Within(r.Abs, c.site.Workspace) {
			continue
		}
		s.Takes(r)
	}
}

// handedCommand asks where a program text is handed the words of a command that deletes:
// python3 -c 'subprocess.run(sys.argv[1:])' rm -rf x.
func (c *collector) handedCommand(s *step.Step) {
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	for i := 2; i+1 < len(s.Argv); i++ {
		if step.TellTale(s.Argv[i]) && step.ContainsAny(s.Argv[i-1], "argv", "ARGV", "$@") {
			_ = sub.add(s.Argv[i:], s.Via, subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact)
			break
		}
	}
	if step.Removes(sub.steps[1:]) {
		s.RunsCode = policy.CodeOpaque
		s.ShowEffects(sub.steps[1:])
	}
	c.hide(sub)
}

// handedOutputs adds files outside of the workspace that code is told to write: the kernel
// keeps it from that, so a person is asked beforehand.
func (c *collector) handedOutputs(s *step.Step) {
	for i, w := range s.Argv[1:] {
		name, value, attached := strings.Cut(w, "=")
		if !attached {
			name, value = s.Argv[i], w
		}
		if i == 0 && !attached || !step.OutputOption(name) || strings.IndexByte(value, 0) >= 0 || !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~/") && !strings.HasPrefix(value, "../") {
			continue
		}
		r := atip.Resource{Kind: "path", Value: value, Access: atip.AccessWrite, Why: name}
		switch c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
		case atip.ClassStartup, atip.ClassSecret, atip.ClassPolicySelf, atip.ClassDevice, atip.ClassSystem, atip.ClassOutside, atip.ClassRoot:
			if !step.HarmlessFile(value) {
				s.Takes(r)
			}
		}
	}
}
