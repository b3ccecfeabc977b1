package run

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
)

// environed notes what variables of the command line change of a call besides its words:
// which files it writes, whose answers it believes, and where its configuration lies,
// which names programs and hosts. What the caller's own environment says is
// configuration, as for redirected.
func (c *collector) environed(s *step) {
	for x := c.ctx; x != nil; x = x.outer {
		for _, a := range x.env {
			if have, set := c.plan.lookupEnv(a.Name); a.Value == "" || set && have == a.Value {
				continue
			}
			if writesTo(s, a) {
				c.writesAt(s, a)
			}
			if s.Call.Effects[atip.Network].Value != atip.Yes {
				continue // the kernel holds what it runs, and there is nobody to be led to
			}
			switch {
			case proxyVariable(a.Name):
				if host, ok := endpoint([]string{a.Name}, a); ok {
					s.Hosts = append(s.Hosts, host)
				}
			case certaintyVariable(a.Name):
				s.Hosts = append(s.Hosts, policy.HostUse{})
			case c.configures(s, a):
				s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "variable " + a.Name, Rank: atip.Vendor}
			}
		}
	}
}

// proxyVariable names the variables by which nearly every program finds a proxy.
func proxyVariable(name string) bool {
	switch strings.ToLower(name) {
	case "http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "socks_proxy", "npm_config_proxy", "npm_config_https_proxy":
		return true
	}
	return false
}

// certaintyVariable names those that decide whether the other end of a connection is
// the host that was asked for.
func certaintyVariable(name string) bool {
	switch name {
	case "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY",
		"NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "PYTHONHTTPSVERIFY", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN":
		return true
	}
	return false
}

// configures reports a variable that makes a tool read its configuration where the run
// itself, or one before it, may have written it: a credential program, a plugin and
// another server are named there.
func (c *collector) configures(s *step, a shell.Assign) bool {
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
			value = c.plan.expand(value)
		}
		abs := filepath.Clean(join(join(s.Cwd, s.Call.Chdir), value))
		if strings.IndexByte(value, '/') < 0 && !namesPath(upper) {
			if _, err := os.Lstat(abs); err != nil {
				continue // a switch, not a file
			}
		}
		switch c.plan.world.Classify(abs, atip.AccessWrite, false) {
		case atip.ClassOutside, atip.ClassSystem, atip.ClassSecret, atip.ClassStartup, atip.ClassDevice:
			// No run may write there without being asked about.
		default:
			return true
		}
	}
	return false
}

// namesPath reports a name that stands for a file or a directory by custom.
func namesPath(name string) bool {
	for _, suffix := range [...]string{"FILE", "CONFIG", "DIR", "HOME", "RC", "PATH"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// writesTo reports a variable that names a file which the call writes.
func writesTo(s *step, a shell.Assign) bool {
	unknown := strings.IndexByte(a.Value, 0) >= 0
	switch {
	case a.Name == "SSLKEYLOGFILE":
		return s.Call.Effects[atip.Network].Value != atip.No
	case s.Call.Tool != "git":
		return false
	case a.Name == "GIT_INDEX_FILE":
		return true
	}
	return strings.HasPrefix(a.Name, "GIT_TRACE") && (unknown || filepath.IsAbs(a.Value))
}

func (c *collector) writesAt(s *step, a shell.Assign) {
	r := atip.Resource{Kind: "path", Value: a.Value, Access: atip.AccessWrite, Why: a.Name}
	c.place(c.plan.world, &r, join(s.Cwd, s.Call.Chdir))
	r.Value = shown([]string{r.Value})[0]
	s.Call.Effects[atip.Write] = atip.Fact{Value: atip.Yes, Source: "variable " + a.Name, Rank: atip.Vendor}
	s.raise(r)
	s.Call.Resources = append(s.Call.Resources, r)
}
