package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Opener opens executables. Its zero value opens too; it only caches nothing and
// knows no swappable places.
type Opener struct {
	CacheDir      string   // directory of digest records; "" neither reads nor stores
	ReadOnlyCache bool     // believe records but store none
	Workspace     string   // files below these three may be swapped by whoever runs there
	Home          string   //
	TmpDirs       []string //
	SystemPaths   []string // nil: DefaultSystemPaths
	// Kept reports a path where no confined run writes without a question. An executable there that
	// only root and this user can change has own_path. nil: there is no such path.
	Kept func(path string) bool
	// Scripts says how a script that could be swapped is started.
	Scripts Scripts
	// Getenv reads the environment the child will have: version managers choose
	// by it. nil: no variable is set.
	Getenv func(string) string
	// Args are the words after the command: "cargo +nightly" chooses by the first.
	Args []string
}

// DefaultSystemPaths are the directories where whoever can plant a file can
// replace this program too.
func DefaultSystemPaths() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store", "/snap", "/System", "/Library"}
}

// Open finds the executable that word names, opens it once, holds and identifies
// it. path is the child's PATH split into entries, cwd the child's directory.
// Errors: *NotFoundError, *NotExecutableError, *BusyError, *ChangedError.
func (o Opener) Open(word string, path []string, cwd string) (*File, error) {
	b := &builder{o: o, word: word, path: path, cwd: cwd, cache: openCache(o.CacheDir, o.ReadOnlyCache)}
	var first *held
	_, skipped, err := lookup(word, path, cwd, func(p string) (err error) {
		first, err = b.add(p, RoleFile)
		return err
	})
	var f *File
	if err == nil {
		f, err = b.build(first)
	}
	if err != nil {
		b.release()
		return nil, err
	}
	f.id.SkippedPath = skipped
	return f, nil
}

// lookup finds the path of word, the first that try takes. Relative and empty
// PATH entries never match: they would mean another file in every directory, the
// old "." in PATH trap.
func lookup(word string, path []string, cwd string, try func(string) error) (found string, skipped []string, err error) {
	if word == "" {
		return "", nil, &NotFoundError{Word: word, Err: errors.New("the command is empty")}
	}
	if hasSeparator(word) {
		p := absolute(word, cwd)
		return p, nil, try(p)
	}
	var denied error
	for _, dir := range path {
		if !filepath.IsAbs(dir) {
			skipped = append(skipped, dir)
			continue
		}
		for _, name := range spellings(word) {
			p := joinDir(dir, name)
			err := try(p)
			if err == nil {
				return p, skipped, nil
			}
			switch e := err.(type) {
			case *NotFoundError:
			case *NotExecutableError:
				if e.Why == whyDenied && denied == nil {
					denied = e
				} else if e.Why != whyDenied && e.Why != whyNotRegular {
					return "", nil, e
				}
			default:
				return "", nil, err
			}
		}
	}
	if denied != nil {
		return "", nil, denied
	}
	return "", nil, &NotFoundError{Word: word, Skipped: skipped}
}

