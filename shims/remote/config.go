// Package remote asks registries for metadata: static hosts of documents named by the
// digest of the file they describe (ATIP 0.6 section 4.4). It is linked into atip only;
// what it fetches is stored where shims.Lookup finds it.
package remote

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Registry is one host of metadata.
type Registry struct {
	ID                string // of its URL; names its directory
	Name              string
	URL               string // without a slash at the end
	Priority          int
	RequireSignatures bool
	RequireState      bool
	MaxStateAge       time.Duration // past this after its expiry a state is refused; 0: never
	CacheExpiry       time.Duration // 0: not stated
	TokenEnvVar       string
	TokenFile         string
	Signers           []signer.Signer // of this registry's documents, beside those of policy
	FromEnv           bool            // of ATIP_REGISTRIES: whoever starts us chose it
}

// Config is the registries in the order in which they are asked.
type Config struct {
	Registries []Registry
	Offline    bool
}

const (
	defaultPriority = 100
	badConfig       = errcode.RegistryConfig
	longest         = 7 * 24 * time.Hour
)

// ReadConfig reads registries.json of the administrator and of the user. "locked": true
// in the administrator's leaves out the user's and the environment.
func ReadConfig(managed, user string, getenv func(string) string) (Config, error) {
	var c Config
	locked := false
	for _, dir := range []string{managed, user} {
		if dir == "" || locked {
			continue
		}
		list, lock, err := readFile(filepath.Join(dir, "registries.json"), dir == managed)
		if err != nil {
			return Config{}, err
		}
		locked = lock && dir == managed
		c.Registries = append(c.Registries, list...)
	}
	c.Registries = once(c.Registries)
	sort.SliceStable(c.Registries, func(i, j int) bool { return c.Registries[i].Priority < c.Registries[j].Priority })
	if !locked {
		for word := range strings.SplitSeq(getenv(settle.EnvRegistries), ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			r := Registry{Name: word, FromEnv: true}
			if why := r.setURL(word); why != "" {
				return Config{}, &shims.SettingsError{Code: badConfig, File: settle.EnvRegistries, Msg: why}
			}
			c.Registries = append(c.Registries, r)
		}
	}
	c.Registries = once(c.Registries)
	if v := getenv("ATIP_OFFLINE"); v != "" && v != "0" {
		c.Offline = true
	}
	return c, nil
}

// once keeps the first entry of each URL, with what the others demand.
func once(list []Registry) []Registry {
	at := map[string]int{}
	var out []Registry
	for _, r := range list {
		i, seen := at[r.ID]
		if !seen {
			at[r.ID] = len(out)
			out = append(out, r)
			continue
		}
		kept := &out[i]
		kept.RequireSignatures, kept.RequireState = kept.RequireSignatures || r.RequireSignatures, kept.RequireState || r.RequireState
		if r.MaxStateAge > 0 && (kept.MaxStateAge == 0 || r.MaxStateAge < kept.MaxStateAge) {
			kept.MaxStateAge = r.MaxStateAge
		}
	}
	return out
}

func readFile(file string, managed bool) (list []Registry, locked bool, err error) {
	root, err := shims.ReadSettings(file, badConfig)
	if root == nil || err != nil {
		return nil, false, err
	}
	p := parser{file: file, managed: managed}
	list = p.root(root)
	locked, _ = root.Get("locked").Bool()
	return list, locked, p.err
}

// parser keeps the first thing that is wrong.
type parser struct {
	file    string
	managed bool
	err     error
}

func (p *parser) bad(n *atip.Node, msg string) {
	if p.err == nil {
		p.err = &shims.SettingsError{Code: badConfig, File: p.file, Line: n.Line, Col: n.Col, Msg: msg}
	}
}

func (p *parser) root(n *atip.Node) []Registry {
	defaults := Registry{Priority: defaultPriority}
	if d := n.Get("defaults"); d != nil {
		for _, m := range d.Items {
			switch m.Key {
			case "cacheExpiry":
				defaults.CacheExpiry = p.expiry(m)
			case "requireSignatures", "requireSignature":
				defaults.RequireSignatures = p.boolean(m) || defaults.RequireSignatures
			default:
				p.unknown(m)
			}
		}
	}
	var list []Registry
	for _, m := range n.Items {
		switch m.Key {
		case "defaults", "$schema":
		case "locked":
			p.boolean(m)
		case "registries":
			if m.Kind != atip.KindArray {
				p.bad(m, "registries is not an array")
				continue
			}
			for _, item := range m.Items {
				if r, ok := p.registry(item, defaults); ok {
					list = append(list, r)
				}
			}
		default:
			p.unknown(m)
		}
	}
	return list
}

func (p *parser) unknown(n *atip.Node) {
	if !strings.HasPrefix(n.Key, "x-") && !strings.HasPrefix(n.Key, "_") {
		p.bad(&atip.Node{Line: n.KeyLine, Col: n.KeyCol}, "unknown key "+strconv.Quote(n.Key))
	}
}

