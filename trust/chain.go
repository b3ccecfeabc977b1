package trust

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of chains: the kernel follows at most five "#!" levels and reads 256
// bytes of each (BINPRM_BUF_SIZE); "env NAME" starts a fresh exec, so those are
// bounded apart.
const (
	maxScriptDepth = 4
	maxParts       = 8
	headSize       = 256
)

// builder assembles the chain of one executable.
type builder struct {
	o       Opener
	word    string
	path    []string
	cwd     string
	cache   *cache
	parts   []*held
	caps    []string
	dirs    []dirFact
	manager string
	target  string
}

func (b *builder) build(first *held) (*File, error) {
	h := first
	for depth := 0; h != nil && h.form == FormScript; depth++ {
		h.role = scriptRole(h)
		if depth == maxScriptDepth {
			return nil, &NotExecutableError{Word: b.word, Path: h.path, Why: "more than 4 levels of #! interpreters"}
		}
		next, err := b.interpreter(h)
		if err != nil {
			return nil, err
		}
		if next.form != FormScript && filepath.Base(next.found) == "env" && h.shebangArg != "" {
			if next, err = b.program(h.shebangArg); err != nil {
				return nil, err
			}
			depth = -1 // env makes a new exec
		}
		h = next
	}
	if err := b.resolveManager(first); err != nil {
		return nil, err
	}
	return b.finish(first), nil
}

func scriptRole(h *held) string {
	if h.role == RoleFile {
		return RoleScript
	}
	return h.role
}

// add opens, holds and identifies one file.
func (b *builder) add(found, role string) (*held, error) {
	if len(b.parts) == maxParts {
		return nil, &NotExecutableError{Word: b.word, Path: found, Why: "its chain of interpreters is too long"}
	}
	h, err := hold(b.word, found, role, b.cache)
	if err != nil {
		return nil, err
	}
	b.parts = append(b.parts, h)
	if h.form == FormForeign {
		b.cap(CapForeignFormat)
	}
	if h.class == ClassLoose && h.form != FormUnreadable {
		b.cap(CapMutableFile)
	}
	h.swappable = b.swappable(h.path)
	h.system = !h.swappable && rootOnly(h.st, h.path) && below(h.path, b.systemPaths())
	h.own = !h.system && b.ownPath(h)
	return h, nil
}

// interpreter adds what the "#!" line of h names.
func (b *builder) interpreter(h *held) (*held, error) {
	line, ok := parseShebang(h.head)
	if !ok {
		return nil, &NotExecutableError{Word: b.word, Path: h.path, Why: "its #! line names no interpreter within 256 bytes"}
	}
	h.shebangArg = line.arg
	next, err := b.add(absolute(line.interpreter, b.cwd), RoleInterpreter)
	switch err.(type) {
	case *NotFoundError, *NotExecutableError:
		return nil, &NotExecutableError{Word: b.word, Path: h.path, Why: "its interpreter " + line.interpreter + " cannot be executed", Err: err}
	}
	return next, err
}

// program adds what "env ARG" will find in PATH. A name that is not there fails
// when env looks for it; until then nothing can be said about it.
func (b *builder) program(arg string) (*held, error) {
	name, ok := envProgram(arg)
	if !ok {
		b.cap(CapUnresolvedProgram)
		return nil, nil
	}
	var h *held
	_, _, err := lookup(name, b.path, b.cwd, func(p string) (err error) {
		h, err = b.add(p, RoleProgram)
		return err
	})
	switch err.(type) {
	case *NotFoundError, *NotExecutableError:
		b.cap(CapUnresolvedProgram)
		return nil, nil
	}
	return h, err
}

func (b *builder) cap(name string) {
	if slices.Contains(b.caps, name) {
		return
	}
	b.caps = append(b.caps, name)
}

func (b *builder) release() {
	for _, h := range b.parts {
		h.close()
	}
	b.parts = nil
}

