package gitrepo

import "strings"

// Remote is where git goes for a name of a remote.
type Remote struct {
	Name string
	// Fetch and Push are the addresses after url.*.insteadOf and pushInsteadOf. More than
	// one address of Push means that a push goes to each.
	Fetch, Push []string
}

// Remotes lists the names of the configured remotes.
func (c *Config) Remotes() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range c.Settings {
		if section, sub, _ := Split(s.Key); section == "remote" && sub != "" && !seen[sub] {
			seen[sub] = true
			out = append(out, sub)
		}
	}
	return out
}

// Remote resolves a word where git expects a repository: the name of a remote, or an
// address or path, which stands for itself. configured is false in the second case.
func (c *Config) Remote(word string) (r Remote, configured bool) {
	r = Remote{Name: word, Fetch: c.All("remote." + word + ".url"), Push: c.All("remote." + word + ".pushurl")}
	configured = len(r.Fetch) > 0 || len(r.Push) > 0
	if !configured {
		r.Fetch = []string{word}
	}
	if len(r.Fetch) == 0 {
		r.Fetch = r.Push
	}
	if own := len(r.Push) > 0; own {
		r.Push = c.rewrite(r.Push, "insteadof")
	} else {
		for _, url := range r.Fetch {
			// pushInsteadOf counts only where no pushurl is set (remote.c).
			to, changed := c.instead(url, "pushinsteadof")
			if !changed {
				to, _ = c.instead(url, "insteadof")
			}
			r.Push = append(r.Push, to)
		}
	}
	r.Fetch = c.rewrite(r.Fetch, "insteadof")
	return r, configured
}

func (c *Config) rewrite(urls []string, by string) []string {
	var out []string
	for _, url := range urls {
		to, _ := c.instead(url, by)
		out = append(out, to)
	}
	return out
}

// instead replaces the longest prefix that a url section names.
func (c *Config) instead(url, by string) (string, bool) {
	best, base := "", ""
	for _, s := range c.Settings {
		section, sub, name := Split(s.Key)
		if section == "url" && name == by && strings.HasPrefix(url, s.Value) && len(s.Value) > len(best) {
			best, base = s.Value, sub
		}
	}
	if best == "" {
		return url, false
	}
	return base + url[len(best):], true
}

// DefaultRemote is the remote of a fetch or, for push, of a push that names none, on a
// branch ("" for a detached HEAD): origin where nothing else is configured.
func (c *Config) DefaultRemote(branch string, push bool) string {
	var keys []string
	if push {
		if branch != "" {
			keys = append(keys, "branch."+branch+".pushremote")
		}
		keys = append(keys, "remote.pushdefault")
	}
	if branch != "" {
		keys = append(keys, "branch."+branch+".remote")
	}
	for _, key := range keys {
		if name, ok := c.Get(key); ok && name != "" {
			return name
		}
	}
	if names := c.Remotes(); len(names) == 1 && !push {
		return names[0] // git 2.40: the only remote counts where none is called origin
	}
	return "origin"
}

// Group lists the members of a group of remotes ("git fetch GROUP"), nil if there is none
// of that name.
func (c *Config) Group(name string) []string {
	var out []string
	for _, value := range c.All("remotes." + name) {
		out = append(out, strings.Fields(value)...)
	}
	return out
}
