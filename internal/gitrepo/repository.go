package gitrepo

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// Repository is a git repository as git would use it. All paths are absolute and free of
// symbolic links.
type Repository struct {
	WorkTree string // "" for a bare one
	Dir      string // $GIT_DIR: HEAD, index, and config.worktree lie there
	Common   string // $GIT_COMMON_DIR: config, hooks, refs and objects; Dir unless this is a work tree
}

// ErrNone says that no repository is found: git would end with "not a git repository".
var ErrNone = errors.New("not a git repository")

// Find looks for the repository that git uses when it is started in dir, an absolute path:
// the first .git on the way up, or a directory on that way that is a git directory itself
// (setup.c, setup_git_directory_gently). It returns ErrNone if there is none; any other
// error means that git could use a repository that cannot be judged.
func Find(dir string) (Repository, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Repository{}, err
	}
	for {
		r, err := At(dir)
		if !errors.Is(err, ErrNone) {
			return r, err
		}
		if is(dir) {
			return opened(dir, "")
		}
		above := filepath.Dir(dir)
		if above == dir {
			return Repository{}, ErrNone
		}
		dir = above
	}
}

// At is the repository whose work tree is dir, ErrNone if that has no .git which git follows.
func At(dir string) (Repository, error) {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case missing(err):
		return Repository{}, ErrNone
	case err != nil:
		return Repository{}, err
	case info.IsDir():
		real, err := filepath.EvalSymlinks(dotGit)
		if err != nil {
			return Repository{}, err
		}
		if !is(real) {
			return Repository{}, ErrNone // git goes on above
		}
		return opened(real, dir)
	case !info.Mode().IsRegular():
		return Repository{}, fmt.Errorf("%s: %w", dotGit, regular.ErrNot)
	}
	target, err := Pointer(dotGit)
	if err != nil {
		return Repository{}, err
	}
	if target, err = filepath.EvalSymlinks(target); err != nil || !is(target) {
		return Repository{}, fmt.Errorf("%s names no git directory", dotGit)
	}
	return opened(target, dir)
}

// Dir is the repository of a git directory that is named, as by --git-dir.
func Dir(dir string) (Repository, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Repository{}, err
	}
	if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
		if real, err = Pointer(real); err != nil {
			return Repository{}, err
		}
		if real, err = filepath.EvalSymlinks(real); err != nil {
			return Repository{}, err
		}
	}
	if !is(real) {
		return Repository{}, ErrNone
	}
	return opened(real, "")
}

func opened(dir, tree string) (Repository, error) {
	r := Repository{WorkTree: tree, Dir: dir, Common: dir}
	common, err := commonOf(dir)
	if err != nil {
		return r, err
	}
	if common != "" {
		r.Common = common
	}
	return r, nil
}

// is reports what git takes for a git directory (setup.c, is_git_directory).
func is(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	common, err := commonOf(dir)
	if err != nil {
		return true // git would go on reading, and so it is judged
	}
	common = cmp.Or(common, dir)
	return directory(filepath.Join(common, "objects")) && directory(filepath.Join(common, "refs"))
}

func directory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// commonOf follows the file commondir, "" if there is none.
func commonOf(dir string) (string, error) {
	text, err := line(filepath.Join(dir, "commondir"))
	if missing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute(text, dir))
}

// Pointer reads a .git file: the git directory that it names, absolute.
func Pointer(path string) (string, error) {
	text, err := line(path)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok || target == "" {
		return "", fmt.Errorf("%s names no git directory", path)
	}
	return absolute(target, filepath.Dir(path)), nil
}

// line reads a file that holds one path.
func line(path string) (string, error) {
	raw, err := Read(path, maxPointer)
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" || strings.ContainsAny(text, "\x00\n") {
		return "", fmt.Errorf("%s: not one path", path)
	}
	return text, nil
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Head is the branch that is checked out, such as "main"; "" if HEAD is detached.
func (r Repository) Head() string {
	text, err := line(filepath.Join(r.Dir, "HEAD"))
	if err != nil {
		return ""
	}
	branch, ok := strings.CutPrefix(text, "ref: refs/heads/")
	if !ok {
		return ""
	}
	return branch
}
