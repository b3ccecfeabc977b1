package place

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Dirs are our own directories. They need not exist.
type Dirs struct {
	Home    string
	Config  string // ~/.config/agent-tools, shared with other ATIP programs
	Data    string // ~/.local/share/agent-tools
	State   string // ~/.local/state/atip-exec
	Cache   string // ~/.cache/atip-exec
	Runtime string // /run/user/UID/atip-exec; "" if the system made no such directory
}

// Managed is the directory of the machine's administrator.
const Managed = "/etc/agent-tools"

// Wrappers is where `atip shim` puts the names of tools, for a place in PATH.
func (d Dirs) Wrappers() string { return WrappersOf(d.Data) }

// WrappersOf is the same below a data directory.
func WrappersOf(data string) string { return filepath.Join(data, "wrappers") }

// Undo is where the copies of workspaces lie: ~/.local/share/atip-exec/undo.
func (d Dirs) Undo() string {
	if d.Data == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(d.Data), "atip-exec", "undo")
}

// Own lists the directories no child may ever write; of the cache directory it has its own
// part.
func (d Dirs) Own() []string {
	out := []string{Managed}
	copies := ""
	if u := d.Undo(); u != "" {
		copies = filepath.Dir(u)
	}
	for _, p := range []string{d.Config, d.Data, copies, d.State, d.Cache, d.Runtime} {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// HomeError says that no home directory is known.
type HomeError struct{ Why string }

func (e *HomeError) Error() string { return "home directory unknown: " + e.Why }

// FaultCode implements fault.Coded.
func (e *HomeError) FaultCode() string { return errcode.FlagValue }

// FaultDetails implements fault.Coded.
func (e *HomeError) FaultDetails() map[string]any { return map[string]any{"variable": "HOME"} }

// DirsFromEnv derives the directories from the account database. HOME and the XDG variables
// count where they lie below a directory that the administrator's list names (HomesFile) or
// one of allowed. home stands in for the account's home directory and makes the environment
// irrelevant; as the XDG standard says, relative paths are ignored.
func DirsFromEnv(getenv func(string) string, home string, allowed ...string) (Dirs, error) {
	if home != "" {
		return dirsBelow(filepath.Clean(home), func(_, usual string) (string, error) { return usual, nil })
	}
	h := homes{extra: allowed}
	account := accountHome()
	home = account
	if v := getenv("HOME"); v != "" && !filepath.IsAbs(v) {
		return Dirs{}, &HomeError{Why: fmt.Sprintf("HOME is %q, which is not an absolute path", v)}
	} else if v != "" && v != account {
		ok, err := h.permit(v)
		if err != nil {
			return Dirs{}, err
		}
		if ok {
			home = v
		}
	}
	if home == "" {
		return Dirs{}, &HomeError{Why: fmt.Sprintf("the account database has none for uid %d, and %s does not list HOME (%q)", os.Getuid(), homesFile, getenv("HOME"))}
	}
	return dirsBelow(filepath.Clean(home), func(variable, usual string) (string, error) {
		v := getenv(variable)
		if !filepath.IsAbs(v) || filepath.Clean(v) == usual {
			return usual, nil
		}
		ok, err := h.permit(v)
		if !ok {
			return usual, err
		}
		return filepath.Clean(v), nil
	})
}

// dirsBelow are the directories of a home; chosen is what counts of a variable and the usual
// directory.
func dirsBelow(home string, chosen func(variable, usual string) (string, error)) (Dirs, error) {
	d := Dirs{Home: home}
	for _, row := range [...]struct {
		dir                      *string
		variable, fallback, name string
	}{
		{&d.Config, "XDG_CONFIG_HOME", ".config", "agent-tools"},
		{&d.Data, "XDG_DATA_HOME", ".local/share", "agent-tools"},
		{&d.State, "XDG_STATE_HOME", ".local/state", "atip-exec"},
		{&d.Cache, "XDG_CACHE_HOME", ".cache", "atip-exec"},
		{&d.Runtime, "XDG_RUNTIME_DIR", "", "atip-exec"},
	} {
		usual := ""
		if row.fallback != "" {
			usual = filepath.Join(home, row.fallback)
		} else if dir := fmt.Sprintf("/run/user/%d", os.Getuid()); isDir(dir) {
			usual = dir
		}
		base, err := chosen(row.variable, usual)
		if err != nil {
			return Dirs{}, err
		}
		if base != "" {
			*row.dir = filepath.Join(base, row.name)
		}
	}
	return d, nil
}

func accountHome() string {
	if runtime.GOOS == "windows" {
		p, err := os.UserHomeDir() // USERPROFILE
		if err != nil {
			return ""
		}
		return p
	}
	home := AccountHome(os.Geteuid())
	if home == "" && runtime.GOOS != "linux" {
		home, _ = os.UserHomeDir() // accounts are kept elsewhere there, and nothing is confined
	}
	return home
}

// AccountHome is the home directory that the account database has for a user, "" if none;
// unlike HOME it is not the caller's to choose.
func AccountHome(uid int) string {
	want := strconv.Itoa(uid)
	return accountOf(func(_, id string) bool { return id == want }).home
}

// BelowAccount reports whether a directory really lies below the home directory that the
// account database has for the user, whatever HOME and the XDG variables say.
func BelowAccount(dir string, uid int) bool {
	home := AccountHome(uid)
	if home == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	if canonical, err := filepath.EvalSymlinks(home); err == nil {
		home = canonical
	}
	return subpath.Within(real, home)
}

// AccountName is the user's name in the account database, "" if it has none.
func AccountName(uid int) string {
	want := strconv.Itoa(uid)
	return accountOf(func(_, id string) bool { return id == want }).name
}

// homeOf is the home directory of the first account that matches.
func homeOf(match func(user, uid string) bool) string { return accountOf(match).home }

type account struct{ name, home string }

// accountOf reads the account file directly: os/user would link the C library's
// resolver or its own cache into every start.
func accountOf(match func(user, uid string) bool) account {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return account{}
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if fields := strings.Split(s.Text(), ":"); len(fields) >= 6 && match(fields[0], fields[2]) && filepath.IsAbs(fields[5]) {
			return account{fields[0], fields[5]}
		}
	}
	return account{}
}

// homesFile is where the administrator names the directories below which HOME and the XDG
// variables count, one absolute path a line. Everywhere else our directories are those of
// the account: who types the command could else choose which policy judges it. A build for
// another system directory moves it with -X.
var homesFile = Managed + "/homes"

// HomesFile is the file that says where HOME and the XDG variables count.
func HomesFile() string { return homesFile }

// workspacesName is the file of the configuration directory that lists the directories a
// person registered as workspaces, one absolute path a line.
const workspacesName = "workspaces"

// WorkspacesFile lists the registered workspaces.
func (d Dirs) WorkspacesFile() string { return filepath.Join(d.Config, workspacesName) }

// Workspaces reads the registered workspaces; none if nothing was registered.
func (d Dirs) Workspaces() ([]string, error) { return readList(d.WorkspacesFile()) }

// ListError is a list of directories that cannot be used.
type ListError struct {
	Path string
	Line int // 0 for the whole file
	Why  string
}

func (e *ListError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Why)
	}
	return e.Path + ": " + e.Why
}

