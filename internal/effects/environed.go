package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// environed notes what variables of the command line change of a call besides its words:
// which files it writes, whose answers it believes, and where its configuration lies,
// which names programs and hosts. The caller's own environment counts as well: an agent
// chooses it with the command.
func (c *collector) environed(s *step.Step) {
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if have, set := c.site.lookupEnv(a.Name); a.Value == "" || set && have == a.Value {
				continue
			}
			if step.WritesTo(s, a) {
				c.writesAt(s, a)
			}
			c.steers(s, a, step.CertaintyVariable(a.Name))
		}
	}
	for _, a := range c.site.callerVariables() {
		if step.WritesTo(s, a) {
			c.writesAt(s, a)
		}
		c.steers(s, a, step.CertaintyVariable(a.Name) && c.doubtful(s, a))
	}
}

// steers notes what a variable makes of a step with network: whom it believes, through whom
// it talks, and which configuration it obeys.
func (c *collector) steers(s *step.Step, a shell.Assign, uncertain bool) {
	if s.Call.Effects[atip.Network].Value != atip.Yes {
		return // the kernel holds what it runs, and there is nobody to be led to
	}
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
		if value == "" || !slices.Contains(p.envNames(), name) || step.MatchesName(env.Pass, name) || step.MatchesName(env.Drop, name) || p.usual(name, value) {
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
	usual, named := map[string]string{"HOME": p.Dirs.Home, "XDG_CONFIG_HOME": filepath.Dir(p.Dirs.Config), "XDG_DATA_HOME": filepath.Dir(p.Dirs.Data), "XDG_CONFIG_DIRS": "/etc/xdg"}[name]
	if step.ProxyVariable(name) && p.OwnProxy(value) {
		return true // set by the run around this one, which has no other way out
	}
	return named && filepath.Clean(value) == usual
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
	s.Raise(r)
	s.Call.Resources = append(s.Call.Resources, r)
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

// ownFile lets a file of the workspace that is called like a secret be one like others where the
// text itself makes it of what is none: it holds no secret from elsewhere. content is what a
// redirection writes, if that is constant.
func (c *collector) ownFile(s *step.Step, r *atip.Resource, content *string) {
	if r.Kind != "path" || r.Class != atip.ClassSecret || r.Recursive || c.peeking || !subpath.Within(r.Abs, c.site.Workspace) {
		return
	}
	if _, err := os.Lstat(r.Abs); !os.IsNotExist(err) {
		return
	}
	makes := r.Access == atip.AccessWrite && len(c.writers[r.Abs]) == 0 && (content != nil || c.copiesPlain(s, r.Abs))
	if makes || c.madeOwn(r.Abs) {
		r.Class = atip.ClassWorkspace
	}
}

// madeOwn reports that all that was written to a file so far is the text's own, and that nothing
// between could have put another in its place.
func (c *collector) madeOwn(abs string) bool {
	list := c.writers[abs]
	if len(list) == 0 {
		return false
	}
	for _, w := range list {
		if w.content == nil && !c.copiesPlain(w.by, abs) && !step.EditsPlain(w.by) {
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
			if s.Call.Effects[atip.Write].Value != atip.No {
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
