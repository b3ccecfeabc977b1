package place

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// FindWorkspace finds the directory that commands may write: the top of the git, Mercurial or
// Jujutsu work tree of this user around cwd, found without running its tool, or else a
// directory that a person registered. A directory is not a workspace because the caller stands
// in it. root is "" if there is none, and why says why; gitDirs are the git directories that
// belong to it, the common one last.
func FindWorkspace(cwd string, d Dirs, uid int) (root string, gitDirs []string, why string) {
	if !filepath.IsAbs(cwd) {
		return "", nil, "the current directory has no path"
	}
	f, seen := newFinder(d, uid)
	cwd = seen.resolve(cwd, "")
	if fi, err := os.Stat(cwd); err != nil || !fi.IsDir() {
		return "", nil, "the current directory does not exist"
	}
	t := f.tree(cwd)
	if t.top != "" {
		if no := f.never(t.top); no != "" {
			return "", nil, t.top + " is " + no
		}
		if t.linked || !f.hidden(t.top) {
			return t.top, t.gitDirs, t.why
		}
	}
	registered, err := d.Workspaces()
	if err != nil {
		return "", nil, err.Error()
	}
	for _, p := range registered {
		p = seen.resolve(p, "")
		if !subpath.Within(cwd, p) || !f.oursFrom(cwd, p) {
			continue
		}
		if no := f.never(p); no != "" {
			return "", nil, p + " is " + no
		}
		if t.top != "" && subpath.Within(t.top, p) {
			return t.top, t.gitDirs, t.why
		}
		return p, nil, "registered directory"
	}
	if t.top != "" {
		return "", nil, t.top + " lies in a hidden directory of the home directory, which programs keep for themselves"
	}
	if no := f.never(cwd); no != "" {
		return "", nil, cwd + " is " + no
	}
	return "", nil, t.why
}

// finder looks for the workspace of one user.
type finder struct {
	uid   int
	home  string   // without links, "" if unknown
	own   []string // our own directories, without links
	links []string // where links lie by which they are found
}

func newFinder(d Dirs, uid int) (finder, walk) {
	f, seen := finder{uid: uid}, make(walk, 16)
	if d.Home != "" {
		f.home = seen.resolve(d.Home, "")
	}
	for _, p := range d.Own() {
		f.own = append(f.own, seen.below(p, d.Home, f.home))
	}
	for p, l := range seen {
		if l.link {
			f.links = append(f.links, p)
		}
	}
	return f, seen
}

// cachesInHome hold what runs of every workspace, and programs outside of them, use again.
var cachesInHome = [...]string{".cache", ".npm", ".cargo", ".rustup", ".m2", ".gradle", ".local/share/pnpm", "go/pkg", "Library/Caches"}

// never says why dir can be no workspace, whoever asks for it; "" if it can. Such a place is
// written by nobody's build, and what lies there decides about other runs.
func (f finder) never(dir string) string {
	switch {
	case filepath.Dir(dir) == dir:
		return "the root directory"
	case f.home != "" && dir == f.home:
		return "the home directory"
	case f.home != "" && subpath.Within(f.home, dir):
		return "above the home directory"
	}
	if sameAsAny(dir, "/tmp", "/var/tmp", "/dev/shm", os.Getenv("TMPDIR")) {
		return "a directory for temporary files"
	}
	if slices.ContainsFunc(f.own, func(p string) bool { return subpath.Within(p, dir) || subpath.Within(dir, p) }) {
		return "a directory that holds or lies in this program's own files"
	}
	for _, p := range f.links {
		if subpath.Within(p, dir) {
			return "a directory that holds a link to this program's own files: " + p
		}
	}
	w := World{Home: f.home}
	t := w.target(dir, atip.AccessRead|atip.AccessWrite, true)
	switch {
	case w.secret(t):
		return "a place of credentials"
	case w.startup(t):
		return "a place of files that run by themselves"
	case w.inTree(t, kinds(Own)):
		return "a directory that holds or lies in this program's own files"
	}
	if slices.ContainsFunc(cachesInHome[:], func(name string) bool { return t.hitsHome(name, true) }) {
		return "a cache that other directories share"
	}
	if !(f.home != "" && subpath.Within(dir, f.home)) && !w.tmp(dir) && (system(dir) || device(dir)) {
		return "a part of the system"
	}
	return ""
}

// hidden reports a directory below a hidden one of the home directory. Shells, editors and
// version managers keep work trees there whose code they run (~/.oh-my-zsh, ~/.nvm).
func (f finder) hidden(dir string) bool {
	return f.home != "" && subpath.Within(dir, f.home) && strings.HasPrefix(rel(dir, f.home), ".")
}

// tree is the work tree around a directory.
type tree struct {
	top     string // "" for none
	gitDirs []string
	linked  bool // its repository lies elsewhere and points back to it
	why     string
}

