package effects

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

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
		s.Raise(in)
		s.Call.Resources = append(s.Call.Resources, in)
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
