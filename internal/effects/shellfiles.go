package effects

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// MaxArg is the longest text that is handed to a shell as one word: the kernel
// takes 128 KiB, MAX_ARG_STRLEN.
const MaxArg = 120000

// hiddenSteps are the commands of scripts that a run starts. They run as code of the
// workspace; only what is denied counts.
type hiddenSteps struct {
	Steps  []*Step
	Owners []*Step // of the plan, one for each
	Edges  []policy.Edge
}

// ofWorkspace reports whether a file is code of the workspace by its place.
func (c *collector) ofWorkspace(path string) bool {
	r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead}
	c.site.World.Fill(&r, c.site.Cwd)
	switch r.Class {
	case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable, atip.ClassTmp:
		return true
	}
	return false
}

// peek reads a script of the workspace that a step runs. The script is code of the
// workspace, which the sandbox holds; but what is denied in it stays denied.
func (c *collector) peek(s *Step, path string) {
	if c.depth >= maxPeekDepth || path == "" || !c.ofWorkspace(path) {
		return
	}
	if c.depth > 0 {
		// A script that runs itself is read once.
		if c.out.targets == nil {
			c.out.targets = map[string]bool{}
		}
		key := path + "\x00" + strings.Join(s.Argv, "\x00")
		if c.out.targets[key] || len(c.out.targets) >= maxTargets {
			return
		}
		c.out.targets[key] = true
	}
	raw, err := c.site.readText(path)
	if err != nil || !ShellScript(string(raw)) {
		return
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*Step{s}, peeking: true, depth: c.depth + 1}
	o := sub.options(subpath.Join(s.Cwd, s.Call.Chdir))
	o.Name = path
	o.Args, o.ArgsUnknown = scriptArgs(s, path)
	script, err := shell.Read(string(raw), o)
	if err != nil {
		return
	}
	// A part that cannot be read or found is project code like the rest.
	_ = sub.script(s, script, s.Via)
	c.hide(sub)
}

// scriptArgs are the words that a script gets: those behind its name.
func scriptArgs(s *Step, path string) (args []string, unknown bool) {
	at := -1
	for i, w := range s.Argv {
		if i == 0 && s.ID.Canonical == path || filepath.Clean(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), w)) == path {
			at = i
			break
		}
	}
	if at < 0 || hasHole(s.Argv[at+1:]) {
		return nil, true
	}
	return s.Argv[at+1:], false
}

// hide keeps what a script would run; its files need not stay open.
func (c *collector) hide(sub *collector) {
	for _, hidden := range sub.steps[1:] {
		if hidden.Executable != nil {
			hidden.Executable.Close()
			hidden.Executable = nil
		}
		c.out.Hidden.Steps = append(c.out.Hidden.Steps, hidden)
		c.out.Hidden.Owners = append(c.out.Hidden.Owners, sub.steps[0])
	}
	base := len(c.out.Hidden.Steps) - len(sub.steps)
	for _, e := range sub.edges {
		if e.From > 0 && e.To > 0 {
			c.out.Hidden.Edges = append(c.out.Hidden.Edges, policy.Edge{From: base + e.From, To: base + e.To, Kind: e.Kind})
		}
	}
}

