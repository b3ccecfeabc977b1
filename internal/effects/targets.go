package effects

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/recipe"
	"github.com/atip-dev/atip-exec/internal/regular"
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
// package.json, the recipes of a Makefile. They are code of the
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

// below adds what lies in a tree that a step gives out whole: `grep -r x ~` reads
// ~/.ssh, though what it names is the home.
func (c *collector) below(s *step.Step) {
	if step.ListsOnly(s.Call.Tool) {
		return
	}
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Class != atip.ClassRoot || r.Access&atip.AccessRead == 0 || !r.Recursive && !step.Descends(s) || !subpath.Within(c.site.Dirs.Home, r.Abs) {
			continue
		}
		if c.ctx != nil && strings.ContainsAny(filepath.Base(r.Value), "*?[") && !strings.ContainsAny(filepath.Dir(r.Value), "*?[") && !step.Recursive(s) && !step.Descends(s) && s.Call.Provenance.Rank >= atip.Org {
			continue // the names in one directory, which are looked at one by one
		}
		in := atip.Resource{Kind: "path", Value: filepath.Join(c.site.Dirs.Home, ".ssh"), Access: atip.AccessRead, Recursive: true, Why: "below " + r.Value}
		c.place(c.site.World, &in, s.Cwd)
		s.Takes(in)
		return
	}
}

// worksOutside adds the directory of a call that writes, says of no file that it does,
// and was started outside the workspace: a commit in another repository.
func (c *collector) worksOutside(s *step.Step) {
	if s.Call.Effects[atip.Write].Value != atip.Yes || c.ctx != nil && c.ctx.cwdUnknown ||
		slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool { return r.Access&(atip.AccessWrite|atip.AccessDelete) != 0 }) {
		return
	}
	r := atip.Resource{Kind: "path", Value: subpath.Join(s.Cwd, s.Call.Chdir), Access: atip.AccessWrite, Why: "directory"}
	if c.place(c.site.World, &r, s.Cwd); r.Class == atip.ClassTmp || subpath.Within(r.Abs, c.site.Workspace) {
		return
	}
	s.Call.Resources = append(s.Call.Resources, r)
}

// sought is the secret that find looks for by name; "" if it looks for none.
func (c *collector) sought(s *step.Step) (start, path string) {
	name := ""
	start = "."
	for i, w := range s.Argv {
		switch {
		case i == 1 && !strings.HasPrefix(w, "-"):
			start = w
		case i > 1 && (s.Argv[i-1] == "-name" || s.Argv[i-1] == "-iname"):
			name = strings.NewReplacer("*", "x", "?", "x").Replace(w)
		}
	}
	r := atip.Resource{Kind: "path", Value: filepath.Join(start, name), Access: atip.AccessRead}
	if s.Call.Tool != "find" || name == "" || strings.IndexByte(start+name, 0) >= 0 {
		return "", ""
	}
	if c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class != atip.ClassSecret {
		return "", ""
	}
	return start, r.Value
}

// searched puts the file that find looks for into the command it starts, if the
// name says that it is a secret: the starting point alone does not.
func (c *collector) searched(s *step.Step, argv []string) []string {
	start, path := c.sought(s)
	if path == "" || !slices.ContainsFunc(s.Argv, func(w string) bool { return strings.Contains(w, "{}") }) {
		return c.sifted(s, argv)
	}
	out := slices.Clone(argv)
	for i := range out {
		// The metadata has put the starting point in place of "{}".
		if i > 0 && out[i] == start {
			out[i] = path
		}
	}
	return out
}

// throughout marks what find starts for everything that it finds: `find ~ -exec rm {} +`
// names the home, and takes all that lies in it.
func (c *collector) throughout(s *step.Step, started []*step.Step) {
	if s.Call.Tool != "find" {
		home := c.site.Dirs.Home
		if len(started) > 0 && home != "" && slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			return r.Kind == "path" && !subpath.Within(r.Abs, c.site.Workspace) && (subpath.Within(r.Abs, home) || subpath.Within(home, r.Abs))
		}) && s.Call.Tool == "fd" {
			s.RunsCode = policy.CodeOpaque // what it finds there are files of the account, whatever the pattern says
		}
		return
	}
	starts, _, _ := step.Sieve(s.Argv)
	for _, in := range started {
		for i := range in.Call.Resources {
			r := &in.Call.Resources[i]
			if r.Kind == "path" && slices.Contains(starts, r.Value) && r.Access&(atip.AccessWrite|atip.AccessDelete) != 0 && !subpath.Within(r.Abs, c.site.Workspace) {
				r.Recursive = true
			}
		}
	}
}

