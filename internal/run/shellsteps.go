package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/shell"
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
	flows      bool // something is piped in, or written into its words
}

// maxArg is the longest text that is handed to a shell as one word: the kernel
// takes 128 KiB, MAX_ARG_STRLEN.
const maxArg = 120000

// realShell is the shell that runs -c, and its dialect.
func realShell() (string, shell.Dialect) {
	for _, path := range [...]string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(path); err == nil {
			return path, shell.Bash
		}
	}
	return "/bin/sh", shell.POSIX
}

// identifyShell plans -c: the text is read whole before anything is decided. A text
// that is one plain command needs no shell.
func (c *collector) identifyShell() error {
	p := c.plan
	path, dialect := realShell()
	o := c.options(p.Cwd)
	o.Dialect = dialect
	if len(p.inv.ShellArgs) > 0 {
		o.Name, o.Args = p.inv.ShellArgs[0], p.inv.ShellArgs[1:]
	} else {
		o.Name = path
	}
	script, err := shell.Read(p.inv.Shell, o)
	if err != nil {
		return err
	}
	if script.Simple {
		p.Argv = script.Commands[0].Argv
		return c.add(p.Argv, nil, p.Cwd, policy.Exact)
	}
	p.Argv = append(shellArgv(path, dialect, script.Text), p.inv.ShellArgs...)
	s := &step{argv: p.Argv}
	s.Cwd, s.Confidence = p.Cwd, policy.Exact
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
	if err := c.script(s, script, nil); err != nil {
		return err
	}
	text := c.pinned(script, dialect) + script.Text
	if len(text) > maxArg {
		return fault.New("E1601", "the text is longer than one word of a command line may be").WithFix("write it to a file and run that", "")
	}
	p.Argv = append(shellArgv(path, dialect, text), p.inv.ShellArgs...)
	s.argv = p.Argv
	return nil
}

// shellArgv starts a shell that reads no start-up file and ignores what the
// environment would have it do (-p: ENV, BASH_ENV, SHELLOPTS, exported functions).
func shellArgv(path string, d shell.Dialect, text string) []string {
	if d == shell.Bash {
		return []string{path, "--noprofile", "--norc", "-p", "-c", text}
	}
	return []string{path, "-c", text}
}

// pinned makes the shell start the identified files, whatever PATH holds by then.
// A command that was not found stays so.
func (c *collector) pinned(script *shell.Script, d shell.Dialect) string {
	if d != shell.Bash {
		return ""
	}
	var b strings.Builder
	done := map[string]bool{}
	for i := range script.Commands {
		cmd := &script.Commands[i]
		if cmd.Kind != shell.External || len(cmd.Argv) == 0 || strings.IndexByte(cmd.Argv[0], '/') >= 0 || done[cmd.Argv[0]] {
			continue
		}
		done[cmd.Argv[0]] = true
		path := "/nonexistent/" + cmd.Argv[0]
		if s := c.found[cmd.Argv[0]]; s != nil && s.missing == nil {
			path = s.id.Place
			if path == "" {
				path = s.id.Canonical
			}
		}
		b.WriteString("hash -p " + quote(path) + " " + quote(cmd.Argv[0]) + "; ")
	}
	return b.String()
}

func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// readable takes from a shell's step what its metadata assumes of a text nobody
// read: it does what the steps of the text do.
func (c *collector) readable(s *step) {
	for e := range s.Call.Effects {
		f := &s.Call.Effects[e]
		if f.Clause == "startup" || f.Clause == "plus-option" {
			continue
		}
		*f = harmless(atip.Effect(e), "shell:text")
	}
	s.Call.Effects[atip.Subprocess].Value = atip.Yes
	if s.Call.Exactness == atip.Unresolved {
		s.Call.Exactness = atip.Bounded
	}
}

func harmless(e atip.Effect, source string) atip.Fact {
	v := atip.No
	if e.Dangerous() == atip.No {
		v = atip.Yes
	}
	return atip.Fact{Value: v, Source: source, Rank: atip.Vendor}
}

