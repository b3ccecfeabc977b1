package place

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Bounds of the search for files of secrets in a workspace: every run pays for it.
const (
	maxSecretDirs    = 48
	maxSecretEntries = 2048
	maxSecretDepth   = 4
)

// FindSecrets lists the regular files of a workspace whose names are those of secrets, what lies
// near its top first. Directories that tools fill are left out.
func FindSecrets(workspace, cwd string, secret func(path string) bool) []string {
	if workspace == "" {
		return nil
	}
	var out []string
	queue, dirs, entries := []string{workspace}, 0, 0
	if cwd != workspace && subpath.Within(cwd, workspace) {
		for dir := cwd; dir != workspace && dir != "/"; dir = filepath.Dir(dir) {
			queue = append(queue, dir)
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 && dirs < maxSecretDirs && entries < maxSecretEntries {
		dir := queue[0]
		queue = queue[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		dirs++
		f, err := regular.OpenDir(dir)
		if err != nil {
			continue
		}
		list, _ := f.ReadDir(maxSecretEntries - entries)
		f.Close()
		entries += len(list)
		for _, e := range list {
			path := dir + "/" + e.Name()
			switch {
			case e.Type().IsRegular() && secret(path):
				out = append(out, path)
			case e.IsDir() && !generated(e.Name()) && depthBelow(path, workspace) < maxSecretDepth:
				queue = append(queue, path)
			}
		}
	}
	return out
}

func depthBelow(path, top string) int {
	n := 0
	for ; path != top && path != "/"; path = filepath.Dir(path) {
		n++
	}
	return n
}

// generated names directories that git, package managers and builds fill.
func generated(name string) bool {
	switch name {
	case ".git", "node_modules", "vendor", "target", "dist", "build", "out", "coverage", ".venv", "venv", ".tox", ".next", ".cache", "__pycache__":
		return true
	}
	return false
}
