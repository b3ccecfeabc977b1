package undo

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// changed reports whether a run changed something, or may have: it was never seen to end.
func (r *Run) changed() bool {
	return r.Kind != "checkpoint" && (r.Counts == nil && !r.Shared || r.Counts != nil && *r.Counts != Counts{}) || r.Kind == "checkpoint" && r.After != 0
}

// pick finds the run that a request names: its id or the beginning of one, the name of a
// checkpoint, or a time (RFC 3339, or how long ago).
func pick(runs []Run, want string) (int, error) {
	if want == "" {
		for i := len(runs) - 1; i >= 0; i-- {
			if runs[i].changed() {
				return i, nil
			}
		}
		return 0, &Error{Op: "find", Err: errors.New("no run changed anything here"), code: codeNothing}
	}
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Run == want || runs[i].Name != "" && runs[i].Name == want {
			return i, nil
		}
	}
	found := -1
	for i := range runs {
		if len(want) >= 4 && strings.HasPrefix(runs[i].Run, want) {
			if found >= 0 {
				return 0, &Error{Op: "find", Path: want, Err: errors.New("more than one run begins so"), code: codeNothing}
			}
			found = i
		}
	}
	if found >= 0 {
		return found, nil
	}
	at, err := time.Parse(time.RFC3339, want)
	if err != nil {
		var ago time.Duration
		if ago, err = time.ParseDuration(want); err == nil {
			at = time.Now().Add(-ago)
		}
	}
	if err == nil {
		for i := range runs {
			if runs[i].Time.After(at) {
				return i, nil
			}
		}
	}
	return 0, &Error{Op: "find", Path: want, Err: errors.New("no run or checkpoint has this name or time"), code: codeNothing}
}

// Undo restores the state before a run. A checkpoint of now is made first; a dry run ends with it
// and with the plan that an undo would carry out.
func (s *Store) Undo(q Request) (*Result, error) {
	runs := s.Runs()
	at, err := pick(runs, q.Run)
	if err != nil {
		return nil, err
	}
	res := &Result{Run: runs[at], Later: slices.Clone(runs[at+1:]), Changes: []Change{}}
	target, err := s.load(runs[at].Before)
	if err != nil {
		return nil, err
	}
	if len(target.Roots) != len(s.place.roots()) {
		return nil, &Error{Op: "restore", Path: s.place.Root, Err: errors.New("the repository of this workspace lies elsewhere now")}
	}
	r := &restorer{store: s, target: target, usual: s.place.Recreatable, force: q.Force, dry: q.DryRun, res: res}
	defer r.close()
	if err := r.lockGit(); err != nil {
		return nil, err
	}
	s.place.skip, s.place.Recreatable = r.locks, r.recreatable
	now, w, err := s.checkpoint(true)
	r.locked = w.locked
	if err != nil {
		return nil, err
	}
	r.now = now
	r.others(runs, at)
	r.plan(q.Only)
	if q.Diff {
		res.Diff = r.diff()
	}
	if q.DryRun {
		return res, nil
	}
	if err := s.note(Run{Run: q.ID, Kind: "undo", Time: time.Now().UTC(), Cmd: q.Cmd, Cwd: q.Cwd, Before: r.now.Seq, Undoes: runs[at].Run}); err != nil {
		return nil, &Error{Op: "save", Path: s.dir, Err: err}
	}
	r.apply()
	r.close()
	_, err = s.After(q.ID, r.now.Seq)
	return res, err
}

// restorer makes one state into another.
type restorer struct {
	store   *Store
	target  *manifest
	now     *manifest
	usual   func(abs string) bool // what can be built again, but for what the target says
	force   bool
	dry     bool // plans only
	res     *Result
	foreign map[string]bool // names that others changed after the run
	git     []string        // git directories in which others did
	locks   []string        // lock files that we hold, or would, by entry path
	locked  []lockedDir     // with the mode that they get at the end
	roots   []int
	steps   []step
	touched map[string]bool // directories in which something is done
	done    bool
}

// step is one act: new is what the name shall be, nil for gone; old what it is.
type step struct {
	path     string
	old, new *entry
}

