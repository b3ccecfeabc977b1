package effects

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/hostword"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/sshconfig"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// remotes resolves the remote that a step of git talks to, which its words name or leave to the
// configuration, to URLs: rules, budgets, the list of hosts and the person who approves see
// where it goes. It puts them into the place of the name among the resources and returns their
// hosts; known is false where the step has no remote of a configuration.
func (c *collector) remotes(s *step.Step) (hosts []policy.HostUse, known bool) {
	if s.Call.Tool != "git" || s.Call.Effects[atip.Network].Value != atip.Yes || c.ctx != nil && (c.ctx.cwdUnknown || c.remoteSet()) {
		return nil, false
	}
	names, push, ok := step.RemoteWords(s)
	if !ok {
		return nil, false
	}
	config, branch, err := c.site.GitConfigOf(s)
	if err != nil {
		return nil, false // the check of the repository says why
	}
	switch {
	case slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return o.Flag == "--all" }) && !push:
		names = config.Remotes()
	case len(names) == 0:
		names = []string{config.DefaultRemote(branch, push)}
	}
	access := atip.AccessRead
	if push {
		access = atip.AccessWrite
	}
	for len(names) > 0 && len(hosts) < 64 {
		name := names[0]
		names = names[1:]
		if strings.IndexByte(name, 0) >= 0 {
			return nil, false
		}
		if group := config.Group(name); len(group) > 0 && len(group) <= 64 {
			names = append(names, group...)
			continue
		}
		r, configured := config.Remote(name)
		urls := r.Fetch
		if push {
			urls = r.Push
		}
		if !configured && len(urls) == 1 && urls[0] == name && !step.LocalPath(name) {
			continue // a URL in the words, which the document has seen
		}
		known = true
		s.Call.Resources = slices.DeleteFunc(s.Call.Resources, func(x atip.Resource) bool { return x.Kind == "url" && x.Value == name })
		for _, url := range urls {
			hosts = append(hosts, c.remote(s, url, name, access, configured)...)
		}
		if !configured && step.LocalPath(name) {
			for _, h := range hostword.In("", name) {
				hosts = append(hosts, policy.HostUseOf(h.Name, h.Port)) // a path, if there is one of that name
			}
		}
	}
	if known && len(hosts) == 0 {
		if s.Call.Path[0] == "lfs" || slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			_, err := os.Stat(r.Abs)
			return strings.HasPrefix(r.Why, "remote ") && err != nil
		}) {
			// The server of lfs is another one, and a name that leads nowhere is not known.
			return append(hosts, policy.HostUse{Kind: policy.HostNamed}), true
		}
		// Every remote is a directory of this machine: the step needs no host, and gets none.
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.No, Source: "remote", Rank: atip.Vendor}
	}
	return hosts, known
}

// remote adds one URL of a remote to the resources of a step and returns its host, if it has one.
func (c *collector) remote(s *step.Step, url, name string, access atip.Access, configured bool) []policy.HostUse {
	shown := atip.Resource{Kind: "url", Value: step.WithoutUser(url), Access: access, Why: "remote " + name}
	if step.LocalPath(url) {
		shown.Kind, shown.Value, shown.Recursive = "path", strings.TrimPrefix(url, "file://"), true
		if access == atip.AccessWrite {
			shown.Access |= atip.AccessRead
			s.Call.Effects[atip.Write] = atip.Fact{Value: atip.Yes, Source: "remote " + name, Rank: atip.Vendor}
		}
		c.place(c.site.World, &shown, subpath.Join(s.Cwd, s.Call.Chdir))
		s.Takes(shown)
		return nil
	}
	scheme, rest, ok := strings.Cut(url, "://")
	host, port := "", 0
	switch {
	case strings.Contains(url, "::"):
		return []policy.HostUse{{}} // a helper program, which goes anywhere
	case ok:
		if found := hostword.In("", url); len(found) > 0 {
			host, port, shown.Scheme = found[0].Name, found[0].Port, strings.ToLower(scheme)
		} else {
			host = rest
		}
	default:
		host, _, _ = strings.Cut(url, ":")
		host, shown.Scheme = host[strings.LastIndexByte(host, '@')+1:], "ssh"
	}
	if port == 0 {
		port = step.SchemePort(shown.Scheme)
	}
	use := policy.HostUseOf(host, port)
	shown.Host = use.Host
	s.Call.Resources = append(s.Call.Resources, shown)
	if configured && use.Kind != policy.HostMetadata {
		use.Kind = policy.HostNamed
	}
	out := []policy.HostUse{use}
	if use.Kind == policy.HostNamed && c.site.redirects(shown.Scheme) {
		// Where the account's configuration leads this name is not known here, so that a list of
		// hosts would cut it off.
		out = append(out, policy.HostUse{Kind: policy.HostNamed})
	}
	return out
}

