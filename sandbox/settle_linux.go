package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"golang.org/x/sys/unix"
)

type unixStat = syscall.Stat_t

// settle compares the protected names with what they were, moves new content to the
// quarantine and puts the old back. Call it when the whole tree is dead: what still
// runs could undo it.
func (g *protection) settle() Settlement {
	if g == nil {
		return Settlement{}
	}
	defer g.close()
	before := make(map[string]entry, len(g.Entries))
	for _, e := range g.Entries {
		before[g.path(e)] = e
	}
	g.Names = append(g.Names, g.variants()...)
	protected := make(map[string]bool, len(g.Names))
	for _, name := range g.Names {
		protected[name] = true
	}
	now := g.look(before)
	now = append(now, g.late(before)...)
	s := Settlement{Checked: len(g.Entries), Changes: g.earlier, Unpinned: g.unpinned}
	moved := ""
	for _, e := range now {
		if moved != "" && subpath.Within(g.path(e), moved) {
			delete(before, g.path(e))
			continue // it went with its directory
		}
		old, known := before[g.path(e)]
		if !known {
			old = entry{Root: e.Root, Rel: e.Rel, Kind: absentKind}
		}
		delete(before, g.path(e))
		if c, changed := g.compare(old, e); changed {
			s.Changes = append(s.Changes, c)
			if e.Kind == fs.ModeDir {
				moved = g.path(e)
			}
		}
	}
	for _, old := range g.Entries {
		// What stood below a directory that is no directory any more.
		if _, gone := before[g.path(old)]; gone {
			if c, changed := g.compare(old, entry{Root: old.Root, Rel: old.Rel, Kind: absentKind}); changed {
				s.Changes = append(s.Changes, c)
			}
		}
	}
	if g.patience > 0 { // else nothing ran, or it is known from before only
		g.search(&s, protected)
	}
	s.Truncated, s.Lost = s.Truncated || g.cut || g.lost, g.lost
	for i := range s.Changes {
		if s.Changes[i].Kept != "" && s.Changes[i].Run == "" {
			s.Changes[i].Run = g.run
		}
	}
	if err := g.writeManifest(); err != nil {
		s.Changes = append(s.Changes, Change{Path: filepath.Join(g.dir, "quarantine", g.run), What: "new", Action: "reported", Code: errcode.ProtectedChanged, Err: err.Error()})
	}
	if g.pending != nil {
		_ = os.Remove(g.recordPath())
	}
	return s
}

// writeManifest notes where the files of the quarantine stood.
func (g *protection) writeManifest() error {
	if len(g.kept) == 0 {
		return nil
	}
	data, err := json.Marshal(g.kept)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.dir, "quarantine", g.run, manifestName), data, 0o600)
}

func (g *protection) path(e entry) string { return g.Roots[e.Root] + "/" + e.Rel }

// compare decides about one name.
func (g *protection) compare(old, now entry) (Change, bool) {
	c := Change{Path: g.path(now), Code: errcode.ProtectedRestored}
	config := filepath.Base(now.Rel) == "config" && g.gitConfig(c.Path)
	switch {
	case now.whole && old.Kind == fs.ModeDir:
		c.What = "changed"
	case now.whole:
		c.What = "new"
	case old.Kind == absentKind && now.Kind == absentKind, old.ID == now.ID && old.Kind == now.Kind && old.ID != "":
		return c, false
	case old.Kind == absentKind && now.Kind == fs.ModeDir:
		// What matters in a directory is a file. A new repository is no more than its
		// hooks and its configuration, which are names of their own.
		if g.named(c.Path+"/") || fold(filepath.Base(now.Rel)) == ".git" && (strings.Contains(now.Rel, "/") || filepath.Base(now.Rel) == ".git") || !g.named(c.Path) {
			return c, false
		}
		c.What = "new"
	case old.Kind == absentKind:
		if now.Kind == 0 && (config && g.inert(old, now) || g.pointer(now)) {
			return c, false
		}
		c.What = "new"
	case now.Kind == absentKind:
		if old.Kind == fs.ModeDir {
			return c, false
		}
		c.What = "removed"
		if strings.Contains(old.Rel, "/worktrees/") && g.missing(old.Root, filepath.Dir(old.Rel)) {
			return c, false // the work tree was removed with what led to it
		}
		if repository, ok := repositoryOf(old.Rel); ok && g.missing(old.Root, repository) {
			// The repository was removed as a whole; a lone hook would not bring it back.
			c.Action = "reported"
			return c, true
		}
	case old.Kind == now.Kind && now.Kind == fs.ModeDir:
		return c, false
	default:
		if old.Kind == 0 && now.Kind == 0 && (g.same(old, now) || config && g.inert(old, now)) {
			return c, false
		}
		if old.Kind == fs.ModeSymlink && now.Kind == fs.ModeSymlink && old.Link == now.Link {
			return c, false
		}
		c.What = "changed"
	}
	return g.repair(c, old, now), true
}