// tree walks upward through directories of the user that others cannot write: what lies
// beyond could have been put there to widen the workspace (CVE-2022-24765).
func (f finder) tree(cwd string) tree {
	unfollowed := ""
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if !safeDir(dir, f.uid) {
			return tree{why: cmp.Or(unfollowed, "it lies in no work tree of yours: "+dir+" belongs to another user, or others can write to it")}
		}
		dotGit := join(dir, ".git")
		_, missing := lookAt(dotGit)
		switch {
		case missing:
			for _, kind := range [...]struct{ dir, part, why string }{{".hg", "requires", "Mercurial work tree"}, {".jj", "repo", "Jujutsu work tree"}} {
				meta := join(dir, kind.dir)
				if _, missing := lookAt(join(meta, kind.part)); !missing && safeDir(meta, f.uid) {
					return tree{top: dir, why: kind.why}
				}
			}
		case safeDir(dotGit, f.uid):
			if isRepository(dotGit) {
				return tree{top: dir, gitDirs: []string{dotGit}, why: "git work tree"}
			}
		case isRegular(dotGit):
			dirs, err := linkedGitDirs(dir, dotGit, f.uid)
			if err == nil {
				return tree{top: dir, gitDirs: dirs, linked: true, why: "git work tree with linked git directory"}
			}
			unfollowed = dotGit + " is not followed: " + err.Error()
		}
		if filepath.Dir(dir) == dir {
			return tree{why: cmp.Or(unfollowed, "it lies in no git, Mercurial or Jujutsu work tree")}
		}
	}
}

// oursFrom reports whether all directories from dir up to top belong to the user alone.
func (f finder) oursFrom(dir, top string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if !safeDir(dir, f.uid) {
			return false
		}
		if dir == top {
			return true
		}
	}
}

// CanRegister says why a person cannot register dir as a workspace; "" if he can.
func CanRegister(dir string, d Dirs, uid int) string {
	f, seen := newFinder(d, uid)
	dir = seen.resolve(dir, "")
	if no := f.never(dir); no != "" {
		return "it is " + no
	}
	if !safeDir(dir, uid) {
		return "it belongs to another user, or others can write to it"
	}
	return ""
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
	data, err := regular.Read(p, maxSmall)
	return string(data), err
}

// Names are all rows of the table.
func Names() []Name { return slices.Clone(names[:]) }

// Protected are the names that a run must leave as they are, as the sandbox takes them. A
// directory ends in a slash.
type Protected struct {
	Tree []string // in the directories of the workspace
	CI   []string // in the same, if the policy protects what a CI service runs
	Git  []string // in git directories
}

// ProtectedNames is what the sandbox pins and compares. Names in a directory that is listed
// itself are left out.
func ProtectedNames() Protected {
	var p Protected
	for i := range names {
		n := &names[i]
		switch {
		case n.Kind == Secret || n.Where == Home || n.Where == System:
		case n.Kind == Git:
			p.Git = append(p.Git, n.Path)
		case n.Kind == CI:
			p.CI = append(p.CI, n.Path)
		default:
			p.Tree = append(p.Tree, n.Path)
		}
	}
	all := slices.Clone(p.Tree)
	p.Tree = slices.DeleteFunc(p.Tree, func(name string) bool {
		return slices.ContainsFunc(all, func(dir string) bool {
			return dir != name && strings.HasSuffix(dir, "/") && strings.HasPrefix(name, dir)
		})
	})
	return p
}

// SystemSecrets are the paths of the system that hold credentials.
func SystemSecrets() []string {
	var out []string
	for i := range names {
		if n := &names[i]; n.Kind == Secret && n.Where == System && !strings.Contains(n.Path, "*") {
			out = append(out, strings.TrimSuffix(n.Path, "/"))
		}
	}
	return out
}

// CredentialFiles are the files of a home directory that hold credentials under a name that
// is always the same, relative to it.
func CredentialFiles() []string {
	var out []string
	for i := range names {
		if n := &names[i]; n.Kind == Secret && n.Where == Home && !strings.HasSuffix(n.Path, "/") {
			out = append(out, n.Path)
		}
	}
	return out
}

// Credentials are the files whose values no output may show: where they usually lie, and
// where a variable says. A variable of the caller takes no file from the list.
func Credentials(home string, getenv func(string) string) []CredentialFile {
	if home == "" {
		return nil
	}
	const config = ".config/"
	var out []CredentialFile
	for i := range names {
		n := &names[i]
		c := n.Credential
		if c.Format == "" {
			continue
		}
		add := func(path string) { out = append(out, CredentialFile{c.Source, path, c.Format}) }
		add(filepath.Join(home, n.Path))
		if dir := getenv("XDG_CONFIG_HOME"); dir != "" && strings.HasPrefix(n.Path, config) {
			add(filepath.Join(dir, n.Path[len(config):]))
		}
		if c.Variable == "" {
			continue
		}
		for _, path := range filepath.SplitList(getenv(c.Variable)) {
			if strings.HasSuffix(c.Variable, "_DIR") || c.Format == Docker {
				path = filepath.Join(path, filepath.Base(n.Path)) // it names the directory
			}
			add(path)
		}
	}
	return out
}

// CredentialFile is one file whose values no output may show.
type CredentialFile struct {
	Source, Path string
	Format       Format
}

// ShellSnapshots is the directory below home whose files a host of agents sources before each
// command.
func ShellSnapshots(home string) string { return filepath.Join(home, snapshots) }
