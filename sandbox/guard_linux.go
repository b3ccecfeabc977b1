package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

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
	return time.Now().UTC().Format("20060102T150405.000000") + "-" + strconv.Itoa(os.Getpid())
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
// record that can be locked belongs to a run that never settled.
func (g *protection) remember() error {
	path := filepath.Join(g.dir, "pending", g.run+".json")
	data, err := json.Marshal(g.record)
	if err != nil {
		return &StepError{Step: "record protected names", Path: path, Err: err}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &StepError{Step: "record protected names", Path: path, Err: errors.Unwrap(err)}
	}
	g.pending = f
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = f.Write(data)
	}
	if err != nil {
		return &StepError{Step: "record protected names", Path: path, Err: err}
	}
	return nil
}

// settleDead settles records of runs whose wrapper is gone.
func settleDead(dir string) []Change {
	names, err := os.ReadDir(filepath.Join(dir, "pending"))
	if err != nil {
		return nil
	}
	var out []Change
	for _, n := range names {
		path := filepath.Join(dir, "pending", n.Name())
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			f.Close() // its run is alive
			continue
		}
		g := &protection{dir: dir, run: strings.TrimSuffix(n.Name(), ".json"), pending: f}
		if json.NewDecoder(f).Decode(&g.record) == nil && g.open() == nil {
			out = append(out, g.settle().Changes...)
			continue
		}
		// Cut off while it was written, so its run had not begun.
		_ = os.Remove(path)
		g.close()
	}
	return out
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
