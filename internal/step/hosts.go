package step

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/hostword"
	"github.com/atip-dev/atip-exec/policy"
)

// Socket is the host of bash's /dev/tcp/HOST/PORT.
func Socket(path string) (policy.HostUse, bool) {
	for _, prefix := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			host, port, _ := strings.Cut(rest, "/")
			if strings.IndexByte(host, 0) >= 0 {
				return policy.HostUse{}, true
			}
			_, n := SplitPort("h:" + port)
			return policy.HostUseOf(host, n), true
		}
	}
	return policy.HostUse{}, false
}

// RemoteWords are the words of a step that name remotes; ok is false for a command that talks to
// none, or to the URL in its words only.
func RemoteWords(s *Step) (names []string, push, ok bool) {
	path := s.Call.Path
	if len(path) == 0 {
		return nil, false, false
	}
	words := s.Call.Positionals
	verb := path[len(path)-1]
	switch path[0] {
	case "fetch", "pull", "push", "ls-remote":
		if len(path) > 1 {
			return nil, false, false
		}
		push = verb == "push"
		for _, o := range s.Call.Options {
			if o.Flag == "--repo" && o.Value != "" {
				names = append(names, o.Value)
			}
			if o.Flag == "--multiple" {
				for _, w := range words {
					names = append(names, w.Value)
				}
				return names, push, true
			}
		}
	case "remote":
		if !slices.Contains([]string{"show", "prune", "update", "set-head"}, verb) {
			return nil, false, false
		}
	case "lfs":
		if !slices.Contains([]string{"fetch", "pull", "push"}, verb) {
			return nil, false, false
		}
		push = verb == "push"
	default:
		return nil, false, false
	}
	if len(words) > 0 {
		names = []string{words[0].Value}
	}
	return names, push, true
}

