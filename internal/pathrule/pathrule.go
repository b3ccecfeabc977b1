// Package pathrule finds what the patterns of paths.secret and paths.protected stand for.
package pathrule

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// Bounds of what patterns may stand for.
const (
	maxNames = 100_000 // names looked at
	maxPaths = 256     // paths found; each costs the start a mount or a comparison
)

// Search lists the paths that rules of a policy stand for and that are there: the sandbox holds paths, not
// patterns. A bare name stands for all of that name in the workspace; key is where the rules stand.
func Search(key string, rules []policy.PathRule, workspace, home string) ([]string, error) {
	s := searcher{key: key, workspace: workspace, found: map[string]bool{}}
	wide := map[string][]policy.PathRule{} // by the directory to search
	for _, r := range rules {
		if rest, ok := strings.CutPrefix(r.Path, "~/"); ok {
			r.Path = filepath.Join(home, rest)
		}
		stem := strings.TrimSuffix(r.Path, "/**")
		switch {
		case !filepath.IsAbs(r.Path) && workspace == "":
		case strings.Contains(r.Path, "/") && !strings.ContainsAny(stem, "*?"):
			s.add(subpath.Join(workspace, stem))
		default:
			root := searchRoot(r.Path, workspace)
			wide[root] = append(wide[root], r)
		}
	}
	for root, rules := range wide {
		if err := s.search(root, rules); err != nil {
			return nil, err
		}
	}
	return s.paths, nil
}

// searchRoot is the directory below which all lies that a pattern can stand for.
func searchRoot(pattern, workspace string) string {
	if !filepath.IsAbs(pattern) {
		return workspace
	}
	return filepath.Dir(pattern[:strings.IndexAny(pattern, "*?")+1])
}

type searcher struct {
	key, workspace string
	paths          []string
	found          map[string]bool
	seen           int
}

// add notes a path if it is there. The workspace itself is never meant: nothing could run.
func (s *searcher) add(path string) {
	if path = filepath.Clean(path); s.found[path] || subpath.Within(s.workspace, path) {
		return
	}
	if _, err := os.Lstat(path); err == nil {
		s.found[path] = true
		s.paths = append(s.paths, path)
	}
}

// search goes level by level; what it finds it does not enter.
func (s *searcher) search(root string, rules []policy.PathRule) error {
	for level := []string{root}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			f, err := regular.OpenDir(dir)
			if err != nil {
				continue // what cannot be read now cannot be read by a run either
			}
			entries, _ := f.ReadDir(maxNames - s.seen + 1)
			f.Close()
			for _, e := range entries {
				if s.seen++; s.seen > maxNames {
					return tooWide(rules[0], s.key, fmt.Sprintf("there are more than %d names to search", maxNames))
				}
				path := filepath.Join(dir, e.Name())
				i := slices.IndexFunc(rules, func(r policy.PathRule) bool { return r.Matches(path, s.workspace) })
				switch {
				case i >= 0 && len(s.paths) == maxPaths:
					return tooWide(rules[i], s.key, fmt.Sprintf("it stands for more than %d paths", maxPaths))
				case i >= 0:
					s.add(path)
				case e.IsDir():
					next = append(next, path)
				}
			}
		}
		level = next
	}
	return nil
}

func tooWide(r policy.PathRule, key, why string) error {
	return fault.New(errcode.TooManyPaths, fmt.Sprintf("%s:%d:%d: %s %q: %s", r.File, r.Line, r.Col, key, r.Path, why)).WithFix("name directories, as secrets/**, in place of patterns", "").With("file", r.File).With("line", r.Line)
}
