package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
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
		_ = os.Remove(g.pending.Name())
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
