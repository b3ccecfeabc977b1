package place

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
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

// VirtualEnvs are the interpreters outside of dir that Python's virtual environments in it lead to,
// without links. Their programs start them, by links that a recipe or a script of the project names.
func VirtualEnvs(dir string) []string {
	entries, _ := os.ReadDir(dir) // what cannot be listed has none that a run could use
	var out []string
	for _, e := range entries {
		env := dir + "/" + e.Name()
		if !e.IsDir() {
			continue
		}
		if _, err := os.Lstat(env + "/pyvenv.cfg"); err != nil {
			continue
		}
		if path, err := filepath.EvalSymlinks(env + "/bin/python"); err == nil && !subpath.Within(path, dir) && strings.HasPrefix(filepath.Base(path), "py") {
			out = append(out, path)
		}
	}
	return out
}

// ProgramDir reports what a directory of programs is called in a prefix or by a version manager.
func ProgramDir(dir string) bool {
	switch filepath.Base(dir) {
	case "bin", "sbin", "shims":
		return true
	}
	return false
}

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
		dotGit := join(dir, ".git")
		_, missing := lookAt(dotGit)
		safe := safeDir(dir, f.uid)
		switch {
		case !safe && (dir == cwd || !missing):
			return tree{why: cmp.Or(unfollowed, "it lies in no work tree of yours: "+dir+" belongs to another user, or others can write to it")}
		case !safe:
			return tree{why: cmp.Or(unfollowed, noTree)}
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
			return tree{why: cmp.Or(unfollowed, noTree)}
		}
	}
}

const noTree = "it lies in no git, Mercurial or Jujutsu work tree"

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

// Dirs are our own directories. They need not exist.
type Dirs struct {
	Home    string
	Config  string // ~/.config/agent-tools, shared with other ATIP programs
	Data    string // ~/.local/share/agent-tools
	State   string // ~/.local/state/atip-exec
	Cache   string // ~/.cache/atip-exec
	Runtime string // /run/user/UID/atip-exec; "" if the system made no such directory
}

// Managed is the directory of the machine's administrator.
const Managed = "/etc/agent-tools"

// Wrappers is where `atip shim` puts the names of tools, for a place in PATH.
func (d Dirs) Wrappers() string { return WrappersOf(d.Data) }

// WrappersOf is the same below a data directory.
func WrappersOf(data string) string { return filepath.Join(data, "wrappers") }

// Undo is where the copies of workspaces lie: ~/.local/share/atip-exec/undo.
func (d Dirs) Undo() string {
	if d.Data == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(d.Data), "atip-exec", "undo")
}