func (r *restorer) close() {
	if r.done {
		return
	}
	r.done = true
	r.store.place.skip, r.store.place.Recreatable = nil, r.usual
	for i, l := range r.locks {
		if d := path.Dir(l); i == 0 || d != path.Dir(r.locks[i-1]) {
			r.unlock(d)
		}
	}
	for i := len(r.locked) - 1; i >= 0; i-- {
		r.chmod(r.locked[i].path, r.locked[i].mode)
	}
	for _, fd := range r.roots {
		unix.Close(fd)
	}
}

// recreatable goes by what the target holds: what was kept is put back, whatever ignore
// files have come to say since.
func (r *restorer) recreatable(abs string) bool {
	if rel, ok := strings.CutPrefix(abs, r.store.place.Root+"/"); ok {
		if e := r.target.find("0/" + rel); e != nil {
			return e.why == Recreatable
		}
	}
	return r.usual != nil && r.usual(abs)
}

// root is the open directory of a root.
func (r *restorer) root(i int) (int, error) {
	for len(r.roots) <= i {
		fd, err := openRoot(r.store.place.roots()[len(r.roots)])
		if err != nil {
			return -1, err
		}
		r.roots = append(r.roots, fd)
	}
	return r.roots[i], nil
}

// parent opens the directory of an entry. A link among the directories is an error.
func (r *restorer) parent(p string) (int, string, error) {
	first, rel, below := strings.Cut(p, "/")
	i, err := strconv.Atoi(first)
	if err != nil || i >= len(r.store.place.roots()) || !below {
		return -1, "", errDamaged
	}
	root, err := r.root(i)
	if err != nil {
		return -1, "", err
	}
	fd, err := again(func() (int, error) {
		return unix.Openat2(root, path.Dir(rel), &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: stay})
	})
	return fd, path.Base(rel), err
}

// lockGit holds the locks by which git keeps others from HEAD and index.
func (r *restorer) lockGit() error {
	last, _ := r.store.last()
	dirs := map[string]bool{}
	for _, m := range []*manifest{r.target, last} {
		if m != nil {
			for d := range m.Git {
				dirs[d] = true
			}
		}
	}
	for d := range dirs {
		for _, name := range [...]string{"index.lock", "HEAD.lock"} {
			at, base, err := r.parent(d + "/" + name)
			if err != nil {
				continue // there is no such repository now
			}
			keepTime(at, func() { err = r.store.lockAt(at, base, r.dry) })
			unix.Close(at)
			if err == unix.EEXIST {
				return &Error{Op: "lock", Path: r.target.abs(d) + "/" + name, Err: errors.New("the repository is in use, or a lock of git was left there"), code: codeBusy}
			}
			if err == nil {
				r.locks = append(r.locks, d+"/"+name, r.store.unfinished(d+"/"+name))
			}
		}
	}
	return nil
}

// unlock gives back the locks in a git directory.
func (r *restorer) unlock(d string) {
	if r.dry {
		return
	}
	at, _, err := r.parent(d + "/HEAD.lock")
	if err != nil {
		return
	}
	defer unix.Close(at)
	keepTime(at, func() {
		for _, l := range r.locks {
			if path.Dir(l) == d {
				_ = unix.Unlinkat(at, path.Base(l), 0)
			}
		}
	})
}

// keepTime leaves a directory with the time of its last change: a lock that comes and goes is none.
func keepTime(at int, do func()) {
	var was, is unix.Stat_t
	err := unix.Fstatat(at, "", &was, unix.AT_EMPTY_PATH)
	do()
	if err == nil && unix.Fstatat(at, "", &is, unix.AT_EMPTY_PATH) == nil && is.Mtim != was.Mtim {
		_ = unix.UtimesNanoAt(at, ".", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, was.Mtim}, 0)
	}
}

// lockAt makes a lock of git that says whose it is: the store is held by one process at a time, so
// that a lock of this store belongs to an undo that was killed, and is taken over. It appears
// under its name with that in it, or not at all. A dry run only finds out whether it could be made.
func (s *Store) lockAt(at int, name string, dry bool) error {
	mark, temp := "undo "+s.mark()+"\n", s.unfinished(name)
	if !dry {
		_ = unix.Unlinkat(at, temp, 0)
	}
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		if fd, err := unix.Openat(at, name, unix.O_RDONLY|flags, 0); err == nil {
			defer unix.Close(fd)
			buf := make([]byte, len(mark)+1)
			if n, _ := unix.Read(fd, buf); string(buf[:max(n, 0)]) == mark {
				return nil
			}
		}
		return unix.EEXIST
	}
	if dry {
		return nil
	}
	fd, err := unix.Openat(at, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(mark))
	unix.Close(fd)
	if err == nil {
		err = unix.Linkat(at, temp, at, name, 0)
	}
	_ = unix.Unlinkat(at, temp, 0)
	return err
}

