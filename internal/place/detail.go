package place

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// detail tells what a build makes again from what only the history gives back.
// Anything that cannot be read leaves the plain class.
func (w World) detail(abs string) atip.Class {
	name := filepath.ToSlash(rel(abs, w.Workspace))
	if name == "" || len(w.GitDirs) == 0 {
		return atip.ClassWorkspace
	}
	if underBuildDir(name) {
		ignored := ignoredByGit(w.Workspace, w.GitDirs, w.Home, name, isDir(abs))
		if ignored && !tracked(w.GitDirs[0], name) {
			return atip.ClassWorkspaceRegenerable
		}
	}
	if tracked(w.GitDirs[0], name) {
		return atip.ClassWorkspaceTracked
	}
	return atip.ClassWorkspace
}

// Ignored reports what git ignores below the workspace, with nothing tracked in it.
func (w World) Ignored(abs string) bool {
	if len(w.GitDirs) == 0 || !subpath.Within(abs, w.Workspace) {
		return false
	}
	name := filepath.ToSlash(rel(abs, w.Workspace))
	return name != "" && ignoredByGit(w.Workspace, w.GitDirs, w.Home, name, true) && !tracked(w.GitDirs[0], name)
}

// Recreatable reports whether abs is itself a directory that a build fills, ignored by git and
// with nothing tracked in it.
func (w World) Recreatable(abs string) bool {
	return buildDir(filepath.Base(abs)) && w.Ignored(abs)
}

// underBuildDir reports whether a component is a directory that builds fill.
func underBuildDir(name string) bool {
	for name != "" {
		var c string
		if c, name = cutComponent(name); buildDir(c) {
			return true
		}
	}
	return false
}

// buildDir names the directories that builds, package managers and tools fill.
func buildDir(c string) bool {
	switch c {
	case "node_modules", "vendor", ".venv", "venv", "target", "dist", "build", "_build", "out", "coverage", "__pycache__", ".next", ".nuxt", ".svelte-kit", ".turbo", ".parcel-cache",
		".cache", ".tox", ".nox", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle", ".dart_tool", ".stack-work", "dist-newstyle", "bower_components":
		return true
	}
	return false
}

// unchanged keeps what was read of files in this process while their size and time stay: a call has many resources
// and one repository, and a walk asks once a directory.
type unchanged[T any] struct{ files sync.Map }

// of returns what read makes of a file, false if it is not there.
func (u *unchanged[T]) of(file string, read func(file string) T) (value T, ok bool) {
	type version struct {
		size  int64
		time  time.Time
		value T
	}
	fi, err := os.Stat(file)
	if err != nil {
		return value, false
	}
	if v, ok := u.files.Load(file); ok {
		if was := v.(*version); was.size == fi.Size() && was.time.Equal(fi.ModTime()) {
			return was.value, true
		}
	}
	value = read(file)
	u.files.Store(file, &version{fi.Size(), fi.ModTime(), value})
	return value, true
}

var indexes unchanged[*index]

func tracked(gitDir, name string) bool {
	idx, ok := indexes.of(filepath.Join(gitDir, "index"), func(file string) *index {
		if idx, err := readIndex(file); err == nil {
			return idx
		}
		return &index{}
	})
	return ok && idx.has(name)
}

// Tracked reports a path of the workspace that git has in its index: what it holds is in the
// history anyway, and git has to read it to compare.
func (w World) Tracked(abs string) bool {
	return len(w.GitDirs) > 0 && subpath.Within(abs, w.Workspace) && tracked(w.GitDirs[0], filepath.ToSlash(rel(abs, w.Workspace)))
}