func (b *builder) finish(first *held) *File {
	f := &File{parts: b.parts, startPath: first.path}
	id := Identity{
		Word: b.word, Argv0: b.word, Found: first.found, Canonical: first.path,
		Place: b.place(first), Size: first.st.size, Dev: first.st.dev, Ino: first.st.ino,
		Form: first.form, Class: first.class, Swappable: first.swappable, SystemPath: first.system,
		Effective: filepath.Base(first.path), Invoked: filepath.Base(b.word),
		Manager: b.manager, ManagerTarget: b.target, CacheHit: true,
	}
	if launcher(id.Place) {
		b.cap(CapLauncherImage)
	}
	switch {
	case first.form == FormScript:
		// The kernel hands a script the path it was started by as $0, so links
		// must be kept; and then every directory on the way counts.
		f.startPath = first.found
		first.via = first.found
		if first.swappable || (first.found != first.path && b.linksSwappable(first.found)) {
			first.swappable, id.Swappable = true, true
			if f.byDescriptor = canStartByDescriptor && b.scriptByDescriptor(first); f.byDescriptor {
				first.via = ""
			} else {
				b.cap(CapMutablePath)
			}
		}
	case first.swappable && canStartByDescriptor:
		f.byDescriptor = true
		first.via = ""
	default:
		first.via = first.path
	}
	for _, h := range b.parts {
		id.Chain = append(id.Chain, h.part())
		id.CacheHit = id.CacheHit && h.hit
	}
	id.Digest = id.Chain[0].Digest
	id.Caps = b.caps
	f.id = id
	watchFile(f)
	return f
}

func (h *held) part() Part {
	return Part{Role: h.role, Path: h.path, Digest: h.hexDigest(), Form: h.form, Class: h.class, SystemPath: h.system, OwnPath: h.own, Swappable: h.swappable}
}

func (h *held) hexDigest() string {
	if h.form == FormUnreadable {
		return ""
	}
	return hex.EncodeToString(h.digest[:])
}

// launcher reports whether the file only starts an image that it does not contain.
func launcher(place string) bool {
	dir := filepath.ToSlash(filepath.Dir(place))
	return dir == "/snap/bin" || dir == "/var/lib/snapd/snap/bin" || strings.HasSuffix(dir, "/flatpak/exports/bin")
}

// formOf tells a form by its magic; FormUnknown if there is none.
func formOf(head []byte) Form {
	has := func(s string) bool { return len(head) >= len(s) && string(head[:len(s)]) == s }
	switch {
	case has("\x7fELF"):
		// AppImage type 2 marks the padding of e_ident.
		if len(head) >= 11 && string(head[8:11]) == "AI\x02" {
			return FormAppImage
		}
		return FormELF
	case has("#!"):
		return FormScript
	case has("MZ"):
		return FormPE
	case has("\xcf\xfa\xed\xfe"), has("\xce\xfa\xed\xfe"), has("\xfe\xed\xfa\xcf"), has("\xfe\xed\xfa\xce"), has("\xca\xfe\xba\xbe"):
		return FormMachO
	}
	return FormUnknown
}

type shebang struct{ interpreter, arg string }

// parseShebang reads a "#!" line as fs/binfmt_script.c does: blanks are space and
// tab, everything after the interpreter is one argument. Unlike the kernel it
// wants the newline within the bytes the kernel reads, so that nothing is cut.
func parseShebang(head []byte) (shebang, bool) {
	if len(head) < 2 || head[0] != '#' || head[1] != '!' {
		return shebang{}, false
	}
	line := head[2:]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		return shebang{}, false
	}
	text := strings.Trim(string(line[:end]), " \t")
	if text == "" || strings.IndexByte(text, 0) >= 0 {
		return shebang{}, false
	}
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return shebang{interpreter: text}, true
	}
	return shebang{interpreter: text[:i], arg: strings.TrimLeft(text[i:], " \t")}, true
}

// envProgram finds NAME in the single argument that a "#!" line gives to env. ok
// is false if env would not start a plain name found in the child's PATH.
func envProgram(arg string) (name string, ok bool) {
	words := []string{arg}
	if split, isSplit := splitArgument(arg); isSplit {
		words = strings.Fields(split)
		// env -S has quotes, escapes and variables of its own; whoever uses them
		// gets an unresolved program rather than a wrong one.
		if strings.ContainsAny(split, "\\\"'$#") {
			return "", false
		}
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--":
			if i+1 < len(words) {
				return plainName(words[i+1])
			}
			return "", false
		case w == "-" || w == "-i" || w == "--ignore-environment":
			return "", false // without PATH the libc default is searched
		case w == "-u" || w == "-C" || w == "--unset" || w == "--chdir":
			return "", false
		case strings.HasPrefix(w, "-v") && len(w) == 2, w == "--debug":
		case strings.HasPrefix(w, "-"), strings.HasPrefix(w, "PATH="):
			return "", false
		case strings.Contains(w, "="):
		default:
			return plainName(w)
		}
	}
	return "", false
}

