package filter

import (
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sources is where known values are looked for. Collect reads them before the
// child starts: a value echoed before it is known is the classic leak.
type Sources struct {
	Env        []string // the wrapper's environment before scrubbing
	ChildEnv   []string // the child's
	Argv       []string // the child's
	Files      []CredentialFile
	AuthVars   []string // authentication.methods[].envVar of the tool's metadata
	ExtraFiles []string // files that policy names
	Home       string   // what "~/" in those stands for
	ExtraEnv   []string // globs of variable names that policy names
}

// Skip is a variable whose value is not treated as a secret, and why.
type Skip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Known is what Collect found. The values themselves are not exported: nothing
// but the Set may see them.
type Known struct {
	Loaded     int      `json:"loaded"`
	Skipped    []Skip   `json:"skipped,omitempty"`
	Dropped    int      `json:"dropped,omitempty"`    // over a limit
	Unreadable []string `json:"unreadable,omitempty"` // files that exist and could not be read
	values     []knownValue
}

type knownValue struct {
	name  string // env.NAME, file.netrc, argv.--token
	value string
}

const (
	maxKnown      = 1000
	maxKnownBytes = 1 << 20
)

// collector gathers values; several names for one value become the first in byte
// order, so that the name does not depend on the order of the environment.
type collector struct {
	known Known
	size  int
	at    map[string]int
}

func (c *collector) add(name, value string) {
	name = safeName(name)
	value = strings.TrimSpace(value)
	if why := notSecret(value); why != "" {
		c.skip(name, why)
		return
	}
	if i, ok := c.at[value]; ok {
		c.known.values[i].name = min(c.known.values[i].name, name)
		return
	}
	if len(c.known.values) >= maxKnown || c.size+len(value) > maxKnownBytes {
		c.known.Dropped++
		return
	}
	c.size += len(value)
	c.at[value] = len(c.known.values)
	c.known.values = append(c.known.values, knownValue{name, value})
}

func (c *collector) skip(name, why string) {
	s := Skip{name, why}
	if !slices.Contains(c.known.Skipped, s) && len(c.known.Skipped) < maxKnown {
		c.known.Skipped = append(c.known.Skipped, s)
	}
}

// Collect gathers known values. A file that cannot be read is not an error: it is
// listed in Known.Unreadable and the run goes on.
func Collect(src Sources) (Known, error) {
	c := &collector{at: make(map[string]int, 16)}
	for _, env := range [...][]string{src.Env, src.ChildEnv} {
		for _, kv := range env {
			if name, value, ok := strings.Cut(kv, "="); ok && value != "" {
				c.variable(name, value, &src)
			}
		}
	}
	c.argv(src.Argv)
	if err := c.files(&src); err != nil {
		return Known{}, err
	}
	c.known.Loaded = len(c.known.values)
	return c.known, nil
}

// variable adds the value of an environment variable if its name asks for it.
func (c *collector) variable(name, value string, src *Sources) {
	declared := slices.Contains(src.AuthVars, name)
	if !declared {
		for _, g := range src.ExtraEnv {
			if globFold(g, name) {
				declared = true
				break
			}
		}
	}
	switch kind := secretNameKind(name); {
	case kind == nameURL:
		if password, ok := urlPassword(value); ok {
			c.add("env."+name, value)
			c.password(name, password)
		}
	case declared || kind == nameSecret:
		c.add("env."+name, value)
		if password, ok := urlPassword(value); ok {
			c.password(name, password)
		}
		if strings.HasSuffix(strings.ToUpper(name), "_B64") {
			if dec, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value)); err == nil && utf8.Valid(dec) {
				c.add("env."+name, string(dec))
			}
		}
	case kind == nameExempt:
		c.skip("env."+name, "the name says that it is no secret")
	}
}

// password adds a password of a URL as it stands there and decoded.
func (c *collector) password(name, password string) {
	c.add("env."+name, password)
	if plain := unpercent(password); plain != password {
		c.add("env."+name, plain)
	}
}

// urlPassword returns the password in scheme://user:password@host.
func urlPassword(value string) (string, bool) {
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return "", false
	}
	if end := strings.IndexAny(rest, "/ "); end >= 0 {
		rest = rest[:end]
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return "", false
	}
	user, password, ok := strings.Cut(rest[:at], ":")
	if !ok {
		return user, len(user) >= 16
	}
	return password, password != ""
}

