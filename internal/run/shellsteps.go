package run

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/fault"
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
	flows      bool     // something is piped in, or written into its words
	listed     []string // stand for the names of files that are piped in, if nothing else is
}

// maxArg is the longest text that is handed to a shell as one word: the kernel
// takes 128 KiB, MAX_ARG_STRLEN.
const maxArg = 120000

// realShell is the shell that runs -c, and its dialect.
//
// Where our own program was put in the place of a shell, it is not taken for one.
func (p *Plan) realShell() (string, shell.Dialect, error) {
	self, _ := os.Stat(p.machine.Self)
	for _, path := range [...]string{"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"} {
		info, err := os.Stat(path)
		if err != nil || self != nil && os.SameFile(info, self) {
			continue
		}
		if filepath.Base(path) == "sh" {
			return path, shell.POSIX, nil
		}
		return path, shell.Bash, nil
	}
	return "", 0, fault.New("E3002", "there is no shell: neither /bin/bash nor /bin/sh is one").WithFix("install bash", "")
}

// identifyShell plans -c: the text is read whole before anything is decided. A text
// that is one plain command needs no shell.
func (c *collector) identifyShell() error {
	p := c.plan
	if err := p.readScript(); err != nil {
		return err
	}
	path, dialect, err := p.realShell()
	if err != nil {
		return err
	}
	script, err := shell.Read(p.inv.Shell, c.mainOptions(path, dialect))
	if err != nil {
		return p.scriptError(err)
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
	if p.inv.Script != "" && p.inv.Script != "-" {
		c.readsScript(s)
	}
	if err := c.script(s, script, nil); err != nil {
		return p.scriptError(err)
	}
	p.hostCwd = p.hostCwdFile(script)
	text := c.pinned(script, dialect) + script.Text
	p.Argv = append(shellArgv(path, dialect, p.handedOver(text, dialect)), p.inv.ShellArgs...)
	s.argv = append(shellArgv(path, dialect, text), p.inv.ShellArgs...)
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
	var missing []string
	done := map[string]bool{}
	for i := range script.Commands {
		cmd := &script.Commands[i]
		if cmd.Kind != shell.External || len(cmd.Argv) == 0 || strings.IndexByte(cmd.Argv[0], '/') >= 0 || done[cmd.Argv[0]] {
			continue
		}
		done[cmd.Argv[0]] = true
		path := "/command-not-found/" + cmd.Argv[0]
		if s := c.found[cmd.Argv[0]]; s != nil && s.missing == nil {
			path = s.id.Place
			if path == "" {
				path = s.id.Canonical
			}
		} else {
			missing = append(missing, quote(cmd.Argv[0]))
		}
		b.WriteString("hash -p " + quote(path) + " " + quote(cmd.Argv[0]) + "; ")
	}
	// The shell finds a remembered name without looking whether the file is there, and
	// scripts ask it before they use a tool.
	if names := strings.Join(missing, "|"); names != "" {
		if strings.Contains(script.Text, "command") {
			b.WriteString(`command() { case ${1-} in -v|-V) case ${2-} in ` + names + `) return 1;; esac;; esac; builtin command "$@"; }; `)
		}
		if strings.Contains(script.Text, "type") {
			b.WriteString(`type() { case ${1-} in -*) case ${2-} in ` + names + `) return 1;; esac;; ` + names + `) echo "type: $1: not found" >&2; return 1;; esac; builtin type "$@"; }; `)
		}
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
		if f.Clause == "startup" && !onlyLogin(s) || f.Clause == "plus-option" {
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
	if o.ArgsUnknown && isShell(s.Call.Tool) && hasOption(s, "s") && !contains(s.argv, text) {
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
	if isShell(s.id.Effective) || isShell(s.id.Invoked) {
		c.readable(s)
		if changesReading(s) {
			s.RunsCode = policy.CodeOpaque
		}
	}
	return c.script(s, script, via)
}

// onlyLogin reports that of the start-up files a shell reads only those of a login,
// which no child can write.
func onlyLogin(s *step) bool {
	for _, o := range s.Call.Options {
		switch o.Name {
		case "i", "rcfile", "init-file":
			return false
		}
	}
	return true
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
		case "k", "T", "P", "a", "D", "debugger", "posix":
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
	if s.Call.Provenance.Source == ownSource {
		return shell.Bash, true
	}
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
	o := shell.Options{Cwd: cwd, Home: c.plan.dirs.Home, Getenv: c.shellVariable, IsDir: isDir, ReadFile: c.plan.readText, Trusted: c.hostSnapshot}
	if set := c.plan.policies; set != nil {
		a := set.Analysis()
		o.Limits = shell.Limits{Bytes: a.MaxBytes, Nodes: a.MaxNodes, Commands: a.MaxSteps, Nesting: a.MaxNesting, Unrolled: a.MaxUnroll}
	}
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
	if filepath.Clean(path) != path || filepath.Dir(path) != filepath.Join(c.plan.dirs.Home, ".claude", "shell-snapshots") || !strings.HasSuffix(path, ".sh") {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o022 == 0 && ownedBy(info, c.plan.machine.UID)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

const maxScript = 256 << 10

// readText reads a regular file of at most 256 KiB that a shell would run. One that no
// command may read is not read here either: a plan shows the words of what it read.
func (p *Plan) readText(path string) ([]byte, error) {
	f, err := openNonblock(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxScript:
		return nil, errors.New("not a small regular file")
	case p.hides(f):
		return nil, errors.New("it is not to be read")
	}
	return io.ReadAll(io.LimitReader(f, maxScript))
}

// hides reports an open file whose text must not get into a plan, an error or a record.
func (p *Plan) hides(f *os.File) bool {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		path, err = filepath.EvalSymlinks(f.Name())
	}
	if err != nil {
		return true
	}
	return p.world.Classify(path, atip.AccessRead, false) == atip.ClassSecret || within(path, p.world.State) || within(path, p.world.Runtime)
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
	set := func(name string) (string, bool) {
		value, ok := c.lookupEnv(name)
		return value, ok && !offProgram(name, value)
	}
	o := atip.ResolveOptions{Env: set, EnvNames: c.plan.envNames()}
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if !contains(o.EnvNames, a.Name) && !offProgram(a.Name, a.Value) {
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
		if done, err := l.namedWords(sh, i, via); err != nil {
			return err
		} else if !done {
			if err := c.command(sh, &script.Commands[i], via, l.fed(i), l.namesFor(i)); err != nil {
				return err
			}
		}
		l.ranges[i].to = len(c.steps)
		l.everything(i)
	}
	l.connect()
	return nil
}

// command appends the steps of one command of a text: one for every directory it
// may run in.
func (c *collector) command(sh *step, cmd *shell.Command, via []string, fed bool, listed []string) error {
	outer := c.ctx
	c.ctx = &surroundings{outer: outer, env: cmd.Env, globs: cmd.Globs, stdin: cmd.Stdin, cwdUnknown: cmd.CwdUnknown, flows: fed, listed: listed}
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
			if cmd.CodeFile != "" && !strings.HasPrefix(cmd.CodeFile, "/dev/") && c.ofWorkspace(cmd.CodeFile) {
				// It is not there, or too long: code of the workspace, whatever it is.
				s.RunsCode, s.Confidence = policy.CodeProject, policy.Bounded
			}
			c.note(s, sinkWord|sinkStdin)
			c.steps = append(c.steps, s)
			for _, w := range c.writers[cmd.CodeFile] {
				c.fileEdge(w.by, s)
			}
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

var errTooMany = &shell.SyntaxError{Msg: "it holds more commands than are judged", Fix: "split it into several commands"}

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
