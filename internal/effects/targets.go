package effects

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/recipe"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// Bounds on what is read of scripts that run scripts.
const (
	maxPeekDepth = 4
	maxTargets   = 64 // scripts and recipes of one plan
)

// targets reads the commands that a step takes from a file by a name: the scripts of
// package.json, the recipes of a Makefile or a justfile. They are code of the
// workspace, which the sandbox holds; but what is denied in them stays denied.
func (c *collector) targets(s *step.Step) {
	if c.depth >= maxPeekDepth || s.Call.Tool == "" || strings.IndexByte(s.Call.Chdir, 0) >= 0 || c.ctx != nil && c.ctx.cwdUnknown {
		return
	}
	dir := subpath.Join(s.Cwd, s.Call.Chdir)
	switch s.Call.Tool {
	case "npm", "pnpm", "yarn", "bun":
		c.packageScripts(s, dir)
	case "make":
		c.makeTargets(s, dir)
	case "just":
		c.justTargets(s, dir)
	}
}

// target judges one named text, once in a plan.
func (c *collector) target(s *step.Step, dir, key string, texts []string) {
	p := c.out
	if p.targets == nil {
		p.targets = map[string]bool{}
	}
	if p.targets[key] || len(p.targets) >= maxTargets {
		return
	}
	p.targets[key] = true
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: c.depth + 1}
	via := append(slices.Clone(s.Via), s.ID.Invoked)
	for _, text := range texts {
		o := sub.options(dir)
		o.ArgsUnknown = true
		script, err := shell.Read(text, o)
		if err != nil {
			continue // the tool will find out
		}
		// A part that cannot be found is project code like the rest.
		shell := *s
		shell.Cwd = dir
		_ = sub.script(&shell, script, via)
	}
	c.hide(sub)
}

// targetFile reads a file that names what a step runs; an approval binds its digest.
func (c *collector) targetFile(s *step.Step, path string) (string, bool) {
	if !c.ofWorkspace(path) {
		return "", false
	}
	raw, err := c.site.readText(path)
	if err != nil {
		return "", false
	}
	if !slices.Contains(s.TargetFiles, path) {
		s.TargetFiles = append(s.TargetFiles, path)
	}
	return string(raw), true
}

// packageScripts judges the scripts of the nearest package.json that a call runs.
func (c *collector) packageScripts(s *step.Step, dir string) {
	c.packageSet(s, dir)
	names, args := step.PackageNames(s)
	if len(names) == 0 {
		return
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "package.json")
		if _, err := os.Lstat(path); err == nil {
			text, ok := c.targetFile(s, path)
			var doc struct{ Scripts map[string]any }
			if !ok || json.Unmarshal([]byte(text), &doc) != nil {
				return
			}
			for i, name := range names {
				script, _ := doc.Scripts[name].(string)
				if script == "" {
					continue
				}
				if i == 0 && len(args) > 0 {
					quoted := make([]string, len(args))
					for i, a := range args {
						quoted[i] = quote.Literal(a)
					}
					script += " " + strings.Join(quoted, " ")
				}
				c.target(s, dir, path+"\x00"+name+"\x00"+strings.Join(args, "\x00"), []string{script})
			}
			return
		}
		if dir == c.site.Workspace || filepath.Dir(dir) == dir {
			return
		}
	}
}

// packageSet judges scripts that a call writes into package.json.
func (c *collector) packageSet(s *step.Step, dir string) {
	if len(s.Call.Path) == 0 || s.Call.Path[0] != "pkg" {
		return
	}
	for _, p := range s.Call.Positionals {
		name, text, ok := strings.Cut(p.Value, "=")
		if ok && strings.HasPrefix(name, "scripts.") && strings.IndexByte(text, 0) < 0 {
			c.target(s, dir, "pkg\x00"+p.Value, []string{text})
		}
	}
}

