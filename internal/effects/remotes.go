package effects

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/hostword"
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
		s.Raise(shown)
		s.Call.Resources = append(s.Call.Resources, shown)
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
	r, err := gitrepo.Find(subpath.Join(s.Cwd, s.Call.Chdir))
	if errors.Is(err, gitrepo.ErrNone) || errors.Is(err, fs.ErrNotExist) {
		return account, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	own, err := r.Config(p.Dirs.Home)
	if err != nil {
		return nil, "", err
	}
	return &gitrepo.Config{Settings: append(slices.Clone(account.Settings), own.Settings...)}, r.Head(), nil
}