// LocalPath reports a repository of this machine: no scheme but file, and no host in front of a
// colon (connect.c, url_is_local_not_ssh).
func LocalPath(url string) bool {
	if strings.HasPrefix(url, "file://") {
		return true
	}
	colon, slash := strings.IndexByte(url, ':'), strings.IndexByte(url, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// WithoutUser leaves out user and password of a URL, which people are not shown.
func WithoutUser(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	authority, path, slash := strings.Cut(rest, "/")
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if slash {
		authority += "/"
	}
	return scheme + "://" + authority + path
}

// LocalURLs takes the network from a transfer all of whose URLs are files of this machine, which
// are paths like others. What else it might connect to, the run has no network for.
func LocalURLs(s *Step) {
	if s.Call.Tool != "curl" || s.Call.Effects[atip.Network].Value != atip.Yes || s.Call.Exactness != atip.Exact || len(s.Call.UnknownOptions) > 0 {
		return
	}
	local := false
	for _, r := range s.Call.Resources {
		if r.Kind != "url" {
			continue
		}
		path, file := strings.CutPrefix(r.Value, "file://")
		if !file || !filepath.IsAbs(path) || !plainPath(path) {
			return
		}
		local = true
	}
	if local {
		s.Call.Effects[atip.Network] = atip.Fact{Value: atip.No, Source: "url", Rank: atip.Vendor}
	}
}

// plainPath reports a path that says the same as a part of a URL: no encoding, no pattern of curl.
func plainPath(path string) bool {
	return strings.IndexFunc(path, func(r rune) bool {
		return r != '/' && r != '.' && r != '-' && r != '_' && r != '~' && r != '+' && r != '@' && r != ',' && r != ' ' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// Hosts says whom a step may talk to, as far as its words tell. configured says that it talks to
// remotes of a configuration, whose hosts are known already.
func Hosts(s *Step, configured bool) []policy.HostUse {
	var out []policy.HostUse
	for _, r := range s.Call.Resources {
		if strings.HasPrefix(r.Why, "remote ") {
			continue
		}
		if s.Call.Tool == "git" && r.Kind == "url" && r.Scheme == "" && !strings.ContainsAny(r.Value, ":/") && len(hostword.In("", r.Value)) == 0 {
			continue // the name of a remote
		}
		if (r.Kind == "url" || r.Kind == "host") && r.Host != "" && r.Scheme != "file" {
			out = append(out, policy.HostUseOf(r.Host, portOf(s.Call.Tool, r)))
		}
	}
	named := len(out) > 0
	if s.Call.Effects[atip.Network].Value == atip.No {
		return out
	}
	for _, h := range looseHosts(s) {
		named = named || policy.GenericClient(s.Call.Tool)
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	if named || configured {
		return out // a client that is told where to go
	}
	switch {
	case s.Call.Tool == "git" && s.Call.Effects[atip.Network].Value == atip.Yes:
		// Without a URL git talks to a remote of its configuration, whose URLs the
		// check of .git/config has seen.
		out = append(out, policy.HostUse{Kind: policy.HostNamed})
	case s.Call.Provenance.Rank >= atip.Org && s.Call.Effects[atip.Network].Value == atip.Yes:
		out = append(out, policy.HostUse{Kind: policy.HostService}) // beside the hosts in its words
	}
	return out
}

// looseHosts are the hosts in words whose meaning no document states. A tool that has the
// network may connect to any of them.
func looseHosts(s *Step) []policy.HostUse {
	var out []policy.HostUse
	for _, l := range s.Call.Loose {
		found := hostword.In(l.Name, l.Value)
		switch s.Call.Tool {
		case "scp", "sftp", "rsync":
			if h, ok := hostword.Remote(l.Value); ok && strings.HasPrefix(l.Why, "argv[") {
				found = []hostword.Host{h}
			}
		}
		for _, h := range found {
			port := h.Port
			if port == 0 {
				port = SchemePort(h.Scheme)
			}
			use := policy.HostUseOf(h.Name, port)
			if use.Kind == policy.HostPublic && slices.Contains(s.Call.Service, use.Host) {
				continue
			}
			out = append(out, use)
		}
	}
	return out
}

// Recurses reports a call of git that goes into submodules whatever its settings say.
func Recurses(s *Step) bool {
	return slices.Contains(s.Call.Path, "submodule") || slices.ContainsFunc(s.Argv, func(w string) bool {
		return strings.HasPrefix(w, "--recurs") || strings.HasPrefix(w, "--remote-sub") || strings.IndexByte(w, 0) >= 0
	})
}

// portOf is the port that a resource names or its scheme means, 0 if neither does.
func portOf(tool string, r atip.Resource) int {
	scp := r.Scheme == "" && overSSH(tool)
	if port := UrlPort(r.Value); !scp && port > 0 && port < 1<<16 {
		return port
	}
	if port := SchemePort(r.Scheme); port != 0 || !scp {
		return port
	}
	return 22
}

// SchemePort is the port that a scheme means, 0 if none is known.
func SchemePort(scheme string) int {
	switch scheme {
	case "https", "wss", "git+https":
		return 443
	case "http", "ws":
		return 80
	case "ssh", "git+ssh", "sftp", "scp":
		return 22
	case "ftp":
		return 21
	case "git":
		return 9418
	case "postgres", "postgresql":
		return 5432
	case "mysql":
		return 3306
	case "redis":
		return 6379
	}
	return 0
}

// overSSH names the tools that take "host:path" for a host to reach by ssh.
func overSSH(tool string) bool {
	switch tool {
	case "ssh", "scp", "sftp", "rsync", "git", "mosh", "ssh-copy-id", "ssh-keyscan":
		return true
	}
	return false
}

// UrlPort is the port that a URL names, also one without a scheme; 0 if none.
func UrlPort(value string) int {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		value = rest
	}
	if i := strings.IndexAny(value, "/?#"); i >= 0 {
		value = value[:i]
	}
	if i := strings.LastIndexByte(value, '@'); i >= 0 {
		value = value[i+1:]
	}
	_, port := SplitPort(value)
	return port
}

func SplitPort(host string) (string, int) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") || strings.Count(host, ":") > 1 && !strings.Contains(host, "]:") {
		return host, 0
	}
	port := 0
	if _, err := fmt.Sscanf(host[i+1:], "%d", &port); err != nil {
		return host, 0
	}
	return host[:i], port
}