// makeTargets judges the recipes that a call of make runs. The file is read as far as
// rules, recipes and plain variables go; both sides of its conditionals count.
func (c *collector) makeTargets(s *step.Step, dir string) {
	m := recipe.NewMakefile(dir, c.site.Dirs.Home)
	m.Included = func(path string) (string, bool) { return c.targetFile(s, path) }
	m.IsSet = func(name string) bool { _, set := c.site.lookupEnv(name); return set }
	for _, word := range s.Argv[1:] {
		if name, value, ok := strings.Cut(word, "="); ok && recipe.MakeName(name) && strings.IndexByte(word, 0) < 0 && m.Fix(name, value) {
			s.RunsCode = max(s.RunsCode, policy.CodeInline) // it stands in no file
		}
	}
	found := false
	for _, text := range step.OptionValues(s, "eval", "E") {
		s.RunsCode = max(s.RunsCode, policy.CodeInline)
		m.Read(text)
		found = true
	}
	files := step.OptionValues(s, "file", "makefile")
	if len(files) == 0 {
		files = []string{"GNUmakefile", "makefile", "Makefile"}
	}
	for _, file := range files {
		switch file {
		case "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
			// What is fed to it is a program.
			c.note(s, sinkStdin)
			s.RunsCode = max(s.RunsCode, policy.CodeOpaque)
			if c.ctx != nil && c.ctx.stdin != nil {
				s.RunsCode = policy.CodeInline
				m.Read(*c.ctx.stdin)
				found = true
			}
			continue
		}
		// The text may have written it itself.
		list := c.writers[subpath.Join(dir, file)]
		if text, ok := constantText(list); ok && len(list) > 0 {
			s.RunsCode = max(s.RunsCode, policy.CodeInline)
			m.Read(text)
			found = true
		}
		for _, w := range list {
			if w.by.Call.Effects[atip.Network].Value == atip.Yes || step.Decodes(w.by) {
				c.fileEdge(w.by, s)
			}
		}
		text, ok := c.targetFile(s, subpath.Join(dir, file))
		if !ok {
			continue
		}
		m.Read(text)
		if found = true; len(step.OptionValues(s, "file", "makefile")) == 0 {
			break
		}
	}
	if !found {
		return
	}
	var goals []string
	for _, p := range s.Call.Positionals {
		if name, _, ok := strings.Cut(p.Value, "="); strings.IndexByte(p.Value, 0) < 0 && !(ok && recipe.MakeName(name)) {
			goals = append(goals, p.Value)
		}
	}
	before := len(c.out.Hidden.Steps)
	defer func() {
		if s.RunsCode == policy.CodeInline && step.Removes(c.out.Hidden.Steps[before:]) {
			s.RunsCode = policy.CodeOpaque // it stands in no file of the workspace
		}
	}()
	// What $(shell …) holds runs while the file is read, whatever the goal is.
	c.target(s, dir, "make\x00"+dir+"\x00"+strings.Join(files, "\x00"), m.Shells)
	if step.HasOption(s, "just-print", "question", "touch", "help", "version") {
		return
	}
	for _, name := range m.Goals(goals) {
		c.target(s, dir, "make\x00"+dir+"\x00"+strings.Join(files, "\x00")+"\x00"+name+"\x00"+strings.Join(s.Argv[1:], "\x00"), m.LinesOf(name))
	}
}

// justTargets judges the recipes that a call of just runs.
func (c *collector) justTargets(s *step.Step, dir string) {
	text, path, ok := c.justfile(s, dir)
	if !ok {
		return
	}
	rules, first := recipe.ReadJustfile(text)
	var goals []string
	for _, p := range s.Call.Positionals {
		goals = append(goals, p.Value)
	}
	if len(goals) == 0 && first != "" {
		goals = []string{first}
	}
	for _, name := range recipe.Reachable(goals, rules) {
		r := rules[name]
		lines := r.Lines
		if len(lines) > 0 && strings.HasPrefix(lines[0], "#!") {
			// One script in its own language.
			script := strings.Join(lines, "\n")
			if !step.ShellScript(script) {
				continue
			}
			lines = []string{script}
		}
		c.target(s, filepath.Dir(path), "just\x00"+path+"\x00"+name, lines)
	}
}

// justfile finds the file as just does: the one named, else the nearest above.
func (c *collector) justfile(s *step.Step, dir string) (text, path string, ok bool) {
	if named := step.OptionValues(s, "justfile"); len(named) > 0 {
		path = subpath.Join(dir, named[len(named)-1])
		text, ok = c.targetFile(s, path)
		return text, path, ok
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, name := range [...]string{"justfile", "Justfile", ".justfile"} {
			path = filepath.Join(dir, name)
			if text, ok = c.targetFile(s, path); ok {
				return text, path, true
			}
		}
		if dir == c.site.Workspace || filepath.Dir(dir) == dir {
			return "", "", false
		}
	}
}
