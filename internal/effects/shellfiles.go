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
)

// hiddenSteps are the commands of scripts that a run starts. They run as code of the
// workspace; only what is denied counts.
type hiddenSteps struct {
	Steps  []*step.Step
	Owners []*step.Step // of the plan, one for each
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
func (c *collector) peek(s *step.Step, path string) {
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
	if err != nil || !step.ShellScript(string(raw)) {
		return
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: c.depth + 1}
	o := sub.options(subpath.Join(s.Cwd, s.Call.Chdir))
	o.Name = path
	o.Args, o.ArgsUnknown = step.ScriptArgs(s, path)
	script, err := shell.Read(string(raw), o)
	if err != nil {
		return
	}
	// A part that cannot be read or found is project code like the rest.
	_ = sub.script(s, script, s.Via)
	c.hide(sub)
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
func (c *collector) peekCode(s *step.Step, text string) {
	if c.peeking || len(text) > step.MaxArg {
		return
	}
	starts := step.StartsPrograms(text)
	var lits []string
	for _, t := range slices.Compact([]string{text, step.JoinedText(text)}) {
		list := step.Literals(t)
		if lits = append(lits, list...); starts && len(list) > 1 {
			// A program and its arguments as a list of texts, behind the name of a module.
			lits = append(lits, strings.TrimPrefix(strings.TrimPrefix(strings.Join(list, " "), "node:"), "child_process "))
		}
	}
	if step.NamesHome(text) {
		named := lits
		for i := range named { // Path.home() / ".config" / "autostart"
			for j := i + 2; j <= min(i+4, len(named)); j++ {
				lits = append(lits, strings.Join(named[i:j], "/"))
			}
		}
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	for _, lit := range lits {
		r, ok := c.guarded(s, lit)
		part := lit
		if _, tail, found := strings.Cut(lit, "}/"); found {
			part = tail // "$ENV{HOME}/.netrc"
		}
		if part = strings.Trim(part, "/"); !ok && part != "" && len(part) < 255 && step.NamesHome(text) && !strings.ContainsAny(part, " \t\n\x00") {
			r, ok = c.guarded(s, c.site.Dirs.Home+"/"+part)
		}
		if w, written := c.writtenPlace(s, text, lit, part); written {
			if w.Class == atip.ClassSystem {
				s.RunsCode = policy.CodeOpaque
			} else {
				named := sub.opaqueStep(s, []string{s.Argv[0], lit}, s.Via, s.Cwd, "")
				named.Call.Resources = []atip.Resource{w}
				named.Raise(w)
				sub.steps = append(sub.steps, named)
			}
		}
		if ok {
			named := sub.opaqueStep(s, []string{s.Argv[0], lit}, s.Via, s.Cwd, "")
			named.Call.Resources = []atip.Resource{r}
			named.Raise(r)
			sub.steps = append(sub.steps, named)
		}
		if !starts {
			continue
		}
		if script, err := shell.Read(lit, sub.options(subpath.Join(s.Cwd, s.Call.Chdir))); err == nil && len(script.Commands) > 0 {
			_ = sub.script(s, script, s.Via)
		}
	}
	if step.Removes(sub.steps[1:]) {
		s.RunsCode = policy.CodeOpaque // as raises says of calls
		s.ShowEffects(sub.steps[1:])
	}
	c.hide(sub)
}

// searchesHere takes the directory at hand out of what looks for files in it and removes nothing itself.
var searchesHere = strings.NewReplacer("walk('.'", "", `walk("."`, "", "Path('.').rglob", "", `Path(".").rglob`, "", "Path('.').glob", "", `Path(".").glob`, "",
	"scandir('.'", "", `scandir("."`, "", "listdir('.'", "", `listdir("."`, "", "readdirSync('.'", "", `readdirSync("."`, "")

// removesInside reports a text that only removes, and only what it names in the workspace: a copy of
// the workspace brings that back, in whatever language it is written, and the kernel lets it reach nothing
// else. What removes everything, a protected name, or a name from outside of the text asks as before.
func (c *collector) removesInside(s *step.Step, text string) bool {
	if text = searchesHere.Replace(text); !step.OnlyRemoves(text) || c.ctx != nil && c.ctx.cwdUnknown {
		return false
	}
	named := false
	for _, lit := range step.Literals(text) {
		r := atip.Resource{Kind: "path", Value: lit, Access: atip.AccessWrite}
		if strings.Trim(lit, "*/.") == "" || strings.ContainsAny(lit, "\x00\\") {
			return false
		}
		switch c.site.World.Fill(&r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
			named = true
		default:
			return false
		}
	}
	return named
}

// guarded is the secret, or the file of our own policy, that a text in a program names.
// Such names are also plain words of programs (".key", "*.pem"), so a file must be there
// or be called as only such a file is.
func (c *collector) guarded(s *step.Step, lit string) (atip.Resource, bool) {
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

// writtenPlace is a file outside of the workspace that a text names which also writes:
// which of its files it writes is not read.
func (c *collector) writtenPlace(s *step.Step, text, lit, part string) (atip.Resource, bool) {
	r := atip.Resource{Kind: "path", Value: strings.TrimLeft(lit, "<>+ "), Access: atip.AccessWrite}
	if strings.HasPrefix(lit, ".") && step.NamesHome(text) {
		r.Value = c.site.Dirs.Home + "/" + lit
	}
	if len(lit) > 255 || strings.ContainsAny(r.Value, " \t\n*?\x00:;") || !strings.Contains(r.Value, "/") || !step.ContainsAny(text, "\"w", "'w", "\"a\"", "'a'", "\"a+", "'a+", ">", "write", "append", "put_contents", "symlink", "chmod", "chown", "move", "rename", "copy", "truncate", "mkdir", "touch") {
		return r, false
	}
	if (part != "" && part != lit || strings.HasPrefix(lit, "/.")) && step.NamesHome(text) {
		r.Value = c.site.Dirs.Home + "/" + part
	}
	if c.ctx != nil && c.ctx.cwdUnknown && !filepath.IsAbs(r.Value) && !strings.HasPrefix(r.Value, "~") || step.HarmlessFile(r.Value) {
		return r, false
	}
	switch c.site.World.Fill(&r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
	case atip.ClassStartup, atip.ClassDevice:
		return r, true
	case atip.ClassSystem:
		return r, step.WritesHere(text, lit) && !subpath.Within(r.Abs, "/proc") && !subpath.Within(r.Abs, "/sys") // elsewhere outside of the workspace the kernel's answer is enough
	}
	return r, false
}

// searchedScript reports whether a shell would run a script from PATH: bash does so
// for a name without a slash that is no file of the current directory.
func (c *collector) searchedScript(s *step.Step, name string) bool {
	if name == "" || name == "-" || strings.ContainsRune(name, '/') {
		return false
	}
	if _, err := os.Stat(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), name)); err == nil {
		return false
	}
	return slices.ContainsFunc(c.path, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil && filepath.IsAbs(dir)
	})
}