// FaultCode implements fault.Coded.
func (e *ListError) FaultCode() string { return errcode.PolicyUnsafe }

// FaultDetails implements fault.Coded.
func (e *ListError) FaultDetails() map[string]any {
	return map[string]any{"file": e.Path, "line": e.Line}
}

// maxList bounds a list of directories.
const maxList = 64 << 10

// readList reads absolute paths, one a line; a line that begins with # is a comment. A file
// that others could have written is an error, one that is not there names nothing.
func readList(path string) ([]string, error) {
	if why, err := writableByOthers(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, &ListError{Path: path, Why: errText(err)}
	} else if why != "" {
		return nil, &ListError{Path: path, Why: why}
	}
	raw, err := regular.Read(path, maxList)
	if err != nil {
		return nil, &ListError{Path: path, Why: errText(err)}
	}
	var out []string
	n := 0
	for line := range strings.SplitSeq(string(raw), "\n") {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) || strings.IndexByte(line, 0) >= 0 {
			return nil, &ListError{Path: path, Line: n, Why: fmt.Sprintf("%q is not an absolute path; write one directory a line", line)}
		}
		out = append(out, filepath.Clean(line))
	}
	return out, nil
}

// errText is an error without the path, which stands before it already.
func errText(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// homes answers whether a directory that the environment names counts. The list is read when
// the first one differs from the account's.
type homes struct {
	extra []string // of the caller in this process, besides the file
	list  []string
	read  bool
}

func (h *homes) permit(dir string) (bool, error) {
	if !h.read {
		listed, err := readList(homesFile)
		if err != nil {
			return false, err
		}
		h.read = true
		for _, p := range slices.Concat(h.extra, listed) {
			h.list = append(h.list, Resolve(p))
		}
	}
	real := Resolve(dir)
	return slices.ContainsFunc(h.list, func(p string) bool { return subpath.Within(real, p) }), nil
}

// Check says which of our directories cannot be relied on: one that is a link, as it would
// lead where somebody else writes, or that belongs to another user. Those that are not there
// yet are fine; who can write a file in them is asked where it is read.
func (d Dirs) Check(uid int) error {
	for _, dir := range [...]string{d.Config, d.Data, d.State, d.Cache} {
		if dir == "" {
			continue
		}
		switch link, missing := lookAt(dir); {
		case missing:
		case link:
			return &OwnDirError{Path: dir, Why: "is a symbolic link; our own directories are not followed through one"}
		case isDir(dir) && !belongsTo(dir, uid):
			return &OwnDirError{Path: dir, Why: "belongs to another user"}
		}
	}
	return nil
}

// OwnDirError says that one of our own directories is not only ours.
type OwnDirError struct{ Path, Why string }

func (e *OwnDirError) Error() string { return e.Path + " " + e.Why }

// FaultCode implements fault.Coded.
func (e *OwnDirError) FaultCode() string { return errcode.PolicyUnsafe }

// FaultDetails implements fault.Coded.
func (e *OwnDirError) FaultDetails() map[string]any { return map[string]any{"path": e.Path} }