func splitArgument(arg string) (string, bool) {
	for _, prefix := range [...]string{"-S", "--split-string=", "-vS", "--split-string "} {
		if strings.HasPrefix(arg, prefix) {
			return strings.TrimLeft(arg[len(prefix):], " \t"), true
		}
	}
	return "", false
}

func plainName(w string) (string, bool) { return w, w != "" && !strings.HasPrefix(w, "-") }

// Scripts says how a script is started that somebody could swap between its
// identification and the moment at which its interpreter opens it.
type Scripts uint8

// The values of Scripts. By descriptor the interpreter opens what was identified,
// whatever the path leads to by then; but the script then finds /proc/self/fd/N in $0.
const (
	ScriptsAuto       Scripts = iota // by descriptor where the script cannot tell
	ScriptsPath                      // by path, compared before and after the start
	ScriptsDescriptor                // by descriptor
)

// ScriptsByName reads "trust.scripts"; any other name is ScriptsAuto.
func ScriptsByName(name string) Scripts {
	switch name {
	case "path":
		return ScriptsPath
	case "descriptor":
		return ScriptsDescriptor
	}
	return ScriptsAuto
}

// maxScriptLook bounds the text that is searched for a name of the script itself.
const maxScriptLook = 64 << 10

// ownNames lists, for each interpreter that reads its script by the name it is handed, how a
// script asks what it is called or where it lies. An interpreter that is missing here
// either resolves the name first, as node does, or is not known well enough.
func ownNames() map[string][]string {
	shell := []string{"$0", "${0", "BASH_SOURCE", "BASH_ARGV", "$_", "${_", "caller", "(%", "FUNCNAME", "funcfiletrace", "/proc/", "eval"}
	python := []string{"__file__", "argv", "__spec__", "__main__", "inspect", "multiprocessing", "concurrent", "argparse", "optparse", "click", "traceback", "/proc/", "exec(", "eval("}
	return map[string][]string{
		"sh": shell, "bash": shell, "dash": shell, "ash": shell, "ksh": shell, "mksh": shell,
		"python": python, "python3": python,
		"perl": {"$0", "__FILE__", "FindBin", "PROGRAM_NAME", "caller", "/proc/", "eval"},
		"ruby": {"$0", "__FILE__", "__dir__", "PROGRAM_NAME", "require_relative", "caller", "/proc/", "eval"},
	}
}

// scriptByDescriptor decides how script starts: by default by descriptor if nothing in its
// text asks for its own name. The text is that of the held file.
func (b *builder) scriptByDescriptor(script *held) bool {
	switch b.o.Scripts {
	case ScriptsPath:
		return false
	case ScriptsDescriptor:
		return true
	}
	// What a version manager's shim will start has read nothing of the shim.
	reader := slices.IndexFunc(b.parts, func(h *held) bool { return h.role == RoleTarget })
	if reader < 0 {
		reader = len(b.parts)
	}
	names, known := ownNames()[interpreterName(filepath.Base(b.parts[reader-1].path))]
	if !known || script.st.size > maxScriptLook {
		return false
	}
	text := make([]byte, script.st.size)
	return script.readAt(text) == len(text) && !slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(text, []byte(name)) })
}

// interpreterName leaves out a version: python3.13 is python3.
func interpreterName(base string) string {
	for i := len(base); i > 0; i-- {
		if c := base[i-1]; c != '.' && (c < '0' || c > '9') {
			if base[:i] == "python" && i < len(base) && base[i] == '3' {
				return "python3"
			}
			return base[:i]
		}
	}
	return base
}

// WithCaps returns id with more caps, such as those only the metadata of a tool
// can tell: CapCodeArgument, CapFetchesCode, CapIndirectStart.
func (id Identity) WithCaps(caps ...string) Identity {
	out := append([]string(nil), id.Caps...)
	id.Caps = out
	for _, c := range caps {
		if !id.HasCap(c) {
			id.Caps = append(id.Caps, c)
		}
	}
	return id
}

// WithEnvironment returns id with CapLoaderEnvironment if the child will have a
// variable that brings foreign code into one of the programs: no digest covers
// that code. env has entries NAME=value or NAME.
func (id Identity) WithEnvironment(env []string) Identity {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if loadsAnywhere(name) || slices.ContainsFunc(id.Chain, func(part Part) bool { return loadsInto(filepath.Base(part.Path), name) }) {
			return id.WithCaps(CapLoaderEnvironment)
		}
	}
	return id
}

