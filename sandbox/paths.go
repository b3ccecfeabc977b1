package sandbox

import (
	"path/filepath"
	"strings"
)

// expand makes a path of a policy or a document absolute.
func expand(path, home, base string) string {
	switch {
	case path == "~":
		path = home
	case strings.HasPrefix(path, "~/"):
		if home == "" {
			return ""
		}
		path = home + path[1:]
	}
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		if base == "" {
			return ""
		}
		path = base + "/" + path
	}
	return filepath.Clean(path)
}

// covered reports whether have allows all that want asks for.
func covered(have, want Rights) bool {
	if have&Read != 0 {
		have |= List
	}
	return want&^have == 0
}
