package effects

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Bounds on what is read of scripts that run scripts.
const (
	maxPeekDepth = 4
	maxTargets   = 64 // scripts and recipes of one plan
)

// targets reads the commands that a step takes from a file by a name: the scripts of
// package.json, the recipes of a Makefile or a justfile. They are code of the
// workspace, which the sandbox holds; but what is denied in them stays denied.
func (c *collector) targets(s *Step) {
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
func (c *collector) target(s *Step, dir, key string, texts []string) {
	p := c.out
	if p.targets == nil {
		p.targets = map[string]bool{}
	}
	if p.targets[key] || len(p.targets) >= maxTargets {
		return
	}
	p.targets[key] = true
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*Step{s}, peeking: true, depth: c.depth + 1}
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
func (c *collector) targetFile(s *Step, path string) (string, bool) {
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
func (c *collector) packageScripts(s *Step, dir string) {
	c.packageSet(s, dir)
	names, args := packageNames(s)
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
func (c *collector) packageSet(s *Step, dir string) {
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

// packageNames lists the scripts a call runs, the one it names first, and the words
// that are appended to that one.
func packageNames(s *Step) (names, args []string) {
	var words []string
	for _, p := range s.Call.Positionals {
		words = append(words, p.Value)
	}
	verb := ""
	if len(s.Call.Path) > 0 {
		verb = s.Call.Path[0]
	}
	switch verb {
	case "run":
	case "test", "start", "stop", "restart":
		words = append([]string{verb}, words...)
	case "install", "ci", "add":
		return []string{"install", "preinstall", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"}, nil
	case "publish", "pack":
		return []string{"prepack", "prepare", "prepublishOnly", "postpack", "publish", "postpublish"}, nil
	case "":
		if s.Call.Tool == "npm" {
			return nil, nil // of the others `yarn build` is `yarn run build`
		}
	default:
		return nil, nil
	}
	if len(words) == 0 || strings.IndexByte(words[0], 0) >= 0 {
		return nil, nil
	}
	for _, w := range words[1:] {
		if strings.IndexByte(w, 0) < 0 {
			args = append(args, w)
		}
	}
	return []string{words[0], "pre" + words[0], "post" + words[0]}, args
}

// recipe is a named list of commands that runs after others.
type recipe struct {
	deps  []string
	lines []string
}

// reachable lists the recipes that running the named ones runs; a pattern such as %.o
// serves a name that has no recipe of its own.
func reachable(names []string, all map[string]*recipe) []string {
	var out []string
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		r := all[name]
		if r != nil {
			out, names = append(out, name), append(names, r.deps...)
		}
		if r != nil && len(r.lines) > 0 {
			continue
		}
		for pattern := range all {
			before, after, ok := strings.Cut(pattern, "%")
			if ok && !seen[pattern] && len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
				names = append(names, pattern)
			}
		}
	}
	slices.Sort(out)
	return out
}