// mark tells this store from others.
func (s *Store) mark() string {
	sum := sha256.Sum256([]byte(s.dir))
	return hex.EncodeToString(sum[:])
}

// unfinished is the name of a lock while it is made.
func (s *Store) unfinished(name string) string { return name + "." + s.mark()[:16] }

// others finds what was changed outside of our runs since the state before run number at.
func (r *restorer) others(runs []Run, at int) {
	r.foreign = map[string]bool{}
	gits := map[string]bool{}
	var from *manifest // the state after the latest run, nil if unknown
	look := func(to *manifest) {
		if from == nil || to == nil {
			return
		}
		for _, c := range changes(from, to) {
			r.foreign[c.path] = true
		}
		for d := range from.Git {
			if !sameGit(from, to, d) && to.Git[d] != "" {
				gits[d] = true
			}
		}
	}
	reached := uint64(0) // the latest state after a run: what lies before it was a run's, also of one that began earlier and is longer
	for i := at; i < len(runs); i++ {
		if i > at && !runs[i].Shared && runs[i].Before > reached {
			if m, err := r.store.load(runs[i].Before); err == nil {
				look(m)
			}
		}
		after := runs[i].After
		if runs[i].Kind == "checkpoint" {
			after = runs[i].Before
		}
		switch {
		case after == 0:
			from = nil
		case after >= reached:
			from, _ = r.store.load(after)
			reached = after
		}
	}
	look(r.now)
	for d := range gits {
		r.git = append(r.git, d)
	}
}

// conflict reports whether others own what is at a path now.
func (r *restorer) conflict(p string) bool {
	for _, d := range r.gitDirs() {
		rel, ok := strings.CutPrefix(p, d+"/")
		if !ok {
			continue
		}
		if strings.HasPrefix(rel, "objects/") {
			return false
		}
		if gitState(rel) {
			return slices.Contains(r.git, d)
		}
	}
	return r.foreign[p]
}