// argv adds the values of options whose name says secret. A URL with a password
// is an argument like any other and is found as one.
func (c *collector) argv(argv []string) {
	for i, a := range argv {
		if i == 0 {
			continue
		}
		if len(a) > 2 && a[0] == '-' && a[1] == '-' {
			name, value, attached := strings.Cut(a, "=")
			if !secretOption(name) {
				continue
			}
			if !attached {
				if i+1 == len(argv) || strings.HasPrefix(argv[i+1], "-") {
					continue
				}
				value = argv[i+1]
			}
			c.add("argv."+name, value)
		} else if password, ok := urlPassword(a); ok {
			c.add("argv.url", password)
		} else if name, value := flagSecret(argv, i); value != "" {
			c.add("argv."+name, value)
		}
	}
}

// flagSecret returns the password in a short option of the tools that readFlag
// knows.
func flagSecret(argv []string, i int) (name, value string) {
	tool, a, next := filepath.Base(argv[0]), argv[i], ""
	if i+1 < len(argv) {
		next = argv[i+1]
	}
	switch tool {
	case "curl":
		if a == "-u" {
			_, value, _ = strings.Cut(next, ":")
		}
		return "-u", value
	case "sshpass":
		if a == "-p" {
			return "-p", next
		}
		value, _ = strings.CutPrefix(a, "-p")
	case "docker", "podman", "helm":
		if a == "-p" && slices.Contains(argv[:i], "login") {
			value = next
		}
		return "-p", value
	case "mysql", "mysqldump", "mariadb":
		value, _ = strings.CutPrefix(a, "-p")
	}
	if !strings.HasPrefix(a, "-p") {
		value = ""
	}
	return "-p", value
}

// secretOption reports whether the last words of an option name a secret.
func secretOption(name string) bool {
	e := engine{}
	e.view.vis = append(append(e.view.vis, name...), '=', ' ')
	for k := range keywords {
		kw := keywords[k].word
		if at := len(name) - len(kw); at > 0 {
			if info := e.readName(at, &entry{text: kw, ref: keywordRef(k), kind: eName}, true); info.outcome == found && info.class >= classWeak {
				return true
			}
		}
	}
	return false
}

// globFold matches a name against a pattern in which * stands for any text.
func globFold(pattern, name string) bool {
	for pattern != "" {
		if pattern[0] == '*' {
			pattern = strings.TrimLeft(pattern, "*")
			for i := 0; i <= len(name); i++ {
				if globFold(pattern, name[i:]) {
					return true
				}
			}
			return false
		}
		if name == "" || fold(name[0]) != fold(pattern[0]) {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return name == ""
}

// notSecret says why a value cannot be looked for: it would mask ordinary text.
func notSecret(value string) string {
	b := []byte(value)
	switch {
	case len(b) < minKnown:
		return "shorter than 8 bytes"
	case isConstant(b):
		return "a constant"
	case isNumeric(b):
		return "a number or version"
	case isRegion(value):
		return "a region"
	case wordPath(b):
		return "a path of words"
	case fewWords(b):
		return "words"
	case entropy(b) < 2.5:
		return "too uniform"
	case HasPlaceholder(value):
		return "a placeholder"
	}
	return ""
}

// isRegion reports names such as eu-central-1 and us-east1.
func isRegion(v string) bool {
	if len(v) > 20 || !isDigit(v[len(v)-1]) && !(len(v) > 2 && isDigit(v[len(v)-2])) {
		return false
	}
	area, rest, ok := strings.Cut(v, "-")
	if !ok || len(area) > 12 {
		return false
	}
	for _, part := range [...]string{"east", "west", "north", "south", "central"} {
		if strings.HasPrefix(rest, part) || strings.HasPrefix(rest, "gov-"+part) {
			return true
		}
	}
	return false
}

func wordPath(b []byte) bool {
	if b[0] != '/' && b[0] != '~' && b[0] != '.' {
		return false
	}
	return isPathOrHost(b)
}

// fewWords reports one or two listed words, joined, with at most two digits.
func fewWords(b []byte) bool {
	if !wordy(b) {
		return false
	}
	words := 0
	for i, c := range b {
		if isAlpha(c) && (i == 0 || !isAlpha(b[i-1]) || isUpper(c) && isLower(b[i-1])) {
			words++
		}
	}
	return words <= 2
}
