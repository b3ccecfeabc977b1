package gitrepo

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Bounds of what is followed from one repository.
const (
	maxPointers = 512
	maxDepth    = 8
)

// Pointers is where git goes from a repository by itself: into other repositories and files,
// whose settings and hooks it then obeys.
type Pointers struct {
	// Trees are directories of the work tree that are, or can become, a work tree of another
	// repository: gitlinks of the index and paths of .gitmodules. They need not be there.
	Trees []string
	// GitDirs are git directories beside the repository's own: every directory below modules
	// at any depth, whether it looks like a repository or not, and those that .git files in
	// Trees name.
	GitDirs []string
	// Admin are the directories below worktrees, one for each further work tree.
	Admin []string
	// Worktrees are the .git files of those, where they are.
	Worktrees []string
	// Includes are the files that the repository's own configuration includes, there or not.
	Includes []string
	// Hooks are the directories that core.hooksPath names.
	Hooks []string
	// Truncated says that there is more than was followed, or that something of it could not
	// be read.
	Truncated bool
}

// Pointers follows what the repository points at, and what its submodules point at.
func (r Repository) Pointers(home string) Pointers {
	var p Pointers
	p.follow(r, home, 0)
	for _, list := range [...]*[]string{&p.Trees, &p.GitDirs, &p.Admin, &p.Worktrees, &p.Includes, &p.Hooks} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return p
}

func (p *Pointers) full() bool {
	return len(p.Trees)+len(p.GitDirs)+len(p.Admin)+len(p.Worktrees)+len(p.Includes) > maxPointers
}

func (p *Pointers) follow(r Repository, home string, depth int) {
	if depth > maxDepth || p.full() {
		p.Truncated = true
		return
	}
	p.settings(r, home)
	p.modules(filepath.Join(r.Common, "modules"), 0)
	p.worktrees(r)
	if r.WorkTree == "" {
		return
	}
	for _, tree := range p.trees(r) {
		if slices.Contains(p.Trees, tree) {
			continue
		}
		if p.full() {
			p.Truncated = true
			return
		}
		p.Trees = append(p.Trees, tree)
		sub, err := At(tree)
		if err != nil {
			p.Truncated = p.Truncated || err != ErrNone && !missing(err)
			continue
		}
		if sub.Dir != r.Dir {
			p.GitDirs = append(p.GitDirs, sub.Dir)
			p.follow(sub, home, depth+1)
		}
	}
}

// settings adds what the configuration of one repository names.
func (p *Pointers) settings(r Repository, home string) {
	c, err := r.Config(home)
	p.Truncated = p.Truncated || err != nil
	for _, path := range append(slices.Clone(c.Files), c.Missing...) {
		if path != filepath.Join(r.Common, "config") && path != filepath.Join(r.Dir, "config.worktree") {
			p.Includes = append(p.Includes, path)
		}
	}
	for _, hooks := range c.All("core.hookspath") {
		if hooks = p.hooks(r, c, hooks); hooks != "" {
			p.Hooks = append(p.Hooks, hooks)
		}
	}
}

// hooks is where core.hooksPath leads: relative to the directory in which hooks run.
func (p *Pointers) hooks(r Repository, c *Config, path string) string {
	base := r.WorkTree
	base = cmp.Or(base, r.Dir)
	if path == "" {
		return ""
	}
	return c.expand(path, base)
}

