package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
	now := g.snapshot(false)
	s := Settlement{Checked: len(g.Entries), Changes: g.earlier}
	moved := ""
	for _, e := range now {
		if moved != "" && within(g.path(e), moved) {
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
	g.search(&s)
	for i := range s.Changes {
		if s.Changes[i].Kept != "" && s.Changes[i].Run == "" {
			s.Changes[i].Run = g.run
		}
	}
	if err := g.writeManifest(); err != nil {
		s.Changes = append(s.Changes, Change{Path: filepath.Join(g.dir, "quarantine", g.run), What: "new", Action: "reported", Code: "E4112", Err: err.Error()})
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
	c := Change{Path: g.path(now), Code: "E4111"}
	config := filepath.Base(now.Rel) == "config" && g.gitConfig(c.Path)
	switch {
	case old.Kind == absentKind && now.Kind == absentKind, old.ID == now.ID && old.Kind == now.Kind && old.ID != "":
		return c, false
	case old.Kind == absentKind && now.Kind == fs.ModeDir:
		// What matters in a directory is a file. A new repository is no more than its
		// hooks and its configuration, which are names of their own.
		if g.named(c.Path+"/") || filepath.Base(now.Rel) == ".git" || !g.named(c.Path) {
			return c, false
		}
		c.What = "new"
	case old.Kind == absentKind:
		if config && now.Kind == 0 && g.inert(old, now) {
			return c, false
		}
		c.What = "new"
	case now.Kind == absentKind:
		if old.Kind == fs.ModeDir {
			return c, false
		}
		c.What = "removed"
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
	for _, n := range g.Names {
		if n == path {
			return true
		}
	}
	return false
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
	before, err := os.ReadFile(filepath.Join(g.dir, "pre", old.Copy))
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
		if before, err = os.ReadFile(filepath.Join(g.dir, "pre", old.Copy)); err != nil {
			return false
		}
	} else if old.Kind != absentKind {
		return false
	}
	after, err := g.read(now)
	return err == nil && inertChange(string(before), string(after))
}

func (g *protection) read(e entry) ([]byte, error) {
	f, err := g.roots[e.Root].Open(e.Rel)
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
		c.Action, c.Code, c.Err = "reported", "E4112", err.Error()
		return c
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
	data, err := os.ReadFile(filepath.Join(g.dir, "pre", old.Copy))
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

// quarantine copies a name out of the workspace and removes it there. Links and special
// files are kept as a text that says what they were.
func (g *protection) quarantine(e entry) (string, error) {
	r := g.roots[e.Root]
	kept := filepath.Join(g.dir, "quarantine", g.run, strconv.Itoa(e.Root), e.Rel)
	if e.Kind != 0 && e.Kind != fs.ModeDir {
		// WalkDir would follow a link at its root.
		if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
			return "", err
		}
		if err := keepAside(r, e.Rel, e.Kind, kept); err != nil {
			return "", err
		}
		g.noteKept(e.Root, e.Rel, e.Kind, e.Mode)
		return kept, r.Remove(e.Rel)
	}
	err := fs.WalkDir(r.FS(), e.Rel, func(rel string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		to := filepath.Join(g.dir, "quarantine", g.run, strconv.Itoa(e.Root), rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if fi, err := d.Info(); err == nil {
			mode = fi.Mode().Perm()
		}
		if err := keepAside(r, rel, d.Type(), to); err != nil {
			return err
		}
		g.noteKept(e.Root, rel, d.Type(), mode)
		return nil
	})
	if err != nil {
		return "", err
	}
	return kept, r.RemoveAll(e.Rel)
}

// noteKept remembers a file for the manifest. It stands where it was still.
func (g *protection) noteKept(root int, rel string, kind, mode fs.FileMode) {
	k := Kept{Root: g.Roots[root], Rel: rel, Kind: kind, Mode: mode, File: strconv.Itoa(root) + "/" + rel}
	if kind == fs.ModeSymlink {
		k.Link, _ = g.roots[root].Readlink(rel)
	}
	g.kept = append(g.kept, k)
}

func keepAside(r *os.Root, rel string, kind fs.FileMode, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	switch {
	case kind == fs.ModeSymlink:
		link, err := r.Readlink(rel)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, "link to "+link+"\n")
		return err
	case kind != 0:
		_, err = io.WriteString(out, kind.String()+"\n")
		return err
	}
	in, err := r.Open(rel)
	if errors.Is(err, fs.ErrPermission) {
		// The child may have taken our own right to read; the file is still ours.
		if err = r.Chmod(rel, 0o600); err == nil {
			in, err = r.Open(rel)
		}
	}
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}