// redirects reports that the account sends connections elsewhere than to the host of a URL: by
// ssh's configuration or through a proxy.
func (p *Site) redirects(scheme string) bool {
	switch scheme {
	case "ssh", "git+ssh", "ssh+git":
		return p.SshSetting(func(words []string) bool {
			switch strings.ToLower(words[0]) {
			case "hostname", "port", "proxycommand", "proxyjump", "match":
				return true
			}
			return false
		})
	}
	for _, entry := range p.Environ {
		if name, value, _ := strings.Cut(entry, "="); step.ProxyVariable(name) && value != "" {
			return true
		}
	}
	account, err := gitrepo.Account(p.Dirs.Home, "")
	return err != nil || slices.ContainsFunc(account.Settings, func(s gitrepo.Setting) bool { return strings.HasSuffix(s.Key, "proxy") })
}

// GitConfigOf is what git reads for a step: the account's settings, then the repository's.
func (p *Site) GitConfigOf(s *step.Step) (c *gitrepo.Config, branch string, err error) {
	account, err := gitrepo.Account(p.Dirs.Home, "")
	if err != nil {
		return nil, "", err
	}
	own, r := &gitrepo.Config{}, gitrepo.Repository{}
	if r, err = gitrepo.Find(subpath.Join(s.Cwd, s.Call.Chdir)); errors.Is(err, gitrepo.ErrNone) || errors.Is(err, fs.ErrNotExist) {
		return account, "", nil
	} else if err == nil {
		own, err = r.Config(p.Dirs.Home)
	}
	if err != nil {
		return nil, "", err
	}
	return &gitrepo.Config{Settings: append(slices.Clone(account.Settings), own.Settings...)}, r.Head(), nil
}

// redirected notes the hosts that variables of the command line make a tool talk to
// instead of its own service: `GH_HOST=evil gh pr list`, and what the caller's own
// environment does so.
func (c *collector) redirected(s *step.Step) {
	if s.Call.Effects[atip.Network].Value == atip.No {
		return
	}
	for _, a := range c.site.callerVariables() {
		if host, ok := step.Endpoint(s.Call.Endpoints, a); ok {
			s.Hosts = append(s.Hosts, host)
		}
	}
	if c.ctx == nil {
		return
	}
	if s.Call.Tool == "git" && c.remoteSet() {
		// What .git/config says will not be what it says now.
		s.Hosts = append(s.Hosts, policy.HostUse{})
	}
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if host, ok := step.Endpoint(s.Call.Endpoints, a); ok {
				s.Hosts = append(s.Hosts, host)
				continue
			}
			for _, h := range hostword.In(strings.ToLower(a.Name), a.Value) {
				s.Hosts = append(s.Hosts, policy.HostUseOf(h.Name, h.Port)) // PGHOST=…, X_URL=https://…
			}
		}
	}
}

// setting runs f with variables that a wrapper sets.
func (c *collector) setting(env []shell.Assign, f func() error) error {
	if len(env) == 0 {
		return f()
	}
	outer := c.ctx
	c.ctx = &surroundings{outer: outer, env: env}
	if outer != nil {
		c.ctx.globs, c.ctx.stdin, c.ctx.cwdUnknown, c.ctx.flows = outer.globs, outer.stdin, outer.cwdUnknown, outer.flows
	}
	defer func() { c.ctx = outer }()
	return f()
}

