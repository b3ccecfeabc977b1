package trust

import (
	"errors"
	"io/fs"
	"path/filepath"
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