// peekCode looks at the strings in a program text for an interpreter. The text
// itself is not read; but a command in it that is denied, or the name of a file that
// is, only makes the decision stricter.
func (c *collector) peekCode(s *Step, text string) {
	if c.peeking || len(text) > MaxArg {
		return
	}
	starts := startsPrograms(text)
	lits := literals(text)
	if joined := joinedText(text); joined != text {
		lits = append(lits, literals(joined)...)
	}
	if starts && len(lits) > 1 {
		// A program and its arguments as a list of texts.
		lits = append(lits, strings.Join(lits, " "))
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*Step{s}, peeking: true, depth: maxPeekDepth}
	for _, lit := range lits {
		r, ok := c.guarded(s, lit)
		part := lit
		if _, tail, found := strings.Cut(lit, "}/"); found {
			part = tail // "$ENV{HOME}/.netrc"
		}
		if part = strings.Trim(part, "/"); !ok && part != "" && len(part) < 255 && namesHome(text) && !strings.ContainsAny(part, " \t\n\x00") {
			r, ok = c.guarded(s, c.site.Dirs.Home+"/"+part)
		}
		if w, written := c.writtenPlace(s, text, lit, part); written {
			if w.Class == atip.ClassSystem {
				s.RunsCode = policy.CodeOpaque
			} else {
				named := sub.opaqueStep(s, []string{s.Argv[0], lit}, s.Via, s.Cwd, "")
				named.Call.Resources = []atip.Resource{w}
				named.raise(w)
				sub.steps = append(sub.steps, named)
			}
		}
		if ok {
			named := sub.opaqueStep(s, []string{s.Argv[0], lit}, s.Via, s.Cwd, "")
			named.Call.Resources = []atip.Resource{r}
			named.raise(r)
			sub.steps = append(sub.steps, named)
		}
		if !starts {
			continue
		}
		if script, err := shell.Read(lit, sub.options(subpath.Join(s.Cwd, s.Call.Chdir))); err == nil && len(script.Commands) > 0 {
			_ = sub.script(s, script, s.Via)
		}
	}
	if removes(sub.steps[1:]) {
		s.RunsCode = policy.CodeOpaque // as raises says of calls
		s.ShowEffects(sub.steps[1:])
	}
	c.hide(sub)
}

// ShowEffects lets a step have the effects that commands in its text certainly have. It
// is for steps that ask or are denied because of them: one more never loosens that.
func (s *Step) ShowEffects(inner []*Step) {
	for _, in := range inner {
		for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive, atip.SecretRead, atip.Network, atip.RemoteMutation, atip.Persistence, atip.Billable} {
			if in.Call.Effects[e].Value == atip.Yes && s.Call.Effects[e].Value != atip.Yes {
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
			}
		}
	}
}

// removes reports a command that deletes or destroys something.
func removes(steps []*Step) bool {
	for _, s := range steps {
		if e := s.Call.Effects; s.RunsCode == policy.CodeNone && s.Call.Tool != "" && (e[atip.Delete].Value == atip.Yes || e[atip.Destructive].Value == atip.Yes) {
			return true
		}
	}
	return false
}

// guarded is the secret, or the file of our own policy, that a text in a program names.
// Such names are also plain words of programs (".key", "*.pem"), so a file must be there
// or be called as only such a file is.
func (c *collector) guarded(s *Step, lit string) (atip.Resource, bool) {
	lit = strings.TrimLeft(lit, "<>+ ") // as open takes them with the name
	r := atip.Resource{Kind: "path", Value: lit, Access: atip.AccessRead}
	absolute := strings.HasPrefix(lit, "/") || strings.HasPrefix(lit, "~/")
	if lit == "" || !absolute && (len(lit) > 255 || strings.ContainsAny(lit, " \t\n*?$%{}<>():\x00") || c.ctx != nil && c.ctx.cwdUnknown) {
		return r, false
	}
	switch c.site.World.Fill(&r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
	case atip.ClassPolicySelf:
		r.Access |= atip.AccessWrite
		return r, true
	case atip.ClassSecret:
		if absolute || strings.HasPrefix(filepath.Base(lit), ".env") {
			return r, true
		}
		info, err := os.Lstat(r.Abs)
		return r, err == nil && !info.IsDir()
	}
	return r, false
}

// joinedText is a program text with the parts of its literals put together: '.e'+'nv'.
func joinedText(text string) string {
	return strings.NewReplacer(`'+'`, "", `' + '`, "", `"+"`, "", `" + "`, "", `'.'`, "", `' . '`, "", `"."`, "", `" . "`, "", `' '`, "", `" "`, "").Replace(text)
}