// Own lists the directories no child may ever write; of the cache directory it has its own
// part.
func (d Dirs) Own() []string {
	out := []string{Managed}
	copies := ""
	if u := d.Undo(); u != "" {
		copies = filepath.Dir(u)
	}
	for _, p := range []string{d.Config, d.Data, copies, d.State, d.Cache, d.Runtime} {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// HomeError says that no home directory is known.
type HomeError struct{ Why string }

func (e *HomeError) Error() string { return "home directory unknown: " + e.Why }

// FaultCode implements fault.Coded.
func (e *HomeError) FaultCode() string { return errcode.FlagValue }

// FaultDetails implements fault.Coded.
func (e *HomeError) FaultDetails() map[string]any { return map[string]any{"variable": "HOME"} }

// DirsFromEnv derives the directories from the account database. HOME and the XDG variables
// count where they lie below a directory that the administrator's list names (HomesFile) or
// one of allowed. home stands in for the account's home directory and makes the environment
// irrelevant; as the XDG standard says, relative paths are ignored.
func DirsFromEnv(getenv func(string) string, home string, allowed ...string) (Dirs, error) {
	if home != "" {
		return dirsBelow(filepath.Clean(home), func(_, usual string) (string, error) { return usual, nil })
	}
	h := homes{extra: allowed}
	account := accountHome()
	home = account
	if v := getenv("HOME"); v != "" && !filepath.IsAbs(v) {
		return Dirs{}, &HomeError{Why: fmt.Sprintf("HOME is %q, which is not an absolute path", v)}
	} else if v != "" && v != account {
		ok, err := h.permit(v)
		if err != nil {
			return Dirs{}, err
		}
		if ok {
			home = v
		}
	}
	if home == "" {
		return Dirs{}, &HomeError{Why: fmt.Sprintf("the account database has none for uid %d, and %s does not list HOME (%q)", os.Getuid(), homesFile, getenv("HOME"))}
	}
	return dirsBelow(filepath.Clean(home), func(variable, usual string) (string, error) {
		v := getenv(variable)
		if !filepath.IsAbs(v) || filepath.Clean(v) == usual {
			return usual, nil
		}
		ok, err := h.permit(v)
		if !ok {
			return usual, err
		}
		return filepath.Clean(v), nil
	})
}

// dirsBelow are the directories of a home; chosen is what counts of a variable and the usual
// directory.
func dirsBelow(home string, chosen func(variable, usual string) (string, error)) (Dirs, error) {
	d := Dirs{Home: home}
	for _, row := range [...]struct {
		dir                      *string
		variable, fallback, name string
	}{
		{&d.Config, "XDG_CONFIG_HOME", ".config", "agent-tools"},
		{&d.Data, "XDG_DATA_HOME", ".local/share", "agent-tools"},
		{&d.State, "XDG_STATE_HOME", ".local/state", "atip-exec"},
		{&d.Cache, "XDG_CACHE_HOME", ".cache", "atip-exec"},
		{&d.Runtime, "XDG_RUNTIME_DIR", "", "atip-exec"},
	} {
		usual := ""
		if row.fallback != "" {
			usual = filepath.Join(home, row.fallback)
		} else if dir := fmt.Sprintf("/run/user/%d", os.Getuid()); isDir(dir) {
			usual = dir
		}
		base, err := chosen(row.variable, usual)
		if err != nil {
			return Dirs{}, err
		}
		if base != "" {
			*row.dir = filepath.Join(base, row.name)
		}
	}
	return d, nil
}

func accountHome() string {
	if runtime.GOOS == "windows" {
		p, err := os.UserHomeDir() // USERPROFILE
		if err != nil {
			return ""
		}
		return p
	}
	home := AccountHome(os.Geteuid())
	if home == "" && runtime.GOOS != "linux" {
		home, _ = os.UserHomeDir() // accounts are kept elsewhere there, and nothing is confined
	}
	return home
}

// AccountHome is the home directory that the account database has for a user, "" if none;
// unlike HOME it is not the caller's to choose.
func AccountHome(uid int) string {
	want := strconv.Itoa(uid)
	return accountOf(func(_, id string) bool { return id == want }).home
}

// BelowAccount reports whether a directory really lies below the home directory that the
// account database has for the user, whatever HOME and the XDG variables say.
func BelowAccount(dir string, uid int) bool {
	home := AccountHome(uid)
	if home == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	if canonical, err := filepath.EvalSymlinks(home); err == nil {
		home = canonical
	}
	return subpath.Within(real, home)
}

// AccountName is the user's name in the account database, "" if it has none.
func AccountName(uid int) string {
	want := strconv.Itoa(uid)
	return accountOf(func(_, id string) bool { return id == want }).name
}

// homeOf is the home directory of the first account that matches.
func homeOf(match func(user, uid string) bool) string { return accountOf(match).home }

type account struct{ name, home string }

// accountOf reads the account file directly: os/user would link the C library's
// resolver or its own cache into every start.
func accountOf(match func(user, uid string) bool) account {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return account{}
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if fields := strings.Split(s.Text(), ":"); len(fields) >= 6 && match(fields[0], fields[2]) && filepath.IsAbs(fields[5]) {
			return account{fields[0], fields[5]}
		}
	}
	return account{}
}

// homesFile is where the administrator names the directories below which HOME and the XDG
// variables count, one absolute path a line. Everywhere else our directories are those of
// the account: who types the command could else choose which policy judges it. A build for
// another system directory moves it with -X.
var homesFile = Managed + "/homes"

// HomesFile is the file that says where HOME and the XDG variables count.
func HomesFile() string { return homesFile }

// workspacesName is the file of the configuration directory that lists the directories a
// person registered as workspaces, one absolute path a line.
const workspacesName = "workspaces"

// WorkspacesFile lists the registered workspaces.
func (d Dirs) WorkspacesFile() string { return filepath.Join(d.Config, workspacesName) }

// Workspaces reads the registered workspaces; none if nothing was registered.
func (d Dirs) Workspaces() ([]string, error) { return readList(d.WorkspacesFile()) }

// listError says that a list of directories cannot be used; line is 0 for the whole file.
func listError(path string, line int, why string) error {
	at := path
	if line > 0 {
		at = fmt.Sprintf("%s:%d", path, line)
	}
	return &errcode.Error{Code: errcode.PolicyUnsafe, Msg: at + ": " + why, Details: map[string]any{"file": path, "line": line}}
}

// maxList bounds a list of directories.
const maxList = 64 << 10

// readList reads absolute paths, one a line; a line that begins with # is a comment. A file
// that others could have written is an error, one that is not there names nothing.
func readList(path string) ([]string, error) {
	if why, err := writableByOthers(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, listError(path, 0, errText(err))
	} else if why != "" {
		return nil, listError(path, 0, why)
	}
	raw, err := regular.Read(path, maxList)
	if err != nil {
		return nil, listError(path, 0, errText(err))
	}
	var out []string
	n := 0
	for line := range strings.SplitSeq(string(raw), "\n") {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) || strings.IndexByte(line, 0) >= 0 {
			return nil, listError(path, n, fmt.Sprintf("%q is not an absolute path; write one directory a line", line))
		}
		out = append(out, filepath.Clean(line))
	}
	return out, nil
}

// errText is an error without the path, which stands before it already.
func errText(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// homes answers whether a directory that the environment names counts. The list is read when
// the first one differs from the account's.
type homes struct {
	extra []string // of the caller in this process, besides the file
	list  []string
	read  bool
}

func (h *homes) permit(dir string) (bool, error) {
	if !h.read {
		listed, err := readList(homesFile)
		if err != nil {
			return false, err
		}
		h.read = true
		for _, p := range slices.Concat(h.extra, listed) {
			h.list = append(h.list, Resolve(p))
		}
	}
	real := Resolve(dir)
	return slices.ContainsFunc(h.list, func(p string) bool { return subpath.Within(real, p) }), nil
}

// Check says which of our directories cannot be relied on: one that is a link, as it would
// lead where somebody else writes, or that belongs to another user. Those that are not there
// yet are fine; who can write a file in them is asked where it is read.
func (d Dirs) Check(uid int) error {
	for _, dir := range [...]string{d.Config, d.Data, d.State, d.Cache} {
		if dir == "" {
			continue
		}
		why := ""
		switch link, missing := lookAt(dir); {
		case missing:
		case link:
			why = "is a symbolic link; our own directories are not followed through one"
		case isDir(dir) && !belongsTo(dir, uid):
			why = "belongs to another user"
		}
		if why != "" {
			return &errcode.Error{Code: errcode.PolicyUnsafe, Msg: dir + " " + why, Details: map[string]any{"path": dir}}
		}
	}
	return nil
}
