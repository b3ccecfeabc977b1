package sandbox

import (
	"path/filepath"
	"strings"
)

// within reports whether path is dir or lies below it. Both are clean and absolute.
func within(path, dir string) bool {
	if dir == "" {
		return false
	}
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

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
