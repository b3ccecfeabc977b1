package effects

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

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
			for _, sign := range signs {
				if strings.Contains(text, sign) {
					return true
				}
			}
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	return false
}
