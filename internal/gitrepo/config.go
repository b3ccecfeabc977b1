package gitrepo

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a configuration: git itself follows ten includes into each other.
const (
	maxIncludes = 10
	maxFiles    = 64
)

// Source is a configuration file outside the repository, with whose word it is.
type Source struct {
	Path  string
	Scope Scope
}

// UserSources are the files of the account, in the order in which git reads them. home is
// that of the account, xdg its configuration directory ("" for home/.config).
func UserSources(home, xdg string) []Source {
	out := []Source{{"/etc/gitconfig", ScopeSystem}}
	if home == "" {
		return out
	}
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	return append(out, Source{filepath.Join(xdg, "git", "config"), ScopeUser}, Source{filepath.Join(home, ".gitconfig"), ScopeUser})
}

// Config is what git reads: all settings in the order in which they count, the last one of
// a key wins.
type Config struct {
	Settings []Setting
	// Files are those that were read, and Missing the ones that are named and not there: a
	// run could make them.
	Files, Missing []string
	// Conditional says that settings stand behind an includeIf. They are in Settings whether
	// the condition holds or not.
	Conditional bool

	home string
}

// Config reads the configuration of the repository after the sources. A condition of an
// includeIf counts as met. home expands "~/" in included paths.
func (r Repository) Config(home string, sources ...Source) (*Config, error) {
	c := &Config{home: home}
	for _, s := range sources {
		if err := c.add(s.Path, s.Scope, 0); err != nil {
			return c, err
		}
	}
	if err := c.add(filepath.Join(r.Common, "config"), ScopeRepository, 0); err != nil {
		return c, err
	}
	if c.Bool("extensions.worktreeconfig") {
		if err := c.add(filepath.Join(r.Dir, "config.worktree"), ScopeRepository, 0); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Account is the configuration of the account alone; see UserSources.
func Account(home, xdg string) (*Config, error) {
	c := &Config{home: home}
	for _, s := range UserSources(home, xdg) {
		if err := c.add(s.Path, s.Scope, 0); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Reads are the files beside those of UserSources that git reads because the account says so, and the directory of its
// hooks, "" for none. Without an included file that is there git does nothing but complain.
func (c *Config) Reads() (files []string, hooks string) {
	files = slices.Clone(c.Files)
	for _, s := range c.Settings {
		switch path := c.expand(s.Value, filepath.Dir(s.File)); {
		case s.Value == "":
		case s.Key == "core.hookspath":
			hooks = path
		case slices.Contains([]string{"core.excludesfile", "core.attributesfile", "commit.template", "mailmap.file", "diff.orderfile",
			"blame.ignorerevsfile", "gpg.ssh.allowedsignersfile", "init.templatedir"}, s.Key):
			files = append(files, path)
		}
	}
	return files, hooks
}

// add reads one file and what it includes, where the include stands.
func (c *Config) add(path string, scope Scope, depth int) error {
	if depth > maxIncludes || len(c.Files) >= maxFiles {
		return fmt.Errorf("%s: more included files than are read", path)
	}
	raw, err := Read(path, maxConfig)
	if missing(err) {
		c.Missing = append(c.Missing, path)
		return nil
	}
	if err != nil {
		return err
	}
	settings, err := Parse(string(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.Files = append(c.Files, path)
	for _, s := range settings {
		s.File, s.Scope = path, scope
		c.Settings = append(c.Settings, s)
		section, sub, name := Split(s.Key)
		if name != "path" || !(section == "include" && sub == "" || section == "includeif" && sub != "") {
			continue
		}
		c.Conditional = c.Conditional || sub != ""
		if s.Value == "" {
			continue
		}
		if err := c.add(c.expand(s.Value, filepath.Dir(path)), scope, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) expand(path, dir string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && c.home != "" {
		return filepath.Join(c.home, rest)
	}
	return absolute(path, dir)
}

// Get is the last value of a key, ok false if it is not set.
func (c *Config) Get(key string) (value string, ok bool) {
	for i := len(c.Settings) - 1; i >= 0; i-- {
		if c.Settings[i].Key == key {
			return c.Settings[i].Value, true
		}
	}
	return "", false
}

// All are the values of a key in their order.
func (c *Config) All(key string) []string {
	var out []string
	for _, s := range c.Settings {
		if s.Key == key {
			out = append(out, s.Value)
		}
	}
	return out
}

// Bool reports whether a key is set to what git takes for true.
func (c *Config) Bool(key string) bool {
	for i := len(c.Settings) - 1; i >= 0; i-- {
		if s := c.Settings[i]; s.Key == key {
			switch strings.ToLower(s.Value) {
			case "true", "yes", "on", "1":
				return true
			}
			return s.Bare
		}
	}
	return false
}