func (p *parser) registry(n *atip.Node, defaults Registry) (r Registry, enabled bool) {
	r, enabled = defaults, true
	if n.Kind != atip.KindObject {
		p.bad(n, "a registry is not an object")
		return r, false
	}
	for _, m := range n.Items {
		switch m.Key {
		case "name":
			r.Name = p.text(m)
		case "url":
			if why := r.setURL(p.text(m)); why != "" {
				p.bad(m, why)
			}
		case "enabled":
			enabled = p.boolean(m)
		case "priority":
			v, err := strconv.Atoi(m.Text)
			if m.Kind != atip.KindNumber || err != nil {
				p.bad(m, "priority is not a whole number")
			}
			r.Priority = v
		case "requireSignatures", "requireSignature":
			r.RequireSignatures = p.boolean(m) || r.RequireSignatures
		case "cacheExpiry":
			r.CacheExpiry = p.expiry(m)
		case "requireState":
			r.RequireState = p.boolean(m)
		case "maxStateAge":
			r.MaxStateAge = p.expiry(m)
		case "source", "signers":
			// Read below, with what a run makes of them.
		case "auth":
			p.auth(m, &r)
		default:
			p.unknown(m)
		}
	}
	if r.URL == "" {
		p.bad(n, "a registry without url")
	}
	entry, err := settle.RegistryEntry(p.file, n, p.managed)
	if err != nil && p.err == nil {
		p.err = err
	}
	r.Signers = entry.Signers
	r.Name = cmp.Or(r.Name, r.URL)
	return r, enabled
}

func (p *parser) auth(n *atip.Node, r *Registry) {
	for _, m := range n.Items {
		switch m.Key {
		case "type":
			if m.Text != "bearer" {
				p.bad(m, "auth.type "+strconv.Quote(m.Text)+" is not bearer")
			}
		case "tokenEnvVar":
			r.TokenEnvVar = p.text(m)
		case "tokenFile":
			if r.TokenFile = p.text(m); !filepath.IsAbs(r.TokenFile) {
				p.bad(m, "auth.tokenFile is not an absolute path")
			}
		default:
			p.unknown(m)
		}
	}
	if n.Kind != atip.KindObject || r.TokenEnvVar == "" && r.TokenFile == "" {
		p.bad(n, "auth names neither tokenEnvVar nor tokenFile")
	}
}

func (p *parser) text(n *atip.Node) string {
	if n.Kind != atip.KindString || n.Text == "" {
		p.bad(n, n.Key+" is not a text")
	}
	return n.Text
}

func (p *parser) boolean(n *atip.Node) bool {
	v, ok := n.Bool()
	if !ok {
		p.bad(n, n.Key+" is not true or false")
	}
	return v
}

func (p *parser) expiry(n *atip.Node) time.Duration {
	d, err := parseDays(n.Text)
	if n.Kind != atip.KindString || err != nil {
		p.bad(n, n.Key+" is not a duration such as 12h or 7d")
	}
	return d
}

func parseDays(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.ParseUint(n, 10, 16)
		return time.Duration(days) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("negative")
	}
	return d, err
}

// setURL takes over an address that may be asked: https, or http to this machine.
func (r *Registry) setURL(s string) (why string) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "the url cannot be read"
	case u.Host == "" || u.Opaque != "":
		return strconv.Quote(s) + " is not an address of a host"
	case u.User != nil:
		return "a url carries no user and no password; see auth"
	case u.RawQuery != "" || u.Fragment != "" || strings.Contains(u.Path, "..") || u.RawPath != "":
		return strconv.Quote(s) + " is more than a host and a plain path"
	case u.Scheme == "https":
	case u.Scheme == "http" && loopback(u.Hostname()):
	default:
		return strconv.Quote(s) + " is neither https nor http to this machine"
	}
	r.URL = strings.TrimRight(u.Scheme+"://"+strings.ToLower(u.Host)+u.Path, "/")
	r.ID = shims.RegistryID(r.URL)
	return ""
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// token is what authenticates us to the registry; "" for none.
func (r *Registry) token(getenv func(string) string) (string, error) {
	token := ""
	switch {
	case r.FromEnv || r.TokenEnvVar == "" && r.TokenFile == "":
		return "", nil
	case r.TokenEnvVar != "":
		token = getenv(r.TokenEnvVar)
		if token == "" && r.TokenFile == "" {
			return "", &Error{Code: errcode.RegistryUnavailable, Registry: r.URL, Msg: "the variable " + r.TokenEnvVar + " holds no token"}
		}
	}
	if token == "" {
		info, err := os.Lstat(r.TokenFile)
		if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() > 64<<10) {
			err = errors.New("it is not a file that only its owner can read")
		}
		var raw []byte
		if err == nil {
			raw, err = os.ReadFile(r.TokenFile)
		}
		if err != nil {
			return "", &Error{Code: errcode.RegistryUnavailable, Registry: r.URL, Msg: "the token of " + r.TokenFile + " cannot be used: " + err.Error(), Err: err}
		}
		token = string(raw)
	}
	token = strings.TrimSpace(token)
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return "", &Error{Code: errcode.RegistryUnavailable, Registry: r.URL, Msg: "the token has characters that no header can carry"}
		}
	}
	return token, nil
}