// named reports whether path stands in the list itself.
func (g *protection) named(path string) bool {
	return slices.Contains(g.Names, path)
}

// gitConfig reports whether a path is the configuration of a git directory.
func (g *protection) gitConfig(path string) bool {
	return g.named(path) && g.named(strings.TrimSuffix(path, "config")+"hooks/")
}

// repositoryOf is the git directory that rel lies in.
func repositoryOf(rel string) (string, bool) {
	i := strings.Index("/"+rel+"/", "/.git/")
	if i < 0 {
		return "", false
	}
	return rel[:i+len(".git")], true
}

func (g *protection) missing(root int, rel string) bool {
	_, err := g.roots[root].Lstat(rel)
	return err != nil
}

// same reports whether only the time of a file changed, or its inode.
func (g *protection) same(old, now entry) bool {
	if old.Mode != now.Mode || old.Copy == "" {
		return false
	}
	before, err := regular.Read(filepath.Join(g.dir, "pre", old.Copy), maxCopy)
	if err != nil {
		return false
	}
	after, err := g.read(now)
	return err == nil && string(before) == string(after)
}

func (g *protection) inert(old, now entry) bool {
	var before []byte
	if old.Copy != "" {
		var err error
		if before, err = regular.Read(filepath.Join(g.dir, "pre", old.Copy), maxCopy); err != nil {
			return false
		}
	} else if old.Kind != absentKind {
		return false
	}
	after, err := g.read(now)
	return err == nil && gitrepo.InertChangeOf(string(before), string(after), func(s gitrepo.Setting) bool {
		// Every submodule says where its work tree is.
		return s.Key == "core.worktree" && slices.ContainsFunc(g.Roots, func(root string) bool {
			return subpath.Within(filepath.Join(filepath.Dir(g.path(now)), s.Value), root)
		})
	})
}

func (g *protection) read(e entry) ([]byte, error) {
	f, err := regular.OpenIn(g.roots[e.Root], e.Rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCopy+1))
	if err == nil && len(data) > maxCopy {
		err = errors.New("too large")
	}
	return data, err
}

// repair moves what is there now to the quarantine and puts the old state back.
func (g *protection) repair(c Change, old, now entry) Change {
	fail := func(err error) Change {
		c.Action, c.Code, c.Err = "reported", errcode.ProtectedChanged, err.Error()
		return c
	}
	// Who makes a name can also make its directory one that we cannot change.
	if g.open700(now.Root, filepath.Dir(now.Rel)); now.Kind == fs.ModeDir {
		g.open700(now.Root, now.Rel) // to move it is to change it
	}
	if now.Kind != absentKind {
		kept, err := g.quarantine(now)
		if err != nil {
			return fail(err)
		}
		c.Action, c.Kept = "quarantined", kept
	}
	r := g.roots[old.Root]
	switch {
	case old.Kind == fs.ModeDir:
		if err := r.MkdirAll(old.Rel, old.Mode|0o700); err != nil {
			return fail(err)
		}
	case old.Kind == fs.ModeSymlink:
		if err := r.Symlink(old.Link, old.Rel); err != nil {
			return fail(err)
		}
	case old.Kind == 0 && old.Copy == "":
		return fail(errors.New("it was too large to be kept"))
	case old.Kind == 0:
		if err := g.putBack(r, old); err != nil {
			return fail(err)
		}
	default:
		return c
	}
	c.Action = "restored"
	return c
}

