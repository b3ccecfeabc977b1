package place

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// FindWorkspace finds the directory a command may write: the top of the git work
// tree around cwd, found without running git, else cwd. root is "" if there is
// none, and why says why; gitDirs are the git directories that belong to it, the
// common one last. own are directories that a workspace may not contain.
func FindWorkspace(cwd, home string, uid int, own ...string) (root string, gitDirs []string, why string) {
	if !filepath.IsAbs(cwd) {
		return "", nil, "the current directory has no path"
	}
	seen := make(walk, 16)
	cwd = seen.resolve(cwd, "")
	if fi, err := os.Stat(cwd); err != nil || !fi.IsDir() {
		return "", nil, "the current directory does not exist"
	}
	realHome := ""
	if home != "" {
		realHome = seen.resolve(home, "")
	}
	var resolved []string
	for _, p := range own {
		resolved = append(resolved, seen.below(p, home, realHome))
	}
	forbidden := func(dir string) string { return forbiddenRoot(dir, realHome, resolved) }
	top, dirs, note := gitTop(cwd, uid)
	if top != "" {
		if no := forbidden(top); no == "" {
			return top, dirs, note
		}
	}
	if no := forbidden(cwd); no != "" {
		return "", nil, no
	}
	if top != "" {
		return cwd, nil, "current directory: the git work tree around it is " + forbidden(top)
	}
	return cwd, nil, note
}

// forbiddenRoot says why dir can be no workspace; "" if it can.
func forbiddenRoot(dir, home string, own []string) string {
	switch {
	case filepath.Dir(dir) == dir:
		return "the root directory"
	case home != "" && dir == home:
		return "the home directory"
	case home != "" && within(home, dir):
		return "above the home directory"
	}
	if sameAsAny(dir, "/tmp", "/var/tmp", "/dev/shm", os.Getenv("TMPDIR")) {
		return "a directory for temporary files"
	}
	for _, p := range own {
		if within(p, dir) || within(dir, p) {
			return "a directory that holds or lies in this program's own files"
		}
	}
	return ""
}

// gitTop walks upward through directories of uid that others cannot write: what
// lies beyond could have been put there to widen the workspace (CVE-2022-24765).
func gitTop(cwd string, uid int) (top string, gitDirs []string, note string) {
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if !safeDir(dir, uid) {
			return "", nil, "current directory: " + dir + " is not only ours"
		}
		dotGit := join(dir, ".git")
		_, missing := lookAt(dotGit)
		switch {
		case missing:
		case safeDir(dotGit, uid):
			if isRepository(dotGit) {
				return dir, []string{dotGit}, "git work tree"
			}
		case isRegular(dotGit):
			if dirs, err := linkedGitDirs(dir, dotGit, uid); err == nil {
				return dir, dirs, "git work tree with linked git directory"
			} else {
				return dir, nil, "git work tree; its .git file is not followed: " + err.Error()
			}
		}
		if filepath.Dir(dir) == dir {
			return "", nil, "current directory"
		}
	}
}

func isRepository(dir string) bool {
	if _, missing := lookAt(join(dir, "HEAD")); missing {
		return false
	}
	return isDir(join(dir, "objects")) && isDir(join(dir, "refs"))
}

func isRegular(p string) bool {
	fi, err := os.Lstat(p)
	return err == nil && fi.Mode().IsRegular()
}

func isDir(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.IsDir()
}

// linkedGitDirs follows the .git file of a worktree or submodule, if the target
// is a git directory of ours that points back to this very place: otherwise
// anybody who writes a file named .git could make any directory writable.
func linkedGitDirs(dir, dotGit string, uid int) ([]string, error) {
	text, err := smallFile(dotGit)
	if err != nil {
		return nil, err
	}
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return nil, errors.New("it names no git directory")
	}
	gitDir := Resolve(absolute(strings.TrimRight(target, "\r\n"), dir))
	if !safeDir(gitDir, uid) {
		return nil, errors.New("its target is not ours")
	}
	if _, err := os.Lstat(join(gitDir, "HEAD")); err != nil {
		return nil, errors.New("its target has no HEAD")
	}
	if text, err := smallFile(join(gitDir, "commondir")); err == nil { // a worktree
		common := Resolve(absolute(strings.TrimRight(text, "\r\n"), gitDir))
		back, err := smallFile(join(gitDir, "gitdir"))
		if err != nil || Resolve(absolute(strings.TrimRight(back, "\r\n"), gitDir)) != Resolve(dotGit) {
			return nil, errors.New("its target does not point back")
		}
		// git keeps worktrees of a repository below its common directory.
		if filepath.Dir(gitDir) != join(common, "worktrees") || !isRepository(common) || !safeDir(common, uid) {
			return nil, errors.New("its common directory is no repository of ours")
		}
		return []string{gitDir, common}, nil
	}
	if !isRepository(gitDir) {
		return nil, errors.New("its target is no repository")
	}
	back := worktreeOf(gitDir)
	if back == "" || Resolve(absolute(back, gitDir)) != Resolve(dir) {
		return nil, errors.New("its target does not point back")
	}
	return []string{gitDir}, nil
}

// worktreeOf reads core.worktree, which git writes into a submodule's config.
func worktreeOf(gitDir string) string {
	text, err := smallFile(join(gitDir, "config"))
	if err != nil {
		return ""
	}
	section, value := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(strings.Trim(line, "[] \t"))
			continue
		}
		key, v, ok := strings.Cut(line, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			value = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return value
}

func absolute(p, dir string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return join(dir, p)
}

const maxSmall = 1 << 20

// smallFile reads a regular file of modest size; a FIFO or a device is refused.
func smallFile(p string) (string, error) {
	data, err := readRegular(p, maxSmall)
	return string(data), err
}

var errNotRegular = errors.New("not a regular file of acceptable size")

func readRegular(p string, limit int64) ([]byte, error) {
	if fi, err := os.Stat(p); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() || fi.Size() > limit {
		return nil, errNotRegular
	}
	f, err := openNonblock(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