// remoteSet reports whether an earlier part of the text gives git another remote.
func (c *collector) remoteSet() bool {
	return slices.ContainsFunc(c.steps, func(s *step.Step) bool {
		p := s.Call.Path
		return s.Call.Tool == "git" && len(p) > 0 && (p[0] == "config" && len(s.Call.Positionals) > 1 || p[0] == "remote" && len(p) > 1 && (p[1] == "add" || p[1] == "set-url" || p[1] == "rename"))
	})
}

// leftBehind notes a command that runs code in the background, as servers do: what follows in
// the text may talk to it.
func (c *collector) leftBehind(cmd *shell.Command, steps []*step.Step) {
	c.serves = c.serves || c.site.Apart && slices.ContainsFunc(steps, func(s *step.Step) bool {
		return s.Strange() && (cmd.Background || s.Call.Tool == "redis-server") // which goes there by itself, as its like do
	})
}

// meet takes signals and connections to a server of the text's own for what they are: they stay in the run,
// whose loopback is its own as long as none of its steps has a network beyond it, and so is its table of processes.
// What they destroy there, code of the workspace could have destroyed as well.
func (c *collector) meet() {
	if !c.serves {
		return
	}
	var clients, signals []*step.Step
	for _, s := range c.steps {
		here := ownSocket(s)
		local := len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h policy.HostUse) bool {
			return h.Kind != policy.HostLoopback && !(here && h.Kind == policy.HostService)
		})
		switch network := s.Call.Effects[atip.Network].Value; {
		case network == atip.No:
			switch s.Call.Tool {
			case "kill", "pkill", "killall", "fuser":
				if !slices.ContainsFunc(s.Argv[1:], func(w string) bool { return strings.Trim(w, "0123456789") == "" && w != "0" }) { // a process of the machine
					signals = append(signals, s)
				}
			}
		case local && (s.RunsCode == policy.CodeNone || s.RunsCode == policy.CodeProject || network == atip.Unknown):
			clients = append(clients, s)
		case network == atip.Yes || !s.Strange():
			return
		}
	}
	for _, s := range signals {
		s.Forgive("processes of the run", atip.Destructive, atip.Reversible)
	}
	for _, s := range clients {
		for _, t := range [...]*step.Step{s, s.Known} {
			if t == nil {
				continue
			}
			t.Hosts = nil
			t.Forgive("loopback of the run", atip.Network, atip.RemoteMutation)
			if !slices.ContainsFunc(t.Call.Resources, func(r atip.Resource) bool {
				return r.Access&^atip.AccessRead != 0 && r.Kind == "path" && !step.HarmlessFile(r.Abs)
			}) {
				t.Forgive("loopback of the run", atip.Destructive, atip.Reversible)
			}
		}
	}
}

// ownSocket reports a step that names directories of sockets as its hosts, in which there is none yet: a server of the text's
// own makes it.
func ownSocket(s *step.Step) (own bool) {
	for _, r := range s.Call.Resources {
		if r.Kind == "host" {
			names, err := filepath.Glob(filepath.Join(r.Value, ".s.*"))
			if own = filepath.IsAbs(r.Value) && err == nil && len(names) == 0; !own {
				return false
			}
		}
	}
	return own
}

// checkCodeFile marks a step whose tool reads a file that can make it run code:
// whoever can write .git/config makes `git status` run a program.
func (p *Site) checkCodeFile(s *step.Step, f atip.CodeFile) {
	why := ""
	switch {
	case f.Format == "gitconfig":
		var quieted bool
		if why, quieted = p.checkRepositories(s); quieted {
			s.Quieted = why
			return
		}
	case f.RelativeTo == "project":
		return // programManifests
	default:
		for _, path := range p.CodeFilePaths(s, f) {
			if _, err := gitrepo.Read(path, 256<<10); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				why = path + " cannot be read"
			} else {
				why = path + " can run code"
			}
			break
		}
	}
	if why != "" {
		s.RunsFile(f.Path, why)
	}
}