// shell looks into a shell string that a step runs.
func (c *collector) shell(s *step, text string, via []string) error {
	if strings.IndexByte(text, 0) >= 0 {
		s.RunsCode = policy.CodeOpaque
		c.note(s, sinkWord)
		return nil
	}
	dialect, ok := dialectOf(s)
	if !ok {
		s.RunsCode = policy.CodeOpaque
		return nil
	}
	o := c.options(join(s.Cwd, s.Call.Chdir))
	o.Dialect, o.Depth, o.ArgsUnknown = dialect, len(via), true
	for i, word := range s.argv {
		if word == text && i+1 < len(s.argv) {
			o.Name, o.Args, o.ArgsUnknown = s.argv[i+1], s.argv[i+2:], false
		} else if word == text {
			o.ArgsUnknown = false
		}
	}
	for _, a := range o.Args {
		o.ArgsUnknown = o.ArgsUnknown || strings.IndexByte(a, 0) >= 0
	}
	script, err := shell.Read(text, o)
	if err != nil {
		return err
	}
	if isShell(s.id.Effective) || isShell(s.id.Invoked) {
		c.readable(s)
		if changesReading(s) {
			s.RunsCode = policy.CodeOpaque
		}
	}
	return c.script(s, script, via)
}

// changesReading reports options of a shell under which words mean something else.
func changesReading(s *step) bool {
	for _, o := range s.Call.Options {
		switch o.Name {
		case "O":
			switch o.Value {
			case "extglob", "globstar", "nullglob", "failglob", "dotglob", "nocaseglob", "inherit_errexit":
			default:
				return true
			}
		case "o":
			switch o.Value {
			case "errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber":
			default:
				return true
			}
		case "k", "T", "P", "a", "D", "debugger":
			return true
		}
	}
	return false
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "rbash":
		return true
	}
	return false
}

// dialectOf is the language of the shell that a step starts. One that reads other
// languages is opaque.
func dialectOf(s *step) (shell.Dialect, bool) {
	name := filepath.Base(s.id.Canonical)
	if s.missing != nil || s.id.Canonical == "" || !isShell(name) {
		name = s.id.Effective
	}
	switch name {
	case "bash", "rbash":
		return shell.Bash, true
	case "sh", "dash", "ash", "busybox":
		return shell.POSIX, true
	case "ksh", "mksh":
		return shell.Mksh, true
	case "zsh", "fish", "csh", "tcsh", "pwsh", "nu", "xonsh", "elvish":
		return 0, false
	}
	// A program that hands a text to the system's shell.
	if real, err := filepath.EvalSymlinks("/bin/sh"); err == nil && filepath.Base(real) == "bash" {
		return shell.Bash, true
	}
	return shell.POSIX, true
}

// options is what the reader may know of this machine.
func (c *collector) options(cwd string) shell.Options {
	o := shell.Options{Cwd: cwd, Home: c.plan.dirs.Home, Getenv: c.shellVariable, IsDir: isDir, ReadFile: readSmall}
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

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

const maxScript = 256 << 10

// readSmall reads a regular file of at most 256 KiB.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxScript:
		return nil, errors.New("not a small regular file")
	}
	return os.ReadFile(path)
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
	if filter.CredentialName(name) || name == "SSH_AUTH_SOCK" || strings.HasPrefix(name, "ATIP_EXEC_") || strings.HasPrefix(name, "GIT_CONFIG") || sandboxVariable(name) {
		return "", false, false
	}
	if _, set := c.plan.policies.Env().Set[name]; set {
		return "", false, false
	}
	value, set = c.plan.lookupEnv(name)
	if loadsCode(name) || set && hasUserinfo(value) {
		return "", false, false
	}
	if !set && !c.peeking && ordinary(name) {
		c.plan.unset = true
		return "", false, !c.unsetUnknown
	}
	return value, set, true
}

// sandboxVariable names what the sandbox sets or moves for a child.
func sandboxVariable(name string) bool {
	switch name {
	case "TMPDIR", "CARGO_HOME", "GRADLE_USER_HOME", "GOPATH", "GOFLAGS", "HISTFILE", "PYTHONUSERBASE":
		return true
	}
	return strings.Contains(strings.ToUpper(name), "CACHE") || strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "XDG_")
}

// lookupEnv is the environment of the command at hand, for its metadata.
func (c *collector) lookupEnv(name string) (string, bool) {
	for x := c.ctx; x != nil; x = x.outer {
		for i := len(x.env) - 1; i >= 0; i-- {
			if x.env[i].Name == name {
				return x.env[i].Value, true
			}
		}
	}
	return c.plan.lookupEnv(name)
}