func loadsAnywhere(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH"
}

// loadsInto knows the variables by which interpreters load code. Some PYTHON and
// NODE variables only tune; they count too, because the lists of those that do
// not grow with every release.
func loadsInto(program, name string) bool {
	is := func(prefix string) bool { return strings.HasPrefix(program, prefix) }
	has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case is("python"), is("pypy"):
		return has("PYTHON")
	case is("node"), is("npm"), is("npx"):
		return has("NODE_")
	case is("perl"):
		return has("PERL5")
	case is("ruby"):
		return has("RUBY")
	case is("java"):
		return name == "JAVA_TOOL_OPTIONS" || name == "_JAVA_OPTIONS" || name == "JDK_JAVA_OPTIONS" || name == "CLASSPATH"
	case is("git"):
		return has("GIT_")
	case is("bash"), is("sh"), is("dash"), is("ksh"), is("zsh"):
		return name == "BASH_ENV" || name == "ENV" || name == "ZDOTDIR"
	}
	return false
}

// maxArgument bounds the program texts that are read for their digest: planning has to end, and a sparse
// file of any size costs nobody anything. 64 MiB take 40 ms.
const maxArgument = 64 << 20

// HoldArgument adds a file that an interpreter was told to run, such as the
// script in "python3 script.py", to the chain of f: opened, held and hashed like
// the program itself. The caller knows from metadata which argument it is; cwd is
// the child's directory. One that is too large has no digest, and no pin on it holds.
func (o Opener) HoldArgument(f *File, path, cwd string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.starting {
		return &ChangedError{Path: f.id.Canonical, Why: "it is being started"}
	}
	if info, err := os.Stat(absolute(path, cwd)); err == nil && info.Size() > maxArgument {
		canonical, err := filepath.EvalSymlinks(absolute(path, cwd))
		if err != nil {
			return candidateError(path, path, err)
		}
		f.id = f.id.WithCaps(CapCodeArgument)
		f.id.Chain = append(f.id.Chain[:len(f.id.Chain):len(f.id.Chain)], Part{Role: RoleArgument, Path: canonical})
		return nil
	}
	b := &builder{o: o, word: path, cwd: cwd, parts: f.parts, caps: f.id.Caps, cache: openCache(o.CacheDir, o.ReadOnlyCache)}
	h, err := b.add(absolute(path, cwd), RoleArgument)
	if err != nil {
		return err
	}
	f.parts = b.parts
	f.id = f.id.WithCaps(append(b.caps, CapCodeArgument)...)
	f.id.Chain = append(f.id.Chain[:len(f.id.Chain):len(f.id.Chain)], h.part())
	f.id.CacheHit = f.id.CacheHit && h.hit
	unwatch(f)
	watchFile(f)
	return nil
}

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

// Lasting is a file of the system as it was when it was identified.
type Lasting struct {
	path string
	st   stat
}

// Lasting tells how an identified file is known again without opening it: a program of the system by
// itself, to which no path leads that others than root can change. It must have been opened by o.
func (o Opener) Lasting(f *File) (Lasting, bool) {
	h, id := f.parts[0], &f.id
	if len(f.parts) > 1 || !id.SystemPath || id.Form != FormELF || id.Manager != "" || id.Word != h.found || filepath.Clean(h.found) != h.found || (&builder{o: o}).linksSwappable(h.found) {
		return Lasting{}, false
	}
	return Lasting{h.found, h.st}, true
}

// Lasts reports whether the path still leads to the same file, unchanged.
func (l Lasting) Lasts() bool {
	st, err := statSystem(l.path)
	return err == nil && st.same(l.st)
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
	for dir := filepath.Dir(p); ; p, dir = dir, filepath.Dir(dir) {
		if b.badDir(dir) && !keeps(dir, p) {
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
	return ownOnly(h.path) && !b.o.changeable(h.path) && !b.linksChanged(h.found, b.o.changeable)
}

// OwnDirectory reports a directory, its links resolved, whose files have own_path as long as only root
// and this user can change them.
func (o Opener) OwnDirectory(dir string) bool { return !o.changeable(filepath.Join(dir, "x")) }

func (o Opener) changeable(path string) bool {
	if o.Kept == nil || !o.Kept(path) {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if !ownOnly(dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
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

var errShort = errors.New("the file changed its size while it was read")

// hashBuffers keeps the read buffer of one digest for the next part of a chain.
var hashBuffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}