// gitDirs lists the deepest git directories first.
func (r *restorer) gitDirs() []string {
	var out []string
	for _, m := range []*manifest{r.target, r.now} {
		for d := range m.Git {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// plan decides what is done to each name.
func (r *restorer) plan(only []string) {
	a, b := r.target.entries, r.now.entries
	inTarget, inNow := groups(a), groups(b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		var t, n *entry
		switch {
		case i == len(a):
			n = &b[j]
		case j == len(b):
			t = &a[i]
		default:
			if c := compare(a[i].path, b[j].path); c <= 0 {
				t = &a[i]
				if c == 0 {
					n = &b[j]
				}
			} else {
				n = &b[j]
			}
		}
		if t != nil {
			i++
		}
		if n != nil {
			j++
		}
		p := ""
		// A lock of git that we hold lay there before the run as well if another undo was killed.
		if p = name(t, n); !wanted(r.now.abs(p), only) || slices.Contains(r.locks, p) {
			continue
		}
		r.one(p, t, n, inTarget, inNow)
	}
	for _, st := range r.steps {
		c := Change{Path: r.now.abs(st.path)}
		switch {
		case st.new == nil:
			c.Op, c.Was = "remove", st.old.size
		case st.old == nil:
			c.Op, c.Size = "create", st.new.size
		case alike(st.old, st.new) || st.new.kind == dir && st.old.kind == dir:
			c.Op = "mode"
		default:
			c.Op, c.Size, c.Was = "write", st.new.size, st.old.size
		}
		r.res.Changes = append(r.res.Changes, c)
	}
	var list []change
	for _, st := range r.steps {
		if st.old == nil || st.new == nil || !alike(st.old, st.new) {
			list = append(list, change(st))
		}
	}
	r.res.Files = count(list, r.now, r.target)
}

func name(t, n *entry) string {
	if t != nil {
		return t.path
	}
	return n.path
}

func wanted(abs string, only []string) bool {
	return only == nil || slices.ContainsFunc(only, func(o string) bool { return subpath.Within(abs, o) })
}

// groups tells the names apart that are links to the same inode.
func groups(list []entry) map[string]string {
	type id struct{ dev, ino uint64 }
	first, out := map[id]string{}, map[string]string{}
	for i := range list {
		e := &list[i]
		if e.kind != file || e.nlink < 2 {
			continue
		}
		k := id{e.dev, e.ino}
		if first[k] == "" {
			first[k] = e.path
		}
		out[e.path] = first[k]
	}
	return out
}

// leader is the first name of the inode that a name is a link to; the name itself if there
// is no other.
func leader(g map[string]string, p string) string {
	if l := g[p]; l != "" {
		return l
	}
	return p
}

func (r *restorer) one(p string, t, n *entry, inTarget, inNow map[string]string) {
	if t != nil && n != nil && same(t, n) && leader(inTarget, p) == leader(inNow, p) {
		return
	}
	leave := func(why string) { r.res.Left = append(r.res.Left, Change{Path: r.now.abs(p), Op: why}) }
	switch {
	case t != nil && t.why != Covered:
		if t.why.loses() && (n == nil || n.kind != t.kind || n.size != t.size || n.mtime != t.mtime) || n == nil && t.why == Recreatable {
			leave("not kept: " + t.why.String())
		}
		return
	case n != nil && n.why != Covered:
		if t == nil && !n.why.loses() {
			return // a socket, or what can be built again: it is in nobody's way
		}
		if !r.force && n.why != Unreadable {
			leave("not removed, as it could not be brought back: " + n.why.String())
			return
		}
	}
	if t != nil && t.kind == file && !t.known {
		leave("not kept")
		return
	}
	if t != nil && n != nil && t.kind == dir && n.kind == dir && t.mode == n.mode && t.uid == n.uid && t.gid == n.gid {
		// Only its time differs, which is set when everything below is done.
		r.steps = append(r.steps, step{p, n, t})
		return
	}
	if r.conflict(p) && !r.force {
		r.res.Conflicts = append(r.res.Conflicts, Change{Path: r.now.abs(p), Op: "changed since, by no run"})
		return
	}
	if t == nil && strings.Contains(p, "/objects/") && r.foreign[p] {
		return // others put it there, and it is in nobody's way
	}
	r.steps = append(r.steps, step{p, n, t})
}

// same reports whether nothing has to be done to a name.
func same(t, n *entry) bool {
	return alike(t, n) && (t.mtime == n.mtime || t.kind == fifo || t.kind == other || t.kind == link) && t.why == n.why
}

// apply carries out the plan: removals from the bottom, then what was there from the top,
// then the modes and times of directories.
func (r *restorer) apply() {
	r.touched = map[string]bool{}
	for i := len(r.steps) - 1; i >= 0; i-- {
		st := &r.steps[i]
		if st.old == nil || st.new != nil && (st.new.kind == st.old.kind || st.old.kind != dir) {
			continue
		}
		if err := r.remove(st.path, st.old); err != nil {
			r.failed(st.path, err)
		}
	}
	leaders := groups(r.target.entries)
	var dirs []*step
	for i := range r.steps {
		st := &r.steps[i]
		if st.new == nil {
			continue
		}
		if st.new.kind == dir {
			dirs = append(dirs, st)
		}
		if err := r.make(st, leaders); err != nil {
			r.failed(st.path, err)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		r.finish(dirs[i].new)
		delete(r.touched, dirs[i].path)
	}
	// Directories in which something was put back look as they did.
	rest := make([]string, 0, len(r.touched))
	for d := range r.touched {
		rest = append(rest, d)
	}
	slices.SortFunc(rest, func(a, b string) int { return compare(b, a) })
	for _, d := range rest {
		if e := r.target.find(d); e != nil && e.kind == dir {
			r.finish(e)
		}
	}
	for i := range r.locked {
		if e := r.target.find(r.locked[i].path); e != nil && e.kind == dir {
			r.locked[i].mode = e.mode
		}
	}
}

// diff shows what has changed since the state that would be restored.
func (r *restorer) diff() string {
	var out strings.Builder
	for _, st := range r.steps {
		if internal(st.path) || st.old != nil && st.new != nil && alike(st.old, st.new) {
			continue
		}
		side := func(e *entry, read func() ([]byte, error)) []byte {
			if e == nil || e.kind != file && e.kind != link {
				return nil
			}
			if e.kind == link {
				return []byte(e.target)
			}
			if e.size > maxDiff {
				return make([]byte, maxDiff+1)
			}
			text, err := read()
			if err != nil {
				return nil
			}
			if text == nil {
				text = []byte{}
			}
			return text
		}
		was := side(st.new, func() ([]byte, error) {
			src, err := r.store.content(st.new)
			if err != nil {
				return nil, err
			}
			defer src.Close()
			return io.ReadAll(io.LimitReader(src, maxDiff+1))
		})
		is := side(st.old, func() ([]byte, error) { return r.now.read(st.old) })
		if was == nil && is == nil {
			continue
		}
		_, rel, _ := strings.Cut(st.path, "/")
		out.WriteString(diffText(rel, was, is))
	}
	return out.String()
}

func (r *restorer) failed(p string, err error) {
	abs := r.now.abs(p)
	r.res.Changes = slices.DeleteFunc(r.res.Changes, func(c Change) bool { return c.Path == abs })
	r.res.Left = append(r.res.Left, Change{Path: abs, Op: "failed: " + err.Error()})
}

// unchanged reports whether a name is still what the checkpoint of now saw.
func unchanged(at int, name string, old *entry) error {
	var st unix.Stat_t
	err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if old == nil {
		if err == unix.ENOENT {
			return nil
		}
		return errors.New("something is there now")
	}
	if err != nil {
		return err
	}
	if st.Ino != old.ino || uint64(st.Dev) != old.dev || old.kind == file && (st.Size != old.size || unix.TimespecToNsec(st.Mtim) != old.mtime) {
		return errors.New("it changed while it was being restored")
	}
	return nil
}

// writable lets our user change names in a directory; its mode is set again at the end.
func (r *restorer) writable(p string) {
	r.touched[p] = true
	if r.store.place.UID == 0 {
		return
	}
	if e := r.now.find(p); e != nil && e.kind == dir && e.mode&0o300 != 0o300 && int(e.uid) == r.store.place.UID {
		r.chmod(p, e.mode|0o700)
	}
}

func (r *restorer) chmod(p string, mode uint32) {
	at, name, err := r.parent(p)
	if err != nil {
		if !strings.Contains(p, "/") {
			if i, err := strconv.Atoi(p); err == nil {
				if fd, err := r.root(i); err == nil {
					unix.Fchmod(fd, mode)
				}
			}
		}
		return
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		unix.Fchmodat(at, name, mode, 0)
	}
}

func (r *restorer) remove(p string, old *entry) error {
	r.writable(path.Dir(p))
	at, name, err := r.parent(p)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := unchanged(at, name, old); err != nil {
		if err == unix.ENOENT {
			return nil
		}
		return err
	}
	flag := 0
	if old.kind == dir {
		flag = unix.AT_REMOVEDIR
		if slices.ContainsFunc(r.locks, func(l string) bool { return path.Dir(l) == p }) {
			r.unlock(p) // a repository that the run made
		}
	}
	return unix.Unlinkat(at, name, flag)
}

// make brings one name to what it was.
func (r *restorer) make(st *step, leaders map[string]string) error {
	t := st.new
	if !strings.Contains(st.path, "/") {
		return nil // the workspace itself: its mode and time come last
	}
	old := st.old
	if old != nil && old.kind == dir && t.kind != dir {
		old = nil // removed before
	}
	if old != nil && t.kind == dir && old.kind != dir {
		old = nil
		if err := r.remove(st.path, st.old); err != nil {
			return err
		}
	}
	if t.kind == dir && old != nil {
		return nil
	}
	r.writable(path.Dir(st.path))
	at, name, err := r.parent(st.path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if t.kind == dir {
		return unix.Mkdirat(at, name, t.mode|0o700)
	}
	if err := unchanged(at, name, old); err != nil {
		return err
	}
	if old != nil && old.kind == file && t.kind == file && t.nlink < 2 && old.nlink < 2 && sameContent(old, t) {
		return r.dress(at, name, t) // only its mode or time differs
	}
	tmp := temporary()
	if l := leader(leaders, st.path); t.kind == file && l != st.path {
		if err := r.link(l, t, at, tmp); err == nil {
			return unix.Renameat(at, tmp, at, name)
		}
	}
	switch t.kind {
	case file:
		err = r.store.extract(t, at, tmp)
		if err == nil {
			err = r.dress(at, tmp, t)
		}
	case link:
		err = unix.Symlinkat(t.target, at, tmp)
		if err == nil {
			err = r.dress(at, tmp, t)
		}
	case fifo:
		err = unix.Mkfifoat(at, tmp, t.mode)
		if err == nil {
			err = r.dress(at, tmp, t)
		}
	default:
		return errors.New("it cannot be made again")
	}
	if err == nil {
		err = unix.Renameat(at, tmp, at, name)
	}
	if err != nil {
		unix.Unlinkat(at, tmp, 0)
	}
	return err
}

func temporary() string {
	var b [8]byte
	rand.Read(b[:])
	return ".atip-undo-" + hex.EncodeToString(b[:])
}

// link makes tmp another name of the first file of its group, if that is restored.
func (r *restorer) link(leader string, t *entry, at int, tmp string) error {
	from, name, err := r.parent(leader)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != t.size || unix.TimespecToNsec(st.Mtim) != t.mtime {
		return errors.New("the other name is not restored")
	}
	return unix.Linkat(from, name, at, tmp, 0)
}

// dress gives a file its owner, mode and time.
func (r *restorer) dress(at int, name string, t *entry) error {
	if r.store.place.UID == 0 {
		if err := unix.Fchownat(at, name, int(t.uid), int(t.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if t.kind != link {
		if err := unix.Fchmodat(at, name, t.mode, 0); err != nil {
			return err
		}
	}
	when := unix.NsecToTimespec(t.mtime)
	return unix.UtimesNanoAt(at, name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, when}, unix.AT_SYMLINK_NOFOLLOW)
}

// finish gives a directory its mode and time once nothing changes in it any more.
func (r *restorer) finish(t *entry) {
	first, _, below := strings.Cut(t.path, "/")
	if !below {
		i, err := strconv.Atoi(first)
		if err != nil {
			return
		}
		fd, err := r.root(i)
		if err != nil {
			return
		}
		unix.Fchmod(fd, t.mode)
		unix.UtimesNanoAt(fd, ".", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(t.mtime)}, 0)
		return
	}
	at, name, err := r.parent(t.path)
	if err != nil {
		return
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		r.dress(at, name, t)
	}
}

// extract writes a content to a new file and checks that it is what was saved.
func (s *Store) extract(t *entry, at int, name string) error {
	src, err := s.content(t)
	if err != nil {
		return err
	}
	defer src.Close()
	fd, err := unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	defer out.Close()
	h, n := sha256.New(), int64(0)
	buf := make([]byte, 64<<10)
	for {
		k, err := io.ReadFull(src, buf)
		if k > 0 {
			h.Write(buf[:k])
			n += int64(k)
			if t.sparse && zero(buf[:k]) {
				if _, err := out.Seek(int64(k), io.SeekCurrent); err != nil {
					return err
				}
			} else if _, err := out.Write(buf[:k]); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if n != t.size || !bytes.Equal(h.Sum(nil), t.sum[:]) {
		return &Error{Op: "read content of", Path: t.path, Err: errDamaged}
	}
	return out.Truncate(n)
}

// content opens what an entry held.
func (s *Store) content(t *entry) (io.ReadCloser, error) {
	if !t.known {
		return nil, errDamaged
	}
	if t.pack != 0 {
		f, err := os.Open(filepath.Join(s.dir, "pack", seqName(t.pack)))
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.NewSectionReader(f, t.off, t.size), f}, nil
	}
	name := filepath.Join(s.dir, "big", hex.EncodeToString(t.sum[:]))
	f, err := os.Open(name)
	if err == nil || s.place.Decompress == nil {
		return f, err
	}
	if f, err = os.Open(name + compressed); err != nil {
		return nil, err
	}
	d, err := s.place.Decompress(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{d, f}, nil
}
