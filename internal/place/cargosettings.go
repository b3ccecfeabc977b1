package place

import (
	"bytes"
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// maxCargoSettings bounds what is read of a file to see what it holds.
const maxCargoSettings = 64 << 10

// CargoSettings are the settings in the user's cargo home, which name mirrors, linkers and
// targets without which a build does not work. They belong beside the credentials, but
// cargo takes a token here as well: a file that may hold one is left out.
func CargoSettings(userHome string, getenv func(string) string) []string {
	home := getenv("CARGO_HOME")
	if home == "" && userHome != "" {
		home = filepath.Join(userHome, ".cargo")
	}
	if !filepath.IsAbs(home) {
		return nil
	}
	var out []string
	// cargo reads the one without an ending if both are there.
	for _, name := range [...]string{"config", "config.toml"} {
		if path := filepath.Join(home, name); plainSettings(path) {
			out = append(out, path)
		}
	}
	return out
}

// plainSettings reports whether a regular file says nothing that looks like a credential.
func plainSettings(path string) bool {
	raw, err := regular.Read(path, maxCargoSettings)
	if err != nil {
		return false
	}
	lower := bytes.ToLower(raw)
	for _, word := range [...]string{"token", "password", "passwd", "secret", "authorization", "bearer"} {
		if bytes.Contains(lower, []byte(word)) {
			return false
		}
	}
	// scheme://user:password@host
	for rest := lower; ; {
		_, after, ok := bytes.Cut(rest, []byte("://"))
		if !ok {
			return true
		}
		if end := bytes.IndexAny(after, "/\"' \t\n"); end < 0 && bytes.IndexByte(after, '@') >= 0 || end >= 0 && bytes.IndexByte(after[:end], '@') >= 0 {
			return false
		}
		rest = after
	}
}
