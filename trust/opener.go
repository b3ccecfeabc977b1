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
	found, skipped, err := lookup(word, path, cwd)
	if err != nil {
		return nil, err
	}
	b := &builder{o: o, word: word, path: path, cwd: cwd, cache: openCache(o.CacheDir, o.ReadOnlyCache)}
	defer b.cache.close()
	f, err := b.build(found)
	if err != nil {
		b.release()
		return nil, err
	}
	f.id.SkippedPath = skipped
	return f, nil
}

// lookup finds the path of word. Relative and empty PATH entries never match:
// they would mean another file in every directory, the old "." in PATH trap.
func lookup(word string, path []string, cwd string) (found string, skipped []string, err error) {
	if word == "" {
		return "", nil, &NotFoundError{Word: word, Err: errors.New("the command is empty")}
	}
	if hasSeparator(word) {
		p := absolute(word, cwd)
		if err := candidate(p); err != nil {
			return "", nil, candidateError(word, p, err)
		}
		return p, nil, nil
	}
	denied := ""
	for _, dir := range path {
		if !filepath.IsAbs(dir) {
			skipped = append(skipped, dir)
			continue
		}
		for _, name := range spellings(word) {
			p := joinDir(dir, name)
			switch err := candidate(p); {
			case err == nil:
				return p, skipped, nil
			case errors.Is(err, fs.ErrPermission) && denied == "":
				denied = p
			}
		}
	}
	if denied != "" {
		return "", nil, &NotExecutableError{Word: word, Path: denied, Why: "no execute permission"}
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

func absolute(p, cwd string) string {
	if filepath.IsAbs(p) || cwd == "" {
		return p
	}
	return joinDir(cwd, p)
}

var (
	errNotRegular = errors.New("not a regular file")
	errNoExec     = fs.ErrPermission
)

func candidateError(word, p string, err error) error {
	switch {
	case errors.Is(err, errNotRegular):
		return &NotExecutableError{Word: word, Path: p, Why: "not a regular file"}
	case errors.Is(err, fs.ErrPermission):
		return &NotExecutableError{Word: word, Path: p, Why: "permission denied"}
	case isMissing(err):
		return &NotFoundError{Word: word, Err: err}
	}
	return &NotExecutableError{Word: word, Path: p, Why: "cannot be opened", Err: err}
}