// foundCredentials are files with credentials that a find below the home directory, or
// above it, comes upon: each that its names do not rule out, one is enough.
func (c *collector) foundCredentials(s *step.Step) []string {
	if s.Call.Tool != "find" || step.HasHole(s.Argv) {
		return nil
	}
	starts, _, _ := step.Sieve(s.Argv)
	var patterns []string
	depth := -1
	for i := 1; i+1 < len(s.Argv); i++ {
		switch w := s.Argv[i]; {
		case (w == "-name" || w == "-iname") && s.Argv[i-1] != "!" && s.Argv[i-1] != "-not":
			patterns = append(patterns, s.Argv[i+1])
		case w == "-maxdepth":
			depth, _ = strconv.Atoi(s.Argv[i+1])
		}
	}
	home := c.site.Dirs.Home
	for _, pattern := range patterns {
		if pattern == "shadow" || pattern == "gshadow" {
			return []string{"/etc/" + pattern}
		}
	}
	for _, start := range starts {
		at := atip.Resource{Kind: "path", Value: start, Access: atip.AccessRead}
		c.site.World.Fill(&at, subpath.Join(s.Cwd, s.Call.Chdir))
		if !subpath.Within(home, at.Abs) {
			continue
		}
		for _, name := range place.CredentialFiles() {
			path := filepath.Join(home, name)
			below, _ := filepath.Rel(at.Abs, path)
			if depth >= 0 && strings.Count(below, "/")+1 > depth {
				continue
			}
			if len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
				hit, err := filepath.Match(p, filepath.Base(name))
				return hit && err == nil
			}) {
				return []string{path}
			}
		}
	}
	return nil
}

// onCredentials is the command that find starts, with such a file in it; nil if it comes
// upon none.
func (c *collector) onCredentials(s *step.Step, argv []string) []string {
	found := c.foundCredentials(s)
	at := slices.IndexFunc(s.Argv, func(w string) bool { return strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") })
	if len(found) == 0 || at < 0 || len(s.Argv) < at+1+len(argv) {
		return nil
	}
	raw := slices.Clone(s.Argv[at+1 : at+1+len(argv)])
	for i := 1; i < len(raw); i++ {
		raw[i] = strings.ReplaceAll(raw[i], "{}", found[0])
	}
	return raw
}

// maxInto bounds the names that are tried in a directory that a command writes into.
const maxInto = 256

// into adds the protected names that a command changes by writing into a directory: "cp
// /x/.mise.toml ." writes ./.mise.toml, and "cp -r skel/. ." what lies in skel.
func (c *collector) into(s *step.Step) {
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, r := range slices.Clone(s.Call.Resources) {
		if r.Kind != "path" || r.Abs == "" || r.Recursive || r.Access&atip.AccessWrite == 0 {
			continue
		}
		if info, err := os.Stat(r.Abs); err != nil || !info.IsDir() {
			// A directory that is copied or renamed brings all of its names.
			c.protected(s, atip.Resource{Kind: "path", Value: r.Value, Access: r.Access, Recursive: c.bringsTree(s, r.Abs), Why: r.Why}, base)
			continue
		}
		list, all := c.brought(s, r.Abs, base)
		if !all {
			c.protected(s, atip.Resource{Kind: "path", Value: r.Value, Access: r.Access, Recursive: true, Why: r.Why}, base)
		}
		for _, path := range list {
			info, err := os.Stat(path)
			c.protected(s, atip.Resource{Kind: "path", Value: filepath.Join(r.Value, filepath.Base(path)), Access: r.Access, Recursive: err == nil && info.IsDir(), Why: r.Why}, base)
		}
	}
}

// protected adds a resource if it is a protected name.
func (c *collector) protected(s *step.Step, r atip.Resource, base string) {
	if c.place(c.site.World, &r, base); r.Class == atip.ClassStartup || r.Class == atip.ClassPolicySelf {
		if !slices.ContainsFunc(s.Call.Resources, func(have atip.Resource) bool {
			return have.Abs == r.Abs && have.Class == r.Class && have.Access == r.Access
		}) {
			s.Takes(r)
		}
	}
}

// bringsTree reports whether the command takes a directory to a path that is not there.
func (c *collector) bringsTree(s *step.Step, to string) bool {
	return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
		if r.Kind != "path" || r.Abs == to || r.Access&(atip.AccessRead|atip.AccessDelete) == 0 || r.Access&atip.AccessDelete == 0 && !r.Recursive {
			return false
		}
		info, err := os.Stat(r.Abs)
		return err == nil && info.IsDir()
	})
}

// brought are the paths that a command may put into the directory to: its words, and what lies
// in a directory whose content it takes. all is false if such a directory is not there yet.
func (c *collector) brought(s *step.Step, to, base string) (out []string, all bool) {
	all = true
	for _, w := range s.Argv[1:] {
		path := filepath.Clean(c.site.absolute(base, w))
		if strings.HasPrefix(w, "-") || strings.IndexByte(w, 0) >= 0 || path == to || len(out) >= maxInto {
			continue
		}
		last := filepath.Base(w)
		if strings.ContainsAny(w, "*?[") {
			found, _ := filepath.Glob(path)
			for _, name := range found[:min(len(found), maxInto)] {
				if strings.HasPrefix(last, ".") || !strings.HasPrefix(filepath.Base(name), ".") {
					out = append(out, name)
				}
			}
		}
		if last != "." && last != ".." && last != "/" {
			out = append(out, path)
			if !strings.HasSuffix(w, "/") {
				continue
			}
		}
		f, err := regular.OpenDir(path)
		if err != nil {
			all = false
			continue
		}
		names, _ := f.Readdirnames(maxInto)
		f.Close()
		for _, name := range names {
			out = append(out, filepath.Join(path, name))
		}
	}
	return out, all
}