// checkRepositories says what in the configuration of the repositories that a step uses can
// make git run code, "" for nothing. quieted says that a run with rights turns all of it off
// (gitrepo.Quiet).
func (p *Site) checkRepositories(s *step.Step) (why string, quieted bool) {
	list, err := p.repositoriesOf(s)
	if err != nil {
		return err.Error(), false
	}
	for i, r := range list {
		c, err := r.Config(p.Dirs.Home)
		if err != nil {
			return err.Error() + ", so it cannot be judged", false
		}
		first := r.Active(c)
		if i == 0 {
			// git passes none of what is turned off on to a submodule.
			c.Settings = slices.DeleteFunc(c.Settings, func(one gitrepo.Setting) bool { return gitrepo.Quieted(one.Key) })
		}
		switch rest := r.Active(c); {
		case rest != "":
			return filepath.Join(r.Common, "config") + ": " + rest + " can run code", false
		case r.LegacyRemotes():
			return filepath.Join(r.Common, "remotes") + " names remotes that are not judged", false
		case first != "":
			why = filepath.Join(r.Common, "config") + ": " + first + " can run code"
		case i == 0 && s.Call.Effects[atip.Write].Value != atip.No && len(s.Call.Path) > 0:
			why = r.HookOf(s.Call.Path[0], p.Dirs.Home, filepath.Dir(p.Dirs.Config))
		}
	}
	return why, why != ""
}

// judgeSetting makes of `git config KEY VALUE` in the repository's own file what the check after the
// run makes of it: a key that is not inert would be put back.
func judgeSetting(call *atip.Call) {
	words := call.Positionals
	if call.Tool != "git" || len(call.Path) == 0 || call.Path[0] != "config" || len(words) == 0 || call.Effects[atip.Write].Value != atip.Yes || call.Effects[atip.ExecOpaque].Value == atip.Yes {
		return
	}
	last := call.Path[len(call.Path)-1]
	section := last == "remove-section" || last == "rename-section"
	for _, o := range call.Options {
		if o.Name == "global" || o.Name == "system" || o.Name == "file" {
			return
		}
		section = section || strings.HasPrefix(o.Flag, "--rem") || strings.HasPrefix(o.Flag, "--ren")
	}
	value, inert := "", true
	for i, w := range words {
		if strings.IndexByte(w.Value, 0) >= 0 {
			return
		}
		if i == 1 {
			value = w.Value
		}
		inert = inert && gitrepo.InertSection(w.Value)
	}
	if !section {
		inert = gitrepo.Inert(words[0].Value, value)
	}
	fact := atip.Fact{Value: atip.No, Source: "git:inert", Rank: atip.Vendor}
	if !inert {
		fact.Value = atip.Yes
	}
	call.Effects[atip.Persistence] = fact
}

// repositoriesOf are the repositories whose configuration a step of git obeys: the one that
// git finds from the directory and the words of the step, and its submodules.
func (p *Site) repositoriesOf(s *step.Step) ([]gitrepo.Repository, error) {
	r, err := gitrepo.Find(subpath.Join(s.Cwd, s.Call.Chdir))
	if errors.Is(err, gitrepo.ErrNone) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // git ends, or makes one
	}
	if err != nil {
		return nil, err
	}
	out := []gitrepo.Repository{r}
	if s.Call.Effects[atip.Network].Value == atip.Yes && !step.Recurses(s) {
		return out, nil // it is told not to go into submodules
	}
	for _, tree := range r.Pointers(p.Dirs.Home).Trees {
		if sub, err := gitrepo.At(tree); err == nil {
			out = append(out, sub)
		} else if !errors.Is(err, gitrepo.ErrNone) && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
	}
	return out, nil
}

func (p *Site) CodeFilePaths(s *step.Step, f atip.CodeFile) []string {
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	switch {
	case f.Format == "gitconfig":
		var out []string
		list, _ := p.repositoriesOf(s)
		for _, r := range list {
			if c, err := r.Config(p.Dirs.Home); err == nil {
				out = append(out, c.Files...)
			}
		}
		return out
	case f.RelativeTo == "home":
		base = p.Dirs.Home
	case f.RelativeTo == "repo":
		base = p.Workspace
	}
	if base == "" {
		return nil
	}
	return []string{filepath.Join(base, f.Path)}
}

// SshSetting reports whether a line of the account's configuration of ssh is so. What cannot be
// read counts.
func (p *Site) SshSetting(is func(words []string) bool) bool {
	return sshconfig.Any(p.Dirs.Home, is)
}