func (g *protection) putBack(r *os.Root, old entry) error {
	data, err := regular.Read(filepath.Join(g.dir, "pre", old.Copy), maxCopy)
	if err != nil {
		return err
	}
	if err := r.MkdirAll(filepath.Dir(old.Rel), 0o755); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(old.Rel), ".atip-exec-"+strconv.Itoa(os.Getpid()))
	_ = r.Remove(temp)
	f, err := r.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(old.Mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = r.Rename(temp, old.Rel)
	}
	if err != nil {
		_ = r.Remove(temp)
	}
	return err
}

// quarantine takes a name out of the workspace. Files and directories are moved, so that it
// takes no time and no space, however large they are. Links and special files are kept as a
// text that says what they were. Where nothing can be moved to our directory (another file
// system, a full one), they get a name in the workspace that nobody looks for.
func (g *protection) quarantine(e entry) (string, error) {
	r, name := g.roots[e.Root], strconv.Itoa(e.Root)+"/"+e.Rel
	dir := filepath.Join(g.dir, "quarantine", g.run)
	kept := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(kept), 0o700)
	switch {
	case err != nil:
	case e.Kind == 0 || e.Kind == fs.ModeDir:
		err = moveOut(r, e, kept)
		if err != nil && e.Kind == 0 {
			err = copyOut(r, e.Rel, kept)
		}
	default:
		k := Kept{Kind: e.Kind}
		if k.Link = e.Link; e.Kind == fs.ModeSymlink && k.Link == "" {
			k.Link, _ = r.Readlink(e.Rel)
		}
		if err = os.WriteFile(kept, []byte(k.said()), 0o600); err == nil {
			err = r.Remove(e.Rel)
		}
	}
	if err != nil {
		_ = os.Remove(kept)
		aside := e.Rel + ".quarantined-" + g.run
		if r.Rename(e.Rel, aside) != nil {
			return "", err
		}
		kept, name = g.Roots[e.Root]+"/"+aside, g.Roots[e.Root]+"/"+aside
	}
	k := Kept{Root: g.Roots[e.Root], Rel: e.Rel, Kind: e.Kind, Mode: e.Mode, Link: e.Link, File: name}
	g.kept = append(g.kept, k)
	return kept, nil
}

// moveOut moves a file or directory of the workspace to a place outside. The file is copied
// if it has another name, by which it could be changed there.
func moveOut(r *os.Root, e entry, to string) error {
	if e.Kind == 0 {
		fi, err := r.Lstat(e.Rel)
		if err != nil {
			return err
		}
		if st, ok := fi.Sys().(*unixStat); !ok || st.Nlink > 1 {
			return errors.New("it has other names")
		}
	}
	dir, err := regular.OpenDirIn(r, filepath.Dir(e.Rel))
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Renameat(int(dir.Fd()), filepath.Base(e.Rel), unix.AT_FDCWD, to)
}

// maxKept bounds what is copied: a file can say that it is as large as no disk.
const maxKept = 64 << 20

func copyOut(r *os.Root, rel, to string) error {
	in, err := regular.OpenIn(r, rel)
	if errors.Is(err, fs.ErrPermission) {
		// The child may have taken our own right to read; the file is still ours.
		if err = r.Chmod(rel, 0o600); err == nil {
			in, err = regular.OpenIn(r, rel)
		}
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if fi, err := in.Stat(); err != nil || fi.Size() > maxKept {
		return errors.New("it is too large to be copied")
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxKept))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = r.Remove(rel)
	}
	return err
}

// Bounds of what is kept to be put back; beyond them a change is only reported.
const (
	maxCopy    = 256 << 10
	maxCopies  = 4 << 20
	maxEntries = 4096 // names below one protected directory
	maxNew     = 64   // names below a new one; one that holds more is moved as it is
	maxDepth   = 8    // of such a directory
)

// protection is what the protected names were before a run. The directories are held
// open, so that putting a file back cannot be led elsewhere by a planted link.
type protection struct {
	dir     string // of this workspace, in the state directory
	run     string
	roots   []*os.Root
	pending *os.File
	copied  int
	earlier []Change // of runs whose wrapper was killed
	kept    []Kept   // what went to the quarantine
	// patience is how long new repositories are searched for; zero is not at all.
	patience time.Duration
	cut      bool     // a directory has more names than were compared
	lost     bool     // git points at more than was followed
	found    []string // repositories in the workspace, when it was looked at last
	unpinned int      // names that are there, for which no mount was left
	record
}

