// Package subpath says whether a path lies in a directory: by component, so that /home/user2 is
// not in /home/user. Decisions and grants rest on Within.
package subpath

import (
	"os"
	"path/filepath"
	"strings"
)

// Within reports whether path is dir or lies below it. Both are clean and absolute; dir may end
// in a separator. Nothing lies in "".
func Within(path, dir string) bool {
	if dir == "" || !strings.HasPrefix(path, dir) {
		return false
	}
	return len(path) == len(dir) || os.IsPathSeparator(path[len(dir)]) || os.IsPathSeparator(dir[len(dir)-1])
}

// Join is a path as it is seen from dir: an absolute one is itself, "" is dir.
func Join(dir, rel string) string {
	switch {
	case rel == "":
		return dir
	case filepath.IsAbs(rel):
		return rel
	}
	return filepath.Join(dir, rel)
}

// Fold makes names equal that a file system which ignores case takes for one.
func Fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// SameName reports whether two names fold to one.
func SameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	for i := range len(a) {
		if a[i] >= 0x80 {
			return Fold(a) == Fold(b)
		}
	}
	return false
}
