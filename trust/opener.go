package trust

import "os"

// Opener opens executables. Its zero value opens too; it only caches nothing and
// knows no swappable or system places.
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
	return nil, &NotFoundError{Word: word, Err: ErrUnsupported}
}

// File is an identified executable, held open until Close.
type File struct{ id Identity }

// Identity returns what was found.
func (f *File) Identity() Identity { return f.id }

// Start says how to start the file: by path, or, if byDescriptor, through
// /proc/self/fd/N of file, which stays right when the path is replaced. file is
// owned by f and closed by Close.
func (f *File) Start() (path string, byDescriptor bool, file *os.File) { return "", false, nil }

// Recheck is called just before the start: all leases are still held and the
// files are those that were identified. Errors: *BusyError, *ChangedError.
func (f *File) Recheck() error { return &ChangedError{Path: f.id.Canonical, Why: "not held"} }

// CheckStarted compares the program that process pid runs with the identified
// chain: "true" it is one of them; "ended" it is gone, and the path is still
// right; "replaced" it has exec'd another program already; "unknown" it may not
// be looked at. With an error the caller kills the process tree.
func (f *File) CheckStarted(pid int) (string, error) {
	return "unknown", &ChangedError{Path: f.id.Canonical, Why: "not held"}
}

// StartedOK is called once the program runs: binaries are given back to their
// writers (the kernel answers ETXTBSY from here on), scripts stay held, because
// interpreters read them as they go.
func (f *File) StartedOK() {}

// ScriptChanged reports whether somebody asked to write a script while it ran.
func (f *File) ScriptChanged() bool { return false }

// Close releases everything.
func (f *File) Close() error { return nil }