// joinDir joins without cleaning: "/a/link/../b" must be walked as the kernel does.
func joinDir(dir, name string) string {
	if dir[len(dir)-1] == filepath.Separator {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// absolute puts p below cwd. Only leading "./" is taken off: "link/.." means the
// parent of the link's target.
func absolute(p, cwd string) string {
	if filepath.IsAbs(p) || cwd == "" {
		return p
	}
	for len(p) > 2 && p[:2] == "./" {
		p = p[2:]
	}
	return joinDir(cwd, p)
}

const (
	whyNotRegular = "not a regular file"
	whyDenied     = "permission denied"
)

var errNotRegular = errors.New(whyNotRegular)

func candidateError(word, p string, err error) error {
	switch {
	case errors.Is(err, errNotRegular):
		return &NotExecutableError{Word: word, Path: p, Why: whyNotRegular}
	case errors.Is(err, fs.ErrPermission):
		return &NotExecutableError{Word: word, Path: p, Why: whyDenied}
	case isMissing(err):
		return &NotFoundError{Word: word, Err: err}
	}
	return &NotExecutableError{Word: word, Path: p, Why: "cannot be opened", Err: err}
}

// File is an identified executable, held open until Close.
type File struct {
	id           Identity
	parts        []*held
	startPath    string
	byDescriptor bool

	mu       sync.Mutex
	handle   *os.File
	starting bool      // from Recheck on, leases are given up no more
	started  time.Time // zero until StartedOK
	broken   bool      // a script's lease was asked back while it ran
	closed   bool
}

// Identity returns what was found.
func (f *File) Identity() Identity { return f.id }

// StartedOK is called once the program runs: binaries are given back to their
// writers (the kernel answers ETXTBSY from here on), scripts stay held, because
// interpreters read them as they go.
func (f *File) StartedOK() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = time.Now()
	if len(f.parts) == 1 {
		f.parts[0].unlock()
		return
	}
	for _, h := range f.parts {
		if h.wanted() { // the request came while nothing could be given up
			time.AfterFunc(scriptGrace, f.yield)
			return
		}
	}
}

// scriptGrace is how long a started script stays held against a waiting writer:
// its interpreter has to open it first.
const scriptGrace = time.Second

// Inherit reports whether the descriptor of Start must stay open in the child
// under its own number: the interpreter of a script opens it by that.
func (f *File) Inherit() bool { return f.byDescriptor && f.id.Form == FormScript }

// ScriptChanged reports whether somebody asked to write a part of the chain while
// it ran.
func (f *File) ScriptChanged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// Close releases everything. It may be called more than once.
func (f *File) Close() error {
	unwatch(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	for i, h := range f.parts {
		if i == 0 && f.handle != nil {
			h.unlock()
			f.handle.Close()
			continue
		}
		h.close()
	}
	return nil
}

// dirFact remembers, for one Open, who may replace entries of a directory.
type dirFact struct {
	path string
	bad  bool
}

func (b *builder) systemPaths() []string {
	if b.o.SystemPaths != nil {
		return b.o.SystemPaths
	}
	return DefaultSystemPaths()
}

// swappable reports whether somebody other than root can put another file at the
// canonical path p, or p lies where the agent and its children write.
func (b *builder) swappable(p string) bool {
	if below(p, b.o.TmpDirs) || belowOne(p, b.o.Workspace) || belowOne(p, b.o.Home) {
		return true
	}
	for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
		if b.badDir(dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func (b *builder) badDir(dir string) bool {
	for _, d := range b.dirs {
		if d.path == dir {
			return d.bad
		}
	}
	bad := replaceable(dir)
	b.dirs = append(b.dirs, dirFact{dir, bad})
	return bad
}

// ownPath reports a file that no confined run can have put there: only root and this user can change it
// and the directories and links that lead to it, and no run writes in any of them. Whoever else can,
// can replace the user's policy too.
func (b *builder) ownPath(h *held) bool {
	if b.o.Kept == nil {
		return false
	}
	changed := func(p string) bool {
		if !b.o.Kept(p) {
			return true
		}
		for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
			if !ownOnly(dir) {
				return true
			}
			if dir == filepath.Dir(dir) {
				return false
			}
		}
	}
	return ownOnly(h.path) && !changed(h.path) && !b.linksChanged(h.found, changed)
}

// linksSwappable walks found as the kernel does and reports whether any
// directory on the way can be changed by others.
func (b *builder) linksSwappable(found string) bool { return b.linksChanged(found, b.swappable) }

// linksChanged is linksSwappable for another meaning of a path that can be changed.
func (b *builder) linksChanged(found string, changed func(string) bool) bool {
	const maxLinks = 40 // the kernel's MAXSYMLINKS
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(found))
		if err != nil {
			return true
		}
		p := filepath.Join(dir, filepath.Base(found))
		if changed(p) || b.linksInDirs(filepath.Dir(found), changed) {
			return true
		}
		target, ok := readLink(p)
		if !ok {
			return false
		}
		found = absolute(target, dir)
	}
	return true
}

// linksInDirs checks the directories that hold the links leading to dir.
func (b *builder) linksInDirs(dir string, changed func(string) bool) bool {
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, isLink := readLink(d); isLink && b.linksChanged(d, changed) {
			return true
		}
	}
	return false
}

// place is the resolved directory plus the name as found: it stays the same when
// a link moves to the next version of the program.
func (b *builder) place(h *held) string {
	dir := filepath.Dir(h.found)
	if dir == filepath.Dir(h.path) {
		return joinDir(dir, filepath.Base(h.found)) // already without links
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return joinDir(dir, filepath.Base(h.found))
}

func below(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return belowOne(p, d) })
}

// belowOne reports whether p is dir or below it. The root directory contains
// nothing here: HOME=/ in a container must not make everything swappable.
func belowOne(p, dir string) bool {
	if len(dir) < 2 || len(p) < len(dir) || p[:len(dir)] != dir {
		return false
	}
	return len(p) == len(dir) || p[len(dir)] == filepath.Separator
}
