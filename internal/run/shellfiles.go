package run

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
)

// hiddenSteps are the commands of scripts that a run starts. They run as code of the
// workspace; only what is denied counts.
type hiddenSteps struct {
	steps []*step
	edges []policy.Edge
}

// ofWorkspace reports whether a file is code of the workspace by its place.
func (c *collector) ofWorkspace(path string) bool {
	r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead}
	c.plan.world.Fill(&r, c.plan.Cwd)
	switch r.Class {
	case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable, atip.ClassTmp:
		return true
	}
	return false
}

// peek reads a script of the workspace that a step runs. The script is code of the
// workspace, which the sandbox holds; but what is denied in it stays denied.
func (c *collector) peek(s *step, path string) {
	if c.depth >= maxPeekDepth || path == "" || !c.ofWorkspace(path) {
		return
	}
	if c.depth > 0 {
		// A script that runs itself is read once.
		if c.plan.targets == nil {
			c.plan.targets = map[string]bool{}
		}
		if c.plan.targets[path] || len(c.plan.targets) >= maxTargets {
			return
		}
		c.plan.targets[path] = true
	}
	raw, err := c.plan.readText(path)
	if err != nil || !shellScript(string(raw)) {
		return
	}
	sub := &collector{plan: c.plan, path: c.path, found: c.found, steps: []*step{s}, peeking: true, depth: c.depth + 1}
	o := sub.options(join(s.Cwd, s.Call.Chdir))
	o.Name, o.ArgsUnknown = path, true
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
		if hidden.file != nil {
			hidden.file.Close()
			hidden.file = nil
		}
		c.plan.hidden.steps = append(c.plan.hidden.steps, hidden)
	}
	base := len(c.plan.hidden.steps) - len(sub.steps)
	for _, e := range sub.edges {
		if e.From > 0 && e.To > 0 {
			c.plan.hidden.edges = append(c.plan.hidden.edges, policy.Edge{From: base + e.From, To: base + e.To, Kind: e.Kind})
		}
	}
}

// peekCode looks at the strings in a program text for an interpreter. The text
// itself is not read; but a command in it that is denied, or the name of a file that
// is, only makes the decision stricter.
func (c *collector) peekCode(s *step, text string) {
	if c.peeking || len(text) > maxArg {
		return
	}
	starts := startsPrograms(text)
	sub := &collector{plan: c.plan, path: c.path, found: c.found, steps: []*step{s}, peeking: true, depth: maxPeekDepth}
	for _, lit := range literals(text) {
		if strings.HasPrefix(lit, "/") || strings.HasPrefix(lit, "~/") || c.namesSecret(lit, join(s.Cwd, s.Call.Chdir)) {
			r := atip.Resource{Kind: "path", Value: lit, Access: atip.AccessRead}
			if c.plan.world.Fill(&r, join(s.Cwd, s.Call.Chdir)); r.Class == atip.ClassPolicySelf || r.Class == atip.ClassSecret {
				if r.Class == atip.ClassPolicySelf {
					r.Access |= atip.AccessWrite
				}
				named := sub.opaqueStep(s, []string{s.argv[0], lit}, s.Via, s.Cwd, "")
				named.Call.Resources = []atip.Resource{r}
				sub.steps = append(sub.steps, named)
			}
		}
		if !starts {
			continue
		}
		if script, err := shell.Read(lit, sub.options(join(s.Cwd, s.Call.Chdir))); err == nil && len(script.Commands) > 0 {
			_ = sub.script(s, script, s.Via)
		}
	}
	c.hide(sub)
}

// namesSecret reports a text that is the relative path of a file with secrets. Such
// names are also plain words of programs (".key", "*.pem"), so a file must be there or
// be called as only such a file is.
func (c *collector) namesSecret(text, cwd string) bool {
	if text == "" || len(text) > 256 || strings.ContainsAny(text, " \t\n*?$%{}<>:") || c.ctx != nil && c.ctx.cwdUnknown {
		return false
	}
	r := atip.Resource{Kind: "path", Value: text, Access: atip.AccessRead}
	if c.plan.world.Fill(&r, cwd); r.Class != atip.ClassSecret {
		return false
	}
	if strings.HasPrefix(filepath.Base(text), ".env") {
		return true
	}
	info, err := os.Lstat(r.Abs)
	return err == nil && !info.IsDir()
}

// startsPrograms reports whether a program text seems to start other programs.
func startsPrograms(text string) bool {
	for _, sign := range [...]string{"system", "exec", "popen", "spawn", "subprocess", "child_process", "os.execute", "`"} {
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

// shellScript reports whether a shell would read a text: by its first line.
func shellScript(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return !strings.HasPrefix(line, "#!")
	}
	last := words[0]
	if filepath.Base(last) == "env" {
		last = words[len(words)-1]
	}
	return isShell(filepath.Base(last))
}

// judgeHidden denies a run whose scripts hold what is denied.
func (p *Plan) judgeHidden(req policy.Request) {
	if len(p.hidden.steps) == 0 || p.Decision.Action == policy.Deny {
		return
	}
	req.Steps, req.Edges = nil, p.hidden.edges
	for _, s := range p.hidden.steps {
		req.Steps = append(req.Steps, s.Step)
	}
	d := p.policies.Decide(req)
	if d.Action != policy.Deny {
		return
	}
	p.Decision.Action, p.Decision.Grants = policy.Deny, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action == policy.Deny {
			at := r.Step
			r.Step = 0
			r.Text = "in a script it runs: " + r.Text
			if at < len(p.hidden.steps) {
				r.Text += " (" + Quote(p.hidden.steps[at].argv) + ")"
			}
			p.Decision.Reasons = append(p.Decision.Reasons, r)
		}
	}
}

// searchedScript reports whether a shell would run a script from PATH: bash does so
// for a name without a slash that is no file of the current directory.
func (c *collector) searchedScript(s *step, name string) bool {
	if name == "" || name == "-" || strings.ContainsRune(name, '/') {
		return false
	}
	if _, err := os.Stat(join(join(s.Cwd, s.Call.Chdir), name)); err == nil {
		return false
	}
	for _, dir := range c.path {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) {
			return true
		}
	}
	return false
}
