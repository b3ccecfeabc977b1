package effects

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// knownPath reports whether a text that sets PATH to value still tells what runs: each directory
// exists and is one that no run writes, or lies below the workspace, where a name leads to code of
// the workspace. The workspace itself and directories for temporary files are neither: a file
// that merely lies there is not meant to be a command.
func (c *collector) knownPath(value, cwd string) bool {
	for _, dir := range filepath.SplitList(value) {
		abs := dir
		if !filepath.IsAbs(dir) {
			if dir == "" || cwd == "" {
				return false
			}
			abs = subpath.Join(cwd, dir)
		}
		if slices.Contains(c.path, dir) && filepath.IsAbs(dir) {
			continue // as it was
		}
		abs = filepath.Clean(abs)
		if !isDir(abs) && !c.writesBelow(abs) && !c.site.World.Ignored(abs) {
			return false // not even one that a build makes
		}
		real := place.Resolve(abs)
		if subpath.Within(real, c.site.Workspace) {
			if real == c.site.Workspace || slices.ContainsFunc(c.site.GitDirs, func(d string) bool { return subpath.Within(real, d) }) {
				return false
			}
			continue
		}
		if c.writableByRuns(real) || !c.believedDirectory(real) {
			return false
		}
	}
	return value != ""
}

// believedDirectory reports a directory of programs outside of the workspace: the system's.
func (c *collector) believedDirectory(dir string) bool {
	return c.site.World.Classify(dir, atip.AccessWrite, false) == atip.ClassSystem
}

// writesBelow reports whether an earlier part of the text makes files in a directory of the
// workspace.
func (c *collector) writesBelow(dir string) bool {
	return slices.ContainsFunc(c.steps, func(s *step.Step) bool {
		return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			return r.Access&atip.AccessWrite != 0 && r.Abs != dir && subpath.Within(r.Abs, dir)
		})
	})
}

// lookedUpIn runs f for each value that PATH may have at a command.
func (c *collector) lookedUpIn(values []string, f func() error) error {
	path, moved := c.path, c.moved
	defer func() { c.path, c.moved = path, moved }()
	for _, value := range values {
		if strings.IndexByte(value, 0) < 0 {
			c.path, c.moved = filepath.SplitList(value), value
		}
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// foundByMovedPath reports a command that is looked up in a PATH of the text's own with
// directories of the workspace in it.
func (c *collector) foundByMovedPath(s *step.Step) bool {
	return c.moved != "" && !strings.ContainsRune(s.Argv[0], '/') && c.searchesWorkspace()
}

// movesPath reports a text that changes PATH, or reads commands from a file that is not there yet
// and may do so, as the activate script of a new virtual environment does. The shell then forgets
// the files it was told of.
func movesPath(script *shell.Script) bool {
	return slices.ContainsFunc(script.Commands, func(cmd shell.Command) bool { return len(cmd.Path) > 0 || cmd.CodeFile != "" })
}