// environment is what metadata may ask about the variables of the command at hand.
func (c *collector) environment() atip.ResolveOptions {
	o := atip.ResolveOptions{Env: c.lookupEnv, EnvNames: c.plan.envNames()}
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if !contains(o.EnvNames, a.Name) {
				o.EnvNames = append(o.EnvNames[:len(o.EnvNames):len(o.EnvNames)], a.Name)
			}
		}
	}
	return o
}

// script appends the steps of a text and finds the flows between them.
func (c *collector) script(sh *step, script *shell.Script, via []string) error {
	for path, text := range script.Pipes {
		c.wrote(sh, path, &text)
	}
	l := links{c: c, script: script, ranges: make([]stepRange, len(script.Commands))}
	for i := range script.Commands {
		l.ranges[i].from = len(c.steps)
		if err := c.command(sh, &script.Commands[i], via, l.fed(i)); err != nil {
			return err
		}
		l.ranges[i].to = len(c.steps)
	}
	l.connect()
	return nil
}

// command appends the steps of one command of a text: one for every directory it
// may run in.
func (c *collector) command(sh *step, cmd *shell.Command, via []string, fed bool) error {
	outer := c.ctx
	c.ctx = &surroundings{outer: outer, env: cmd.Env, globs: cmd.Globs, stdin: cmd.Stdin, cwdUnknown: cmd.CwdUnknown, flows: fed}
	defer func() { c.ctx = outer }()
	cwds := cmd.Cwds
	if len(cwds) == 0 {
		cwds = []string{sh.Cwd}
	}
	for _, cwd := range cwds {
		at := len(c.steps)
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
		case shell.Builtin:
			s, err := c.builtinStep(sh, cmd.Argv, via, cwd)
			if err != nil {
				return err
			}
			c.steps = append(c.steps, s)
		default:
			s := c.opaqueStep(sh, cmd.Argv, via, cwd, cmd.Why)
			if cmd.CodeFile != "" && c.ofWorkspace(cmd.CodeFile) {
				// It is not there, or too long: code of the workspace, whatever it is.
				s.RunsCode, s.Confidence = policy.CodeProject, policy.Bounded
			}
			c.note(s, sinkWord|sinkStdin)
			c.steps = append(c.steps, s)
		}
		c.redirections(c.steps[at], cmd, cwd)
		if len(c.steps) > maxSteps {
			c.steps = append(c.steps, c.opaqueStep(sh, nil, via, cwd, "there are more commands than are judged"))
			return errTooMany
		}
		if !relative(c.steps[at:]) {
			break
		}
	}
	return nil
}

// maxSteps bounds the commands of one run, whatever runs inside what.
const maxSteps = 600

var errTooMany = &shell.SyntaxError{Msg: "it holds more commands than are judged"}

// relative reports whether a directory matters to any of these steps.
func relative(steps []*step) bool {
	for _, s := range steps {
		if len(s.Call.CodeFiles) > 0 || strings.IndexByte(s.argv[0], '/') > 0 || len(s.Call.Nested) > 0 {
			return true
		}
		for _, r := range s.Call.Resources {
			if r.Kind == "path" && !filepath.IsAbs(r.Value) {
				return true
			}
		}
	}
	return false
}

// builtinStep is a builtin of the shell: harmless, but for what its metadata says
// of those that also exist as programs.
func (c *collector) builtinStep(sh *step, argv, via []string, cwd string) (*step, error) {
	name := ":"
	if len(argv) > 0 {
		name = argv[0]
	} else {
		argv = []string{":"}
	}
	s := &step{argv: shown(argv), verdict: sh.verdict}
	s.Via, s.Cwd, s.Confidence, s.Trust = via, cwd, policy.Exact, sh.Trust
	s.File = policy.FileFacts{Believed: true, SystemPath: true, Names: []string{name}}
	switch {
	case name == "test", name == "[", name == "kill" && !ownProcesses(argv):
		found, err := c.lookup(name)
		if err != nil {
			return nil, err
		}
		s.Call = found.Resolve(argv, c.environment())
		for i := range s.Call.Resources {
			c.place(c.plan.world, &s.Call.Resources[i], cwd)
		}
		c.settle(s)
		return s, nil
	}
	s.Call = atip.Call{Tool: name, InvokedAs: name, Argv: s.argv, Path: []string{}, Exactness: atip.Exact, Readings: 1, Options: []atip.OptionUse{}, UnknownOptions: []string{},
		Positionals: []atip.Positional{}, Resources: []atip.Resource{}, Nested: []atip.Nested{}, Secrets: []string{},
		Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Vendor, Binding: "none", Source: "shell:builtin"}}
	for e := range s.Call.Effects {
		s.Call.Effects[e] = harmless(atip.Effect(e), "shell:builtin")
	}
	if (name == "." || name == "source") && len(argv) > 1 && !harmlessFile(argv[1]) {
		r := atip.Resource{Kind: "path", Value: argv[1], Access: atip.AccessRead, Why: "argv[1]"}
		c.place(c.plan.world, &r, cwd)
		r.Value = shown(argv[1:2])[0]
		s.Call.Resources = append(s.Call.Resources, r)
		s.raise(r)
	}
	return s, nil
}