// record is the part that outlives a killed wrapper.
type record struct {
	Roots   []string  `json:"roots"`
	Names   []string  `json:"names"`
	Git     []string  `json:"git"`              // the names that count in git directories
	Lifted  []string  `json:"lifted,omitempty"` // what the run may change in protected directories
	Entries []entry   `json:"entries"`
	Began   time.Time `json:"began"`
}

// entry is one protected name, or one file below one that is a directory.
type entry struct {
	Root int         `json:"root"`
	Rel  string      `json:"rel"`
	Kind fs.FileMode `json:"kind"` // type bits; absentKind if there is none
	Mode fs.FileMode `json:"mode,omitempty"`
	ID   string      `json:"id,omitempty"`
	Link string      `json:"link,omitempty"`
	Copy string      `json:"copy,omitempty"`
	Cut  bool        `json:"cut,omitempty"` // a directory with more below it than was noted
	// whole is a directory that holds too much to be taken name by name.
	whole bool
}

const absentKind fs.FileMode = 1 // no type bit

// guardNames notes the protected names of a profile before its run, and first settles
// the runs in this workspace whose wrapper was killed. It returns nil if nothing is
// writable that could hold one.
func guardNames(p Profile, stateDir string) (*protection, error) {
	if len(p.Protect) == 0 || stateDir == "" || p.Confine == ConfineNone {
		return nil, nil
	}
	sum := sha256.Sum256([]byte(p.Workspace))
	g := &protection{dir: filepath.Join(stateDir, "protect", hex.EncodeToString(sum[:8])), run: runName()}
	for _, d := range [...]string{"pre", "pending"} {
		if err := os.MkdirAll(filepath.Join(g.dir, d), 0o700); err != nil {
			return nil, &StepError{Step: "create", Path: filepath.Join(g.dir, d), Err: errors.Unwrap(err)}
		}
	}
	g.earlier = settleDead(g.dir)
	// One in the workspace can be moved away, and what is held open would go with it.
	outside := slices.DeleteFunc(slices.Clone(p.GitDirs), func(dir string) bool { return subpath.Within(dir, p.Workspace) })
	g.Roots, g.Names = append([]string{p.Workspace}, outside...), slices.Clone(p.Protect)
	g.Git, g.Lifted = p.GitNames, p.Lifted
	if err := g.open(); err != nil {
		return nil, err
	}
	g.Names = append(g.Names, g.pointed()...)
	g.Names = append(g.Names, g.variants()...)
	g.Entries = g.snapshot()
	g.followLinks()
	g.Began, g.patience = coarseNow(), walkFor
	if err := g.remember(); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// runName is unique on this machine and sorts by time.
func runName() string {
	return time.Now().UTC().Format("20060102T150405.000000000") + "-" + strconv.Itoa(os.Getpid())
}

func (g *protection) open() error {
	for _, path := range g.Roots {
		r, err := os.OpenRoot(path)
		if err != nil {
			g.close()
			return &StepError{Step: "open protected directory", Path: path, Err: err}
		}
		g.roots = append(g.roots, r)
	}
	return nil
}

func (g *protection) close() {
	for _, r := range g.roots {
		r.Close()
	}
	if g.pending != nil {
		g.pending.Close()
	}
}

// remember writes the record under a lock that the kernel drops with the wrapper: a
// record that can be locked belongs to a run that never settled. It gets its name when it is
// locked and whole, as a run that starts meanwhile settles what it can lock.
func (g *protection) remember() error {
	path := g.recordPath()
	unnamed := filepath.Join(filepath.Dir(path), unlocked+g.run)
	data, err := json.Marshal(g.record)
	if err != nil {
		return &StepError{Step: "record protected names", Path: path, Err: err}
	}
	f, err := os.OpenFile(unnamed, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &StepError{Step: "record protected names", Path: path, Err: errors.Unwrap(err)}
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = os.Rename(unnamed, path)
	}
	if err != nil {
		_ = os.Remove(unnamed)
		f.Close()
		return &StepError{Step: "record protected names", Path: path, Err: err}
	}
	g.pending = f
	return nil
}

func (g *protection) recordPath() string { return filepath.Join(g.dir, "pending", g.run+".json") }

// unlocked begins the name of a record whose run has no lock of it yet. After leftAfter its
// wrapper was killed before it could begin its run.
const (
	unlocked  = "."
	leftAfter = time.Minute
)

// settleDead settles records of runs whose wrapper is gone.
func settleDead(dir string) []Change {
	names, err := os.ReadDir(filepath.Join(dir, "pending"))
	if err != nil {
		return nil
	}
	var out []Change
	for _, n := range names {
		path := filepath.Join(dir, "pending", n.Name())
		if strings.HasPrefix(n.Name(), unlocked) {
			if fi, err := n.Info(); err == nil && time.Since(fi.ModTime()) > leftAfter {
				_ = os.Remove(path)
			}
			continue
		}
		f, err := lockRecord(path)
		if err != nil {
			continue // its run is alive, or another run has settled it
		}
		g := &protection{dir: dir, run: strings.TrimSuffix(n.Name(), ".json"), pending: f}
		if json.NewDecoder(f).Decode(&g.record) == nil && g.open() == nil {
			out = append(out, g.settle().Changes...)
			continue
		}
		_ = os.Remove(path) // nothing can be told from it any more
		g.close()
	}
	return out
}

// lockRecord locks the record at path, which may have been settled and taken away since it was opened:
// what it says was protected may have been changed with approval by now.
func lockRecord(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = os.Lstat(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// locate splits a protected path into root and name below it.
func (g *protection) locate(path string) (root int, rel string, ok bool) {
	root = -1
	for i, r := range g.Roots {
		if subpath.Within(path, r) && path != r && (root < 0 || len(r) > len(g.Roots[root])) {
			root = i
		}
	}
	if root < 0 {
		return 0, "", false
	}
	return root, path[len(g.Roots[root])+1:], true
}

// snapshot looks at all names before the run, and below those that are directories.
func (g *protection) snapshot() []entry { return g.look(nil) }

// look looks at all names, each directory with a bound of its own, so that none can keep
// another from being seen. before is what they were, nil if the run has not begun.
func (g *protection) look(before map[string]entry) []entry {
	l := looker{g: g, before: before}
	seen := map[string]bool{}
	for _, name := range g.Names {
		clean := strings.TrimSuffix(name, "/")
		root, rel, ok := g.locate(clean)
		if ok && !seen[clean] {
			seen[clean] = true
			l.name(root, rel, name != clean)
		}
	}
	return l.out
}

// lifted reports a path that the run may change.
func (g *protection) lifted(root int, rel string) bool {
	path := g.Roots[root] + "/" + rel
	return slices.ContainsFunc(g.Lifted, func(top string) bool { return subpath.Within(path, top) })
}

// followLinks adds what the links lead to: it can be written without touching the link.
// Only links from before the run count, or a planted one could have anything moved away.
func (g *protection) followLinks() {
	known := len(g.Names)
	for _, e := range g.Entries {
		if e.Kind != fs.ModeSymlink {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(g.Roots[e.Root], e.Rel))
		if root, rel, ok := g.locate(target); err == nil && ok && !subpath.Within("/"+e.Rel, "/"+rel) {
			if fi, err := g.roots[root].Lstat(rel); err == nil && fi.IsDir() {
				target += "/"
			}
			g.Names = append(g.Names, target)
		}
	}
	if len(g.Names) > known {
		g.Entries = g.snapshot()
	}
}

// inertName are the examples that git puts beside hooks and never runs.
func inertName(dir, name string) bool {
	return strings.HasSuffix(name, ".sample") && filepath.Base(dir) == "hooks"
}

// identity changes with any change of the file: a ctime cannot be set.
func identity(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*unixStat)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

// keep copies a file unless the same state of it was copied before.
func (g *protection) keep(r *os.Root, e entry, size int64) string {
	sum := sha256.Sum256([]byte(g.Roots[e.Root] + "\x00" + e.Rel + "\x00" + e.ID))
	name := hex.EncodeToString(sum[:16])
	path := filepath.Join(g.dir, "pre", name)
	if fi, err := os.Lstat(path); err == nil && fi.Size() == size {
		return name
	}
	if size > maxCopy || g.copied+int(size) > maxCopies {
		return ""
	}
	data, err := r.ReadFile(e.Rel)
	if err != nil || len(data) > maxCopy {
		return ""
	}
	g.copied += len(data)
	temp := path + "." + strconv.Itoa(os.Getpid())
	if os.WriteFile(temp, data, 0o600) != nil || os.Rename(temp, path) != nil {
		_ = os.Remove(temp)
		return ""
	}
	return name
}