// writtenPlace is a file outside of the workspace that a text names which also writes:
// which of its files it writes is not read.
func (c *collector) writtenPlace(s *Step, text, lit, part string) (atip.Resource, bool) {
	r := atip.Resource{Kind: "path", Value: strings.TrimLeft(lit, "<>+ "), Access: atip.AccessWrite}
	if len(lit) > 255 || strings.ContainsAny(r.Value, " \t\n*?\x00:;") || !strings.Contains(r.Value, "/") || !containsAny(text, "\"w", "'w", "\"a\"", "'a'", "\"a+", "'a+", ">", "write", "append", "put_contents", "symlink", "chmod", "chown", "move", "rename", "copy", "truncate", "mkdir", "touch") {
		return r, false
	}
	if part != "" && part != lit || strings.HasPrefix(lit, "/.") {
		if namesHome(text) {
			r.Value = c.site.Dirs.Home + "/" + part
		}
	}
	if c.ctx != nil && c.ctx.cwdUnknown && !filepath.IsAbs(r.Value) && !strings.HasPrefix(r.Value, "~") || harmlessFile(r.Value) {
		return r, false
	}
	switch c.site.World.Fill(&r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
	case atip.ClassStartup, atip.ClassDevice:
		return r, true
	case atip.ClassSystem:
		return r, writesHere(text, lit) && !subpath.Within(r.Abs, "/proc") && !subpath.Within(r.Abs, "/sys") // elsewhere outside of the workspace the kernel's answer is enough
	}
	return r, false
}

// writesHere reports a text that seems to write the file of a literal: the mode stands behind
// it, or the function in front of it.
func writesHere(text, lit string) bool {
	i := strings.Index(text, lit)
	if i < 0 {
		return false
	}
	behind := text[min(i+len(lit)+1, len(text)):]
	behind = strings.ReplaceAll(behind[:min(20, len(behind))], " ", "")
	return containsAny(behind, ",\"w", ",'w", ",\"a", ",'a", ",\"x", ",'x", ".write") ||
		containsAny(text[max(0, i-24):i], "write", "append", "put_contents", "chmod", "chown", "symlink", "rename", "move", "copy", "truncate", "mkdir", "touch", ">")
}

// namesHome reports a program text that puts a path together with the home directory.
func namesHome(text string) bool {
	return containsAny(text, "HOME", "home", "expanduser", "\"~\"", "'~'")
}

// startsPrograms reports whether a program text seems to start other programs.
func startsPrograms(text string) bool {
	for _, sign := range [...]string{"system", "exec", "popen", "spawn", "subprocess", "child_process", "os.execute", "passthru", "proc_open", "Open3", "capture2", "capture3", "\"|", "'|", "|\"", "|'", "\"-|", "'-|", "Deno.Command", "Bun.$", "os:cmd", "open_port", "System.cmd", "Command::new", "ProcessBuilder", "qx", "%x", "`"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// literals are the texts between quotes of a program.
func literals(text string) []string {
	var out []string
	for i := 0; i < len(text) && len(out) < 32; i++ {
		if strings.HasPrefix(text[i:], "qx") || strings.HasPrefix(text[i:], "%x") || strings.HasPrefix(text[i:], "qq") || strings.HasPrefix(text[i:], "%q") || strings.HasPrefix(text[i:], "%Q") {
			// Perl's and Ruby's quotes with a bracket of their own.
			if end := bracketed(text[i+2:]); end > 0 {
				out = append(out, text[i+3:i+2+end])
				i += end + 2
				continue
			}
		}
		if q := text[i]; q == '"' || q == '\'' || q == '`' {
			end := strings.IndexByte(text[i+1:], q)
			if end < 0 {
				break
			}
			if end > 0 {
				out = append(out, text[i+1:i+1+end])
			}
			i += end + 1
		}
	}
	return out
}

// bracketed is where a text that begins with a bracket, or a sign that stands for one,
// closes it; 0 if it does not begin so.
func bracketed(s string) int {
	if s == "" {
		return 0
	}
	closing, ok := map[byte]byte{'(': ')', '{': '}', '[': ']', '<': '>', '/': '/', '|': '|', '!': '!'}[s[0]]
	if !ok {
		return 0
	}
	return strings.IndexByte(s[1:], closing) + 1
}

// ShellScript reports whether a shell would read a text: by its first line.
func ShellScript(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return !strings.HasPrefix(line, "#!")
	}
	last := words[0]
	if filepath.Base(last) == "env" {
		last = words[len(words)-1]
	}
	return IsShell(filepath.Base(last))
}

// searchedScript reports whether a shell would run a script from PATH: bash does so
// for a name without a slash that is no file of the current directory.
func (c *collector) searchedScript(s *Step, name string) bool {
	if name == "" || name == "-" || strings.ContainsRune(name, '/') {
		return false
	}
	if _, err := os.Stat(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), name)); err == nil {
		return false
	}
	for _, dir := range c.path {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) {
			return true
		}
	}
	return false
}