// trees are the submodules of one repository, fetched or not.
func (p *Pointers) trees(r Repository) []string {
	names, err := r.Gitlinks()
	p.Truncated = p.Truncated || err != nil
	raw, err := Read(filepath.Join(r.WorkTree, ".gitmodules"), maxConfig)
	if err == nil {
		settings, err := Parse(string(raw))
		p.Truncated = p.Truncated || err != nil
		for _, s := range settings {
			if section, sub, name := Split(s.Key); section == "submodule" && sub != "" && name == "path" {
				names = append(names, s.Value)
			}
		}
	} else if !missing(err) {
		p.Truncated = true
	}
	var out []string
	for _, name := range names {
		// A path that leads out of the work tree is one that git refuses.
		if filepath.IsLocal(name) {
			out = append(out, filepath.Join(r.WorkTree, name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plainPart names the directories of a git directory below which no submodule's lies.
func plainPart(name string) bool {
	switch name {
	case "objects", "refs", "logs", "hooks", "info", "lfs", "rr-cache", "branches", "worktrees":
		return true
	}
	return false
}

// modules adds each directory below the one in which git keeps submodules. A name of a
// submodule may have slashes, so a directory on the way may become one.
func (p *Pointers) modules(dir string, depth int) {
	names, ok := names(dir)
	if !ok {
		p.Truncated = true
	}
	for _, name := range names {
		sub := filepath.Join(dir, name)
		if info, err := os.Lstat(sub); err != nil || !info.IsDir() {
			continue
		}
		if is(filepath.Dir(sub)) && plainPart(name) {
			continue
		}
		if depth > maxDepth || p.full() {
			p.Truncated = true
			return
		}
		p.GitDirs = append(p.GitDirs, sub)
		p.modules(sub, depth+1)
	}
}

// worktrees adds the other work trees of a repository.
func (p *Pointers) worktrees(r Repository) {
	dir := filepath.Join(r.Common, "worktrees")
	list, ok := names(dir)
	if !ok {
		p.Truncated = true
	}
	for _, name := range list {
		admin := filepath.Join(dir, name)
		p.Admin = append(p.Admin, admin)
		path, err := line(filepath.Join(admin, "gitdir"))
		if err != nil {
			continue
		}
		path = absolute(path, admin)
		// A run can write the one file, so the other has to agree.
		if back, err := Pointer(path); err == nil && filepath.Base(path) == ".git" && same(back, admin) {
			p.Worktrees = append(p.Worktrees, path)
		}
	}
}

// OtherWorktrees are the names by which git finds the work trees of a workspace's repository that lie
// elsewhere. Where they cannot be seen, git takes them for removed and forgets their index and
// their branch: at once when it prunes, by itself some months later. gitDirs are the git
// directories outside of the workspace.
func OtherWorktrees(workspace string, gitDirs []string) []string {
	if workspace == "" {
		return nil
	}
	var p Pointers
	for _, dir := range append([]string{filepath.Join(workspace, ".git")}, gitDirs...) {
		p.worktrees(Repository{Common: dir})
	}
	return slices.DeleteFunc(p.Worktrees, func(path string) bool { return subpath.Within(path, workspace) })
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// names lists a directory; false if it has more names than are followed, or cannot be read.
func names(dir string) ([]string, bool) {
	f, err := regular.OpenDir(dir)
	if err != nil {
		return nil, missing(err) || errors.Is(err, syscall.ENOTDIR)
	}
	defer f.Close()
	list, _ := f.Readdirnames(maxPointers + 1)
	slices.Sort(list)
	if len(list) > maxPointers {
		return list[:maxPointers], false
	}
	return list, true
}

// LegacyRemotes reports whether there are remotes in files of their own (.git/remotes and
// .git/branches), which git still reads and Config does not.
func (r Repository) LegacyRemotes() bool {
	for _, dir := range [...]string{"remotes", "branches"} {
		if list, ok := names(filepath.Join(r.Common, dir)); len(list) > 0 || !ok {
			return true
		}
	}
	return false
}

// Bounds of what is read.
const (
	maxConfig  = 1 << 20
	maxPointer = 4096 // a .git file, commondir, gitdir: one path
	maxIndex   = 64 << 20
)

// Read returns the content of a regular file of at most limit bytes. It does not block on
// a FIFO. A missing file is an error that fs.ErrNotExist matches.
func Read(path string, limit int64) ([]byte, error) {
	data, err := regular.Read(path, limit)
	return data, throughFile(path, err)
}

// open opens a regular file.
func open(path string) (*os.File, error) {
	f, err := regular.Open(path)
	return f, throughFile(path, err)
}

// throughFile says of a path that leads through a file, as through one, that nothing is there.
func throughFile(path string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