// ownProcesses reports whether kill names jobs and processes of its own shell only.
func ownProcesses(argv []string) bool {
	for i, w := range argv[1:] {
		if !strings.HasPrefix(w, "%") && !strings.HasPrefix(w, "-") && (i == 0 || argv[i] != "-s" && argv[i] != "-n") {
			return false
		}
	}
	return true
}

// opaqueStep is a part of a text that cannot be read: the worst is assumed.
func (c *collector) opaqueStep(sh *step, argv, via []string, cwd, why string) *step {
	if len(argv) == 0 {
		argv = []string{"…"}
	}
	argv = shown(argv)
	s := &step{argv: argv, verdict: sh.verdict}
	s.Via, s.Cwd, s.Confidence, s.Trust, s.RunsCode = via, cwd, policy.Opaque, sh.Trust, policy.CodeOpaque
	s.Call = atip.UnknownCall(argv, "")
	if why != "" {
		s.Call.Warnings = append(s.Call.Warnings, why)
	}
	return s
}

// shown replaces what is not known in words by a sign for it.
func shown(argv []string) []string {
	out := make([]string, len(argv))
	for i, w := range argv {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(w, shell.HoleSplit, "…"), shell.Hole, "…")
	}
	return out
}

// redirections adds the files that the shell opens for a command.
func (c *collector) redirections(s *step, cmd *shell.Command, cwd string) {
	for _, r := range cmd.Redirects {
		if host, ok := socket(r.Path); ok {
			s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "redirection", Rank: atip.Vendor}
			s.Hosts = append(s.Hosts, host)
			c.note(s, sinkSocket)
			continue
		}
		if harmlessFile(r.Path) {
			continue
		}
		res := atip.Resource{Kind: "path", Value: r.Path, Why: "redirection"}
		if r.Read {
			res.Access |= atip.AccessRead
		}
		if r.Write {
			res.Access |= atip.AccessWrite
			s.Call.Effects[atip.Write] = atip.Fact{Value: atip.Yes, Source: "redirection", Rank: atip.Vendor}
		}
		c.place(c.plan.world, &res, cwd)
		s.raise(res)
		s.Call.Resources = append(s.Call.Resources, res)
		if r.Write {
			c.wrote(s, res.Abs, r.Content)
		}
	}
}

func harmlessFile(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero":
		return true
	}
	return strings.HasPrefix(path, "/dev/fd/")
}

// socket is the host of bash's /dev/tcp/HOST/PORT.
func socket(path string) (policy.HostUse, bool) {
	for _, prefix := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			host, port, _ := strings.Cut(rest, "/")
			if strings.IndexByte(host, 0) >= 0 {
				return policy.HostUse{}, true
			}
			_, n := splitPort("h:" + port)
			return policy.HostUseOf(host, n), true
		}
	}
	return policy.HostUse{}, false
}

// place fills a resource as far as it is known where it is.
func (c *collector) place(world place.World, r *atip.Resource, cwd string) {
	if r.Kind != "path" {
		return
	}
	unknown := strings.IndexByte(r.Value, 0) >= 0 || c.ctx != nil && c.ctx.cwdUnknown && !filepath.IsAbs(r.Value) && !strings.HasPrefix(r.Value, "~")
	if !unknown {
		world.Fill(r, cwd)
		return
	}
	r.Abs, r.Class = "", atip.ClassUnknown
	if r.Access&^atip.AccessRead == 0 {
		// The kernel keeps secrets from being read, whatever the path is.
		r.Class = atip.ClassOutside
	}
}
